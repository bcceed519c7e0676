"""The validating half: the whole validation of the final object. Pure."""

from itertools import islice
from typing import Any

from schemas import defaults, validation
from schemas.faults import MOST_FAULTS, NOTHING, TYPE_INVALID, Fault
from schemas.job import Job, mapping
from schemas.kinds import JobKind
from schemas.rules.warnings import as_text
from schemas.unknown import unknown_fields
from webhook.review import Review, Verdict

JSON = dict[str, Any]
ALLOWED = Verdict()


def validate(review: Review) -> Verdict:
    """Refuses what is wrong with the object, in one complete answer."""
    if review.kind is None or review.passes_by:
        return ALLOWED
    return judged(review.kind, review.object, review.old)


def judged(kind: JobKind, obj: Any, old: Any) -> Verdict:
    """Faults and warnings of ``obj`` with its defaults; ``old`` is the stored object on an update."""
    if not isinstance(obj, dict):
        got = NOTHING if obj is None else obj
        return Verdict(faults=(Fault("object", "must be an object", got, TYPE_INVALID),))
    return judged_filled(kind, defaults.default(kind, obj, mapping(old)), old)


def judged_filled(kind: JobKind, filled: JSON, old: Any) -> Verdict:
    """The same for an object that has its defaults already."""
    new_job = Job(kind, filled)
    old_job = Job(kind, defaults.default(kind, old)) if isinstance(old, dict) else None
    if old_job is not None and same_but_suspend(old_job, new_job):
        return ALLOWED
    found = validation.check(new_job, old_job)
    warnings = [*validation.warn(new_job, old_job), *_unknown(kind, filled)]
    return Verdict(faults=tuple(found), warnings=tuple(warnings))


def _unknown(kind: JobKind, filled: JSON) -> list[str]:
    """Warnings about fields that nobody knows. The API server prunes or refuses them first, by a CRD that may be newer
    than we are, so here they are no faults; a review sent directly is told of its typing errors (mpi-operator#224).
    """
    return [as_text(fault) for fault in islice(unknown_fields(kind, filled), MOST_FAULTS)]


def same_but_suspend(old: Job, new: Job) -> bool:
    """Whether an update leaves the spec as it is, suspend aside: such an update is never refused."""
    return _without_suspend(old) == _without_suspend(new)


def _without_suspend(job: Job) -> JSON:
    policy = {key: value for key, value in job.run_policy.items() if key != "suspend"}
    return {**job.spec, "runPolicy": policy}
