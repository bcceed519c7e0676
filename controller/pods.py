"""One pod of a job, read: which replica it is, how far it has come, and how it ended. Pure."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta
from enum import Enum
from typing import Any

from schemas import names, times
from schemas.job import Job, integer, main_container, mapping, number, sequence, text
from schemas.kinds import JobKind

JSON = Mapping[str, Any]

# Pod reasons that the node or the scheduler sets when it takes a pod away (kubeflow/trainer#1570).
DISRUPTION_REASONS = frozenset({"Evicted", "Preempting", "NodeShutdown", "Terminated", "NodeLost", "Shutdown"})
REFUSED_REASONS = ("UnexpectedAdmissionError", "NodeAffinity")  # and every OutOf…: the kubelet refused the pod
PERMANENT_CODES = range(1, 128)


class Class(Enum):
    """Why a pod failed: the rows of the failure table, first match."""

    DISRUPTION = "disruption"
    REFUSED = "refused by the kubelet"
    PERMANENT = "permanent exit code"
    RETRYABLE = "retryable exit code"
    GONE = "gone"


@dataclass(frozen=True, slots=True)
class Failure:
    """How a pod failed. ``code`` is None when no container's code counts, never 0 for that."""

    failure_class: Class
    code: int | None
    container: str
    reason: str
    message: str


GONE = Failure(Class.GONE, None, "", "Deleted", "the pod was deleted")


@dataclass(frozen=True, slots=True)
class Ended:
    """The end of a container: its name, exit code, the runtime's reason, when, and since when it had run."""

    container: str
    code: int | None
    reason: str
    message: str
    at: datetime | None
    began: datetime | None


@dataclass(frozen=True, slots=True)
class Pod:
    """A pod of one replica. ``started``, ``succeeded`` and ``failure`` follow the job's view, not the pod's phase.

    A pod that is being deleted before its main container has ended has failed already: nothing it still does counts.
    """

    uid: str
    name: str
    type: str
    index: int
    phase: str
    deleting: bool
    gone_by: datetime | None
    """When its grace period ends; None unless it is being deleted and was not force-deleted yet."""
    started: bool
    over: bool
    """Its main container has ended: it computes nothing any more."""
    lost_node: bool
    succeeded: bool
    failure: Failure | None
    ended_at: datetime | None
    restart_count: int
    attempt: int
    round: int
    running_since: datetime | None
    waiting: str

    @property
    def finished(self) -> bool:
        return self.succeeded or self.failure is not None

    @property
    def running(self) -> bool:
        """Counts as running for the job: started, not finished, not leaving, on a node that answers."""
        return self.started and not self.finished and not self.deleting and not self.lost_node

    @property
    def key(self) -> tuple[str, int]:
        return self.type, self.index


def read(job: Job, raw: JSON) -> Pod | None:
    """The pod as a replica of ``job``; None when its labels name no replica type of it."""
    metadata, status = mapping(raw.get("metadata")), mapping(raw.get("status"))
    labels = mapping(metadata.get("labels"))
    entry, index = replica_type_of(job, raw), _index(job.kind, labels)
    if entry is None or index is None:
        return None
    main, inits = _main_status(job.kind, raw), _ordinary_inits(raw)
    stopped = _deleted_first(metadata, main, status)
    ended = None if stopped else _end(main, inits)
    failure = _failure(raw, ended, stopped=stopped)
    succeeded = failure is None and not stopped and _succeeded(raw, ended)
    running_since = times.parse(mapping(mapping(main.get("state")).get("running")).get("startedAt"))
    phase = text(status.get("phase")) or "Pending"
    return Pod(
        uid=text(metadata.get("uid")),
        name=text(metadata.get("name")),
        type=entry,
        index=index,
        phase=phase,
        deleting=metadata.get("deletionTimestamp") is not None,
        gone_by=_gone_by(metadata),
        started=phase in ("Running", "Succeeded", "Failed", "Unknown"),
        over=phase in ("Succeeded", "Failed") or (_terminated(main) is not None and (succeeded or failure is not None)),
        lost_node=status.get("reason") == "NodeLost" or status.get("phase") == "Unknown",
        succeeded=succeeded,
        failure=failure,
        ended_at=ended.at if ended else None,
        restart_count=_restarts((main, *inits)),
        attempt=_annotated(metadata, names.ATTEMPT),
        round=_annotated(metadata, names.ROUND),
        running_since=running_since or (ended.began if ended else None) or times.parse(status.get("startTime")),
        waiting=_waiting(status),
    )


def replica_type_of(job: Job, pod: JSON) -> str | None:
    """The type that a pod's label names, in the job's own spelling; for a type the job no longer has, the label itself.

    None for a pod without the label.
    """
    written = mapping(mapping(pod.get("metadata")).get("labels")).get(names.prefix(job.kind) + "replica-type")
    if not isinstance(written, str):
        return None
    return next((entry.type for entry in job.replicas if entry.type.lower() == written), written)


def _index(kind: JobKind, labels: JSON) -> int | None:
    written = labels.get(names.prefix(kind) + "replica-index")
    return number(written)


def _annotated(metadata: JSON, key: str) -> int:
    written = mapping(metadata.get("annotations")).get(key)
    return number(written) or 0


def _main_status(kind: JobKind, raw: JSON) -> JSON:
    containers = sequence(mapping(raw.get("spec")).get("containers"))
    at = main_container(kind, containers)
    name = containers[at].get("name") if at is not None else None
    return _by_name(sequence(mapping(raw.get("status")).get("containerStatuses")), name)


def _by_name(statuses: list[Any], name: Any) -> JSON:
    return next((mapping(item) for item in statuses if mapping(item).get("name") == name), {})


