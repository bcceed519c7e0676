"""The state machine of a job, as a table: Created, and exactly one True of the states below.

First match wins. Readers find the true state last in the list; ours read it by type and status, never by position.
"""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from schemas.kinds import JobKind

Condition = dict[str, Any]

CREATED = "Created"
BLOCKED = "Blocked"
SUCCEEDED = "Succeeded"
FAILED = "Failed"
SUSPENDED = "Suspended"
PENDING = "Pending"
RESTARTING = "Restarting"
SCALING = "Scaling"
RUNNING = "Running"
TERMINAL = (SUCCEEDED, FAILED)

JOB_SUSPENDING = "JobSuspending"
MAX_RUNNING_JOBS = "MaxRunningJobs"
JOB_RESUMED = "JobResumed"
NODE_LOST = "NodeLost"
BACKOFF_LIMIT_EXCEEDED = "BackoffLimitExceeded"
DEADLINE_EXCEEDED = "DeadlineExceeded"
POD_FAILED = "PodFailed"
PERMANENT_EXIT_CODE = "PermanentExitCode"

# On Kubeflow kinds these reasons carry the kind, as their users' tools expect them.
PREFIXED = {
    f"Job{suffix}": suffix for suffix in ("Created", "Running", "Restarting", "Succeeded", "Suspended", "Resumed")
} | dict.fromkeys(("JobFailed", POD_FAILED, PERMANENT_EXIT_CODE), "Failed")


@dataclass(frozen=True, slots=True)
class Facts:
    """What the state follows from. ``ended`` is Succeeded, Failed or empty; ``why`` its reason and message."""

    ended: str = ""
    reason: str = ""
    message: str = ""
    suspend: bool = False
    has_children: bool = False
    replacing: str = ""
    """Which pod is being replaced and why; empty when none is."""
    held: str = ""
    """Why a policy lets the job wait."""
    scaling: bool = False
    all_running: bool = False
    waiting: str = ""
    """What a pod that has not started waits for."""
    lost: str = ""
    """Which pods are on a node that does not answer; empty when none is."""


@dataclass(frozen=True, slots=True)
class State:
    """One row: ``when`` it holds, and what its condition then says."""

    type: str
    when: Callable[[Facts], bool]
    reason: str
    message: Callable[[Facts], str]


STATES: tuple[State, ...] = (
    State(SUCCEEDED, lambda f: f.ended == SUCCEEDED, "JobSucceeded", lambda f: f.message),
    State(FAILED, lambda f: f.ended == FAILED, "JobFailed", lambda f: f.message),
    State(SUSPENDED, lambda f: f.suspend and not f.has_children, "JobSuspended", lambda _: "The job is suspended."),
    State(
        PENDING, lambda f: f.suspend, JOB_SUSPENDING, lambda _: "The job is being suspended: its children are leaving."
    ),
    State(PENDING, lambda f: bool(f.held), MAX_RUNNING_JOBS, lambda f: f.held),
    State(RESTARTING, lambda f: bool(f.replacing), "JobRestarting", lambda f: f.replacing),
    State(SCALING, lambda f: f.scaling, "JobScaling", lambda _: "Pods are being added or removed."),
    State(RUNNING, lambda f: f.all_running, "JobRunning", lambda _: "Every pod is running or has succeeded."),
    State(PENDING, lambda f: bool(f.lost), NODE_LOST, lambda f: f.lost),
    State(PENDING, lambda _: True, "JobPending", lambda f: f.waiting or "Not every pod has started."),
)


def state_of(facts: Facts) -> State:
    """The one state that holds."""
    return next(state for state in STATES if state.when(facts))


def advanced(kind: JobKind, stored: Iterable[Mapping[str, Any]], facts: Facts, now: str) -> list[Condition]:
    """The conditions after ``stored``: Created first, what has become false in its old order, the true state last.

    ``now`` is RFC 3339. Times of conditions that do not change stay; nothing changes when nothing has happened.
    """
    state = state_of(facts)
    reason = reason_of(kind, facts.reason or state.reason if state.type in TERMINAL else state.reason)
    old = {str(item.get("type")): dict(item) for item in stored}
    created = old.pop(CREATED, None) or _condition(CREATED, "True", reason_of(kind, "JobCreated"), ACCEPTED, now)
    truth = _set(old.pop(state.type, None), _condition(state.type, "True", reason, state.message(facts), now))
    gone = [_turned_false(kind, item, truth, now) for item in old.values()]
    return [created, *gone, truth]


def with_blocked(conditions: list[Condition], *, blocked: bool, reason: str, message: str, now: str) -> list[Condition]:
    """The conditions with Blocked set beside the state; it appears only once there has been an obstacle."""
    others = [item for item in conditions if item["type"] != BLOCKED]
    stored = next((item for item in conditions if item["type"] == BLOCKED), None)
    if not blocked and (stored is None or stored.get("status") != "True"):
        return conditions
    wanted = _condition(BLOCKED, "True" if blocked else "False", reason, message, now)
    return [*others[:-1], _set(stored, wanted), others[-1]]


def is_true(conditions: Iterable[Mapping[str, Any]], condition_type: str) -> bool:
    return any(item.get("type") == condition_type and item.get("status") == "True" for item in conditions)


def find(conditions: Iterable[Mapping[str, Any]], condition_type: str) -> Mapping[str, Any] | None:
    return next((item for item in conditions if item.get("type") == condition_type), None)


def true_state(conditions: Iterable[Mapping[str, Any]]) -> Mapping[str, Any] | None:
    """The condition of the state that holds, or None before the first."""
    states = {state.type for state in STATES}
    return next((c for c in conditions if c.get("status") == "True" and c.get("type") in states), None)


def reason_of(kind: JobKind, reason: str) -> str:
    """``reason`` as this kind's users know it: JobRunning is PyTorchJobRunning on a PyTorchJob."""
    if kind.reason_prefix == "Job" or reason not in PREFIXED:
        return reason
    return kind.reason_prefix + PREFIXED[reason]


ACCEPTED = "The job has been accepted."


def _condition(condition_type: str, status: str, reason: str, message: str, now: str) -> Condition:
    return {
        "type": condition_type,
        "status": status,
        "reason": reason,
        "message": message,
        "lastUpdateTime": now,
        "lastTransitionTime": now,
    }


def _set(stored: Condition | None, wanted: Condition) -> Condition:
    """``wanted``, keeping the times of ``stored`` that did not pass."""
    if stored is None:
        return wanted
    if all(stored.get(key) == wanted[key] for key in ("status", "reason", "message")):
        return stored
    same_status = stored.get("status") == wanted["status"]
    return {**wanted, "lastTransitionTime": stored.get("lastTransitionTime")} if same_status else wanted


def _turned_false(kind: JobKind, stored: Condition, truth: Condition, now: str) -> Condition:
    """``stored`` after ``truth`` took its place: it says why it no longer holds. Blocked goes only with the end."""
    if stored.get("status") != "True" or (stored.get("type") == BLOCKED and truth["type"] not in TERMINAL):
        return stored
    because = reason_of(kind, JOB_RESUMED) if stored.get("type") == SUSPENDED else truth["reason"]
    changed = {"status": "False", "reason": because, "message": truth["message"]}
    return {**stored, **changed, "lastUpdateTime": now, "lastTransitionTime": now}
