"""Reads one job and its children from the stores, with the defaults and faults that the webhook would have given."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from controller import pods
from controller.plan import Obstacle, Snapshot
from controller.pods import Pod
from controller.settings import Settings
from kube.store import Store, owner_uid
from schemas import defaults, validation
from schemas.job import Job, mapping, text
from schemas.kinds import JobKind

JSON = dict[str, Any]
NOTHING: Mapping[str, Store] = {}
DEFAULTS = Settings()


class Views:
    """Pods of one job as read: an object of the store is read once, however often the job is looked at."""

    def __init__(self) -> None:
        self._views: dict[int, tuple[JSON, Pod | None]] = {}
        """By the identity of the object, which is its alone while it is kept here."""

    def of(self, job: Job, raw: JSON) -> Pod | None:
        known = self._views.get(id(raw))
        if known is None:
            known = self._views[id(raw)] = raw, pods.read(job, raw)
        return known[1]

    def is_same(self, job: Job, old: JSON, new: JSON) -> bool:
        """Whether ``new``, which has taken the place of ``old``, reads the same."""
        same = self.of(job, old) == self.of(job, new)
        self._views.pop(id(old), None)
        return same

    def keep(self, held: tuple[JSON, ...]) -> None:
        """Forgets all but ``held``."""
        self._views = {id(raw): known for raw in held if (known := self._views.get(id(raw))) is not None}


@dataclass(frozen=True, slots=True)
class Checked:
    """A spec's defaults and faults, and the pods as they read with it: all change with its generation."""

    generation: Any
    job: Job
    faults: tuple[str, ...]
    views: Views = field(default_factory=Views, compare=False)

    def is_of(self, job: JSON) -> bool:
        return bool(self.generation == _generation(job))

    def filled(self, job: JSON) -> JSON:
        """The job as it is now, with the defaults of its spec."""
        return {**job, "spec": self.job.raw.get("spec")}

    def read(self, _kind: JobKind, job: JSON) -> Job:
        """A view of ``filled``."""
        return self.job.as_now(job)


class Reader:
    """Makes snapshots; remembers what the spec of each job gave, so that it is checked once for each generation."""

    def __init__(
        self,
        pods: Store,
        services: Store,
        extras: Mapping[str, Store] = NOTHING,
        settings: Settings = DEFAULTS,
        *,
        held: Callable[[JobKind, JSON], str] = lambda *_: "",
    ) -> None:
        """``held`` says why a policy lets a job wait."""
        self._held = held
        self._pods = pods
        self._services = services
        self._extras = extras
        self._settings = settings
        self._checked: dict[str, Checked] = {}

    def read(self, kind: JobKind, job: JSON, *, tried: bool = False, obstacle: Obstacle | None = None) -> Snapshot:
        """The snapshot of a stored job: its children are those that its UID owns, nothing else."""
        uid = text(mapping(job.get("metadata")).get("uid"))
        checked = self._check(kind, uid, job)
        pods_held = tuple(self._pods.owned_by(uid))
        checked.views.keep(pods_held)
        filled = checked.filled(job)
        return Snapshot(
            job=filled,
            pods=pods_held,
            services=tuple(self._services.owned_by(uid)),
            extras={key: tuple(store.owned_by(uid)) for key, store in self._extras.items()},
            settings=self._settings,
            faults=checked.faults,
            tried=tried,
            obstacle=obstacle,
            read_job=checked.read,
            read_pod=checked.views.of,
            held=self._held(kind, filled),
        )

    def view(self, kind: JobKind, job: JSON) -> Job:
        """A view of a job for what its spec says; what a snapshot has read of it is not read again."""
        known = self._checked.get(text(mapping(job.get("metadata")).get("uid")))
        return known.job if known and known.is_of(job) else Job(kind, job)

    def reads_alike(self, uid: str, old: JSON, new: JSON) -> bool:
        """Whether a decision about the job with this UID cannot tell two states of a pod from each other."""
        known = self._checked.get(uid)
        if known is None or owner_uid(old) != uid:
            return False
        return known.views.is_same(known.job, old, new)

    def forget(self, uid: str) -> None:
        self._checked.pop(uid, None)

    def _check(self, kind: JobKind, uid: str, job: JSON) -> Checked:
        known = self._checked.get(uid)
        if known is not None and known.is_of(job):
            return known
        checked = check(kind, job)
        self._checked[uid] = checked
        return checked


def check(kind: JobKind, job: Mapping[str, Any]) -> Checked:
    """The defaults and faults of a stored job: the webhook may have been bypassed."""
    view = Job(kind, defaults.default(kind, dict(job)))
    return Checked(_generation(job), view, tuple(str(fault) for fault in validation.check(view)))


def _generation(job: Mapping[str, Any]) -> Any:
    return mapping(job.get("metadata")).get("generation")