def _end(main: JSON, inits: list[JSON]) -> Ended | None:
    """The container whose exit decides: the main one; if it never started, an ordinary init container that failed."""
    if ended := _terminated(main):
        return ended
    if mapping(main.get("lastState")) or mapping(main.get("state")).get("running"):
        return None
    ends = [_terminated(item) for item in inits]
    return next((ended for ended in ends if ended and ended.code), None)


def _ordinary_inits(raw: JSON) -> list[JSON]:
    """Statuses of the init containers that are no sidecars."""
    if not mapping(raw.get("status")).get("initContainerStatuses"):
        return []
    specs = map(mapping, sequence(mapping(raw.get("spec")).get("initContainers")))
    sidecars = [item.get("name") for item in specs if item.get("restartPolicy") == "Always"]
    statuses = map(mapping, sequence(mapping(raw.get("status")).get("initContainerStatuses")))
    return [item for item in statuses if item.get("name") not in sidecars]


def _terminated(container: JSON) -> Ended | None:
    state = mapping(mapping(container.get("state")).get("terminated"))
    if not state:
        return None
    return Ended(
        container=text(container.get("name")),
        code=integer(state.get("exitCode")),
        reason=text(state.get("reason")),
        message=text(state.get("message")),
        at=times.parse(state.get("finishedAt")),
        began=times.parse(state.get("startedAt")),
    )


def _deleted_first(metadata: JSON, main: JSON, status: JSON) -> bool:
    """Whether the pod's deletion was requested before its main container ended: no code of it counts."""
    if metadata.get("deletionTimestamp") is None:
        return False
    ended = _terminated(main)
    if ended is None:
        return status.get("phase") not in ("Succeeded", "Failed")
    limit = times.parse(metadata.get("deletionTimestamp"))
    grace = integer(metadata.get("deletionGracePeriodSeconds")) or 0
    return limit is None or ended.at is None or ended.at >= limit - timedelta(seconds=grace)


def _gone_by(metadata: JSON) -> datetime | None:
    """A pod that was force-deleted has a grace period of 0 and is held by finalizers only: there is no more to do."""
    forced = integer(metadata.get("deletionGracePeriodSeconds")) == 0
    return None if forced else times.parse(metadata.get("deletionTimestamp"))


def _succeeded(raw: JSON, ended: Ended | None) -> bool:
    """A pod that ended well, or whose main container did while a sidecar keeps it alive (kubeflow/trainer#1183)."""
    phase = mapping(raw.get("status")).get("phase")
    if phase == "Succeeded":
        return True
    in_place = mapping(raw.get("spec")).get("restartPolicy") in ("Always", None)
    return phase == "Running" and ended is not None and ended.code == 0 and not in_place


def _failure(raw: JSON, ended: Ended | None, *, stopped: bool) -> Failure | None:
    status = mapping(raw.get("status"))
    if not stopped and status.get("phase") != "Failed" and not _main_failed(raw, ended):
        return None
    if disruption := _disruption(status, taken=stopped or status.get("phase") == "Failed"):
        return disruption
    if not stopped and (refusal := _refusal(status, ended)):
        return refusal
    if stopped or (ended is None and mapping(raw.get("metadata")).get("deletionTimestamp") is not None):
        return GONE
    return _by_code(status, ended)


def _main_failed(raw: JSON, ended: Ended | None) -> bool:
    never = mapping(raw.get("spec")).get("restartPolicy") == "Never"
    running = mapping(raw.get("status")).get("phase") == "Running"
    return running and never and ended is not None and bool(ended.code)


def _disruption(status: JSON, *, taken: bool) -> Failure | None:
    for condition in map(mapping, sequence(status.get("conditions"))):
        if condition.get("type") == "DisruptionTarget" and condition.get("status") == "True":
            reason = text(condition.get("reason")) or "DisruptionTarget"
            return Failure(Class.DISRUPTION, None, "", reason, text(condition.get("message")))
    if taken and status.get("reason") in DISRUPTION_REASONS:
        return Failure(Class.DISRUPTION, None, "", text(status["reason"]), text(status.get("message")))
    return None


def _refusal(status: JSON, ended: Ended | None) -> Failure | None:
    reason = text(status.get("reason"))
    if ended is None and (reason in REFUSED_REASONS or reason.startswith("OutOf")):
        return Failure(Class.REFUSED, None, "", reason, text(status.get("message")))
    return None


def _by_code(status: JSON, ended: Ended | None) -> Failure:
    if ended is None:
        reason = text(status.get("reason")) or "Unknown"
        return Failure(Class.RETRYABLE, None, "", reason, text(status.get("message")))
    kind = Class.PERMANENT if ended.code in PERMANENT_CODES else Class.RETRYABLE
    return Failure(kind, ended.code, ended.container, ended.reason or "Error", ended.message)


def _restarts(counted: Iterable[JSON]) -> int:
    """Restarts in place of the main and the ordinary init containers: sidecars never count."""
    return sum(integer(item.get("restartCount")) or 0 for item in counted)


def _waiting(status: JSON) -> str:
    """Why a pod has not started, in the words of kubelet and scheduler (kubeflow/trainer#2001)."""
    for item in [*sequence(status.get("initContainerStatuses")), *sequence(status.get("containerStatuses"))]:
        waiting = mapping(mapping(mapping(item).get("state")).get("waiting"))
        if text(waiting.get("reason")) not in ("", "ContainerCreating", "PodInitializing"):
            return _joined(text(waiting.get("reason")), text(waiting.get("message")))
    for condition in map(mapping, sequence(status.get("conditions"))):
        if condition.get("type") == "PodScheduled" and condition.get("status") == "False":
            return _joined(text(condition.get("reason")), text(condition.get("message")))
    return ""


def _joined(reason: str, message: str) -> str:
    return f"{reason}: {message}" if message else reason
