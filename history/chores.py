"""What the process with the database does beside writing: forget what is old, tell of ends. In one thread."""

import threading
import time
from collections.abc import Callable
from datetime import datetime

import structlog

from history.fields import utcnow
from history.notify import Notifier
from history.retention import Keep, prune
from history.store import Store

PRUNE_EVERY = 3600.0
PAUSE = 0.1
"""Seconds between two batches that are removed, for whoever waits to write."""
LOOK_EVERY = 1.0

log = structlog.get_logger("history")


class Chores:
    """Runs until ``close``, while ``leading`` says so: of several processes one is enough.

    A database that is down only makes it wait.
    """

    def __init__(
        self, store: Store, keep: Keep, notifier: Notifier | None = None, leading: Callable[[], bool] = lambda: True
    ) -> None:
        self._store, self._keep, self._notifier, self._leading = store, keep, notifier, leading
        self._next_prune = 0.0
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._run, name="history-chores", daemon=True)
        self._thread.start()

    def close(self, timeout: float = 10.0) -> None:
        """Stop after the batch or call in hand."""
        self._stop.set()
        self._thread.join(timeout)
        self._store.close()

    def _run(self) -> None:
        while not self._stop.wait(LOOK_EVERY):
            try:
                if self._leading():
                    self._round(utcnow())
            except Exception as error:  # noqa: BLE001 (the thread outlives whatever a driver raises)
                log.warning("history chores wait", error=f"{type(error).__name__}: {getattr(error, 'orig', error)}")
                self._stop.wait(30 * LOOK_EVERY)

    def _round(self, now: datetime) -> None:
        if self._notifier:
            self._notifier.run(now)
        if time.monotonic() < self._next_prune:
            return
        for _ in prune(self._store, self._keep, now):
            if self._stop.wait(PAUSE):
                return
        self._next_prune = time.monotonic() + PRUNE_EVERY
