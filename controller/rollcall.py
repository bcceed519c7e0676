"""Tells the history what exists, so that rows of what went while nobody looked are closed: once after each take-over.

Each kind is listed afresh, for the stores of a standby may lag. A list that cannot be had whole (a CRD that is missing
or being replaced, rights, an API server that does not answer) says nothing about what is gone, and is tried again.
"""

import threading
from collections.abc import Callable

import structlog

from controller.keys import resource_of, uid_of
from kube.errors import KubeError
from kube.raw import RawKube
from kube.resources import PODS, Resource
from schemas import names
from schemas.kinds import JobKind
from schemas.records import Live, Recorder

AGAIN_SECONDS = 60.0
"""Until lists that could not be had are tried again."""

log = structlog.get_logger()


class RollCall:
    """``begin`` says that all lists are due, ``call`` fetches those that are. Of one controller's kinds and namespace:
    others may serve the rest.
    """

    def __init__(
        self,
        kube: RawKube,
        kinds: tuple[JobKind, ...],
        namespace: str,
        recorder: Recorder,
        monotonic: Callable[[], float],
    ) -> None:
        self._kube, self._kinds, self._namespace, self._recorder = kube, kinds, namespace, recorder
        self._monotonic = monotonic
        self._lock = threading.Lock()
        self._due: set[JobKind | None] = set()
        self._not_before = 0.0

    def begin(self) -> None:
        """Everything is to be listed, at the next ``call``. Returns at once."""
        if self._recorder.keeps:
            with self._lock:
                self._due = {None, *self._kinds}
                self._not_before = 0.0

    def call(self, stop: threading.Event) -> None:
        """List what is due; what fails is due again in a while."""
        with self._lock:
            due = self._due if self._monotonic() >= self._not_before else set()
            self._due = self._due - due
        failed = {kind for kind in due if stop.is_set() or not self._told(kind)}
        if failed:
            with self._lock:
                self._due |= failed
                self._not_before = self._monotonic() + AGAIN_SECONDS

    def _told(self, kind: JobKind | None) -> bool:
        """Jobs of a kind, or with None the pods of all."""
        try:
            found = self._jobs(kind) if kind else self._pods()
        except KubeError as error:
            what = kind.kind if kind else "Pod"
            log.info("what is gone is not known yet", kind=what, status=error.status, reason=error.message)
            return False
        self._recorder.live(found)
        return True

    def _jobs(self, kind: JobKind) -> Live:
        return Live("job", *self._list(resource_of(kind), ""), kind=kind.kind, namespace=self._namespace)

    def _pods(self) -> Live:
        return Live("pod", *self._list(PODS, names.JOB_UID), namespace=self._namespace)

    def _list(self, resource: Resource, selector: str) -> tuple[frozenset[str], str]:
        """The UIDs, and the version as of which they are all."""
        uids: set[str] = set()
        version = ""
        path = resource.path(self._namespace or None)
        for page in self._kube.pages(path, label_selector=selector, field_selector=""):
            version = version or page.resource_version
            uids.update(map(uid_of, page.items))
        return frozenset(uids), version
