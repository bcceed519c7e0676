"""Sums over many jobs, computed by the database: outcomes, GPU-hours, waiting and running times, reasons.

GPU-hours are those of pods, from the start of the main container to its end (or now): a job that was suspended or
waited for a replacement is not charged for it. Resources are JSON in the seed's columns, so the database adds up the
time by distinct resources, of which there are few, and the GPUs in them are read here.
"""

from collections import defaultdict
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any

import orjson
from sqlalchemy import ColumnElement, DateTime, Float, Select, and_, case, func, literal, select
from sqlalchemy.ext.compiler import compiles
from sqlalchemy.sql.functions import FunctionElement

from history.models import admission_info, condition_info, job_info, replica_info, restart_info
from history.queries import Row, Wanted, filters
from history.reader import Reader
from history.records import ENDED
from schemas import quantities

GROUPS = ("owner", "kind", "namespace", "tenant", "status")
"""What jobs can be counted by."""
PERCENTILES = (50, 90, 99)
MOST_GROUPS = 1_000
GPU = ("nvidia.com/gpu", "amd.com/gpu", "gpu.intel.com/", "nvidia.com/mig-", "habana.ai/gaudi", "aliyun.com/gpu")
"""How the names of resources begin that are counted as GPUs."""


class seconds(FunctionElement[float]):  # noqa: N801 (named as an SQL function)
    """Seconds from one time to another."""

    type = Float()
    inherit_cache = True


@compiles(seconds, "sqlite")
def _in_sqlite(element: Any, compiler: Any, **options: Any) -> str:
    start, end = (compiler.process(clause, **options) for clause in element.clauses)
    return f"(unixepoch({end}) - unixepoch({start}))"


@compiles(seconds, "postgresql")
def _in_postgresql(element: Any, compiler: Any, **options: Any) -> str:
    start, end = (compiler.process(clause, **options) for clause in element.clauses)
    return f"EXTRACT(EPOCH FROM ({end} - {start}))"


@compiles(seconds, "mysql")
@compiles(seconds, "mariadb")
def _in_mysql(element: Any, compiler: Any, **options: Any) -> str:
    start, end = (compiler.process(clause, **options) for clause in element.clauses)
    return f"TIMESTAMPDIFF(SECOND, {start}, {end})"


@dataclass(frozen=True, slots=True)
class Times:
    """Percentiles in seconds."""

    p50: float
    p90: float
    p99: float


def by(reader: Reader, group: str, wanted: Wanted, now: datetime) -> list[Row]:
    """For each owner, kind, ... of the jobs wanted: how many, how they ended, GPU-hours, and how long they took.

    The most jobs first; ``queue_seconds`` and ``run_seconds`` are None where no job started or ended.
    """
    groups: dict[str | None, Row] = {}
    for row in reader.rows(counts(group, wanted)):
        found = groups.setdefault(row["value"], {"value": row["value"], "jobs": 0, "outcomes": {}})
        found["jobs"] += row["jobs"]
        found["outcomes"][row["status"] or "unknown"] = row["jobs"]
    hours = gpu_hours(reader, group, wanted, now)
    queued = _times(reader, group, wanted, seconds(job_info.c.gmt_created, job_info.c.gmt_job_running))
    ran = _times(reader, group, wanted, seconds(job_info.c.gmt_job_running, job_info.c.gmt_finished))
    for value, found in groups.items():
        found["gpu_hours"] = round(hours.get(value, 0.0), 3)
        found["queue_seconds"], found["run_seconds"] = queued.get(value), ran.get(value)
    return sorted(groups.values(), key=lambda row: (-row["jobs"], row["value"] or ""))[:MOST_GROUPS]


def counts(group: str, wanted: Wanted) -> Select[Any]:
    """How many of the jobs wanted there are of each value and status."""
    value = job_info.c[group]
    query = select(value.label("value"), job_info.c.status.label("status"), func.count().label("jobs"))
    return query.where(*filters(wanted)).group_by(value, job_info.c.status)


def verdicts(since: datetime) -> Select[Any]:
    """How often each policy came to each verdict, the most frequent first."""
    c = admission_info.c
    count = func.count().label("count")
    query = select(c.policy, c.verdict, count).where(c.gmt_created >= since).group_by(c.policy, c.verdict)
    return query.order_by(count.desc(), c.policy, c.verdict)


