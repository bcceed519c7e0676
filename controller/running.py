"""How many jobs may run at once in a namespace: who starts, and who waits. The one place that hands out places.

Admission could not say it: two jobs that are submitted at once would both see a free place.
"""

import threading
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from policy.model import Policy, PolicySet
from policy.request import Request
from schemas import conditions
from schemas.job import Job, integer, mapping, sequence, text
from schemas.kinds import JobKind

JSON = dict[str, Any]
Item = tuple[JobKind, JSON]
"""A job and its kind."""


@dataclass(frozen=True, slots=True)
class Waiting:
    """A job that was told to wait, and by which policy."""

    item: Item
    policy: str

    @property
    def age(self) -> str:
        return text(mapping(self.item[1].get("metadata")).get("creationTimestamp"))


class Places:
    """Hands out the places of policies with ``maxRunningJobs``; a place taken here counts before the status shows it.

    ``saw`` and ``lost`` are told of every job as it is. What runs is known from the jobs' own statuses, so nothing is
    lost when the controller starts anew.
    """

    def __init__(self) -> None:
        self._running: dict[str, dict[str, Item]] = {}
        self._waiting: dict[str, dict[str, Waiting]] = {}
        """Both by namespace and UID."""
        self._lock = threading.Lock()

    def saw(self, kind: JobKind, job: JSON) -> bool:
        """A job as it is now; whether another one may go on now: this one has left, or has started in its place."""
        view = Job(kind, job)
        with self._lock:
            if not (runs(view) or waits(view)):
                return self._left(view)
            before = self._running.get(view.namespace, {}).get(view.uid)
            if before is None and not runs(view):
                return False
            self._running.setdefault(view.namespace, {})[view.uid] = kind, job
            return before is not None and runs(view) and not runs(Job(*before))

    def lost(self, kind: JobKind, job: JSON) -> bool:
        """A job is gone; whether another one may go on now."""
        with self._lock:
            return self._left(Job(kind, job))

    def held(self, kind: JobKind, job: JSON, policies: PolicySet, labels: Mapping[str, str] | None) -> str:
        """Why this job has to wait; empty when it may run, and then a place is its."""
        limited = [policy for policy in policies.all if policy.max_running_jobs is not None]
        view = Job(kind, job)
        if has_started(view) or not waits(view) or not (limited or self._waiting):
            return ""
        with self._lock:
            for policy in limited:
                if policy.holds(_request(kind, job, labels)) and (full := self._full(policy, view, labels)):
                    waiting = self._waiting.setdefault(view.namespace, {})
                    waiting[view.uid] = Waiting((kind, job), policy.name)
                    return full
            self._left(view)
            self._running.setdefault(view.namespace, {})[view.uid] = kind, job
        return ""

    def next(self, namespace: str) -> list[Item]:
        """Who is to be looked at when a place may have become free: of each policy the oldest that waits for it."""
        with self._lock:
            waiting = sorted(self._waiting.get(namespace, {}).values(), key=lambda one: one.age, reverse=True)
        return list({one.policy: one.item for one in waiting}.values())

    def waiting(self) -> list[Item]:
        """All jobs that were told to wait and still do, the oldest first."""
        with self._lock:
            found = [one for namespace in self._waiting.values() for one in namespace.values()]
        return [one.item for one in sorted(found, key=lambda one: one.age)]

    def _left(self, view: Job) -> bool:
        found = False
        for held in (self._running, self._waiting):
            there: dict[str, Any] = held.get(view.namespace, {})
            found |= there.pop(view.uid, None) is not None
            if not there:
                held.pop(view.namespace, None)
        return found

    def _full(self, policy: Policy, view: Job, labels: Mapping[str, str] | None) -> str:
        most = policy.max_running_jobs or 0
        there = self._running.get(view.namespace, {})
        count = sum(1 for item in there.values() if policy.holds(_request(*item, labels)))
        if view.uid in there or count < most:
            return ""
        run = "1 job runs" if count == 1 else f"{count} jobs run"
        lets = "1 job" if most == 1 else f"{most} jobs"
        return f"Policy {policy.name} lets {lets} run at once in namespace {view.namespace}, and {run}."


def runs(job: Job) -> bool:
    """Started and not ended. A suspended job runs until its pods are gone: so long they hold what others wait for."""
    return not _has_ended(job) and ((has_started(job) and not job.suspended) or _has_pods(job))


def waits(job: Job) -> bool:
    """Whether a job is to run but has not started: not one that ended, is suspended, leaves or is someone else's."""
    return not (job.suspended or job.deleting or _has_ended(job)) and job.managed_by_us


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
