"""Forgetting what is older than one wants to keep: in small batches, so that no writer waits for long.

A job goes with its pods, events, restarts, conditions and snapshots; never one whose object still exists.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

import structlog
from sqlalchemy import Column, ColumnElement, Connection, Select, Table, delete, func, select

from history import metrics
from history.models import (
    admission_info,
    condition_info,
    event_info,
    job_info,
    notification_info,
    object_snapshot,
    replica_info,
    restart_info,
)
from history.store import Store

BATCH = 200
"""Jobs, or rows of a table, that one transaction removes."""
OF_A_JOB: tuple[tuple[Table, str], ...] = (
    (restart_info, "job_id"),
    (condition_info, "job_id"),
    (notification_info, "job_id"),
    (object_snapshot, "uid"),
    (replica_info, "job_id"),
    (job_info, "job_id"),
)

log = structlog.get_logger("history")


@dataclass(frozen=True, slots=True)
class Keep:
    """How long rows are kept after their job's end; None keeps them for ever."""

    jobs: timedelta | None = None
    snapshots: timedelta | None = None


def prune(store: Store, keep: Keep, now: datetime) -> Iterator[int]:
    """Remove what is too old, a batch at each step, and give how many jobs or rows that was."""
    if keep.jobs is not None:
        yield from _jobs(store, now - keep.jobs)
        for column in (event_info.c.last_timestamp, admission_info.c.gmt_created):
            yield from _older(store, column, now - keep.jobs)
    kept = min((span for span in (keep.jobs, keep.snapshots) if span is not None), default=None)
    if kept is not None:
        yield from _older(store, object_snapshot.c.gmt_modified, now - kept)


def _jobs(store: Store, before: datetime) -> Iterator[int]:
    c = job_info.c
    ended = func.coalesce(c.gmt_finished, c.gmt_modified)
    old = select(c.job_id).where(c.is_in_etcd == 0, c.gmt_created < before, ended < before)
    while uids := [row["job_id"] for row in store.rows(old.order_by(c.gmt_created).limit(BATCH))]:
        pods_of = select(replica_info.c.pod_id).where(replica_info.c.job_id.in_(uids))
        pods = [row["pod_id"] for row in store.rows(pods_of)]
        with store.begin() as connection:
            for begin in range(0, len(pods), BATCH):
                _delete(connection, event_info, event_info.c.obj_uid.in_(pods[begin : begin + BATCH]))
            _delete(connection, event_info, event_info.c.obj_uid.in_(uids))
            for table, column in OF_A_JOB:
                _delete(connection, table, table.c[column].in_(uids))
        log.info("history forgets old jobs", uids=uids)
        yield len(uids)


def _older(store: Store, column: Column[Any], before: datetime) -> Iterator[int]:
    """Rows of a table by age alone, keyed batch by batch; the snapshot of a job that still exists stays."""
    table = column.table
    key = list(table.primary_key.columns)
    while rows := store.rows(_oldest(table, key, column, before)):
        with store.begin() as connection:
            for row in rows:
                _delete(connection, table, *(one == row[one.name] for one in key))
        yield len(rows)


def _delete(connection: Connection, table: Table, *where: ColumnElement[bool]) -> None:
    metrics.DELETED.labels(table.name).inc(connection.execute(delete(table).where(*where)).rowcount)


def _oldest(table: Table, key: list[Column[Any]], column: Column[Any], before: datetime) -> Select[Any]:
    query = select(*key).where(column < before)
    if table is object_snapshot:
        live = select(job_info.c.job_id).where(job_info.c.is_in_etcd == 1)
        query = query.where(object_snapshot.c.uid.not_in(live))
    return query.order_by(column).limit(BATCH)