def gpu_hours(reader: Reader, group: str, wanted: Wanted, now: datetime) -> dict[str | None, float]:
    """GPU-hours of the pods of the jobs wanted, so far."""
    ended = func.coalesce(replica_info.c.gmt_finished, literal(now, DateTime))
    took = func.sum(seconds(replica_info.c.gmt_started, ended))
    value, resources = job_info.c[group], replica_info.c.resources
    together = replica_info.join(job_info, job_info.c.job_id == replica_info.c.job_id)
    query = select(value.label("value"), resources, took.label("seconds")).select_from(together)
    query = query.where(*filters(wanted), resources.is_not(None), replica_info.c.gmt_started.is_not(None))
    if wanted.since is not None:  # implied by the job's, but this is what the index of the larger table is for
        query = query.where(replica_info.c.gmt_created >= wanted.since)
    found: dict[str | None, float] = defaultdict(float)
    for row in reader.rows(query.group_by(value, resources)):
        found[row["value"]] += max(float(row["seconds"] or 0), 0.0) * gpus(row["resources"]) / 3600
    return found


def gpus(resources: str) -> float:
    """GPUs in a pod's ``resources`` column; unknown resources have none."""
    try:
        asked = orjson.loads(resources)
    except orjson.JSONDecodeError:
        return 0.0
    return gpus_in(asked.get("requests") or asked.get("limits")) if isinstance(asked, Mapping) else 0.0


def gpus_in(amounts: Any) -> float:
    """GPUs among amounts by resource name."""
    listed = amounts.items() if isinstance(amounts, Mapping) else ()
    return float(sum(quantities.parse(amount) or 0 for name, amount in listed if name.startswith(GPU)))


def per_day(reader: Reader, since: datetime) -> list[Row]:
    """How many jobs ended on each day, by status: ``{"day": "2026-11-30", "status": "Failed", "jobs": 3}``."""
    c = job_info.c
    day = func.date(c.gmt_finished)
    query = select(day.label("day"), c.status, func.count().label("jobs"))
    query = query.where(c.gmt_finished >= since, c.status.in_(sorted(ENDED))).group_by(day, c.status)
    return [row | {"day": str(row["day"])} for row in reader.rows(query.order_by(day))]


def failures(reader: Reader, since: datetime, limit: int = 10) -> list[Row]:
    """Why jobs failed: the reason of their Failed condition, the most frequent first."""
    c, job = condition_info.c, job_info.c
    together = job_info.join(condition_info, c.job_id == job.job_id)
    where = (job.status == "Failed", job.gmt_created >= since, c.type == "Failed", c.status == "True")
    return _frequent(reader, select(c.reason).select_from(together).where(*where), (c.reason,), limit)


def restarts(reader: Reader, since: datetime, limit: int = 10) -> list[Row]:
    """Why pods were replaced: reason and exit code, the most frequent first."""
    c = restart_info.c
    return _frequent(
        reader, select(c.reason, c.exit_code).where(c.gmt_restarted >= since), (c.reason, c.exit_code), limit
    )


def _frequent(reader: Reader, query: Select[Any], group: tuple[ColumnElement[Any], ...], limit: int) -> list[Row]:
    count = func.count().label("count")
    return reader.rows(query.add_columns(count).group_by(*group).order_by(count.desc(), *group).limit(limit))


def _times(reader: Reader, group: str, wanted: Wanted, took: "seconds") -> dict[str | None, Times]:
    """Percentiles by nearest rank: the row at ``ceil(q * n)`` of each group in order."""
    value = job_info.c[group]
    rank = func.row_number().over(partition_by=value, order_by=took)
    size = func.count().over(partition_by=value)
    ranked = select(value.label("value"), took.label("took"), rank.label("rank"), size.label("size"))
    known = [clause.is_not(None) for clause in took.clauses]
    inner = ranked.where(*filters(wanted), *known).subquery()
    nearest = [
        and_(inner.c.rank * 100 >= inner.c.size * percent, (inner.c.rank - 1) * 100 < inner.c.size * percent)
        for percent in PERCENTILES
    ]
    found: dict[str | None, Times] = {}
    columns = [func.max(case((here, inner.c.took))).label(f"q{at}") for at, here in enumerate(nearest)]
    for row in reader.rows(select(inner.c.value, *columns).group_by(inner.c.value)):
        found[row["value"]] = Times(*(float(row[f"q{at}"] or 0) for at in range(len(PERCENTILES))))
    return found
