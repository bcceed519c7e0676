"""The mutating half: defaults as a patch, and the whole validation at once. Pure.

It validates too, because the API server's own check of the CRD comes next and would stop at its first layer: only
here can one answer name every fault.
"""

from schemas import defaults, patch
from schemas.job import mapping
from webhook.review import Review, Verdict
from webhook.validate import ALLOWED, judged


def mutate(review: Review) -> Verdict:
    """The defaults as a JSON patch, or every fault of the object with its defaults."""
    if review.kind is None or review.passes_by:
        return ALLOWED
    verdict = judged(review.kind, review.object, review.old)
    if not verdict.allowed or not isinstance(review.object, dict):
        return verdict
    filled = defaults.default(review.kind, review.object, mapping(review.old))
    operations = patch.diff(review.object, filled)
    return Verdict(patch=tuple(operations), warnings=verdict.warnings)
