"""One running controller: its threads from the first list to the last reconcile."""

import threading
from collections.abc import Callable
from functools import partial
from typing import Any

import structlog

from controller import metrics
from controller.apply import RESOURCES
from controller.coexistence import LOOK_SECONDS
from controller.keys import resource_of
from controller.loop import Loop
from kube.raw import RawKube
from kube.reflector import OnChange, Reflector
from kube.resources import NAMESPACES, PODS, SERVICES, TRAINING_POLICIES, Resource
from kube.store import Store
from schemas import names
from schemas.kinds import JobKind

JSON = dict[str, Any]
log = structlog.get_logger()

SYNC_SECONDS = 0.2
RETRY_SECONDS = 2.0
ROLL_SECONDS = 0.2
"""Between two looks whether a roll call is due."""
IDLE_SECONDS = 900.0
"""A watch asks for its end after 600 s at most and is read for 15 s more: longer silence is a stuck thread."""


class Run:
    """The threads of one controller. ``start`` returns once all lists are in; ``stop`` ends them in order.

    Nothing is reconciled before ``lead``, and nothing more after ``stand_by``; a standby keeps its caches warm.
    """

    def __init__(self, loop: Loop, *, leading: Callable[[], bool] | None = None) -> None:
        loop.stand_by()
        self._loop = loop
        self.leading = leading or (lambda: loop.acting)
        """Whether this process may act now: it knows before ``stand_by`` is called, and from any thread."""
        self._stop = threading.Event()
        self._job_reflectors = {kind: self._of_jobs(kind) for kind in loop.kinds}
        self._child_reflectors = [self._of_children(PODS, loop.pods), self._of_children(SERVICES, loop.services)]
        self._extra_reflectors = {key: self._of_children(RESOURCES[key], store) for key, store in loop.extras.items()}
        self._policy_reflectors = [
            self._of_cluster(TRAINING_POLICIES, loop.governor.policies, lambda *_: loop.watched.on_policy()),
            self._of_cluster(NAMESPACES, loop.governor.namespaces, lambda *_: None),
        ]
        self._workers = [threading.Thread(target=loop.work, name=f"worker-{n}") for n in range(loop.settings.workers)]

    @property
    def reflectors(self) -> list[Reflector]:
        children = [*self._child_reflectors, *self._extra_reflectors.values()]
        return [*self._job_reflectors.values(), *children, *self._policy_reflectors]

    def start(self) -> None:
        """Children are listed before any job is decided about, so that a restart never creates one twice."""
        for reflector in self.reflectors:
            threading.Thread(target=reflector.run, args=(self._stop,), daemon=True).start()
        while not self.is_ready() and not self._stop.is_set():
            self._stop.wait(SYNC_SECONDS)
        self._await_neighbours()
        if self._stop.is_set():
            return
        self._loop.serving.check()
        for worker in self._workers:
            worker.start()
        threading.Thread(target=self._resync, daemon=True).start()
        over = self._loop.governor.watch_over
        threading.Thread(target=over, args=(self._stop, lambda: self._loop.acting), daemon=True).start()
        threading.Thread(target=self._call_rolls, daemon=True).start()
        looks = (self._stop, self._loop.settings.crd_interval)
        threading.Thread(target=self._loop.serving.run, args=looks, daemon=True).start()
        jobs = sum(map(len, self._loop.jobs.values()))
        served = [called(kind) for kind in self._listed() if called(kind) not in self.not_served]
        log.info("controller runs", kinds=served, not_served=self.not_served, jobs=jobs)

    def lead(self) -> None:
        """Begin to act."""
        self._loop.act()

    def stand_by(self) -> None:
        """Stop acting: another controller may do so now."""
        self._loop.stand_by()

    def stop(self) -> None:
        """Ends the watches, lets each worker finish its reconcile."""
        self._stop.set()
        self._loop.queue.shut_down()
        self._loop.kube.stop_watches()
        for worker in self._workers:
            if worker.is_alive():
                worker.join(timeout=10.0)

    def is_healthy(self, now: float) -> bool:
        """Whether every watch has shown a sign of life lately and every worker lives (kubernetes-client/python#801)."""
        fresh = all(now - r.last_progress < IDLE_SECONDS for r in self.reflectors if not r.unavailable)
        return fresh and all(worker.is_alive() or worker.ident is None for worker in self._workers)

    def is_ready(self) -> bool:
        """Whether pods, Services, and every kind and extra child that can be had are listed."""
        children = all(reflector.synced.is_set() for reflector in self._child_reflectors)
        extras = self._extra_reflectors.values()
        optional = (*self._job_reflectors.values(), *extras, *self._policy_reflectors)
        return children and all(self._is_ready(reflector) for reflector in optional)

    @property
    def not_served(self) -> dict[str, str]:
        """Kinds that are not served now, as ``Kind.group``, each with the reason."""
        missing = {kind: r.unavailable for kind, r in self._job_reflectors.items() if r.unavailable}
        found = {**missing, **self._loop.not_served}
        return {called(kind): reason for kind, reason in found.items()}

    def measure(self, now: float) -> None:
        """Sets the gauges that are read at each scrape."""
        metrics.DEPTH.set(self._loop.queue.depth)
        metrics.count_jobs((kind, store.values()) for kind, store in self._loop.jobs.items())
        metrics.LEADER.set(self.leading())
        for kind, reflector in self._job_reflectors.items():
            metrics.SERVED.labels(kind.kind, kind.group).set(called(kind) not in self.not_served)
            metrics.PROGRESS.labels(kind.plural).set(now - reflector.last_progress)
        for name, reflector in zip(("pods", "services"), self._child_reflectors, strict=True):
            metrics.PROGRESS.labels(name).set(now - reflector.last_progress)
        for name, reflector in self._extra_reflectors.items():
            metrics.PROGRESS.labels(name).set(now - reflector.last_progress)

    def _is_ready(self, reflector: Reflector) -> bool:
        """Listed; one whose CRD is not installed, or that we may not read, does not let the others wait."""
        return reflector.synced.is_set() or bool(reflector.unavailable)

    def _of_jobs(self, kind: JobKind) -> Reflector:
        resource = resource_of(kind)
        store, changed = self._loop.jobs[kind], partial(self._loop.watched.on_job, kind)
        return self._reflector(resource, store, "", lambda change, job, _old: changed(change, job))

    def _of_cluster(self, resource: Resource, store: Store, changed: OnChange) -> Reflector:
        """A resource that is no namespace's; a controller that may not read it does without policies."""
        return Reflector(self._loop.kube, resource.path(), store, on_change=changed)

    def _of_children(self, resource: Resource, store: Store) -> Reflector:
        """Only what carries our label is watched: other people's pods cost nothing (knative/serving#10098)."""

        def changed(change: str, child: JSON, old: JSON | None) -> None:
            self._loop.watched.on_child(change, child, resource, old)

        return self._reflector(resource, store, names.JOB_UID, changed)

    def _reflector(self, resource: Resource, store: Store, selector: str, changed: OnChange) -> Reflector:
        kube: RawKube = self._loop.kube
        path = resource.path(self._loop.settings.namespace or None)
        return Reflector(kube, path, store, label_selector=selector, on_change=changed)

    def _resync(self) -> None:
        while not self._stop.wait(self._loop.settings.resync):
            self._loop.watched.wake_all()

    def _call_rolls(self) -> None:
        while not self._stop.wait(ROLL_SECONDS):
            if self._loop.acting:
                self._loop.rolls.call(self._stop)

    def _listed(self) -> list[JobKind]:
        return [kind for kind, reflector in self._job_reflectors.items() if reflector.synced.is_set()]

    def _await_neighbours(self) -> None:
        """Look for other operators once before anything is done, and again and again from then on."""
        coexistence = self._loop.coexistence
        while not coexistence.looked.is_set() and not self._stop.is_set():
            coexistence.look(self._listed())
            if not coexistence.looked.is_set():
                self._stop.wait(RETRY_SECONDS)
        threading.Thread(target=self._watch_neighbours, daemon=True).start()

    def _watch_neighbours(self) -> None:
        while not self._stop.wait(LOOK_SECONDS):
            self._loop.coexistence.look(self._listed())


def called(kind: JobKind) -> str:
    """``PyTorchJob.kubeflow.org``"""
    return f"{kind.kind}.{kind.group}"
