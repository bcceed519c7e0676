"""Keeps the webhook's certificates while this process leads: in time, and when somebody changes a caBundle."""

import threading
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import structlog

from certs import metrics, repairs
from certs.files import write_pair
from certs.issue import Issued, Names
from certs.rotate import OVERLAP, ensure
from certs.servers import Find, finder
from kube.errors import KubeError
from kube.raw import RawKube
from kube.reflector import Reflector
from kube.resources import EVENTS, OWN_CONFIGURATIONS
from kube.store import Store

EVERY = 60.0
"""Seconds between two looks when nothing is heard: a Secret may have been deleted."""
SHORTEST_RETRY, LONGEST_RETRY = 2.0, 60.0
SLICE = 0.25
"""Seconds within which a stop or a change is noticed."""
TELL_AGAIN = 3600.0
"""Seconds between two events that say the same."""

log = structlog.get_logger(__name__)


@dataclass(frozen=True, slots=True)
class Settings:
    """What a keeper keeps."""

    namespace: str
    names: Names
    overlap: timedelta = OVERLAP
    directory: Path | None = None
    """Also keep the files there, for a webhook that mounts no Secret."""


@dataclass(slots=True)
class _Memory:
    """What a leader remembers; none of it matters to the next one."""

    repaired: dict[str, list[float]] = field(default_factory=dict)
    """By configuration, when its bundle was put right."""
    failures: int = 0
    told: dict[str, float] = field(default_factory=dict)


class Keeper:
    """Runs in a thread of its own: ``Thread(target=keeper.run, args=(stop,))``. Writes nothing unless ``leading()``.

    ``find`` finds the servers that are asked for their certificate before a previous CA is dropped.
    """

    def __init__(
        self,
        kube: RawKube,
        settings: Settings,
        *,
        leading: Callable[[], bool],
        find: Find | None = None,
        monotonic: Callable[[], float] = time.monotonic,
        utc: Callable[[], datetime] = lambda: datetime.now(UTC),
    ) -> None:
        self._kube = kube
        self._settings = settings
        self._leading = leading
        self._find = find or finder(kube)
        self._monotonic = monotonic
        self._utc = utc
        self._changed = threading.Event()
        self._memory = _Memory()

    def run(self, stop: threading.Event) -> None:
        """Until ``stop``; a watch under way ends with ``kube.stop_watches``."""
        for name in OWN_CONFIGURATIONS:
            threading.Thread(target=self._watch(name).run, args=(stop,), name=f"watch-{name}", daemon=True).start()
        while not stop.is_set():
            self._changed.clear()
            pause = self.look() if self._leading() else SLICE
            self._sleep(stop, pause)

    def look(self) -> float:
        """One pass; seconds until the next, unless something changes before."""
        now = self._monotonic()
        waiting = max((repairs.pause(times, now) for times in self._memory.repaired.values()), default=0.0)
        if waiting > 0:
            return waiting
        try:
            return self._succeeded(self._ensure())
        except Exception as error:  # noqa: BLE001 - whatever is stored, this thread goes on
            return self._failed(error)

    def _ensure(self) -> Issued:
        settings = self._settings
        issued = ensure(
            self._kube,
            namespace=settings.namespace,
            names=settings.names,
            now=self._utc(),
            overlap=settings.overlap,
            find=self._find,
        )
        if settings.directory is not None:
            write_pair(settings.directory, issued)
        return issued

    def _succeeded(self, issued: Issued) -> float:
        self._memory.failures = 0
        metrics.expires(issued)
        if issued.done:
            log.info("certificates", done=issued.done)
        self._note_repairs(issued.repaired)
        until = (issued.again - self._utc()).total_seconds() if issued.again else EVERY
        return min(EVERY, max(until, SLICE))

    def _failed(self, error: Exception) -> float:
        self._memory.failures += 1
        metrics.FAILURES.inc()
        if isinstance(error, KubeError):
            log.warning("certificates cannot be kept", error=error.message, failures=self._memory.failures)
        else:
            log.error("certificates cannot be kept", exc_info=error)
        pause: float = min(LONGEST_RETRY, SHORTEST_RETRY * 2.0 ** min(self._memory.failures - 1, 8))
        return pause

    def _note_repairs(self, names: tuple[str, ...]) -> None:
        now, memory = self._monotonic(), self._memory
        for name in names:
            metrics.REPAIRS.labels(name).inc()
            recent = [at for at in memory.repaired.get(name, ()) if now - at < repairs.MEMORY]
            memory.repaired[name] = [*recent, now]
        contested = [name for name, times in memory.repaired.items() if repairs.is_contested(times, now)]
        metrics.CONTESTED.set(bool(contested))
        for name in set(contested) & set(names):
            if name not in memory.told or now - memory.told[name] >= TELL_AGAIN:
                memory.told[name] = now
                self._tell(name)

    def _tell(self, name: str) -> None:
        log.warning("caBundle is contested", configuration=name)
        try:
            self._kube.create(EVENTS.path("default"), contested_event(name, self._utc()))
        except KubeError as error:
            log.warning("event not written", error=error.message)

    def _watch(self, name: str) -> Reflector:
        """Tells of every change of one configuration, its own among them: a look that finds nothing to do is cheap."""
        resource = OWN_CONFIGURATIONS[name]
        return Reflector(
            self._kube,
            resource.path(),
            Store(),
            field_selector=f"metadata.name={name}",
            on_change=lambda *_: self._changed.set(),
        )

    def _sleep(self, stop: threading.Event, seconds: float) -> None:
        until = self._monotonic() + seconds
        while not self._changed.is_set() and not stop.is_set() and (left := until - self._monotonic()) > 0:
            stop.wait(min(SLICE, left))


def contested_event(name: str, now: datetime) -> dict[str, Any]:
    """A Warning on the configuration; events about cluster-wide objects are in the namespace default."""
    time = now.strftime("%Y-%m-%dT%H:%M:%SZ")
    resource = OWN_CONFIGURATIONS[name]
    return {
        "apiVersion": "v1",
        "kind": "Event",
        "metadata": {"generateName": f"{name}.", "namespace": "default"},
        "involvedObject": {"apiVersion": resource.api_version, "kind": resource.kind, "name": name},
        "type": "Warning",
        "reason": "CABundleContested",
        "message": (
            "Somebody else changes the caBundle again and again, so jobs may be refused. Signalbox puts it right at "
            "growing intervals. Find the other writer in metadata.managedFields."
        ),
        "source": {"component": "signalbox-controller"},
        "firstTimestamp": time,
        "lastTimestamp": time,
        "count": 1,
    }
