"""The statements that write: one rule of what wins, spelled for each database.

A row is keyed by UID, a newer version wins, and a status that has ended is only replaced by one that has ended too
(argoproj/argo-workflows#5567, #2427). Repeating or reordering statements ends in the same row. Deletion is a
statement of its own and wins whatever the version: the last known state may be older than what is stored.
"""

from dataclasses import dataclass
from functools import cache
from typing import Any

from sqlalchemy import ColumnElement, Table, Update, and_, bindparam, case, func, literal_column, or_, update
from sqlalchemy.dialects import mysql, postgresql, sqlite
from sqlalchemy.sql.base import ReadOnlyColumnCollection
from sqlalchemy.sql.dml import Insert

from history.models import event_info, job_info, replica_info
from history.records import ENDED, STOPPED

Columns = ReadOnlyColumnCollection[str, Any]


@dataclass(frozen=True, slots=True)
class Target:
    """How rows of one table are merged."""

    table: Table
    key: tuple[str, ...]
    judges: tuple[str, ...]
    """Columns that decide what is newer; assigned last, in this order: MySQL assigns from left to right."""
    earliest: str | None = None
    """A time that only ever moves back: when it began first."""


JOBS = Target(job_info, ("job_id",), ("status", "version"), "gmt_job_running")
PODS = Target(replica_info, ("pod_id",), ("status", "version"), "gmt_started")
EVENTS = Target(event_info, ("obj_uid", "name"), ("last_timestamp", "count"))
EMPTY: ColumnElement[str] = literal_column("''")
ENDED_WORDS: list[ColumnElement[str]] = [literal_column(f"'{status}'") for status in sorted(ENDED)]
"""Constants are part of the statement, so that its only parameters are the row's: MySQL's driver batches only those."""
KEPT = {"id", "deleted", "is_in_etcd"}
"""Columns that only the insert and the deletion set."""


@cache
def upsert(target: Target, dialect: str) -> Insert:
    """Insert a row, or merge it into the one of the same key; parameters are named as the columns."""
    if dialect == "mysql":
        merge = mysql.insert(target.table)
        return merge.on_duplicate_key_update(_changes(target, merge.inserted))
    insert = sqlite.insert(target.table) if dialect == "sqlite" else postgresql.insert(target.table)
    new: Columns = insert.excluded
    changes = dict(_changes(target, new))
    return insert.on_conflict_do_update(index_elements=target.key, set_=changes, where=_touched(target, new))


@cache
def stop(target: Target) -> Update:
    """End a row that has not ended, at the time it was seen gone; parameters ``uid``, ``gone_at``, ``now``."""
    table = target.table
    values = {
        "gmt_finished": func.coalesce(table.c.gmt_finished, bindparam("gone_at")),
        "status": STOPPED,
        "gmt_modified": bindparam("now"),
    }
    here = table.c[target.key[0]] == bindparam("uid")
    return update(table).where(here, ~_ended(table.c.status)).values(values)


@cache
def delete_mark(target: Target) -> Update:
    """Note that the object is gone (seed: Deleted, IsInEtcd); parameters ``uid``, ``now``."""
    table = target.table
    values = {"deleted": 1, "is_in_etcd": 0, "gmt_modified": bindparam("now")}
    return update(table).where(table.c[target.key[0]] == bindparam("uid"), table.c.is_in_etcd == 1).values(values)


def _changes(target: Target, new: Columns) -> list[tuple[str, ColumnElement[Any]]]:
    """What each column becomes; in MySQL's order of assignment every condition still sees the old row."""
    old = target.table.c
    newer = _newer(target, new)
    special = {*KEPT, *target.key, *target.judges, "gmt_modified", target.earliest}
    plain = [column.name for column in old if column.name not in special]
    changes: list[tuple[str, ColumnElement[Any]]] = []
    if target.earliest:
        changes.append(("gmt_modified", case((_touched(target, new), new.gmt_modified), else_=old.gmt_modified)))
        began = case((_began_earlier(target.earliest, old, new), new[target.earliest]), else_=old[target.earliest])
        changes.append((target.earliest, began))
    return changes + [(name, case((newer, new[name]), else_=old[name])) for name in (*plain, *target.judges)]


def _touched(target: Target, new: Columns) -> ColumnElement[bool]:
    """Whether the new row changes the old one at all."""
    newer = _newer(target, new)
    return or_(newer, _began_earlier(target.earliest, target.table.c, new)) if target.earliest else newer


def _newer(target: Target, new: Columns) -> ColumnElement[bool]:
    old = target.table.c
    if target is EVENTS:
        later = and_(new["count"] == old["count"], new.last_timestamp > old.last_timestamp)
        return or_(new["count"] > old["count"], later)
    reopens = and_(_ended(old.status), ~_ended(new.status))
    return and_(_greater(new.version, old.version), ~reopens)


def _greater(new: ColumnElement[str], old: ColumnElement[str]) -> ColumnElement[bool]:
    """Compare digits as numbers, exactly and at any length: a cast would overflow, or fail on what another wrote."""
    one, other = _known(new), _known(old)
    longer = func.length(one) > func.length(other)
    return or_(longer, and_(func.length(one) == func.length(other), one > other))


def _ended(status: ColumnElement[str]) -> ColumnElement[bool]:
    """Spelled with OR: for an IN list SQLite builds a table per column and row, which doubles the time."""
    return or_(*(_known(status) == word for word in ENDED_WORDS))


def _known(column: ColumnElement[str]) -> ColumnElement[str]:
    return func.coalesce(column, EMPTY)


def _began_earlier(column: str, old: Columns, new: Columns) -> ColumnElement[bool]:
    return and_(new[column].is_not(None), or_(old[column].is_(None), new[column] < old[column]))
