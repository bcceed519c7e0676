"""A job's life as bars: one for each pod, from its creation over its start to its end, and what replaced it."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

import orjson

from history.queries import Row
from history.reader import Reader


@dataclass(frozen=True, slots=True)
class Bar:
    """One pod. Times are None where they are not known or not reached; ``restart`` is set if it was replaced."""

    pod: Row
    created: datetime | None
    started: datetime | None
    finished: datetime | None
    restart: Row | None


def bars(pods: Iterable[Row], restarts: Sequence[Row]) -> list[Bar]:
    """A bar for each pod, in the order of the pods."""
    by_pod = {restart["restart_id"]: restart for restart in restarts}
    return [_bar(pod, by_pod.get(pod["pod_id"])) for pod in pods]


def span(job: Row, shown: Sequence[Bar], now: datetime) -> tuple[datetime, datetime]:
    """First and last moment to be drawn; at least a second apart."""
    times = [time for bar in shown for time in (bar.created, bar.started, bar.finished) if time is not None]
    known = [time for time in (job["gmt_created"], job["gmt_finished"]) if time is not None]
    open_end = [now] if job["gmt_finished"] is None else []
    first, last = min((*times, *known), default=now), max((*times, *known, *open_end), default=now)
    return (first, last) if first < last else (first, first.replace(microsecond=999_999))


def last_object(reader: Reader, uid: str) -> Any:
    """The object as it was last seen, without its status; None when none was kept."""
    row = reader.snapshot(uid)
    return orjson.loads(row["object"]) if row else None


def _bar(pod: Row, restart: Row | None) -> Bar:
    finished = pod["gmt_finished"] or (restart["gmt_restarted"] if restart else None)
    return Bar(pod, pod["gmt_created"], pod["gmt_started"], finished, restart)


def why(bar: Bar) -> str:
    """Why a pod was replaced, in a few words; empty if it was not."""
    if bar.restart is None:
        return ""
    said = (bar.restart["reason"], bar.restart["exit_code"])
    return " ".join(str(part) for part in said if part is not None) or "lost"


def drawn(bar: Bar, first: datetime, last: datetime, width: int) -> str:
    """The bar in ``width`` characters: waiting, running, replaced."""
    scale = (width - 1) / (last - first).total_seconds()

    def at(time: datetime) -> int:
        return max(0, min(width - 1, round((time - first).total_seconds() * scale)))

    end = bar.finished or last
    start = bar.started or end
    line = [" "] * width
    line[at(bar.created or start) : at(start)] = "." * (at(start) - at(bar.created or start))
    if bar.started:
        line[at(start) : at(end) + 1] = "=" * (at(end) + 1 - at(start))
    if bar.restart is not None:
        line[at(end)] = "x"
    return "".join(line[:width])
