"""Writing the history into one SQL database: batches in, each whole or not at all."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass, fields, replace
from datetime import datetime, timedelta
from operator import attrgetter
from typing import Any, Protocol

from sqlalchemy import Connection, insert, literal, select, update
from sqlalchemy.exc import DBAPIError

from history import metrics, queries, schema, upserts
from history.details import AdmissionRecord, ConditionRecord, RestartRecord, SnapshotRecord
from history.engine import is_deadlock
from history.fields import EPOCH, earliest, utcnow
from history.models import admission_info, job_info, notification_info
from history.queries import Row
from history.reader import Reader
from history.records import ENDED, EventRecord, JobRecord, PodRecord
from history.statements import Batch, Upsert
from history.upserts import Target
from schemas.records import Live

Key = Any
"""The value of a table's key, a tuple of several."""
Record = JobRecord | PodRecord | EventRecord | RestartRecord | ConditionRecord | AdmissionRecord | SnapshotRecord
Tables = Mapping[type[Record], list[Record]]
TARGETS: Mapping[type[Record], Target] = {
    JobRecord: upserts.JOBS,
    PodRecord: upserts.PODS,
    EventRecord: upserts.EVENTS,
    RestartRecord: upserts.RESTARTS,
    ConditionRecord: upserts.CONDITIONS,
    AdmissionRecord: upserts.ADMISSIONS,
    SnapshotRecord: upserts.SNAPSHOTS,
}
COLUMNS = {kind: tuple(field.name for field in fields(kind)) for kind in TARGETS}
EXTRA = {
    upserts.JOBS: ("deleted", "is_in_etcd", "gmt_modified"),
    upserts.PODS: ("deleted", "is_in_etcd", "gmt_modified"),
    upserts.SNAPSHOTS: ("gmt_modified",),
}
"""Columns that are no object's to tell."""
KEYS: dict[type[Record], Callable[[Record], Key]] = {kind: attrgetter(*target.key) for kind, target in TARGETS.items()}
DEADLOCKS = 5
"""How often a batch is written again that the database chose as a deadlock's victim: InnoDB locks gaps of indexes."""
NEWS = timedelta(days=1)
"""How long the end of a job is worth telling."""
OBJECTS = (("job", upserts.JOBS), ("pod", upserts.PODS))


@dataclass(frozen=True, slots=True)
class Gone:
    """An object that was seen to be gone, and when (naive UTC)."""

    what: str
    """``job`` or ``pod``."""
    uid: str
    seen_at: datetime


class Sink(Protocol):
    """Where a ``Writer`` puts what it was told: a database, or a process that has one.

    Every method may raise; all but ``close`` are repeated then. ``Refused`` and ``sqlalchemy.exc.DataError`` mean that
    the batch can never be taken as it is.
    """

    def upgrade(self) -> None: ...
    def save(self, records: Sequence[Record], gone: Sequence[Gone] = ()) -> None: ...
    def close_missing(self, live: Live) -> int: ...
    def close(self) -> None: ...


class Refused(Exception):  # noqa: N818 - it reads as what it says
    """What was sent can never be taken."""


class Store(Reader):
    """One database of the history, to be written as well; otherwise as a ``Reader``.

    With ``notify`` the end of a job is noted as to be told, in the transaction that writes it (``history.notify``).
    """

    def __init__(self, url: str, *, notify: bool = False, clock: Callable[[], datetime] = utcnow) -> None:
        super().__init__(url, read_only=False)
        self._notify = notify
        self._clock = clock
        dialect = self._engine.dialect
        self._upserts = {
            kind: Upsert(target, dialect, COLUMNS[kind], EXTRA.get(target, ())) for kind, target in TARGETS.items()
        }
        self._begins = {
            kind: Batch(upserts.begin(target), dialect, ()) for kind, target in TARGETS.items() if target.earliest
        }

    def upgrade(self) -> None:
        """Create the tables or migrate them to this version."""
        schema.upgrade(self._engine)

    def save(self, records: Iterable[Record], gone: Iterable[Gone] = ()) -> None:
        """Write a batch in one transaction: all of it or nothing. May be repeated and reordered without harm."""
        now = self._clock()
        tables, lost = _by_table(records), list(gone)
        for left in range(DEADLOCKS, -1, -1):
            try:
                with self._engine.begin() as connection:
                    self._save(connection, tables, lost, now)
            except DBAPIError as error:
                if not (left and is_deadlock(error)):
                    metrics.FAILURES.inc()
                    raise
            else:
                for kind, rows in tables.items():
                    metrics.ROWS.labels(TARGETS[kind].table.name).inc(len(rows))
                return

    def _save(self, connection: Connection, tables: Tables, gone: list[Gone], now: datetime) -> None:
        same = {"deleted": 0, "is_in_etcd": 1, "gmt_modified": now}
        for kind, rows in tables.items():
            all_won = self._upserts[kind].save(connection, rows, same)
            if kind in self._begins and not all_won:
                self._begins[kind].run(connection, _began(TARGETS[kind], rows, now))
        _adopt(connection, _orphans(tables), now)
        _close(connection, gone, now)
        if self._notify:
            _note_ends(connection, _ended(tables, gone), now)

    def close_missing(self, live: Live) -> int:
        """Close the rows in the bounds of a list that it lacks, and that are no newer than it; how many those were.

        For objects deleted while no controller ran: a running one ends as Stopped, now, for want of a better time.
        """
        now = self._clock()
        with self._engine.begin() as connection:
            rows = connection.execute(queries.open_rows(live))
            uids = [uid for uid, version in rows if uid not in live.uids and _is_older(version, live.version)]
            _close(connection, [Gone(live.what, uid, now) for uid in uids], now)
            if self._notify and live.what == "job":
                _note_ends(connection, uids, now)
        return len(uids)

    def begin(self) -> AbstractContextManager[Connection]:
        """A transaction: committed at its end, undone by an exception."""
        return self._engine.begin()


