"""The validating half: the whole validation of the final object. Pure."""

from dataclasses import replace
from itertools import islice
from typing import Any

from policy.verdicts import Judgement
from schemas import defaults, faults, validation
from schemas.faults import MOST_FAULTS, NOTHING, TYPE_INVALID, Fault
from schemas.job import Job, mapping
from schemas.kinds import JobKind
from schemas.rules.warnings import as_text
from schemas.unknown import unknown_fields
from webhook import governed as policies
from webhook.governed import FREE, NOT_LOADED, Ground
from webhook.review import Review, Verdict

JSON = dict[str, Any]
ALLOWED = Verdict()


def validate(review: Review, ground: Ground = FREE) -> Verdict:
    """Refuses what is wrong with the object or against a policy, in one complete answer."""
    if review.kind is None or review.passes_by:
        return ALLOWED
    if not isinstance(review.object, dict):
        return judged(review.kind, review.object, review.old)
    filled = defaults.default(review.kind, review.object, mapping(review.old))
    return governed(review, review.kind, filled, ground)


def judged(kind: JobKind, obj: Any, old: Any) -> Verdict:
    """Faults and warnings of ``obj`` with its defaults; ``old`` is the stored object on an update."""
    if not isinstance(obj, dict):
        got = NOTHING if obj is None else obj
        return Verdict(faults=(Fault("object", "must be an object", got, TYPE_INVALID),))
    return judged_filled(kind, defaults.default(kind, obj, mapping(old)), old)


def judged_filled(kind: JobKind, filled: JSON, old: Any) -> Verdict:
    """The same for an object that has its defaults already."""
    new_job, old_job = Job(kind, filled), _old(kind, old)
    return ALLOWED if old_job is not None and same_but_suspend(old_job, new_job) else _checked(new_job, old_job)


def _checked(new: Job, old: Job | None) -> Verdict:
    found = validation.check(new, old)
    warnings = [*validation.warn(new, old), *_unknown(new.kind, dict(new.raw))]
    return Verdict(faults=tuple(found), warnings=tuple(warnings))


def governed(review: Review, kind: JobKind, filled: JSON, ground: Ground) -> Verdict:
    """As ``judged_filled``, and what policies say: their refusals beside the other faults, their warnings after."""
    new, old = Job(kind, filled), _old(kind, review.old)
    if old is not None and same_but_suspend(old, new):
        return ALLOWED
    verdict = _checked(new, old)
    if not ground.loaded:
        return replace(verdict, faults=(*verdict.faults, NOT_LOADED))
    return with_judgement(verdict, policies.judged(review, kind, ground, filled, dict(old.raw) if old else None))


def with_judgement(verdict: Verdict, judgement: Judgement) -> Verdict:
    """A rule that could not be evaluated says nothing new about an object that is invalid anyway."""
    if verdict.faults:
        kept = tuple(item for item in judgement.violations if not item.failed)
        judgement = replace(judgement, violations=kept)
    found = faults.ordered([*verdict.faults, *judgement.faults])
    return replace(verdict, faults=tuple(found), warnings=(*verdict.warnings, *judgement.warnings), judgement=judgement)


def _old(kind: JobKind, old: Any) -> Job | None:
    return Job(kind, defaults.default(kind, old)) if isinstance(old, dict) else None


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
