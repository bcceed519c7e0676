"""An API server in memory that can be made to fail, and one controller on it that can be made to crash.

It keeps what the real one keeps: resourceVersions and conflicts, UID preconditions, taken names, graceful deletion,
status as a subresource. Faults strike before or after a call has had its effect.
"""

import contextlib
from collections import defaultdict
from datetime import UTC, datetime, timedelta
from typing import Any

import orjson

from controller.clock import Clock
from controller.loop import Key, Loop
from controller.settings import Settings
from kube import errors
from schemas import times
from schemas.defaults import merge_patch
from schemas.kinds import JobKind
from schemas.records import NoRecorder

JSON = dict[str, Any]
START = datetime(2026, 1, 1, 12, 0, 0, tzinfo=UTC)
FOREVER = 10**9
COUNTS = {"calls": 0, "crashes": 0}
"""Over all servers and clusters of this process."""


def copied(value: Any) -> Any:
    """A copy as it comes over the wire."""
    return orjson.loads(orjson.dumps(value))


class Crash(BaseException):
    """The controller's process ends here."""


class Server:
    """Objects by plural and name, in one namespace. ``fault`` strikes at the call that ``fuse`` counts down to."""

    def __init__(self) -> None:
        self.now = START
        self.elapsed = 0.0
        self.version = 100
        self.objects: dict[str, dict[str, JSON]] = defaultdict(dict)
        self.changes: list[tuple[str, str, JSON]] = []
        self.made: dict[str, int] = {}
        self.creations: list[str] = []
        self.calls = 0
        self.fuse = FOREVER
        self.fault: tuple[BaseException, str] = (Crash(), "before")
        self.refused = ""
        self.slow = False

    # --- what the controller calls

    def create(self, path: str, body: JSON) -> JSON:
        plural = path.rsplit("/", 1)[1]
        with self._call():
            name = body["metadata"]["name"]
            if name in self.objects[plural]:
                raise errors.AlreadyExists(f"{plural} {name!r} already exists", status=409)
            if plural == "pods" and self.refused:
                raise errors.Forbidden(self.refused, status=403)
            self.made[name] = self.made.get(name, 0) + 1
            if plural != "events":
                self.creations.append(name)
            obj = copied(body)
            obj["metadata"]["uid"] = f"{plural}-{name}-{self.made[name]}"
            obj.setdefault("status", {"phase": "Pending"} if plural == "pods" else {})
            self.put(plural, obj)
            return copied(obj)

    def replace(self, path: str, body: JSON) -> JSON:
        plural, name = path.split("/")[-3:-1]
        with self._call():
            held = self._held(plural, name)
            if held["metadata"]["resourceVersion"] != body["metadata"]["resourceVersion"]:
                raise errors.Conflict("the object has been modified", status=409)
            self.put(plural, {**held, "status": copied(body["status"])})
            return copied(self.objects[plural][name])

    def get(self, path: str) -> JSON:
        plural, name = path.split("/")[-2:]
        with self._call():
            return copied(self._held(plural, name))

    def patch(self, path: str, body: JSON, *, kind: str) -> JSON:
        plural, name = path.split("/")[-2:]
        with self._call():
            held = self._held(plural, name)
            if body.get("metadata", {}).get("uid") not in (None, held["metadata"]["uid"]):
                raise errors.Conflict("the UID in the patch is another", status=409)
            self.put(plural, merge_patch(held, body))
            return copied(self.objects[plural][name])

    def delete(self, path: str, *, uid: str, grace_seconds: int | None = None) -> None:
        plural, name = path.split("/")[-2:]
        with self._call():
            held = self._held(plural, name)
            if held["metadata"]["uid"] != uid:
                raise errors.Conflict("the UID in the precondition is another", status=409)
            runs = held.get("status", {}).get("phase") in ("Pending", "Running")
            if plural == "pods" and self.slow and runs and grace_seconds != 0:
                self.leave(name)
            else:
                self.drop(plural, name)

    @contextlib.contextmanager
    def _call(self):
        self.calls += 1
        COUNTS["calls"] += 1
        self.fuse -= 1
        error, when = self.fault
        if self.fuse == 0 and when == "before":
            raise error
        yield
        if self.fuse == 0:
            raise error

    def _held(self, plural: str, name: str) -> JSON:
        if name not in self.objects[plural]:
            raise errors.NotFound(f"{plural} {name!r} not found", status=404)
        return self.objects[plural][name]

    # --- what happens to time and objects

    def move_clock(self, seconds: float) -> None:
        """Time passes, or the clock is set back."""
        self.now += timedelta(seconds=seconds)
        self.elapsed += max(seconds, 0)

    def put(self, plural: str, obj: JSON) -> None:
        self.version += 1
        obj["metadata"] = {**obj["metadata"], "resourceVersion": str(self.version)}
        self.objects[plural][obj["metadata"]["name"]] = obj
        self.changes.append((plural, "MODIFIED", copied(obj)))

    def drop(self, plural: str, name: str) -> None:
        self.version += 1
        obj = self.objects[plural].pop(name)
        obj["metadata"] = {**obj["metadata"], "resourceVersion": str(self.version)}
        self.changes.append((plural, "DELETED", obj))

    def leave(self, name: str, grace: int = 30) -> None:
        """A deletion is asked for that the kubelet has not carried out yet."""
        pod = copied(self.objects["pods"][name])
        if "deletionTimestamp" not in pod["metadata"]:
            pod["metadata"]["deletionTimestamp"] = times.written(self.now + timedelta(seconds=grace))
            pod["metadata"]["deletionGracePeriodSeconds"] = grace
            self.put("pods", pod)

    def set_status(self, name: str, **status: Any) -> None:
        self.put("pods", {**self.objects["pods"][name], "status": status})

    @property
    def pods(self) -> dict[str, JSON]:
        return self.objects["pods"]


