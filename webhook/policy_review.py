"""Reviews of TrainingPolicy objects: an invalid one is refused with the place of each fault. Pure."""

from policy.compile import compiled, is_policy
from policy.model import Invalid
from webhook.governed import Ground
from webhook.review import JUDGED, Review, Verdict

ALLOWED = Verdict()


def judge(review: Review, ground: Ground) -> Verdict:
    """All faults of a policy; a warning for each exception that has ended."""
    if review.operation not in JUDGED or review.subresource or not _is_ours(review):
        return ALLOWED
    found = compiled(review.object)
    if isinstance(found, Invalid):
        return Verdict(faults=found.faults)
    ended = (f"spec.{item.shown} (ended {item.until:%Y-%m-%d})" for item in found.expired(ground.now))
    return Verdict(warnings=tuple(text[:120] for text in ended))


def _is_ours(review: Review) -> bool:
    return review.kind_name == "TrainingPolicy" and (not isinstance(review.object, dict) or is_policy(review.object))
