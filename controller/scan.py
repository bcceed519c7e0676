"""What policies say of stored jobs, and what is said of policies in their statuses. Pure."""

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

from policy.catalog import Contents
from policy.evaluate import judged
from policy.model import Policy, PolicySet
from policy.request import Request
from policy.verdicts import WARNED, Violation
from schemas import defaults, times
from schemas.conditions import find
from schemas.job import Job, mapping, sequence
from schemas.kinds import JobKind
from schemas.records import Admission

JSON = dict[str, Any]
READY = "Ready"
BY_USER = "it asks who submits a job, which nobody knows of a stored one"
SCAN = "SCAN"


@dataclass
class Findings:
    """Of one look at all jobs: by policy the jobs it is about and those that break it, and each job's record."""

    jobs: Counter[str] = field(default_factory=Counter)
    violating: Counter[str] = field(default_factory=Counter)
    records: list[Admission] = field(default_factory=list)


def look(
    findings: Findings,
    page: Iterable[tuple[JobKind, JSON]],
    policies: PolicySet,
    labels: Mapping[str, Mapping[str, str]],
    now: datetime,
) -> None:
    """Adds a page of stored jobs; ``labels`` are those of each namespace. Jobs that leave are not looked at."""
    evaluated = PolicySet(policy for policy in policies.all if not policy.asks_for_user)
    for kind, job in page:
        view = Job(kind, job)
        if view.deleting:
            continue
        filled = defaults.default(kind, job)
        request = Request(kind, filled, namespace=view.namespace, namespace_labels=labels.get(view.namespace))
        judgement = judged(evaluated, request, now)
        findings.jobs.update(judgement.matched)
        broken = {item.policy: item for item in judgement.violations}
        findings.violating.update(broken.keys())
        findings.records += [_record(view, policy, judgement.violations, now) for policy in broken]


def _record(job: Job, policy: str, violations: Iterable[Violation], now: datetime) -> Admission:
    return Admission(
        time=now,
        review="",
        uid=job.uid,
        user="",
        groups=(),
        namespace=job.namespace,
        name=job.name,
        kind=job.kind.kind,
        operation=SCAN,
        verdict=WARNED,
        policy=policy,
        errors=tuple(str(item.fault) for item in violations if item.policy == policy),
    )


def scan_status(policy: Policy, findings: Findings, now: datetime) -> JSON:
    """``status.scan`` of one policy."""
    if policy.asks_for_user:
        return {"time": times.written(now), "jobs": None, "violating": None, "notEvaluated": BY_USER}
    return {
        "time": times.written(now),
        "jobs": findings.jobs[policy.name],
        "violating": findings.violating[policy.name],
        "notEvaluated": None,
    }


def readiness(stored: JSON, contents: Contents, now: datetime) -> JSON:
    """What is to change in the status of a stored policy: its Ready condition, and exceptions that have ended."""
    metadata, status = mapping(stored.get("metadata")), mapping(stored.get("status"))
    invalid = next((item for item in contents.invalid if item.name == metadata.get("name")), None)
    policy = next((item for item in contents.policies.all if item.name == metadata.get("name")), None)
    faults = "; ".join(map(str, invalid.faults))[:1024] if invalid else ""
    reason, message = ("Invalid", faults) if invalid else ("InForce", "The policy is in force.")
    row: JSON = {"type": READY, "status": "False" if invalid else "True", "reason": reason, "message": message}
    row["observedGeneration"] = metadata.get("generation")
    known = mapping(find([mapping(item) for item in sequence(status.get("conditions"))], READY))
    changed: JSON = {}
    if any(known.get(key) != value for key, value in row.items()):
        since = known.get("lastTransitionTime") if known.get("status") == row["status"] else None
        changed["conditions"] = [{**row, "lastTransitionTime": since or times.written(now)}]
    expired = [item.shown for item in policy.expired(now)] if policy else []
    if expired != sequence(status.get("expiredExceptions")):
        changed["expiredExceptions"] = expired
    return changed