class Cluster:
    """One job on one server, and the life of one controller after the other."""

    def __init__(self, kind: JobKind, spec: JSON, **settings: Any) -> None:
        self.server = Server()
        self.kind = kind
        self.key = Key(kind, "ns", "job")
        self.settings = Settings(status_interval=0.0, take_over=True, **settings)
        metadata = {"name": "job", "namespace": "ns", "uid": "job-uid", "generation": 1}
        self.server.put(kind.plural, {"metadata": metadata, "spec": spec, "status": {}})
        self.start()

    @property
    def job(self) -> JSON:
        return self.server.objects[self.kind.plural].get("job", {})

    def edit(self, change: Any) -> None:
        """The user changes the spec; nothing happens once the job is gone."""
        if self.job:
            job = copied(self.job)
            change(job["spec"])
            job["metadata"]["generation"] += 1
            self.server.put(self.kind.plural, job)

    def start(self) -> None:
        """A new process: its stores are filled by lists, and it remembers nothing."""
        clock = Clock(lambda: self.server.now, lambda: self.server.elapsed)
        self.loop = Loop(self.server, (self.kind,), NoRecorder(), self.settings, clock)
        self.server.changes.clear()
        for plural, store in self._stores.items():
            store.replace_all(copied([*self.server.objects[plural].values()]), self.server.version)

    def watch(self) -> None:
        """What the watches have to tell reaches the stores."""
        stores = self._stores
        for plural, change, obj in self.server.changes:
            if (store := stores.get(plural)) is None:
                continue
            if change == "DELETED":
                store.forget(obj, resource_version=obj["metadata"]["resourceVersion"])
            else:
                store.observe(obj)
        self.server.changes.clear()

    @property
    def _stores(self) -> dict[str, Any]:
        stores = {self.kind.plural: self.loop.jobs[self.kind], "pods": self.loop.pods, "services": self.loop.services}
        return stores | {key.partition(".")[0]: store for key, store in self.loop.extras.items()}

    @property
    def leaving(self) -> bool:
        """Whether a pod is being deleted."""
        return any("deletionTimestamp" in pod["metadata"] for pod in self.server.pods.values())

    @property
    def extras(self) -> list[tuple[str, str]]:
        """Plural and name of every child that is neither pod nor Service."""
        own = (self.kind.plural, "pods", "services")
        plurals = sorted(self._stores.keys() - {*own})
        return [(plural, name) for plural in plurals for name in sorted(self.server.objects[plural])]

    def reconcile(self) -> None:
        """Once; a crash is followed by a start, an error by nothing: the next reconcile is the retry."""
        from controller.apply import Stop

        try:
            self.loop.reconcile(self.key)
        except Crash:
            COUNTS["crashes"] += 1
            self.start()
        except (errors.KubeError, Stop):
            pass

    def settle(self) -> None:
        """Reconciles until nothing is written any more."""
        idle = 0
        for _ in range(200):
            before = self.server.version
            self.watch()
            self.reconcile()
            idle = idle + 1 if self.server.version == before else 0
            if idle == 2:
                return
        raise AssertionError("the controller does not come to rest")
