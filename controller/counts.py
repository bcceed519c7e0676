"""A status change of counts alone waits for others, once, for the status interval."""

from collections.abc import Callable
from typing import Any

from controller.keys import Key
from controller.status import is_only_counts

JSON = dict[str, Any]


class Counts:
    """The jobs whose counts wait to be written, and until when."""

    def __init__(self, interval: float, monotonic: Callable[[], float]) -> None:
        """``interval`` in seconds."""
        self._interval = interval
        self._monotonic = monotonic
        self._due: dict[Key, float] = {}

    def left(self, key: Key, stored: JSON, wanted: JSON) -> float:
        """Seconds for which the change from ``stored`` to ``wanted`` waits; at 0 it is to be written."""
        left = 0.0
        if is_only_counts(stored, wanted):
            now = self._monotonic()
            left = max(self._due.setdefault(key, now + self._interval) - now, 0.0)
        if not left:
            self.forget(key)
        return left

    def forget(self, key: Key) -> None:
        self._due.pop(key, None)
