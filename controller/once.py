"""What one process does once: deletes that the watch shows late, and what is told of that lasts."""

import threading
from collections import OrderedDict
from collections.abc import Iterable

from controller.keys import Key
from controller.plan import Delete, Event

DELETES_KNOWN = 4096
"""Deletes remembered until the watch shows them; one that is forgotten is only sent twice."""


class Deletes:
    """A delete is sent once, however late the watch shows it; a forced one after an ordinary one is another."""

    def __init__(self, most: int = DELETES_KNOWN) -> None:
        self._sent: OrderedDict[tuple[str, bool], None] = OrderedDict()
        self._most = most
        self._lock = threading.Lock()

    def knows(self, delete: Delete) -> bool:
        return (delete.uid, delete.force) in self._sent

    def note(self, deletes: Iterable[Delete]) -> None:
        with self._lock:
            self._sent |= {(delete.uid, delete.force): None for delete in deletes}
            while len(self._sent) > self._most:
                self._sent.popitem(last=False)


class Notices:
    """What was told of each job."""

    def __init__(self) -> None:
        self._told: dict[Key, set[Event]] = {}

    def new(self, key: Key, notices: Iterable[Event]) -> list[Event]:
        """Those that have not been told yet."""
        told = self._told.get(key, set())
        return [notice for notice in notices if notice not in told]

    def note(self, key: Key, notice: Event) -> None:
        self._told.setdefault(key, set()).add(notice)

    def forget(self, key: Key) -> None:
        self._told.pop(key, None)