def _by_table(records: Iterable[Record]) -> dict[type[Record], list[Record]]:
    """Rows of each table, one per key, in one order of all: two writers then do not wait for each other in a circle."""
    merged: dict[type[Record], dict[Key, Record]] = {kind: {} for kind in TARGETS}
    for record in records:
        rows = merged[type(record)]
        key = KEYS[type(record)](record)
        rows[key] = _merged(rows[key], record) if key in rows else record
    return {kind: [rows[key] for key in sorted(rows)] for kind, rows in merged.items() if rows}


def began_first(record: Record, began: datetime | None) -> Record:
    """The record, beginning at ``began`` if that is earlier than what it says itself."""
    column = TARGETS[type(record)].earliest
    if column is None or began is None:
        return record
    changed: Row = {column: earliest(getattr(record, column), began)}
    return replace(record, **changed)


def _merged(one: Record, other: Record) -> Record:
    """The same rule as the statement's, for two rows of one key in a batch."""
    target = TARGETS[type(one)]
    if target.wins == "first":
        return one
    kept: Row = {name: getattr(one, name) for name in target.kept if getattr(other, name) is None}
    if target.wins == "latest":
        return replace(other, **kept)
    newest = max(one, other, key=_rank)
    began = target.earliest and earliest(getattr(one, target.earliest), getattr(other, target.earliest))
    return began_first(newest, began or None)


def _rank(record: Record) -> tuple[int, int | datetime]:
    if isinstance(record, EventRecord):
        return record.count, record.last_timestamp or EPOCH
    assert isinstance(record, JobRecord | PodRecord)
    return record.status in ENDED, int(record.version or 0)


def _began(target: Target, rows: list[Record], now: datetime) -> list[Row]:
    """A state that is too old to be written may still tell an earlier beginning."""
    read = attrgetter(target.key[0], target.earliest or "")
    began = map(read, rows)
    return [{"uid": uid, "began": time, "now": now} for uid, time in began if time is not None]


def _orphans(tables: Tables) -> list[str]:
    """Jobs whose owner the webhook may know, or that the webhook now knows the owner of."""
    jobs = [row.job_id for row in tables.get(JobRecord, ()) if isinstance(row, JobRecord) and row.owner is None]
    answers = (row for row in tables.get(AdmissionRecord, ()) if isinstance(row, AdmissionRecord))
    return sorted({*jobs, *(row.job_id for row in answers if row.job_id and row.operation == "CREATE")})


def _adopt(connection: Connection, uids: list[str], now: datetime) -> None:
    """A job that names no owner is its submitter's: whoever sent the CREATE that the webhook saw."""
    if not uids:
        return
    c = admission_info.c
    submitter = (
        select(c.username)
        .where(c.job_id == job_info.c.job_id, c.operation == "CREATE", c.username.is_not(None))
        .limit(1)
        .scalar_subquery()
    )
    missing = (job_info.c.job_id.in_(uids), job_info.c.owner.is_(None), submitter.is_not(None))
    connection.execute(update(job_info).where(*missing).values(owner=submitter, gmt_modified=now))


def _ended(tables: Tables, gone: Iterable[Gone]) -> list[str]:
    jobs = (row for row in tables.get(JobRecord, ()) if isinstance(row, JobRecord) and row.status in ENDED)
    return sorted({*(row.job_id for row in jobs), *(one.uid for one in gone if one.what == "job")})


def _note_ends(connection: Connection, uids: list[str], now: datetime) -> None:
    """Ends to be told, once each: what ended long before it was seen is no news."""
    if not uids:
        return
    known = select(notification_info.c.job_id).where(notification_info.c.job_id == job_info.c.job_id)
    ended = (job_info.c.status.in_(sorted(ENDED)), job_info.c.gmt_finished >= now - NEWS)
    columns = {
        "state": literal("pending"),
        "attempts": literal(0),
        "gmt_due": literal(now),
        "gmt_created": literal(now),
    }
    query = select(job_info.c.job_id, *columns.values()).where(job_info.c.job_id.in_(uids), *ended, ~known.exists())
    connection.execute(insert(notification_info).from_select(["job_id", *columns], query))


def _close(connection: Connection, gone: Iterable[Gone], now: datetime) -> None:
    rows = sorted(gone, key=lambda one: (one.uid, one.seen_at))
    for what, target in OBJECTS:
        params = [{"uid": one.uid, "gone_at": one.seen_at, "now": now} for one in rows if one.what == what]
        if params:
            connection.execute(upserts.stop(target), params)
            connection.execute(upserts.delete_mark(target), params)


def _is_older(version: str | None, listed: str) -> bool:
    """Whether an object of this version would have been in the list: both are positions in one log of changes."""
    return listed.isdecimal() and (not version or (version.isdecimal() and int(version) <= int(listed)))
