"""What one reconcile wants done: data, made by ``decide`` and carried out by ``apply``."""

from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

JSON = dict[str, Any]


@dataclass(frozen=True, slots=True)
class Create:
    """Create one child; ``resource`` is its plural (pods, services)."""

    resource: str
    manifest: JSON


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


Action = Create | Delete | DeleteJob


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
    ``force_delete_after`` is how long after its grace period a pod that does not go is force-deleted; None for never.
    """

    job: JSON
    pods: tuple[JSON, ...] = ()
    services: tuple[JSON, ...] = ()
    faults: tuple[str, ...] = ()
    tried: bool = False
    obstacle: Obstacle | None = None
    force_delete_after: timedelta | None = None
