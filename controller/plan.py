"""What one reconcile wants done: data, made by ``decide`` and carried out by ``apply``."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

from controller import pods as pod_views
from controller.pods import Pod
from controller.settings import Settings
from schemas.job import Job
from schemas.kinds import JobKind

JSON = dict[str, Any]
DEFAULTS = Settings()


@dataclass(frozen=True, slots=True)
class Create:
    """Create one child; ``resource`` is its plural, and its group if it has one (pods, podgroups.example.com)."""

    resource: str
    manifest: JSON


@dataclass(frozen=True, slots=True)
class Update:
    """Change one child by a merge patch, only if it still has this UID."""

    resource: str
    name: str
    uid: str
    change: JSON


@dataclass(frozen=True, slots=True)
class Delete:
    """Delete one child, only if it still has this UID."""

    resource: str
    name: str
    uid: str
    force: bool = False
    """Whether the object goes at once, though nobody can tell whether its containers have stopped."""


@dataclass(frozen=True, slots=True)
class DeleteJob:
    """Delete the job itself, children in the background, only if it still has this UID.

    ``due`` is when its TTL had passed.
    """

    due: datetime


Action = Create | Update | Delete | DeleteJob


@dataclass(frozen=True, slots=True)
class Event:
    """A core/v1 Event about the job; a repetition raises the count of the one object.

    ``subject`` is what makes two Events of a reason the same one; None means the message, which has no varying part.
    """

    type: str
    reason: str
    message: str
    subject: str | None = None


@dataclass(frozen=True, slots=True)
class Plan:
    """Actions first, then one status write, then events (see ``decide`` for why deletes come from stored status).

    ``status`` is None when the job's status is not ours to write. ``wake`` is when to look again without any event.
    ``events`` tell of this status and are written with it; ``notices`` of what lasts, once in the life of a process.
    """

    actions: tuple[Action, ...] = ()
    status: JSON | None = None
    events: tuple[Event, ...] = ()
    notices: tuple[Event, ...] = ()
    wake: datetime | None = None
    restarts: tuple[JSON, ...] = ()
    """What this status counts anew, one line each; its own restartHistory holds the last few of them."""


@dataclass(frozen=True, slots=True)
class Obstacle:
    """Why a child could not be created: not the job's failure, shown as Blocked (PaddleFlow/paddle-operator#43)."""

    reason: str
    message: str


@dataclass(frozen=True, slots=True)
class Snapshot:
    """One job and its children as read: owned by the job's UID, nothing else.

    ``job`` carries the built-in defaults. ``faults`` is what validation says of it (a stored job may be invalid when
    the webhook was bypassed). ``tried`` is true once this reconcile's creates were sent, ``obstacle`` what met them.
    ``held`` is why a policy lets the job wait although nothing else does.
    """

    job: JSON
    pods: tuple[JSON, ...] = ()
    services: tuple[JSON, ...] = ()
    faults: tuple[str, ...] = ()
    tried: bool = False
    obstacle: Obstacle | None = None
    held: str = ""
    extras: Mapping[str, tuple[JSON, ...]] = field(default_factory=dict)
    """Children that are neither pods nor Services, by the resource that actions call them."""
    settings: Settings = DEFAULTS
    """What the administrator chose: which extra children a job has, and when a stuck pod goes."""
    read_job: Callable[[JobKind, JSON], Job] = Job
    """How the job is read: whoever keeps its spec may remember what was read of it."""
    read_pod: Callable[[Job, JSON], Pod | None] = pod_views.read
    """How a pod is read: whoever keeps the objects may remember what was read of them."""
