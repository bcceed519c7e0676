"""How long creates wait after an obstacle. In memory only: a job that is blocked says since when in its status."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from controller.apply import LEAVING
from controller.clock import Clock
from controller.keys import Key
from controller.plan import Obstacle
from schemas import times
from schemas.conditions import BLOCKED
from schemas.job import mapping, sequence

FIRST_RETRY = 5.0
FIRST_LOOK = 1.0
"""Seconds until a name is tried again whose holder is on its way out."""
LONGEST_RETRY = 60.0


@dataclass(slots=True)
class Held:
    """Obstacles met in a row, and when creates may be tried again (monotonic seconds)."""

    times: int = 0
    until: float = 0.0


class Holds:
    """The jobs whose creates wait; one key is never with two threads at the same time."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._held: dict[Key, Held] = {}

    def left(self, key: Key) -> float:
        """Seconds for which creates still wait."""
        held = self._held.get(key)
        return max(held.until - self._clock.monotonic(), 0.0) if held else 0.0

    def met(self, key: Key, job: Mapping[str, Any], obstacle: Obstacle) -> float:
        """Creates have met an obstacle: they wait longer each time, whatever wakes the job meanwhile. Seconds.

        A job that has long been blocked waits long from the first try of a new process
        (apache/spark-kubernetes-operator#847).
        """
        held = self._held.setdefault(key, Held())
        first = FIRST_LOOK if obstacle is LEAVING else FIRST_RETRY
        wait: float = min(max(first * 2.0 ** min(held.times, 10), self._blocked_for(job)), LONGEST_RETRY)
        held.times += 1
        held.until = self._clock.monotonic() + wait
        return wait

    def forget(self, key: Key) -> None:
        """Nothing is in the way any more."""
        self._held.pop(key, None)

    def _blocked_for(self, job: Mapping[str, Any]) -> float:
        rows = (mapping(item) for item in sequence(mapping(job.get("status")).get("conditions")))
        since = next((row for row in rows if (row.get("type"), row.get("status")) == (BLOCKED, "True")), {})
        moment = times.parse(since.get("lastTransitionTime"))
        return (self._clock.now() - moment).total_seconds() if moment else 0.0
