"""What waits to be written: one entry per row, whatever the number of changes, and never more than a set number."""

import threading
import time
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field, replace
from datetime import datetime

import structlog

from history.fields import earliest
from history.store import Record, began_first

log = structlog.get_logger("history")

Key = tuple[str, str]
"""Kind of row (job, pod, event, answer) and UID."""
Build = Callable[[], Record | None]
Details = Mapping[Key, Build | Record]
"""Further rows that an object tells, by kind and identity."""
MOST_DETAILS = 200
MOST_BYTES = 64 * 2**20


@dataclass(frozen=True, slots=True)
class Entry:
    """The newest state of one row, as a record or as what makes one; a raw object is only kept until it is built."""

    content: Build | Record
    version: int
    ended: bool
    """Whether the row's status is final; such entries are dropped last."""
    began: datetime | None = None
    gone_at: datetime | None = None
    details: Details = field(default_factory=dict)
    """Written together with the row; all that merged states told, the newest if they are too many."""
    size: int = 0
    """Bytes, of rows that strangers can make as large and as many as they like."""
    since: float = field(default_factory=time.monotonic)

    @property
    def precious(self) -> bool:
        """Nothing will tell this again: the object is finished or gone."""
        return self.ended or self.gone_at is not None

    @property
    def record(self) -> Record | None:
        """The row, with the earliest beginning that any merged state knew; None for an object without a key."""
        record = _built(self.content)
        return record and began_first(record, self.began)

    def built(self) -> "Entry | None":
        """The entry without raw objects; None when it gives no row."""
        record = self.record
        if record is None:
            return None
        known = {key: detail for key, raw in self.details.items() if (detail := _built(raw))}
        return replace(self, content=record, details=known)

    def records(self) -> list[Record]:
        """All rows to be written; empty for an object without a key."""
        built = self.built()
        if built is None or callable(built.content):
            return []
        return [built.content, *(detail for detail in built.details.values() if not callable(detail))]

    def merged(self, other: "Entry") -> "Entry":
        """Both as one, in any order: what has ended wins, then the newer version; a deletion is kept."""
        newest = max(self, other, key=lambda entry: (entry.ended, entry.version))
        return replace(
            newest,
            began=earliest(self.began, other.began),
            gone_at=earliest(self.gone_at, other.gone_at),
            details=_newest({**self.details, **other.details}) if self.details else other.details,
            since=min(self.since, other.since),
        )


def _built(content: Build | Record) -> Record | None:
    return content() if callable(content) else content


def _newest(details: dict[Key, Build | Record]) -> Details:
    return dict(list(details.items())[-MOST_DETAILS:]) if len(details) > MOST_DETAILS else details


class Backlog:
    """Entries by key, oldest first; safe between threads, and no call waits for more than another's few steps.

    Beyond ``limit`` entries, or ``most_bytes`` of those that tell their size, the oldest that is not precious is
    dropped and counted, then the oldest at all.
    """

    def __init__(self, limit: int, most_bytes: int = MOST_BYTES) -> None:
        self.dropped = 0
        self._limit, self._most_bytes = limit, most_bytes
        self._bytes = 0
        self._lock = threading.Lock()
        self._open: dict[Key, Entry] = {}
        self._precious: dict[Key, Entry] = {}
        self._raw: set[Key] = set()

    def __len__(self) -> int:
        return len(self._open) + len(self._precious)

    def put(self, key: Key, entry: Entry) -> bool:
        """Add or merge; whether nothing had to be dropped for it."""
        with self._lock:
            known = self._get(key)
            self._set(key, known.merged(entry) if known else entry)
            self._raw.add(key)
            return self._shrink()

    def oldest(self, limit: int) -> list[tuple[Key, Entry]]:
        """Up to ``limit`` entries, precious ones first; they stay until ``remove``."""
        with self._lock:
            found: list[tuple[Key, Entry]] = []
            for entries in (self._precious, self._open):
                for item in entries.items():
                    if len(found) == limit:
                        return found
                    found.append(item)
            return found

    def remove(self, written: Iterable[tuple[Key, Entry]]) -> None:
        """Forget entries that were not merged with anything newer meanwhile."""
        with self._lock:
            for key, entry in written:
                if self._get(key) is entry:
                    self._delete(key)

    def build(self) -> None:
        """Turn raw objects into records, a thirtieth of their size; an object that gives no record is forgotten."""
        with self._lock:
            raw = [(key, entry) for key in self._raw if (entry := self._get(key))]
            self._raw.clear()
        for key, entry in raw:
            built = self._read(key, entry)
            with self._lock:
                if self._get(key) is entry and built is None:
                    self._delete(key)
                elif self._get(key) is entry and built is not None:
                    self._set(key, built)

    def _read(self, key: Key, entry: Entry) -> Entry | None:
        """One object that cannot be read must not hold up all others."""
        try:
            return entry.built()
        except Exception:
            log.exception("history cannot read an object", row=key)
            self.dropped += 1
            return None

    def age(self) -> float:
        """Seconds that the oldest entry has been waiting; 0 when there is none."""
        with self._lock:
            firsts = [next(iter(entries.values())) for entries in (self._precious, self._open) if entries]
        return time.monotonic() - min(entry.since for entry in firsts) if firsts else 0.0

    def _get(self, key: Key) -> Entry | None:
        return self._open.get(key) or self._precious.get(key)

    def _set(self, key: Key, entry: Entry) -> None:
        self._bytes += entry.size - self._size(key)
        if entry.precious:
            self._open.pop(key, None)
            self._precious[key] = entry
        else:
            self._open[key] = entry

    def _delete(self, key: Key) -> None:
        self._bytes -= self._size(key)
        self._open.pop(key, None)
        self._precious.pop(key, None)
        self._raw.discard(key)

    def _shrink(self) -> bool:
        complete = True
        while len(self) > self._limit or self._bytes > self._most_bytes:
            key = next(iter(self._open or self._precious))
            self._delete(key)
            self.dropped += 1
            log.warning("history drops a row", what=key[0], uid=key[1])
            complete = False
        return complete

    def _size(self, key: Key) -> int:
        known = self._get(key)
        return known.size if known else 0
