"""What policies have to do with a review: what they fill in, and what they say of the result. Pure."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any

from policy import evaluate
from policy.evaluate import Filled, IsLate
from policy.model import PolicySet
from policy.request import Request
from policy.verdicts import NO_JUDGEMENT, Judgement
from schemas.faults import Fault
from schemas.kinds import JobKind
from webhook.review import Review

JSON = dict[str, Any]
LONG_AGO = datetime.min.replace(tzinfo=UTC)


@dataclass(frozen=True, slots=True)
class Ground:
    """What a review is judged on, besides itself: the policies, the labels of its namespace, and the time.

    ``namespace_labels`` is None when they could not be had. ``loaded`` is false while the policies are not known yet.
    """

    policies: PolicySet = field(default_factory=PolicySet)
    namespace_labels: Mapping[str, str] | None = None
    now: datetime = LONG_AGO
    is_late: IsLate = evaluate.in_time
    loaded: bool = True


FREE = Ground()
"""No policies at all."""
NOT_LOADED = Fault("spec", "must be judged by policies, which this webhook has not read yet: try again")


def filled(review: Review, kind: JobKind, ground: Ground) -> Filled:
    """The review's object with the defaults of policies."""
    if not ground.policies or not isinstance(review.object, dict):
        return Filled(review.object)
    old = review.old if isinstance(review.old, dict) else None
    return evaluate.filled(ground.policies, request_of(review, kind, ground, review.object, old))


def judged(review: Review, kind: JobKind, ground: Ground, value: JSON, old: JSON | None) -> Judgement:
    """What policies say of ``value``; both objects carry the built-in defaults."""
    if not ground.policies:
        return NO_JUDGEMENT
    return evaluate.judged(ground.policies, request_of(review, kind, ground, value, old), ground.now, ground.is_late)


def request_of(review: Review, kind: JobKind, ground: Ground, value: JSON, old: JSON | None) -> Request:
    return Request(
        kind=kind,
        object=value,
        operation=review.operation,
        old=old,
        namespace=review.namespace,
        namespace_labels=ground.namespace_labels,
        user=review.user,
        groups=review.groups,
        uid=review.uid,
        dry_run=review.dry_run,
    )
