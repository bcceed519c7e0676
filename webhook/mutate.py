"""The mutating half: defaults as a patch, and the whole validation at once. Pure.

It validates too, because the API server's own check of the CRD comes next and would stop at its first layer: only
here can one answer name every fault.
"""

from schemas import defaults, patch
from schemas.job import mapping
from webhook.review import Review, Verdict
from webhook.validate import ALLOWED, judged, judged_filled


def mutate(review: Review) -> Verdict:
    """The defaults as a JSON patch, or every fault of the object with its defaults."""
    if review.kind is None or review.passes_by:
        return ALLOWED
    if not isinstance(review.object, dict):
        return judged(review.kind, review.object, review.old)
    filled = defaults.default(review.kind, review.object, mapping(review.old))
    verdict = judged_filled(review.kind, filled, review.old)
    if not verdict.allowed:
        return verdict
    return Verdict(patch=tuple(patch.diff(review.object, filled)), warnings=verdict.warnings)
