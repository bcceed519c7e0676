"""The reconcile loop: watches fill stores and wake keys; workers read, decide, apply and write the status."""

import threading
from collections import OrderedDict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

import structlog

from controller import apply, extras, metrics, pods, running
from controller.apply import LEAVING, Port, Stop
from controller.clock import Clock
from controller.coexistence import Coexistence
from controller.decide import decide
from controller.governor import Governor
from controller.plan import Action, Create, Delete, DeleteJob, Event, Obstacle, Plan, Update
from controller.progress import progress
from controller.serving import Serving
from controller.settings import Settings
from controller.snapshot import Reader
from controller.status import is_only_counts
from kube import errors
from kube.queue import WorkQueue
from kube.raw import RawKube
from kube.resources import PODS, Resource
from kube.store import Store, owner_uid
from schemas import times
from schemas.conditions import BLOCKED
from schemas.job import Job, mapping, sequence, text
from schemas.kinds import JobKind
from schemas.records import Recorder

JSON = dict[str, Any]
log = structlog.get_logger()

FIRST_RETRY = 5.0
FIRST_LOOK = 1.0
"""Seconds until a name is tried again whose holder is on its way out."""
LONGEST_RETRY = 60.0
HISTORY_LOOK = 2.0
FORCED = "Pod {} did not go within its grace period and was force-deleted."
GATHER = 0.1
"""Seconds for which changes of children are gathered: the pods of a job start and end in crowds."""
DELETES_KNOWN = 4096
"""Deletes remembered until the watch shows them; one that is forgotten is only sent twice."""


@dataclass(frozen=True, slots=True)
class Key:
    """One job in the queue."""

    kind: JobKind
    namespace: str
    name: str


def resource_of(kind: JobKind) -> Resource:
    return Resource(kind.group, kind.version, kind.plural, kind.kind)


@dataclass(slots=True)
class Held:
    """Obstacles met in a row, and when creates may be tried again (monotonic seconds)."""

    times: int = 0
    until: float = 0.0


