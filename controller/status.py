"""The job's status from the course of a decision. Pure; gives the stored status itself when nothing has changed."""

from collections.abc import Mapping
from dataclasses import replace
from datetime import datetime
from typing import Any

from controller import children, ledger
from controller.course import Course, named
from controller.plan import Create, Event
from controller.pods import Pod
from schemas import conditions, names, times
from schemas.job import Job, Replica, mapping, sequence

JSON = dict[str, Any]

COUNTS = ("pending", "active")
MOST_NAMED = 3
WORLD_SIZE_KEPT = "Pods that run already keep the number of replicas that they were told at their start."
INVALID_SPEC = "InvalidSpec"


def compose(course: Course, now: datetime) -> JSON:
    """The whole status; ``lastReconcileTime`` moves only together with another change (idle means silent)."""
    stored = dict(course.job.status)
    status = _ended(course, stored) if course.stored_end else _running(course, now)
    if {**stored, "lastReconcileTime": None} == {**status, "lastReconcileTime": None}:
        return stored
    return {**status, "lastReconcileTime": times.written(now)}


def _ended(course: Course, stored: JSON) -> JSON:
    """After the end only pending and active may fall; everything else stays as it was written."""
    counts = {name: dict(mapping(raw)) for name, raw in mapping(stored.get("replicaStatuses")).items()}
    for name, raw in counts.items():
        live = _observed(course, name)
        for key in COUNTS:
            if left := min(raw.pop(key, 0), live.get(key, 0)):
                raw[key] = left
    return {**stored, "replicaStatuses": counts} if counts else stored


def _running(course: Course, now: datetime) -> JSON:
    course = _described(course)
    stamp = times.written(now)
    rows = conditions.advanced(course.job.kind, course.conditions, course.facts, stamp)
    rows = _with_blocked(course, rows, stamp)
    ended = course.facts.ended in conditions.TERMINAL
    status = {
        "conditions": rows,
        "replicaStatuses": {entry.type: _replica_status(course, entry, ended=ended) for entry in course.job.replicas},
        "phase": rows[-1]["type"],
        "replicaSummary": _summary(course),
        "observedGeneration": course.job.metadata.get("generation"),
        **ledger.status_of(course.ledger),
    }
    return {key: value for key, value in status.items() if value not in (None, "")}


def _described(course: Course) -> Course:
    """The facts that the state of a job that goes on follows from."""
    if course.facts.ended or course.facts.suspend:
        return course
    course = _without_started(children.listed(course))
    running = _all_running(course) and all(course.is_wanted(pod) for pod in course.pods)
    return course.knowing(
        replacing=children.replacing(course),
        scaling=_scaling(course) and not running,
        all_running=running,
        waiting=_waiting(course),
        lost=_lost(course),
    )


def _without_started(course: Course) -> Course:
    """A replacement after a disruption has left no trace once it runs: its retry entry goes."""
    for name, tally in course.ledger.tallies.items():
        retries = {
            index: retry
            for index, retry in tally.retries.items()
            if retry.attempt or not _has_started(course.by_key.get((name, index)), course)
        }
        if len(retries) != len(tally.retries):
            course = course.counting(name, retries=retries)
    return course


def _has_started(pod: Pod | None, course: Course) -> bool:
    return pod is not None and pod.started and pod.uid not in course.ledger.pending


def _all_running(course: Course) -> bool:
    wanted = list(course.wanted())
    return bool(wanted) and all(
        index in course.tally(entry.type).succeeded or _runs(course.by_key.get((entry.type, index)))
        for entry, index in wanted
    )


def _runs(pod: Pod | None) -> bool:
    return pod is not None and pod.running


def _scaling(course: Course) -> bool:
    """Indexes come or go on a job that has run before, until its pods match."""
    if course.state == conditions.SCALING:
        return True
    surplus = any(not course.is_wanted(pod) for pod in course.pods)
    return course.has_run and (surplus or any(_is_new(course, entry, index) for entry, index in course.wanted()))


def _is_new(course: Course, entry: Replica, index: int) -> bool:
    """Wanted, never created, and no replacement of a failed pod."""
    tally = course.tally(entry.type)
    listed = course.stored.tally(entry.type).created | tally.succeeded | tally.retries.keys()
    return index not in listed


def _lost(course: Course) -> str:
    """Which pods run where nobody can tell (kubeflow/trainer#956)."""
    lost = [named(pod) for pod in course.pods if pod.lost_node and not pod.finished]
    return f"{', '.join(lost[:MOST_NAMED])}: the node does not answer." if lost else ""


