"""The statements that write: one rule of what wins for each table, spelled for each database.

Jobs, pods and events: a row is keyed by UID, a newer version wins, and a status that has ended is only replaced by one
that has ended too (argoproj/argo-workflows#5567, #2427). Repeating or reordering statements ends in the same row.
Deletion is a statement of its own and wins whatever the version: the last known state may be older than what is stored.
Of our own tables the facts (restarts, answers) never change, and the states (conditions, snapshots) are replaced.
"""

from dataclasses import dataclass
from functools import cache
from typing import Any, Literal

from sqlalchemy import ColumnElement, Table, Update, and_, bindparam, case, func, literal_column, or_, update
from sqlalchemy.dialects import mysql, postgresql, sqlite
from sqlalchemy.sql.base import ReadOnlyColumnCollection
from sqlalchemy.sql.dml import Insert

from history.models import (
    admission_info,
    condition_info,
    event_info,
    job_info,
    object_snapshot,
    replica_info,
    restart_info,
)
from history.records import ENDED, STOPPED

Columns = ReadOnlyColumnCollection[str, Any]


@dataclass(frozen=True, slots=True)
class Target:
    """How rows of one table are merged."""

    table: Table
    key: tuple[str, ...]
    wins: Literal["newer", "first", "latest"]
    judges: tuple[str, ...] = ()
    """Columns that decide what is newer; assigned last, in this order: MySQL assigns from left to right."""
    earliest: str | None = None
    """A time that only ever moves back: when it began first."""
    kept: frozenset[str] = frozenset()
    """Columns that keep their value when the new row knows none."""


JOBS = Target(job_info, ("job_id",), "newer", ("status", "version"), "gmt_job_running", frozenset({"owner"}))
PODS = Target(replica_info, ("pod_id",), "newer", ("status", "version"), "gmt_started")
EVENTS = Target(event_info, ("obj_uid", "name"), "newer", ("last_timestamp", "count"))
RESTARTS = Target(restart_info, ("job_id", "restart_id"), "first")
CONDITIONS = Target(condition_info, ("job_id", "type", "gmt_changed"), "latest")
ADMISSIONS = Target(admission_info, ("review_uid",), "first")
SNAPSHOTS = Target(object_snapshot, ("uid", "generation"), "latest", kept=frozenset({"username", "user_groups"}))
EMPTY: ColumnElement[str] = literal_column("''")
ENDED_WORDS: list[ColumnElement[str]] = [literal_column(f"'{status}'") for status in sorted(ENDED)]
"""Constants are part of the statement, so that its only parameters are the row's: MySQL's driver batches only those."""
STORES = frozenset({"id", "deleted", "is_in_etcd"})
"""Columns that only the insert and the deletion set."""


@cache
def upsert(target: Target, dialect: str) -> Insert:
    """Insert a row, or merge it into the one of the same key; parameters are named as the columns."""
    if dialect == "mysql":
        merge = mysql.insert(target.table)
        return merge.on_duplicate_key_update(_guarded(target, merge.inserted))
    insert = sqlite.insert(target.table) if dialect == "sqlite" else postgresql.insert(target.table)
    if target.wins == "first":
        return insert.on_conflict_do_nothing(index_elements=target.key)
    new: Columns = insert.excluded
    where = _newer(target, new) if target.wins == "newer" else None
    return insert.on_conflict_do_update(index_elements=target.key, set_=dict(_values(target, new)), where=where)


@cache
def begin(target: Target) -> Update:
    """Move back when a row began, whatever its version; parameters ``uid``, ``began``, ``now``."""
    column = target.table.c[target.earliest or ""]
    here = target.table.c[target.key[0]] == bindparam("uid")
    later = or_(column.is_(None), column > bindparam("began"))
    values: dict[str, ColumnElement[Any]] = {column.name: bindparam("began"), "gmt_modified": bindparam("now")}
    return update(target.table).where(here, later).values(values)


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


def _values(target: Target, new: Columns) -> list[tuple[str, ColumnElement[Any]]]:
    """What each column becomes where the new row wins; judges come last."""
    old = target.table.c
    names = [column.name for column in old if column.name not in {*STORES, *target.key, *target.judges}]
    return [(name, _value(target, name, new)) for name in (*names, *target.judges)]


def _value(target: Target, name: str, new: Columns) -> ColumnElement[Any]:
    old = target.table.c[name]
    if name == target.earliest:
        return case((or_(new[name].is_(None), old <= new[name]), old), else_=new[name])
    return func.coalesce(new[name], old) if name in target.kept else new[name]


def _guarded(target: Target, new: Columns) -> list[tuple[str, ColumnElement[Any]]]:
    """The same for MySQL, which knows no WHERE here: each column keeps its value unless the new row wins."""
    old = target.table.c
    if target.wins == "first":
        return [(target.key[0], old[target.key[0]])]
    values = _values(target, new)
    if target.wins == "latest":
        return values
    newer = _newer(target, new)
    return [(name, case((newer, value), else_=old[name])) for name, value in values]


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
