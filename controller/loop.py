"""The reconcile loop: workers read, decide, apply and write the status, one job at a time."""

from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

import structlog

from controller import apply, extras, metrics
from controller.apply import LEAVING, Port, Stop
from controller.clock import Clock
from controller.coexistence import Coexistence
from controller.counts import Counts
from controller.decide import decide
from controller.governor import Governor
from controller.holds import Holds
from controller.keys import Key, resource_of
from controller.once import Deletes, Notices
from controller.plan import Action, Create, Delete, DeleteJob, Event, Obstacle, Plan, Update
from controller.progress import progress
from controller.rollcall import RollCall
from controller.serving import Serving
from controller.settings import Settings
from controller.snapshot import Reader
from controller.watched import Watched
from kube import errors
from kube.queue import WorkQueue
from kube.raw import RawKube
from kube.store import Store
from schemas.job import Job, mapping, text
from schemas.kinds import JobKind
from schemas.records import Recorder

JSON = dict[str, Any]
log = structlog.get_logger()

HISTORY_LOOK = 2.0
FORCED = "Pod {} did not go within its grace period and was force-deleted."


@dataclass
class Loop:
    """Everything one controller process holds. Status and counts live in the API server, never here alone."""

    kube: RawKube
    kinds: tuple[JobKind, ...]
    recorder: Recorder
    settings: Settings
    clock: Clock = field(default_factory=Clock)
    queue: WorkQueue[Key] = field(default_factory=WorkQueue)

    def __post_init__(self) -> None:
        self.jobs = {kind: Store() for kind in self.kinds}
        self.pods, self.services = Store(), Store()
        self.extras = {sort.key: Store() for sort in extras.sorts(self.kinds, self.settings)}
        self.governor = Governor(self.kube, self.jobs, self.recorder, self.clock, self.settings.policy_scan)
        self.reader = Reader(self.pods, self.services, self.extras, self.settings, held=self.governor.held)
        self.watched = Watched(
            self.jobs,
            {"pods": self.pods, "services": self.services, **self.extras},
            queue=self.queue,
            reader=self.reader,
            governor=self.governor,
            recorder=self.recorder,
        )
        self.port = Port(self.kube, self.watched.saw_child, self.recorder.saw_event)
        self.coexistence = Coexistence(
            self.kube,
            on_change=self.watched.wake_all,
            take_over=self.settings.take_over,
            monotonic=self.clock.monotonic,
        )
        self.serving = Serving(self.kube, self.kinds, self.watched.look_again)
        self._unconfirmed: set[Key] = set()
        self.rolls = RollCall(self.kube, self.kinds, self.settings.namespace, self.recorder, self.clock.monotonic)
        self._holds = Holds(self.clock)
        self._counts = Counts(self.settings.status_interval, self.clock.monotonic)
        self._deletes, self._notices = Deletes(), Notices()

    @property
    def acting(self) -> bool:
        """Whether this process leads: a standby keeps its stores and its queue, and writes and records nothing."""
        return self.watched.acting

    def act(self) -> None:
        """Begin to reconcile what is queued, and tell the history what is there.

        The last writes of a leader before us may not have reached our stores: before the first action for a job that
        is there already, the job is read anew.
        """
        self.watched.acting = True
        self.rolls.begin()  # what is gone: our stores may lack what a leader before us has just made
        self._unconfirmed = self.watched.tell_all()
        self.queue.resume()

    def stand_by(self) -> None:
        """Hand no key to a worker; what a worker is at ends at the fence of its next write."""
        self.watched.acting = False
        self.queue.pause()

    @property
    def not_served(self) -> dict[JobKind, str]:
        """The kinds left alone, each with the reason."""
        return {**self.serving.unserved, **self.coexistence.ceded}

    def _serves(self, kind: JobKind) -> bool:
        """Before the first look for other operators no kind that one of them claims is served."""
        return kind not in self.serving.unserved and self.coexistence.may_serve(kind)

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
                log.info("reconcile is tried again", **key.named, status=error.status, reason=error.message)
                self.queue.retry(key)
            except Exception:
                outcome.set("failed")
                log.exception("reconcile failed", **key.named)
                self.queue.retry(key)

    def reconcile(self, key: Key) -> None:
        """Reads, decides, acts, looks again if something was created, and writes the status once."""
        job = self.jobs[key.kind].get(key.namespace, key.name)
        if job is None or not self._serves(key.kind):
            self._forget(key)
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
        self._wake(key, plan, now)

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
        self._deletes.note(action for action in actions if isinstance(action, Delete))
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
        for told in self._notices.new(key, plan.notices):
            apply.notice(self.port, Job(key.kind, job), told, now)
            self._notices.note(key, told)

    def _may(self, key: Key, job: JSON, action: Action) -> bool:
        if isinstance(action, Create | Update):
            return not self._is_held(key)
        if isinstance(action, DeleteJob):
            return self._is_saved(key, job, action.due)
        return not self._deletes.knows(action)

    def _is_held(self, key: Key) -> bool:
        """Whether creates still wait; asks for the retry again, since an earlier turn replaced the one asked for."""
        left = self._holds.left(key)
        if left:
            self.queue.add_after(key, left)
        return left > 0

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
        if obstacle is None:
            self._holds.forget(key)
        else:
            self.queue.add_after(key, self._holds.met(key, job, obstacle))

    def _write(self, key: Key, job: JSON, plan: Plan, now: datetime) -> None:
        wanted, stored = plan.status, dict(mapping(job.get("status")))
        if wanted is None or wanted == stored:
            return
        if left := self._counts.left(key, stored, wanted):
            self.queue.add_after(key, left)
            return
        written = apply.status(self.port, job, resource_of(key.kind), wanted)
        if written is None:
            self.queue.retry(key)
            return
        self.watched.saw_job(key.kind, written)
        if plan.restarts:
            self.recorder.saw_restarts(written, plan.restarts)
        metrics.on_progress(key.kind, progress(stored, wanted, now))
        for told in plan.events:
            apply.event(self.port, Job(key.kind, job), told, now)
        self.queue.add(key)

    def _wake(self, key: Key, plan: Plan, now: datetime) -> None:
        if plan.wake is not None:
            self.queue.add_after(key, max((plan.wake - now).total_seconds(), 0.0))

    def _forget(self, key: Key) -> None:
        for remembered in (self._holds, self._counts, self._notices, self.queue):
            remembered.forget(key)
        self._unconfirmed.discard(key)
