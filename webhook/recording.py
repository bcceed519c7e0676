"""Records of reviews on their way to the history, and what becomes of them as metrics."""

import threading
from typing import Protocol

from prometheus_client import Counter, Gauge

from schemas.records import Admission, NoRecorder

DROPPED = Counter("signalbox_webhook_history_dropped_records", "Records of reviews that the history never gets")
WAITING = Gauge(
    "signalbox_webhook_history_waiting_records",
    "Records of reviews that wait to be written to the history",
    multiprocess_mode="livesum",
)


class Queue(Protocol):
    """What writes the records, in a thread of its own."""

    @property
    def dropped(self) -> int: ...
    @property
    def waiting(self) -> int: ...
    def admission(self, record: Admission) -> None: ...


class Recording(NoRecorder):
    """A recorder that hands records on at once and counts those that were dropped meanwhile.

    Metrics of several processes are added up from files, so that they can only be set when something happens.
    """

    def __init__(self, queue: Queue) -> None:
        self._queue = queue
        self._told = 0
        self._lock = threading.Lock()

    def admission(self, record: Admission) -> None:
        self._queue.admission(record)
        WAITING.set(self._queue.waiting)
        with self._lock:
            dropped = self._queue.dropped
            DROPPED.inc(dropped - self._told)
            self._told = dropped
