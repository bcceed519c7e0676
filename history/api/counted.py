"""How many rows there are, counted from time to time."""

import threading
import time
from collections.abc import Callable

from sqlalchemy import func, select
from sqlalchemy.exc import SQLAlchemyError

from history.metrics import STORED
from history.models import metadata
from history.reader import Reader

COUNT_EVERY = 300.0
"""Seconds: counting millions of rows is work for a database."""


class Counted:
    """Sets the gauge; a database that does not answer leaves it as it is until the next time."""

    def __init__(self, reader: Reader, monotonic: Callable[[], float] = time.monotonic) -> None:
        self._reader, self._monotonic = reader, monotonic
        self._due = float("-inf")
        self._lock = threading.Lock()

    def refresh(self) -> None:
        """Count if that is due; whoever comes meanwhile does not wait."""
        if not self._lock.acquire(blocking=False):
            return
        try:
            if self._monotonic() >= self._due:
                self._due = self._monotonic() + COUNT_EVERY
                self._count()
        finally:
            self._lock.release()

    def _count(self) -> None:
        try:
            for table in metadata.sorted_tables:
                [row] = self._reader.rows(select(func.count().label("rows")).select_from(table))
                STORED.labels(table.name).set(row["rows"])
        except (SQLAlchemyError, OSError):
            return
