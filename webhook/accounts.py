"""From a verdict to what is recorded and counted of it. Pure."""

from collections import Counter
from datetime import datetime
from typing import Any

from policy.defaults import Applied
from policy.places import segments
from policy.verdicts import AUDITED, REFUSED, WARNED
from schemas.job import mapping, text
from schemas.patch import escape
from schemas.records import Admission
from webhook.review import Review, Verdict

ALLOWED, DEFAULTED, SUBMITTED = "allowed", "defaulted", ""
MUTATE = "mutate"
CREATE = "CREATE"
MATCHED = "matched"
FIELDS = {REFUSED: "denied", WARNED: "warned", AUDITED: "audited"}

Counts = Counter[tuple[str, str]]
"""(policy, field of its status) to how many requests."""


def admission(path: str, review: Review, verdict: Verdict, now: datetime, size: int = 0) -> Admission | None:
    """The record of a review; None when there is nothing to tell: a dry run, or what changes no spec.

    A create passes /mutate, where it still is what somebody wrote, and /validate, where it has its UID. The first
    record holds the object, and no verdict unless there is one; the second the verdict, and no object. ``size`` is the
    number of bytes that were sent.
    """
    said = _word(path, review, verdict)
    if review.dry_run or said is None or review.kind is None:
        return None
    metadata = mapping(mapping(review.object).get("metadata"))
    kept = _is_kept(path, review, verdict)
    filled = [item for item in verdict.applied if not item.audit]
    return Admission(
        time=now,
        review=review.uid,
        uid=text(metadata.get("uid")),
        user=review.user,
        groups=review.groups,
        namespace=review.namespace,
        name=review.name or text(metadata.get("name")) or text(metadata.get("generateName")),
        kind=review.kind.kind,
        operation=review.operation,
        verdict=said,
        policy=",".join(_policies(verdict)),
        errors=_errors(verdict),
        defaults=tuple(map(_default, filled)),
        object=mapping(review.object) if kept else None,
        size=size if kept else 0,
    )


def _word(path: str, review: Review, verdict: Verdict) -> str | None:
    """The weightiest thing that happened; what is only audited leaves a job allowed."""
    if not verdict.allowed:
        return REFUSED
    if path == MUTATE:
        return _word_of_mutation(review, verdict)
    if verdict.judgement.of(WARNED):
        return WARNED
    return ALLOWED if verdict.judgement.violations or _changes_spec(review) else None


def _word_of_mutation(review: Review, verdict: Verdict) -> str | None:
    if any(not item.audit for item in verdict.applied):
        return DEFAULTED
    if verdict.applied:
        return ALLOWED
    return SUBMITTED if review.operation == CREATE and not review.passes_by else None


def _changes_spec(review: Review) -> bool:
    if review.passes_by:
        return False
    return review.operation == CREATE or mapping(review.object).get("spec") != mapping(review.old).get("spec")


def _is_kept(path: str, review: Review, verdict: Verdict) -> bool:
    """Whether the object is what somebody submitted; each once: creates at /mutate, updates where they end."""
    is_create = review.operation == CREATE
    return review.subresource == "" and (not verdict.allowed or is_create is (path == MUTATE))


def _policies(verdict: Verdict) -> list[str]:
    """Those that had a say, in order."""
    said = [item.policy for item in verdict.judgement.violations]
    return list(dict.fromkeys([*said, *(item.policy for item in verdict.applied)]))


def _errors(verdict: Verdict) -> tuple[str, ...]:
    violations = (str(item.fault) for item in verdict.judgement.violations)
    return tuple(dict.fromkeys([*map(str, verdict.faults), *violations]))


def _default(item: Applied) -> dict[str, Any]:
    """A JSON patch operation, and whose it is."""
    pointer = "".join(f"/{escape(str(segment))}" for segment in segments(item.path))
    return {"op": "add", "path": pointer, "value": item.value, "policy": item.policy}


def counts(path: str, review: Review, verdict: Verdict) -> Counts:
    """What policies' statuses are raised by. A job passes /mutate and /validate: matches count where it ends."""
    found: Counts = Counter()
    if review.dry_run:
        return found
    if verdict.allowed:
        found.update({(item.policy, DEFAULTED): 1 for item in verdict.applied})
    if path == MUTATE and verdict.allowed:
        return found
    found.update({(name, MATCHED): 1 for name in verdict.judgement.matched})
    found.update({(item.policy, FIELDS[item.outcome]): 1 for item in verdict.judgement.violations})
    return found