def _waiting(course: Course) -> str:
    return next((f"Pod {pod.name}: {pod.waiting}" for pod in course.pods if pod.waiting and not pod.started), "")


def _with_blocked(course: Course, rows: list[conditions.Condition], stamp: str) -> list[conditions.Condition]:
    """Blocked says what keeps children from being made; it falls when creates have met no obstacle."""
    if course.facts.ended:
        return rows
    if course.seen.faults:
        message = "; ".join(course.seen.faults)[:1024]
        return conditions.with_blocked(rows, blocked=True, reason=INVALID_SPEC, message=message, now=stamp)
    if obstacle := course.seen.obstacle:
        return conditions.with_blocked(rows, blocked=True, reason=obstacle.reason, message=obstacle.message, now=stamp)
    if course.seen.tried or course.facts.suspend or not _wants_children(course):
        return conditions.with_blocked(rows, blocked=False, reason="Unblocked", message="", now=stamp)
    return rows


def _wants_children(course: Course) -> bool:
    """Whether a child is still to be created, now or after a delay."""
    creates = any(isinstance(action, Create) for action in course.actions)
    return creates or any(
        (entry.type, index) not in course.by_key and index not in course.tally(entry.type).succeeded
        for entry, index in course.wanted()
    )


def _replica_status(course: Course, entry: Replica, *, ended: bool) -> JSON:
    labels = names.type_labels(course.job.kind, course.job.name, entry.type)
    tally = course.tally(entry.type)
    if ended:
        tally = replace(tally, retries={})
    return {
        **ledger.replica_status_of(tally),
        **_observed(course, entry.type),
        "labelSelector": {"matchLabels": labels},
        "selector": names.selector(labels),
    }


def _observed(course: Course, replica_type: str) -> JSON:
    """Pending: created, not started. Active: started, not ended, until the object is gone: it holds its GPU.

    Neither is a pod on a node that does not answer. While a job is suspended every pod holds its quota.
    """
    own = [pod for pod in course.pods if pod.type == replica_type and not pod.over]
    active = [pod for pod in own if (pod.started and not pod.lost_node) or course.facts.suspend]
    pending = [pod for pod in own if not pod.started and not course.facts.suspend]
    counts = {"pending": len(pending), "active": len(active)}
    return {key: value for key, value in counts.items() if value}


def _summary(course: Course) -> str:
    running = sum(pod.running for pod in course.pods)
    succeeded = sum(len(course.tally(entry.type).succeeded) for entry in course.job.replicas)
    return f"{min(running + succeeded, course.job.total_replicas)}/{course.job.total_replicas}"


def transition(job: Job, status: JSON) -> tuple[Event, ...]:
    """The Events of a status that is about to be written: the first Running, the end, and what is out of the way."""
    before = _true_state(job.status)
    after = _true_state(status)
    if after is None or not _is_told(job, before or {}, after):
        return ()
    kind = "Warning" if after["type"] == conditions.FAILED or after["reason"] == conditions.NODE_LOST else "Normal"
    told = Event(kind, str(after["reason"]), str(after["message"]))
    unaware = after["type"] == conditions.SCALING and job.kind.fixed_world and job.elastic_policy is None
    return (told, Event("Warning", "WorldSizeKept", WORLD_SIZE_KEPT)) if unaware else (told,)


def _true_state(status: Mapping[str, Any]) -> Mapping[str, Any] | None:
    return conditions.true_state(row for row in sequence(status.get("conditions")) if isinstance(row, dict))


def _is_told(job: Job, before: Mapping[str, Any], after: Mapping[str, Any]) -> bool:
    if after.get("reason") == conditions.NODE_LOST:
        return bool(before.get("message") != after.get("message"))
    if before.get("type") == after["type"]:
        return False
    if after["type"] == conditions.RUNNING:
        known = [mapping(item).get("type") for item in sequence(job.status.get("conditions"))]
        return conditions.RUNNING not in known
    return after["type"] in (conditions.SUCCEEDED, conditions.FAILED, conditions.SUSPENDED, conditions.SCALING)


def is_only_counts(stored: JSON, status: JSON) -> bool:
    """Whether two statuses differ in observed counts alone: such a write may wait a little."""
    return _essence(stored) == _essence(status)


def _essence(status: JSON) -> JSON:
    replicas = {
        name: {key: value for key, value in mapping(raw).items() if key not in COUNTS}
        for name, raw in mapping(status.get("replicaStatuses")).items()
    }
    dropped = ("lastReconcileTime", "replicaSummary")
    return {**{key: value for key, value in status.items() if key not in dropped}, "replicaStatuses": replicas}
