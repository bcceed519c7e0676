"""Geometry of the drawings: numbers for the templates, in units of the SVG's view box. Pure."""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from datetime import date, datetime, timedelta

from history.queries import Row
from history.timeline import Bar, why

WIDTH = 1000.0
LABELS = 190.0
"""Where bars begin; names stand left of it."""
ROW = 24.0
TOP = 28.0
RIGHT = 130.0
"""Room for what is written behind a bar that ends at the right edge."""
MOST_BARS = 300
STEPS = (1, 2, 5, 10, 15, 30, 60, 120, 300, 600, 900, 1800, 3600, 7200, 21600, 43200, 86400, 172800, 604800, 2592000)
TICKS = 7
OUTCOMES = ("Succeeded", "Failed", "Stopped")
CHART_HEIGHT = 180.0


@dataclass(frozen=True, slots=True)
class Tick:
    x: float
    label: str


@dataclass(frozen=True, slots=True)
class Strip:
    """One pod: waiting from ``x`` to ``start``, running from there to ``end``; ``mark`` says why it was replaced."""

    name: str
    y: float
    x: float
    start: float
    end: float
    status: str
    title: str
    mark: str


@dataclass(frozen=True, slots=True)
class Timeline:
    height: float
    ticks: tuple[Tick, ...]
    strips: tuple[Strip, ...]
    left_out: int


@dataclass(frozen=True, slots=True)
class Block:
    """A part of a day's column."""

    y: float
    height: float
    status: str
    jobs: int


@dataclass(frozen=True, slots=True)
class Column:
    x: float
    width: float
    day: str
    blocks: tuple[Block, ...]
    title: str


@dataclass(frozen=True, slots=True)
class Columns:
    columns: tuple[Column, ...]
    most: int


def timeline(shown: Sequence[Bar], first: datetime, last: datetime) -> Timeline:
    """The pods' bars between two moments; never more than a page can show."""
    scale = (WIDTH - LABELS - RIGHT) / max((last - first).total_seconds(), 1e-9)

    def x(time: datetime) -> float:
        return round(LABELS + (time - first).total_seconds() * scale, 1)

    strips = tuple(_strip(bar, TOP + at * ROW, x, last) for at, bar in enumerate(shown[:MOST_BARS]))
    ticks = tuple(Tick(x(first + offset), span(offset)) for offset in _offsets(last - first))
    return Timeline(TOP + len(strips) * ROW + 8, ticks, strips, max(len(shown) - MOST_BARS, 0))


def _strip(bar: Bar, y: float, x: Callable[[datetime], float], last: datetime) -> Strip:
    begin = bar.created or bar.started or last
    end = bar.finished or last
    start = min(max(bar.started or end, begin), max(end, begin))
    mark = why(bar)
    status = bar.pod["status"] or "Unknown"
    ran = f", ran {span(end - start)}" if bar.started else ", never started"
    title = f"{bar.pod['name']}: {status}{ran}" + (f", replaced: {mark}" if mark else "")
    return Strip(bar.pod["name"] or "", y, x(begin), x(start), x(end), status, title, mark)


def _offsets(length: timedelta) -> Iterable[timedelta]:
    seconds = length.total_seconds()
    step = next((step for step in STEPS if seconds / step <= TICKS), int(seconds // TICKS) or 1)
    return (timedelta(seconds=at * step) for at in range(int(seconds // step) + 1))


def span(length: timedelta) -> str:
    """``1d 4h``, ``12m 5s``: the two largest units."""
    left = max(int(length.total_seconds()), 0)
    parts: list[str] = []
    for unit, size in (("d", 86400), ("h", 3600), ("m", 60), ("s", 1)):
        amount, left = divmod(left, size)
        if amount or (unit == "s" and not parts):
            parts.append(f"{amount}{unit}")
    return " ".join(parts[:2])


def outcomes(rows: Iterable[Row], first: date, days: int) -> Columns:
    """A column for each day, stacked by how jobs ended; ``rows`` as ``statistics.per_day`` gives them."""
    counts: dict[tuple[str, str], int] = {(row["day"], row["status"]): row["jobs"] for row in rows}
    names = [str(first + timedelta(days=at)) for at in range(days)]
    totals = [sum(counts.get((day, status), 0) for status in OUTCOMES) for day in names]
    most = max(totals, default=0)
    step = WIDTH / max(days, 1)
    columns = tuple(_column(day, at * step, step, counts, most or 1) for at, day in enumerate(names))
    return Columns(columns, most)


def _column(day: str, x: float, step: float, counts: dict[tuple[str, str], int], most: int) -> Column:
    blocks: list[Block] = []
    y = CHART_HEIGHT
    for status in OUTCOMES:
        jobs = counts.get((day, status), 0)
        height = round(jobs / most * (CHART_HEIGHT - 10), 1)
        y -= height
        if jobs:
            blocks.append(Block(round(y, 1), height, status, jobs))
    said = ", ".join(f"{block.jobs} {block.status.lower()}" for block in blocks) or "nothing ended"
    return Column(round(x + step * 0.12, 1), round(step * 0.76, 1), day, tuple(blocks), f"{day}: {said}")


def shares(values: Iterable[tuple[str, float]]) -> list[tuple[str, float, float]]:
    """Name, value, and its part of the largest in percent."""
    listed = list(values)
    largest = max((value for _, value in listed), default=0.0) or 1.0
    return [(name, value, round(100 * value / largest, 1)) for name, value in listed]
