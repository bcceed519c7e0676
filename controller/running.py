"""How many jobs may run at once in a namespace: who starts, and who waits. The one place that hands out places.

Admission could not say it: two jobs that are submitted at once would both see a free place.
"""

import threading
from collections.abc import Callable, Iterable, Mapping
from typing import Any

from policy.model import Policy, PolicySet
from policy.request import Request
from schemas import conditions
from schemas.job import Job, integer, mapping, sequence
from schemas.kinds import JobKind

JSON = dict[str, Any]
Jobs = Callable[[], Iterable[tuple[JobKind, JSON]]]
"""All stored jobs."""


class Places:
    """Hands out the places of policies with ``maxRunningJobs``; a place taken here counts before the status shows it.

    What runs is known from the jobs' own statuses, so nothing is lost when the controller starts anew.
    """

    def __init__(self, jobs: Jobs) -> None:
        self._jobs = jobs
        self._given: set[str] = set()
        self._waiting: set[str] = set()
        self._lock = threading.Lock()

    def held(self, kind: JobKind, job: JSON, policies: PolicySet, labels: Mapping[str, str] | None) -> str:
        """Why this job has to wait; empty when it may run, and then a place is its."""
        limited = [policy for policy in policies.all if policy.max_running_jobs is not None]
        view = Job(kind, job)
        if not limited or has_started(view) or not waits(view):
            return ""
        with self._lock:
            for policy in limited:
                if policy.holds(_request(kind, job, labels)) and (full := self._full(policy, view, labels)):
                    self._waiting.add(view.uid)
                    return full
            self._given.add(view.uid)
            self._waiting.discard(view.uid)
        return ""

    def leave(self, uid: str) -> None:
        """A job has ended, is suspended or is gone."""
        with self._lock:
            self._given.discard(uid)
            self._waiting.discard(uid)

    def waiting(self, namespace: str | None) -> list[tuple[JobKind, JSON]]:
        """Jobs that were told to wait and still do, in a namespace or (None) in all, the oldest first."""
        if not self._waiting:
            return []
        found = [(kind, job) for kind, job in self._jobs() if Job(kind, job).uid in self._waiting]
        found = [item for item in found if namespace in (None, Job(*item).namespace)]
        return sorted(found, key=lambda item: str(Job(*item).metadata.get("creationTimestamp")))

    def _full(self, policy: Policy, view: Job, labels: Mapping[str, str] | None) -> str:
        most = policy.max_running_jobs or 0
        there = [(kind, job) for kind, job in self._jobs() if Job(kind, job).namespace == view.namespace]
        running = {
            other.uid
            for kind, job in there
            if self._runs(other := Job(kind, job)) and policy.holds(_request(kind, job, labels))
        }
        if view.uid in running or len(running) < most:
            return ""
        jobs = "1 job runs" if len(running) == 1 else f"{len(running)} jobs run"
        lets = "1 job" if most == 1 else f"{most} jobs"
        return f"Policy {policy.name} lets {lets} run at once in namespace {view.namespace}, and {jobs}."

    def _runs(self, job: Job) -> bool:
        return runs(job) or (job.uid in self._given and waits(job))


def runs(job: Job) -> bool:
    """Started and not ended. A suspended job runs until its pods are gone: so long they hold what others wait for."""
    return not _has_ended(job) and ((has_started(job) and not job.suspended) or _has_pods(job))


def waits(job: Job) -> bool:
    """Whether a job is to run but has not started: not one that ended, is suspended, leaves or is someone else's."""
    return not (job.suspended or job.deleting or _has_ended(job)) and job.managed_by_us


def occupies(job: Job) -> bool:
    """Whether a job runs or may begin to at any moment; one that does neither has left its place."""
    return runs(job) or waits(job)


def has_started(job: Job) -> bool:
    return job.status.get("startTime") is not None


def _has_pods(job: Job) -> bool:
    rows = [mapping(row) for row in mapping(job.status.get("replicaStatuses")).values()]
    return any(integer(row.get(count)) for row in rows for count in ("active", "pending"))


def _has_ended(job: Job) -> bool:
    rows = [mapping(row) for row in sequence(job.status.get("conditions"))]
    return any(conditions.is_true(rows, state) for state in conditions.TERMINAL)


def _request(kind: JobKind, job: JSON, labels: Mapping[str, str] | None) -> Request:
    return Request(kind, job, namespace=Job(kind, job).namespace, namespace_labels=labels)
