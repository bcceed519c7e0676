"""The controller's part in policies: places for running jobs, whether a policy is in force, the look at stored jobs."""

import threading
from collections.abc import Callable, Iterator, Mapping
from itertools import islice
from typing import Any

import structlog

from controller import apply, metrics
from controller.clock import Clock
from controller.running import Places
from controller.scan import Findings, look, readiness, scan_status
from kube.errors import KubeError
from kube.raw import RawKube
from kube.store import Store
from policy.catalog import Catalog, Contents
from schemas.job import mapping, text
from schemas.kinds import JobKind
from schemas.records import Recorder

JSON = dict[str, Any]
log = structlog.get_logger()

PAGE = 500
LOOK_SECONDS = 2.0


class Governor:
    """Keeps the cluster's policies and the labels of its namespaces; writes only while this controller leads."""

    def __init__(
        self, kube: RawKube, jobs: Mapping[JobKind, Store], recorder: Recorder, clock: Clock, seconds: float
    ) -> None:
        """``seconds`` between two looks at all stored jobs."""
        self.policies, self.namespaces = Store(), Store()
        self.places = Places()
        self._kube = kube
        self._jobs = jobs
        self._recorder = recorder
        self._clock = clock
        self._seconds = seconds
        self._catalog = Catalog()
        self._lock = threading.Lock()
        self._version = 0
        self._built = (0, Contents())
        self._told: set[tuple[str, str, tuple[str, ...]]] = set()

    def changed(self) -> None:
        """A policy was added, changed or removed."""
        self._version += 1

    def contents(self) -> Contents:
        """The policies as they are now."""
        version = self._version
        if self._built[0] != version:
            with self._lock:
                self._built = version, self._catalog.read(self.policies.values())
        return self._built[1]

    def held(self, kind: JobKind, job: JSON) -> str:
        """Why a policy lets this job wait; empty when none does."""
        policies = self.contents().policies
        if not policies:
            return ""
        namespace = text(mapping(job.get("metadata")).get("namespace"))
        known = self.namespaces.get("", namespace)
        labels = None if known is None else dict(mapping(mapping(known.get("metadata")).get("labels")))
        return self.places.held(kind, job, policies, labels)

    def watch_over(self, stop: threading.Event, acting: Callable[[], bool]) -> None:
        """Until ``stop``: says of each policy whether it is in force, and looks at all jobs from time to time."""
        due = self._clock.monotonic()
        while not stop.wait(LOOK_SECONDS):
            if not acting():
                due = self._clock.monotonic()
                continue
            self.report()
            if self._clock.monotonic() >= due:
                self.scan()
                due = self._clock.monotonic() + self._seconds

    def report(self) -> None:
        """Writes Ready and the exceptions that have ended where they differ from what is stored."""
        contents = self.contents()
        for stored in self.policies.values():
            self._write(stored, readiness(stored, contents, self._clock.now()))

    def scan(self) -> None:
        """Looks at all stored jobs, page by page; a violation is recorded when it is new."""
        policies, findings, labels = self.contents().policies, Findings(), self._labels()
        if not policies:
            return
        jobs = iter(list(self._stored()))
        while page := list(islice(jobs, PAGE)):
            look(findings, page, policies, labels, self._clock.now())
        known = {(item.uid, item.policy, item.errors) for item in findings.records}
        for record in findings.records:
            if (record.uid, record.policy, record.errors) not in self._told:
                self._recorder.admission(record)
        self._told = known
        for policy in policies.all:
            metrics.VIOLATING.labels(policy.name).set(findings.violating[policy.name])
            stored = self.policies.get("", policy.name)
            if stored is not None:
                self._found(stored, scan_status(policy, findings, self._clock.now()))

    def _found(self, stored: JSON, found: JSON) -> None:
        before = mapping(mapping(stored.get("status")).get("scan"))
        if any(before.get(key) != value for key, value in found.items() if key != "time"):
            self._write(stored, {"scan": found})

    def _write(self, stored: JSON, status: JSON) -> None:
        """A status that somebody else writes just now is written the next time."""
        if not status:
            return
        try:
            self.policies.observe(apply.policy_status(self._kube, stored, status))
        except KubeError as error:
            name = mapping(stored.get("metadata")).get("name")
            log.info("status of a policy is tried again", policy=name, status=error.status, reason=error.message)

    def _stored(self) -> Iterator[tuple[JobKind, JSON]]:
        return ((kind, job) for kind, store in self._jobs.items() for job in store.values())

    def _labels(self) -> dict[str, dict[str, str]]:
        metadata = (mapping(value.get("metadata")) for value in self.namespaces.values())
        return {text(item.get("name")): dict(mapping(item.get("labels"))) for item in metadata}
