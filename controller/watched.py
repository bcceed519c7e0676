"""What the watches tell: it goes to the history while this process acts, and wakes the job that it is about."""

from collections.abc import Iterable, Mapping
from typing import Any

from controller import apply, pods, running
from controller.governor import Governor
from controller.keys import Key, key_of, uid_of
from controller.snapshot import Reader
from kube.queue import WorkQueue
from kube.resources import PODS, Resource
from kube.store import Store, owner_uid
from schemas.job import mapping, text
from schemas.kinds import JobKind
from schemas.records import Recorder

JSON = dict[str, Any]

GATHER = 0.1
"""Seconds for which changes of children are gathered: the pods of a job start and end in crowds."""


class Watched:
    """Stores on one side; queue, reader, policies and history on the other."""

    def __init__(
        self,
        jobs: Mapping[JobKind, Store],
        children: Mapping[str, Store],
        *,
        queue: WorkQueue[Key],
        reader: Reader,
        governor: Governor,
        recorder: Recorder,
    ) -> None:
        """``children`` by the resource as actions call it."""
        self.acting = False
        """Whether this process leads: a standby records nothing."""
        self._jobs = jobs
        self._children = children
        self._queue = queue
        self._reader = reader
        self._governor = governor
        self._recorder = recorder
        self._kinds = {(kind.api_version, kind.kind): kind for kind in jobs}

    def tell_all(self) -> set[Key]:
        """Tells the history what is there, as a leader before us may not have, and wakes all jobs; their keys."""
        known = [(kind, job) for kind, store in self._jobs.items() for job in store.values()]
        held = self._children[PODS.plural].values()
        for kind, job in known:
            self._recorder.saw_job(job)
            self._queue.add(key_of(kind, job))
        for pod in held:
            owner = mapping(apply.controller_of(pod))
            if (owning := self._kind_of(owner)) is not None:
                self._record_pod(owning, "ADDED", pod, owner)
        return {key_of(kind, job) for kind, job in known}

    def on_job(self, kind: JobKind, change: str, job: JSON) -> None:
        """A job was added, changed or removed."""
        if change == "DELETED":
            self._reader.forget(uid_of(job))
        if self.acting:
            (self._recorder.lost_job if change == "DELETED" else self._recorder.saw_job)(job)
        self._queue.add(key_of(kind, job))
        places = self._governor.places
        if (places.lost if change == "DELETED" else places.saw)(kind, job):
            self._wake(places.next(key_of(kind, job).namespace))

    def on_policy(self) -> None:
        """A policy was added, changed or removed: whoever waits is looked at."""
        self._governor.changed()
        self._wake(self._governor.places.waiting())

    def on_child(self, change: str, child: JSON, resource: Resource, old: JSON | None = None) -> None:
        """A pod or another child changed: the job that controls it is looked at, if it reads otherwise than ``old``."""
        owner = mapping(apply.controller_of(child))
        kind = self._kind_of(owner)
        if kind is None:
            return
        if resource is PODS and self.acting:
            self._record_pod(kind, change, child, owner)
        if resource is PODS and old is not None and self._reads_alike(change, old, child):
            return
        namespace = text(mapping(child.get("metadata")).get("namespace"))
        self._queue.add_after(Key(kind, namespace, text(owner.get("name"))), GATHER)

    def saw_job(self, kind: JobKind, job: JSON) -> None:
        """A job whose status this process wrote: the watch stays silent about it."""
        self._jobs[kind].observe(job)
        self._recorder.saw_job(job)
        if self._governor.places.saw(kind, job):
            self._wake(self._governor.places.next(key_of(kind, job).namespace))

    def saw_child(self, resource: str, child: JSON) -> None:
        """A child this process wrote itself: known at once, since the watch stays silent about what is known."""
        owner = mapping(apply.controller_of(child))
        kind = self._kind_of(owner)
        if self._children[resource].observe(child) and resource == PODS.plural and kind is not None:
            self._record_pod(kind, "ADDED", child, owner)

    def wake_all(self) -> None:
        """Every job is looked at again."""
        for kind in self._jobs:
            self.look_again(kind)

    def look_again(self, kind: JobKind) -> None:
        """Every job of the kind is looked at."""
        self._wake((kind, job) for job in self._jobs[kind].values())

    def _wake(self, jobs: Iterable[running.Item]) -> None:
        for kind, job in jobs:
            self._queue.add(key_of(kind, job))

    def _kind_of(self, owner: Mapping[str, Any]) -> JobKind | None:
        return self._kinds.get((text(owner.get("apiVersion")), text(owner.get("kind"))))

    def _reads_alike(self, change: str, old: JSON, pod: JSON) -> bool:
        """Whether the change of a pod is one that no decision sees, as of its node or its addresses."""
        return change == "MODIFIED" and self._reader.reads_alike(owner_uid(pod) or "", old, pod)

    def _record_pod(self, kind: JobKind, change: str, pod: JSON, owner: Mapping[str, Any]) -> None:
        namespace = text(mapping(pod.get("metadata")).get("namespace"))
        job = self._jobs[kind].get(namespace, text(owner.get("name"))) or {}
        replica_type = pods.replica_type_of(self._reader.view(kind, job), pod) or ""
        if change == "DELETED":
            self._recorder.lost_pod(pod, text(owner.get("uid")), replica_type)
        else:
            self._recorder.saw_pod(pod, text(owner.get("uid")), replica_type)
