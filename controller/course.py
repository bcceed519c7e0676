"""The course of one decision: what was seen, what has been counted, and what is wanted so far. A value. Pure."""

from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from datetime import datetime
from typing import Any

from controller import ledger as ledgers
from controller.ledger import Ledger, Tally
from controller.plan import Action, Event, Snapshot
from controller.pods import Class, Pod
from schemas import conditions, times
from schemas.conditions import Facts
from schemas.job import Job, Replica, mapping, sequence, text
from schemas.kinds import JobKind

JSON = dict[str, Any]


@dataclass(frozen=True)
class Course:
    """Policies take a course and give the next one; a ``settled`` course goes no further.

    ``stored`` is the ledger as the API server has it, ``ledger`` what it becomes. Deletes rest on ``stored`` alone.
    """

    job: Job
    seen: Snapshot
    pods: tuple[Pod, ...]
    stored: Ledger
    ledger: Ledger
    facts: Facts = field(default_factory=Facts)
    actions: tuple[Action, ...] = ()
    events: tuple[Event, ...] = ()
    notices: tuple[Event, ...] = ()
    restarts: tuple[JSON, ...] = ()
    """The lines of the restart history that this decision adds, however many."""
    wake: datetime | None = None
    settled: bool = False
    ours: bool = True
    by_key: dict[tuple[str, int], Pod] = field(default_factory=dict)

    @classmethod
    def of(cls, kind: JobKind, seen: Snapshot) -> "Course":
        job = seen.read_job(kind, seen.job)
        read = (seen.read_pod(job, raw) for raw in seen.pods)
        pods = tuple(sorted((pod for pod in read if pod), key=lambda pod: (pod.type, pod.index, pod.name)))
        stored = ledgers.read(job)
        by_key = {pod.key: pod for pod in pods}
        return cls(job=job, seen=seen, pods=pods, stored=stored, ledger=stored, by_key=by_key)

    @property
    def conditions(self) -> list[Any]:
        """The stored conditions, whatever is no condition left out."""
        rows = sequence(self.job.status.get("conditions"))
        return [row for row in rows if isinstance(row, dict) and isinstance(row.get("type"), str)]

    @property
    def state(self) -> str:
        """The type of the stored true state; empty before the first."""
        return text(mapping(conditions.true_state(self.conditions)).get("type"))

    @property
    def stored_end(self) -> JSON | None:
        """The stored terminal condition, if the job has ended."""
        found = conditions.true_state(self.conditions)
        return dict(found) if found and found.get("type") in conditions.TERMINAL else None

    @property
    def suspending(self) -> bool:
        """Suspended, or a suspension begun and not yet complete: it completes before a resume is acted on."""
        state = mapping(conditions.true_state(self.conditions))
        return self.job.suspended or state.get("reason") == conditions.JOB_SUSPENDING

    @property
    def has_run(self) -> bool:
        """Whether all pods have run at once since the job's (last) start."""
        ran = mapping(conditions.find(self.conditions, conditions.RUNNING))
        since = times.parse(ran.get("lastTransitionTime"))
        if self.stored.start is None or not ran:
            return False
        return ran.get("status") == "True" or (since is not None and since > self.stored.start)

    def wanted(self) -> Iterator[tuple[Replica, int]]:
        """Every index that should have a pod, unless it has succeeded."""
        for entry in self.job.replicas:
            for index in entry.indexes:
                yield entry, index

    def is_wanted(self, pod: Pod) -> bool:
        entry = self.job.replica(pod.type)
        return entry is not None and pod.index < entry.count

    def is_accounted(self, pod: Pod) -> bool:
        """Its failure has been counted, in the stored ledger or in this decision."""
        return pod.uid in self.ledger.pending

    def unaccounted(self) -> list[Pod]:
        """Failed pods that wait for a verdict. A pod being deleted whose index is unlisted is one that we removed."""
        return [
            pod
            for pod in self.pods
            if pod.failure and not self.is_accounted(pod) and self.is_wanted(pod) and self.is_current(pod)
            if not pod.deleting or pod.index in self.stored.tally(pod.type).created
        ]

    def with_failed(self, pod: Pod | None) -> "Course":
        """The pod counts as failed; one that was taken away has not failed itself."""
        if pod is None or pod.failure is None or pod.failure.failure_class is Class.GONE:
            return self
        return self.counting(pod.type, failed=self.tally(pod.type).failed + 1)

    def is_current(self, pod: Pod) -> bool:
        """Of this round; pods of older ones are only waited for."""
        return pod.round >= self.ledger.round

    def tally(self, replica_type: str) -> Tally:
        return self.ledger.tally(replica_type)

    def counting(self, replica_type: str, **changes: Any) -> "Course":
        tally = replace(self.tally(replica_type), **changes)
        return replace(self, ledger=self.ledger.with_tally(replica_type, tally))

    def does(self, *actions: Action) -> "Course":
        return replace(self, actions=(*self.actions, *actions)) if actions else self

    def tells(self, *events: Event) -> "Course":
        return replace(self, events=(*self.events, *events))

    def notes(self, *notices: Event) -> "Course":
        return replace(self, notices=(*self.notices, *notices))

    def wakes(self, at: datetime | None) -> "Course":
        if at is None or (self.wake is not None and self.wake <= at):
            return self
        return replace(self, wake=at)

    def knowing(self, **facts: Any) -> "Course":
        return replace(self, facts=replace(self.facts, **facts))

    def settle(self) -> "Course":
        return replace(self, settled=True)

    def leaves_alone(self) -> "Course":
        """The job is someone else's: no action, and no status of ours."""
        return replace(self, ours=False, settled=True)

    def ends(self, state: str, reason: str, message: str, now: datetime) -> "Course":
        """The job has ended: nothing more is created; clean-up follows from the stored status.

        Pods that failed and were not accounted yet still count as failed in the final status.
        """
        course = self
        for pod in self.unaccounted():
            course = course.with_failed(pod)
        course = replace(course, ledger=replace(course.ledger, completion=now), wake=None, actions=())
        return course.knowing(ended=state, reason=reason, message=message).settle()


def named(pod: Pod) -> str:
    """A pod in a message: its name, type and index."""
    return f"pod {text(pod.name)} ({pod.type} {pod.index})"
