"""Requests to ``/scale``: the object is a Scale, so the job itself is read, and judged with the new number. Pure.

Without a way to read jobs (a webhook that runs beside no cluster) only the number itself is judged.
"""

from collections.abc import Callable, Mapping
from typing import Any

from schemas import validation
from schemas.defaults import default
from schemas.faults import INVALID, NOTHING, TYPE_INVALID, Fault
from schemas.job import INT32, Job, integer, mapping
from schemas.kinds import JobKind
from webhook import governed
from webhook.governed import FREE, NOT_LOADED, Ground
from webhook.review import Review, Verdict
from webhook.validate import with_judgement

JSON = dict[str, Any]
Fetch = Callable[[JobKind, str, str], JSON]
"""Reads one job by kind, namespace and name; raises ``Unreadable`` when it cannot."""

SCALED = "Worker"
ALLOWED = Verdict()


class Unreadable(Exception):  # noqa: N818 - it reads as what it says
    """The job could not be read in time; the text says why."""


def judge(review: Review, fetch: Fetch | None, ground: Ground = FREE) -> Verdict:
    """Refuses a number that the job's own validation or a policy would refuse, and any for a job that is unreadable."""
    if review.kind is None or review.operation not in ("CREATE", "UPDATE"):
        return ALLOWED
    wanted = mapping(mapping(review.object).get("spec")).get("replicas", 0)
    if fault := number_fault(wanted):
        return Verdict(faults=(fault,))
    if fetch is None:
        return ALLOWED
    try:
        stored = fetch(review.kind, review.namespace, review.name)
    except Unreadable as error:
        return Verdict(
            faults=(Fault("spec.replicas", f"must be checked, and the job cannot be read: {error}", wanted),)
        )
    return scaled(review, review.kind, stored, int(wanted), ground)


def number_fault(wanted: Any) -> Fault | None:
    """What is wrong with the number by itself."""
    number = integer(wanted)
    if number is None:
        return Fault("spec.replicas", "must be an integer", wanted, TYPE_INVALID)
    return None if 0 <= number <= INT32 else Fault("spec.replicas", f"must be an integer from 0 to {INT32}", wanted)


def scaled(review: Review, kind: JobKind, stored: JSON, replicas: int, ground: Ground) -> Verdict:
    """The stored job's faults once its Workers number ``replicas``; those it has already are not reported."""
    old = Job(kind, default(kind, stored))
    if old.replica(SCALED) is None:
        types = ", ".join(entry.type for entry in old.replicas)
        fault = Fault(
            old.path(kind.spec_key, SCALED), f"must be one of the job's types to be scaled: {types}", NOTHING, INVALID
        )
        return Verdict(faults=(fault,))
    new = with_replicas(kind, old.raw, replicas)
    verdict = Verdict(faults=tuple(validation.check(Job(kind, new), old)))
    if not ground.loaded:
        return Verdict(faults=(*verdict.faults, NOT_LOADED))
    return with_judgement(verdict, governed.judged(review, kind, ground, new, dict(old.raw)))


def with_replicas(kind: JobKind, job: Mapping[str, Any], replicas: int) -> JSON:
    """A copy of ``job`` whose Workers number ``replicas``."""
    entries = mapping(mapping(job.get("spec")).get(kind.spec_key))
    worker = {**mapping(entries.get(SCALED)), "replicas": replicas}
    return {**job, "spec": {**mapping(job.get("spec")), kind.spec_key: {**entries, SCALED: worker}}}
