"""The history in one SQL database: batches in, rows out."""

from collections.abc import Callable, Collection, Iterable, Mapping
from dataclasses import dataclass, fields, replace
from datetime import datetime
from typing import Any

from sqlalchemy import Connection, Executable, select
from sqlalchemy.sql.dml import Insert

from history import queries, schema, upserts
from history.engine import connect
from history.fields import EPOCH, earliest, utcnow
from history.records import ENDED, EventRecord, JobRecord, PodRecord, Record
from history.upserts import EVENTS, JOBS, PODS, Target

Row = dict[str, Any]
Key = tuple[str, ...]
TARGETS: Mapping[type[Record], Target] = {JobRecord: JOBS, PodRecord: PODS, EventRecord: EVENTS}
COLUMNS = {kind: tuple(field.name for field in fields(kind)) for kind in TARGETS}


@dataclass(frozen=True, slots=True)
class Gone:
    """An object that was seen to be gone, and when (naive UTC)."""

    what: str
    """``job`` or ``pod``."""
    uid: str
    seen_at: datetime


class Store:
    """One database of the history. Safe to use from several threads and processes at once.

    ``url`` is a SQLAlchemy URL of SQLite (a file), PostgreSQL or MySQL/MariaDB; nothing is connected before the first
    call. Raises ValueError for an unusable URL; any method raises ``sqlalchemy.exc.SQLAlchemyError`` or OSError when
    the database does not answer, within seconds, and can be called again.
    """

    def __init__(self, url: str, *, read_only: bool = False, clock: Callable[[], datetime] = utcnow) -> None:
        self._engine = connect(url, read_only=read_only)
        self._clock = clock
        self._upserts: dict[type[Record], Insert] = {
            kind: upserts.upsert(target, self._engine.dialect.name) for kind, target in TARGETS.items()
        }

    def upgrade(self) -> None:
        """Create the tables or migrate them to this version."""
        schema.upgrade(self._engine)

    def close(self) -> None:
        """Close all connections."""
        self._engine.dispose()

    def save(self, records: Iterable[Record], gone: Iterable[Gone] = ()) -> None:
        """Write a batch in one transaction: all of it or nothing. May be repeated and reordered without harm."""
        now = self._clock()
        with self._engine.begin() as connection:
            for kind, rows in _by_table(records).items():
                connection.execute(self._upserts[kind], [_row(record, now) for record in rows])
            _close(connection, gone, now)

    def close_missing(self, live: Collection[str]) -> int:
        """Close the rows of jobs whose UID is not among ``live``, and of their pods; how many jobs that were.

        For jobs deleted while no controller ran: a running one ends as Stopped, now, for want of a better time.
        """
        now = self._clock()
        with self._engine.begin() as connection:
            jobs = _missing(connection, JOBS, live)
            pods = _missing(connection, PODS, live)
            _close(
                connection, [*(Gone("job", uid, now) for uid in jobs), *(Gone("pod", uid, now) for uid in pods)], now
            )
        return len(jobs)

    def jobs(self, wanted: queries.Wanted = queries.ANY) -> list[Row]:
        """Rows of job_info by column name, newest first."""
        return self._rows(queries.jobs(wanted))

    def job(self, reference: str) -> tuple[Row | None, int]:
        """The newest job that a UID, ``namespace/name`` or name means, and how many older ones it means as well."""
        for meaning in queries.meanings(reference):
            with self._engine.connect() as connection:
                row = connection.execute(queries.newest(meaning)).mappings().first()
                if row is not None:
                    return _named(row), int(connection.scalar(queries.count(meaning)) or 1) - 1
        return None, 0

    def pods(self, job_uid: str) -> list[Row]:
        """Rows of replica_info of one job by type, index and age."""
        return sorted(self._rows(queries.pods(job_uid)), key=queries.pod_order)

    def events(self, uid: str) -> list[Row]:
        """Rows of event_info about an object and, for a job, about its pods, oldest first."""
        return self._rows(queries.events(uid))

    def _rows(self, query: Executable) -> list[Row]:
        with self._engine.connect() as connection:
            return [_named(row) for row in connection.execute(query).mappings()]


def _named(row: Mapping[Any, Any]) -> Row:
    """By plain strings: the driver's column names are a kind of str that JSON encoders refuse."""
    return {str(name): value for name, value in row.items()}


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
    column = TARGETS[type(one)].earliest
    newest = max(one, other, key=_rank)
    return newest if column is None else began_first(newest, earliest(getattr(one, column), getattr(other, column)))


def _rank(record: Record) -> tuple[int, int | datetime]:
    if isinstance(record, EventRecord):
        return record.count, record.last_timestamp or EPOCH
    return record.status in ENDED, int(record.version or 0)


def _row(record: Record, now: datetime) -> Row:
    row = {column: getattr(record, column) for column in COLUMNS[type(record)]}
    return row if isinstance(record, EventRecord) else row | {"deleted": 0, "is_in_etcd": 1, "gmt_modified": now}


def _close(connection: Connection, gone: Iterable[Gone], now: datetime) -> None:
    rows = sorted(gone, key=lambda one: (one.uid, one.seen_at))
    for what, target in (("job", JOBS), ("pod", PODS)):
        params = [{"uid": one.uid, "gone_at": one.seen_at, "now": now} for one in rows if one.what == what]
        if params:
            connection.execute(upserts.stop(target), params)
            connection.execute(upserts.delete_mark(target), params)


def _missing(connection: Connection, target: Target, live: Collection[str]) -> list[str]:
    """Keys of the rows whose object is thought to exist though its job does not."""
    table = target.table
    query = select(table.c[target.key[0]], table.c.job_id).where(table.c.is_in_etcd == 1)
    return [key for key, job_uid in connection.execute(query) if job_uid not in live]