@dataclass
class Loop:
    """Everything one controller process holds. Status and counts live in the API server, never here alone."""

    kube: RawKube
    kinds: tuple[JobKind, ...]
    recorder: Recorder
    settings: Settings
    clock: Clock = field(default_factory=Clock)

    def __post_init__(self) -> None:
        self.queue: WorkQueue[Key] = WorkQueue()
        self.jobs = {kind: Store() for kind in self.kinds}
        self.pods, self.services = Store(), Store()
        self.extras = {sort.key: Store() for sort in extras.sorts(self.kinds, self.settings)}
        self.governor = Governor(self.kube, self.jobs, self.recorder, self.clock, self.settings.policy_scan)
        self.reader = Reader(self.pods, self.services, self.extras, self.settings, held=self.governor.held)
        self.port = Port(self.kube, self.saw_child, self.recorder.saw_event)
        self.acting = False
        """Whether this process leads: a standby keeps its stores and its queue, and writes and records nothing."""
        self.coexistence = Coexistence(
            self.kube,
            on_change=self.wake_all,
            take_over=self.settings.take_over,
            monotonic=self.clock.monotonic,
        )
        self._unconfirmed: set[Key] = set()
        self.serving = Serving(self.kube, self.kinds, self.look_again)
        self._held: dict[Key, Held] = {}
        self._kinds = {(kind.api_version, kind.kind): kind for kind in self.kinds}
        self._noted: dict[Key, set[Event]] = {}
        self._counts_due: dict[Key, float] = {}
        self._deleted: OrderedDict[tuple[str, bool], None] = OrderedDict()
        self._lock = threading.Lock()

    # --- whether this process acts

    def act(self) -> None:
        """Begin to reconcile what is queued, and tell the history what is there: a leader before us may not have.

        Its last writes may not have reached our stores either: before the first action for a job that is there
        already, the job is read anew.
        """
        self.acting = True
        known = [(kind, job) for kind, store in self.jobs.items() for job in store.values()]
        self._unconfirmed = {_key(kind, job) for kind, job in known}
        self.recorder.live_jobs(frozenset(_uid(job) for _, job in known))
        self.recorder.live_pods(frozenset(_uid(pod) for pod in self.pods.values()))
        for kind, job in known:
            self.recorder.saw_job(job)
            self.queue.add(_key(kind, job))
        for pod in self.pods.values():
            owner = apply.controller_of(pod)
            if owner is not None and (kind_of_owner := self._kind_of(owner)) is not None:
                self._record_pod(kind_of_owner, "ADDED", pod, owner)
        self.queue.resume()

    def stand_by(self) -> None:
        """Hand no key to a worker; what a worker is at ends at the fence of its next write."""
        self.acting = False
        self.queue.pause()

    def wake_all(self) -> None:
        """Every job is looked at again."""
        for kind in self.kinds:
            self.look_again(kind)

    # --- what the watches tell

    def on_job(self, kind: JobKind, change: str, job: JSON) -> None:
        """A job was added, changed or removed."""
        if change == "DELETED":
            self.reader.forget(_uid(job))
        if self.acting:
            (self.recorder.lost_job if change == "DELETED" else self.recorder.saw_job)(job)
        self.queue.add(_key(kind, job))
        places = self.governor.places
        if (places.lost if change == "DELETED" else places.saw)(kind, job):
            self._wake(places.next(_key(kind, job).namespace))

    def on_policy(self) -> None:
        """A policy was added, changed or removed: whoever waits is looked at."""
        self.governor.changed()
        self._wake(self.governor.places.waiting())

    def _wake(self, jobs: Iterable[running.Item]) -> None:
        for kind, job in jobs:
            self.queue.add(_key(kind, job))

    def on_child(self, change: str, child: JSON, resource: Resource, old: JSON | None = None) -> None:
        """A pod or another child changed: the job that controls it is looked at, if it reads otherwise than ``old``."""
        owner = apply.controller_of(child)
        kind = self._kind_of(owner)
        if owner is None or kind is None:
            return
        if resource is PODS and self.acting:
            self._record_pod(kind, change, child, owner)
        if resource is PODS and old is not None and self._reads_alike(change, old, child):
            return
        namespace = text(mapping(child.get("metadata")).get("namespace"))
        self.queue.add_after(Key(kind, namespace, text(owner.get("name"))), GATHER)

    def _reads_alike(self, change: str, old: JSON, pod: JSON) -> bool:
        """Whether the change of a pod is one that no decision sees, as of its node or its addresses."""
        return change == "MODIFIED" and self.reader.reads_alike(owner_uid(pod) or "", old, pod)

    def _record_pod(self, kind: JobKind, change: str, pod: JSON, owner: Mapping[str, Any]) -> None:
        namespace = text(mapping(pod.get("metadata")).get("namespace"))
        job = self.jobs[kind].get(namespace, text(owner.get("name"))) or {}
        replica_type = pods.replica_type_of(self.reader.view(kind, job), pod) or ""
        if change == "DELETED":
            self.recorder.lost_pod(pod, text(owner.get("uid")), replica_type)
        else:
            self.recorder.saw_pod(pod, text(owner.get("uid")), replica_type)

    def look_again(self, kind: JobKind) -> None:
        """Every job of the kind is looked at."""
        for job in self.jobs[kind].values():
            self.queue.add(_key(kind, job))

    def _kind_of(self, owner: Mapping[str, Any] | None) -> JobKind | None:
        reference = mapping(owner)
        return self._kinds.get((text(reference.get("apiVersion")), text(reference.get("kind"))))

    def saw_child(self, resource: str, child: JSON) -> None:
        """A child this process wrote itself: known at once, since the watch stays silent about what is known."""
        store = {"pods": self.pods, "services": self.services, **self.extras}[resource]
        owner = apply.controller_of(child)
        kind = self._kind_of(owner)
        if store.observe(child) and store is self.pods and kind is not None and owner is not None:
            self._record_pod(kind, "ADDED", child, owner)

    # --- what the workers do

    def work(self) -> None:
        """One worker: reconciles keys until the queue is shut down."""
        while (key := self.queue.get(None)) is not None:
            try:
                self._reconciled(key)
            finally:
                self.queue.done(key)

    def _reconciled(self, key: Key) -> None:
        """One reconcile with its outcome: the only place that logs and retries."""
        with metrics.timed(key.kind, self.clock.monotonic) as outcome:
            try:
                self.reconcile(key)
                self.queue.forget(key)
            except Stop:
                outcome.set("stopped")
            except errors.NotLeading:
                outcome.set("stood down")
                self.queue.retry(key)
            except errors.KubeError as error:
                outcome.set("retried")
                log.info("reconcile is tried again", **_named(key), status=error.status, reason=error.message)
                self.queue.retry(key)
            except Exception:
                outcome.set("failed")
                log.exception("reconcile failed", **_named(key))
                self.queue.retry(key)

    def reconcile(self, key: Key) -> None:
        """Reads, decides, acts, looks again if something was created, and writes the status once."""
        job = self.jobs[key.kind].get(key.namespace, key.name)
        if job is None or not self.coexistence.may_serve(key.kind):
            self._forget(key)
            return
        if key.kind in self.serving.unserved:
            return
        now = self.clock.now()
        plan = decide(key.kind, self.reader.read(key.kind, job), now)
        if plan.actions and key in self._unconfirmed:
            job = self._read_anew(key)
            plan = decide(key.kind, self.reader.read(key.kind, job), now)
        if plan.status is None:
            return
        plan = self._acted(key, job, plan, now)
        self._note(key, job, plan, now)
        self._write(key, job, plan, now)
        self._wake_later(key, plan, now)

    def _read_anew(self, key: Key) -> JSON:
        """The job as it is stored now. Stop when it is gone."""
        try:
            job = self.kube.get(resource_of(key.kind).path(key.namespace, key.name))
        except errors.NotFound as error:
            raise Stop from error
        self.jobs[key.kind].observe(job)
        self._unconfirmed.discard(key)
        return job

    def _acted(self, key: Key, job: JSON, plan: Plan, now: datetime) -> Plan:
        """Carries the actions out; the plan after creates is the one made from what is there then."""
        actions = [action for action in plan.actions if self._may(key, job, action)]
        if not actions:
            return plan
        view = Job(key.kind, job)
        obstacle = apply.actions(self.port, view, resource_of(key.kind), actions)
        for gone in actions:
            if isinstance(gone, Delete) and gone.force:
                apply.event(self.port, view, Event("Warning", "ForceDeleted", FORCED.format(gone.name)), now)
        self._note_deletes(actions)
        if not any(isinstance(action, Create | Update) for action in actions):
            return plan
        self._hold(key, job, obstacle)
        shown = None if obstacle is LEAVING else obstacle
        again = decide(key.kind, self.reader.read(key.kind, job, tried=obstacle is not LEAVING, obstacle=shown), now)
        if shown:
            apply.event(self.port, view, Event("Warning", shown.reason, shown.message, subject=""), now)
        return again

    def _note(self, key: Key, job: JSON, plan: Plan, now: datetime) -> None:
        """Tells of what lasts, once in the life of this process."""
        noted = self._noted.setdefault(key, set()) if plan.notices else set()
        for told in plan.notices:
            if told not in noted:
                apply.notice(self.port, Job(key.kind, job), told, now)
                noted.add(told)

    def _may(self, key: Key, job: JSON, action: object) -> bool:
        if isinstance(action, Create | Update):
            return not self._is_held(key)
        if isinstance(action, DeleteJob):
            return self._is_saved(key, job, action.due)
        return not (isinstance(action, Delete) and (action.uid, action.force) in self._deleted)

    def _is_held(self, key: Key) -> bool:
        """Whether creates still wait; asks for the retry again, since an earlier turn replaced the one asked for."""
        held = self._held.get(key)
        left = held.until - self.clock.monotonic() if held else 0.0
        if left > 0:
            self.queue.add_after(key, left)
        return left > 0

    def _note_deletes(self, actions: list[Action]) -> None:
        """A delete is sent once, however late the watch shows it."""
        with self._lock:
            self._deleted |= {(action.uid, action.force): None for action in actions if isinstance(action, Delete)}
            while len(self._deleted) > DELETES_KNOWN:
                self._deleted.popitem(last=False)

    def _is_saved(self, key: Key, job: JSON, due: datetime) -> bool:
        """TTL waits for the saved row of the history, but not for ever (argoproj/argo-workflows#3880)."""
        metadata = mapping(job.get("metadata"))
        if self.recorder.saved(text(metadata.get("uid")), text(metadata.get("resourceVersion"))):
            return True
        if (self.clock.now() - due).total_seconds() > self.settings.history_grace:
            metrics.UNSAVED.inc()
            return True
        self.queue.add_after(key, HISTORY_LOOK)
        return False

    def _hold(self, key: Key, job: JSON, obstacle: Obstacle | None) -> None:
        """After an obstacle creates wait longer each time, whatever wakes the job meanwhile.

        A job that has long been blocked waits long from the first try of a new process
        (apache/spark-kubernetes-operator#847).
        """
        with self._lock:
            if obstacle is None:
                self._held.pop(key, None)
                return
            held = self._held.setdefault(key, Held())
            first = FIRST_LOOK if obstacle is LEAVING else FIRST_RETRY
            wait = min(max(first * 2 ** min(held.times, 10), self._blocked_for(job)), LONGEST_RETRY)
            held.times += 1
            held.until = self.clock.monotonic() + wait
        self.queue.add_after(key, wait)

    def _blocked_for(self, job: JSON) -> float:
        rows = (mapping(item) for item in sequence(mapping(job.get("status")).get("conditions")))
        since = next((row for row in rows if (row.get("type"), row.get("status")) == (BLOCKED, "True")), {})
        moment = times.parse(since.get("lastTransitionTime"))
        return (self.clock.now() - moment).total_seconds() if moment else 0.0

    def _write(self, key: Key, job: JSON, plan: Plan, now: datetime) -> None:
        wanted = plan.status
        stored = mapping(job.get("status"))
        if wanted is None or wanted == stored or self._waits(key, dict(stored), wanted):
            return
        written = apply.status(self.port, job, resource_of(key.kind), wanted)
        if written is None:
            self.queue.retry(key)
            return
        self.jobs[key.kind].observe(written)
        self.recorder.saw_job(written)
        if self.governor.places.saw(key.kind, written):  # the watch stays silent about what we wrote
            self._wake(self.governor.places.next(key.namespace))
        metrics.on_progress(key.kind, progress(stored, wanted, now))
        for told in plan.events:
            apply.event(self.port, Job(key.kind, job), told, now)
        self.queue.add(key)

    def _waits(self, key: Key, stored: JSON, wanted: JSON) -> bool:
        """A change of counts alone waits for others, once, for the status interval."""
        if not is_only_counts(stored, wanted):
            self._counts_due.pop(key, None)
            return False
        due = self._counts_due.setdefault(key, self.clock.monotonic() + self.settings.status_interval)
        left = due - self.clock.monotonic()
        if left <= 0:
            self._counts_due.pop(key, None)
            return False
        self.queue.add_after(key, left)
        return True

    def _wake_later(self, key: Key, plan: Plan, now: datetime) -> None:
        if plan.wake is not None:
            self.queue.add_after(key, max((plan.wake - now).total_seconds(), 0.0))

    def _forget(self, key: Key) -> None:
        with self._lock:
            self._held.pop(key, None)
            self._counts_due.pop(key, None)
            self._noted.pop(key, None)
        self._unconfirmed.discard(key)
        self.queue.forget(key)


def _key(kind: JobKind, job: Mapping[str, Any]) -> Key:
    metadata = mapping(job.get("metadata"))
    return Key(kind, text(metadata.get("namespace")), text(metadata.get("name")))


def _uid(item: Mapping[str, Any]) -> str:
    return text(mapping(item.get("metadata")).get("uid"))


def _named(key: Key) -> JSON:
    return {"kind": key.kind.kind, "namespace": key.namespace, "job": key.name}
