"""Keeps a ``Store`` equal to one collection of the API server: list, watch, and start over when the watch is lost.

The official client's informer is not used: it does not bound its reads, has no backoff, and cannot list custom
objects; its watch loses the place on 410 (kubernetes-client/python#1402, #2145, python-base#57).
"""

import random
import threading
import time
from collections.abc import Callable, Iterator
from typing import Any, Literal, TypeAlias

import structlog

from kube.errors import Forbidden, Gone, KubeError, NotFound
from kube.raw import Listing, RawKube, WatchEvent
from kube.store import Store, without_managed_fields

ChangeType: TypeAlias = Literal["ADDED", "MODIFIED", "DELETED"]
OnChange: TypeAlias = Callable[[ChangeType, dict[str, Any], dict[str, Any] | None], None]

WATCH_SECONDS = (300, 600)
"""A watch asks the server to end it after a random time in this range, so that replicas do not reconnect together."""
SHORTEST_BACKOFF, LONGEST_BACKOFF = 0.8, 30.0
SHORT_WATCH = 1.0
"""A watch that ends within this many seconds without an event counts as a failure, or it would be a busy loop."""

log = structlog.get_logger(__name__)


class Reflector:
    """Runs in a thread of its own: ``Thread(target=reflector.run, args=(stop,))``.

    ``on_change(type, new, old)`` is called without a lock, in the order of the versions, and only for what the store
    did not know yet: a change that was already put in by whoever wrote it causes no call. Then ``old`` is what was
    held, and the type is ADDED when that is nothing. For DELETED ``new`` is the last state. A callback that raises
    is logged, and the stream goes on.
    """

    def __init__(
        self,
        kube: RawKube,
        path: str,
        store: Store,
        *,
        label_selector: str = "",
        field_selector: str = "",
        on_change: OnChange,
        watch_seconds: tuple[int, int] = WATCH_SECONDS,
        monotonic: Callable[[], float] = time.monotonic,
        sleep: Callable[[float], object] | None = None,
    ) -> None:
        self.synced = threading.Event()
        """Set once the first list is in the store and its callbacks have been called."""
        self.unavailable = ""
        """Why this resource cannot be had at all: its CRD is not installed, or we may not read it. Else empty."""
        self.last_progress = monotonic()
        """Monotonic seconds of the last sign of life: a list, an event, a bookmark, or a watch that ended in order."""
        self._kube = kube
        self._path = path
        self._store = store
        self._label_selector = label_selector
        self._field_selector = field_selector
        self._on_change = on_change
        self._watch_seconds = watch_seconds
        self._monotonic = monotonic
        self._sleep = sleep
        self._version: str | None = None
        self._listed = False
        self._failures = 0
        self._log = log.bind(path=path, selector=label_selector)

    def run(self, stop: threading.Event) -> None:
        """Follow the collection until ``stop``; a watch under way ends with its next event or ``kube.stop_watches``."""
        while not stop.is_set():
            try:
                self._follow(stop)
            except Exception as error:  # noqa: BLE001 - nothing that one answer contains may end this thread
                self._failed(error, stop)

    def _follow(self, stop: threading.Event) -> None:
        if self._version is None:
            self._list()
        started = self._monotonic()
        progress = self.last_progress
        for event in self._watch():
            self._take(event)
            if stop.is_set():
                return
        if self.last_progress == progress and self._monotonic() - started < SHORT_WATCH:
            raise KubeError("the watch ended at once without an event")
        self._progressed()

    def _list(self) -> None:
        """Only what the store will hold is kept of each page, so that a relist does not double the memory's peak."""
        items: list[dict[str, Any]] = []
        version = ""
        for page in self._pages():
            items += map(without_managed_fields, page.items)
            version = page.resource_version
        diff = self._store.replace_all(items, version)
        self._version, self._listed = version, True
        self.unavailable = ""
        self.last_progress = self._monotonic()
        for new, old in diff.changed:
            self._notify("MODIFIED" if old else "ADDED", new, old)
        for last in diff.gone:
            self._notify("DELETED", last, last)
        self.synced.set()

    def _pages(self) -> Iterator[Listing]:
        return self._kube.pages(self._path, label_selector=self._label_selector, field_selector=self._field_selector)

    def _watch(self) -> Iterator[WatchEvent]:
        assert self._version is not None
        return self._kube.watch(
            self._path,
            resource_version=self._version,
            label_selector=self._label_selector,
            field_selector=self._field_selector,
            timeout_seconds=random.randint(*self._watch_seconds),  # noqa: S311 - spreads load, is no secret
        )

    def _take(self, event: WatchEvent) -> None:
        version = event.object["metadata"]["resourceVersion"]
        if event.type == "DELETED":
            last = self._store.forget(event.object, resource_version=version)
            if last is not None:
                self._notify("DELETED", without_managed_fields(event.object), last)
        elif event.type != "BOOKMARK" and (change := self._store.swap(event.object)) is not None:
            self._notify("MODIFIED" if change.old else "ADDED", change.new, change.old)
        self._version = version
        self._progressed()

    def _progressed(self) -> None:
        self.last_progress = self._monotonic()
        self._failures = 0
        self._listed = False

    def _notify(self, kind: ChangeType, new: dict[str, Any], old: dict[str, Any] | None) -> None:
        try:
            self._on_change(kind, new, old)
        except Exception:  # noqa: BLE001 - the callback is somebody else's
            self._log.exception("change callback failed", change=kind, uid=new["metadata"].get("uid"))

    def _failed(self, error: Exception, stop: threading.Event) -> None:
        if stop.is_set():  # shutting down closes connections
            return
        if isinstance(error, Gone) or not isinstance(error, KubeError):
            self._version = None
        self._report(error)
        self.unavailable = error.message if isinstance(error, NotFound | Forbidden) else ""
        self._failures += 1
        if isinstance(error, Gone) and not self._listed:
            return  # the ordinary case: list again at once, unless that was just done
        (self._sleep or stop.wait)(self._pause(error))

    def _report(self, error: Exception) -> None:
        if not isinstance(error, KubeError):
            self._log.error("reflector failed", exc_info=error)
        elif isinstance(error, NotFound | Forbidden):
            self._report_unavailable(error)
        elif isinstance(error, Gone):
            self._log.info("watch expired")
        else:
            self._log.warning("watch interrupted", error=error.message, status=error.status, failures=self._failures)

    def _report_unavailable(self, error: KubeError) -> None:
        """Once, not at every try: an overlay that is not installed is an ordinary state."""
        if self.unavailable != error.message:
            self._log.warning("resource is not available", reason=error.message)

    def _pause(self, error: Exception) -> float:
        """Seconds: random up to a bound that doubles with every failure, and never less than the server asks for."""
        bound = min(LONGEST_BACKOFF, SHORTEST_BACKOFF * 2.0 ** min(self._failures, 10))
        asked = error.retry_after if isinstance(error, KubeError) and error.retry_after else 0.0
        return max(asked, random.uniform(SHORTEST_BACKOFF, bound))  # noqa: S311
