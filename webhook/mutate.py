"""The mutating half: defaults as a patch, and the whole validation at once. Pure.

It validates too, because the API server's own check of the CRD comes next and would stop at its first layer: only
here can one answer name every fault. Policies come before the built-in defaults, which would leave them nothing.
"""

from dataclasses import replace

from schemas import defaults, patch
from schemas.job import mapping
from webhook import governed as policies
from webhook.governed import FREE, Ground
from webhook.review import Review, Verdict
from webhook.validate import ALLOWED, governed, judged


def mutate(review: Review, ground: Ground = FREE) -> Verdict:
    """The defaults as a JSON patch, or every fault of the object with its defaults."""
    if review.kind is None or review.passes_by:
        return ALLOWED
    if not isinstance(review.object, dict):
        return judged(review.kind, review.object, review.old)
    policed = policies.filled(review, review.kind, ground)
    filled = defaults.default(review.kind, policed.object, mapping(review.old))
    verdict = replace(governed(review, review.kind, filled, ground), applied=policed.applied)
    if not verdict.allowed:
        return verdict
    return replace(verdict, patch=tuple(patch.diff(review.object, filled)))
