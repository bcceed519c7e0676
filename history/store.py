"""Writing the history into one SQL database: batches in, each whole or not at all."""

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, fields, replace
from datetime import datetime
from typing import Any, Protocol

from sqlalchemy import Connection, Executable, select, update
from sqlalchemy.sql.dml import Insert

from history import schema, upserts
from history.details import AdmissionRecord, ConditionRecord, RestartRecord, SnapshotRecord
from history.fields import EPOCH, earliest, utcnow
from history.models import admission_info, job_info
from history.queries import Row
from history.reader import Reader
from history.records import ENDED, EventRecord, JobRecord, PodRecord
from history.upserts import Target

Key = tuple[str, ...]
Record = JobRecord | PodRecord | EventRecord | RestartRecord | ConditionRecord | AdmissionRecord | SnapshotRecord
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
    def close_missing(self, jobs: Collection[str] | None = None, pods: Collection[str] | None = None) -> int: ...
    def close(self) -> None: ...


class Refused(Exception):  # noqa: N818 - it reads as what it says
    """What was sent can never be taken."""


class Store(Reader):
    """One database of the history, to be written as well; otherwise as a ``Reader``."""

    def __init__(self, url: str, *, clock: Callable[[], datetime] = utcnow) -> None:
        super().__init__(url, read_only=False)
        self._clock = clock
        dialect = self._engine.dialect.name
        self._upserts: dict[type[Record], Insert] = {
            kind: upserts.upsert(target, dialect) for kind, target in TARGETS.items()
        }

    def upgrade(self) -> None:
        """Create the tables or migrate them to this version."""
        schema.upgrade(self._engine)

    def save(self, records: Iterable[Record], gone: Iterable[Gone] = ()) -> None:
        """Write a batch in one transaction: all of it or nothing. May be repeated and reordered without harm."""
        now = self._clock()
        tables = _by_table(records)
        with self._engine.begin() as connection:
            for kind, rows in tables.items():
                connection.execute(self._upserts[kind], [_row(record, now) for record in rows])
                _begin(connection, TARGETS[kind], rows, now)
            _adopt(connection, _orphans(tables), now)
            _close(connection, gone, now)

    def close_missing(self, jobs: Collection[str] | None = None, pods: Collection[str] | None = None) -> int:
        """Close the rows of jobs, and of pods, whose UID is not among the live ones; how many jobs that were.

        For objects deleted while no controller ran: a running one ends as Stopped, now, for want of a better time.
        With ``jobs`` the pods of jobs that are gone are closed as well. None leaves rows alone.
        """
        now = self._clock()
        with self._engine.begin() as connection:
            open_jobs = [uid for uid, _ in _open(connection, upserts.JOBS)] if jobs is not None else []
            gone = [Gone("job", uid, now) for uid in open_jobs if uid not in (jobs or ())]
            for uid, job_uid in _open(connection, upserts.PODS):
                if (jobs is not None and job_uid not in jobs) or (pods is not None and uid not in pods):
                    gone.append(Gone("pod", uid, now))
            _close(connection, gone, now)
        return sum(one.what == "job" for one in gone)

    def execute(self, statement: Executable, parameters: Any = None) -> int:
        """Run one statement in a transaction of its own; how many rows it changed."""
        with self._engine.begin() as connection:
            return int(connection.execute(statement, parameters).rowcount)


def _by_table(records: Iterable[Record]) -> dict[type[Record], list[Record]]:
    """Rows of each table, one per key, in one order of all: two writers then do not wait for each other in a circle."""
    merged: dict[type[Record], dict[Key, Record]] = {kind: {} for kind in TARGETS}
    for record in records:
        rows = merged[type(record)]
        key = _key(record)
        rows[key] = _merged(rows[key], record) if key in rows else record
    return {kind: [rows[key] for key in sorted(rows)] for kind, rows in merged.items() if rows}


def _key(record: Record) -> Key:
    return tuple(getattr(record, column) for column in TARGETS[type(record)].key)


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


def _row(record: Record, now: datetime) -> Row:
    row = {column: getattr(record, column) for column in COLUMNS[type(record)]}
    if isinstance(record, JobRecord | PodRecord):
        return row | {"deleted": 0, "is_in_etcd": 1, "gmt_modified": now}
    return row | {"gmt_modified": now} if isinstance(record, SnapshotRecord) else row


def _begin(connection: Connection, target: Target, rows: list[Record], now: datetime) -> None:
    """A state that is too old to be written may still tell an earlier beginning."""
    if target.earliest is None:
        return
    began = [(_key(row)[0], getattr(row, target.earliest)) for row in rows]
    params = [{"uid": uid, "began": time, "now": now} for uid, time in began if time is not None]
    if params:
        connection.execute(upserts.begin(target), params)


def _orphans(tables: Mapping[type[Record], list[Record]]) -> list[str]:
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


def _close(connection: Connection, gone: Iterable[Gone], now: datetime) -> None:
    rows = sorted(gone, key=lambda one: (one.uid, one.seen_at))
    for what, target in OBJECTS:
        params = [{"uid": one.uid, "gone_at": one.seen_at, "now": now} for one in rows if one.what == what]
        if params:
            connection.execute(upserts.stop(target), params)
            connection.execute(upserts.delete_mark(target), params)


def _open(connection: Connection, target: Target) -> list[tuple[str, str]]:
    """UID and job's UID of the rows whose object is thought to exist."""
    table = target.table
    query = select(table.c[target.key[0]], table.c.job_id).where(table.c.is_in_etcd == 1)
    return [(uid, job_uid) for uid, job_uid in connection.execute(query)]
