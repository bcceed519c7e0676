"""The questions about single jobs and lists of them, as statements."""

import base64
import re
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

import orjson
from sqlalchemy import Column, ColumnElement, Select, Table, and_, func, or_, select

from history.models import (
    admission_info,
    condition_info,
    event_info,
    job_info,
    object_snapshot,
    replica_info,
    restart_info,
)
from schemas.records import Live

Row = dict[str, Any]

SORTS: dict[str, Column[Any]] = {
    "created": job_info.c.gmt_created,
    "finished": job_info.c.gmt_finished,
    "name": job_info.c.name,
}
"""What lists are sorted by; a minus before it turns the order. Jobs without the value are not in that list."""
SORT_NAMES = tuple(f"{sign}{name}" for name in SORTS for sign in ("-", ""))
NEWEST_FIRST = (job_info.c.gmt_created.desc(), job_info.c.id.desc())
SUBMITTING = timedelta(seconds=10)
"""How long before its creation a job may have been answered."""
MOST_JOBS = 100_000
MOST_ROWS = 5_000
"""Rows of one kind that are read for a single job or a list of refusals."""


@dataclass(frozen=True, slots=True)
class Wanted:
    """Which jobs: all filters that are set must hold."""

    kind: str | None = None
    namespace: str | None = None
    name: str | None = None
    """A part of the name, in any case."""
    status: str | None = None
    owner: str | None = None
    tenant: str | None = None
    region: str | None = None
    since: datetime | None = None
    """Created at this time (naive UTC) or later."""
    until: datetime | None = None
    """Created before this time (naive UTC)."""
    deleted: bool | None = None
    sort: str = "-created"
    after: str | None = None
    """A cursor: the ``next`` of the page before, of a list with the same sort."""
    limit: int = 100


ANY = Wanted()


class BadCursor(ValueError):  # noqa: N818 - it reads as what it says
    """A cursor that this version did not make, or of another sort."""


def jobs(wanted: Wanted) -> Select[Any]:
    """Jobs by filter, sorted, after the cursor."""
    column, descending = _sort(wanted.sort)
    order = (column.desc(), job_info.c.id.desc()) if descending else (column, job_info.c.id)
    where = [*filters(wanted), column.is_not(None)]
    if wanted.after is not None:
        where.append(_behind(wanted.after, wanted.sort))
    return select(job_info).where(*where).order_by(*order).limit(wanted.limit)


def filters(wanted: Wanted) -> list[ColumnElement[bool]]:
    """What must hold of the jobs wanted."""
    exact = {
        "kind": wanted.kind,
        "namespace": wanted.namespace,
        "status": wanted.status,
        "owner": wanted.owner,
        "tenant": wanted.tenant,
        "deploy_region": wanted.region,
        "deleted": None if wanted.deleted is None else int(wanted.deleted),
    }
    found = [job_info.c[column] == value for column, value in exact.items() if value is not None]
    if wanted.name is not None:
        found += _named_like(wanted.name)
    if wanted.since is not None:
        found.append(job_info.c.gmt_created >= wanted.since)
    if wanted.until is not None:
        found.append(job_info.c.gmt_created < wanted.until)
    return found


def _named_like(part: str) -> list[ColumnElement[bool]]:
    """Names that hold ``part`` in any case.

    Of ``train-gpt-500003`` the trigrams of ``train`` are in every name, and PostgreSQL reads the lists of all: 190 ms
    among a million jobs, 1 ms for the number alone. So the index is asked for one word, and the whole is compared then.
    """
    name = job_info.c.name
    words = [word for word in re.split(r"[^a-zA-Z0-9]+", part) if len(word) > 2]
    rarest = max(words, key=lambda word: (sum(map(str.isdigit, word)), len(word)), default=part)
    whole = func.lower(name).contains(part.lower(), autoescape=True)
    return [name.icontains(rarest, autoescape=True), *([whole] if rarest != part else [])]


def cursor(sort: str, row: Row) -> str:
    """What a list goes on after ``row`` with."""
    column, _ = _sort(sort)
    return base64.urlsafe_b64encode(orjson.dumps([sort, row[column.name], row["id"]])).decode().rstrip("=")


def _sort(sort: str) -> tuple[Column[Any], bool]:
    return SORTS[sort.removeprefix("-")], sort.startswith("-")


def _behind(after: str, sort: str) -> ColumnElement[bool]:
    """Spelled with AND and OR: MariaDB uses no index for a comparison of pairs."""
    column, descending = _sort(sort)
    value, last = _read(after, sort)
    number = job_info.c.id
    if descending:
        return and_(column <= value, or_(column < value, number < last))
    return and_(column >= value, or_(column > value, number > last))


def _read(after: str, sort: str) -> tuple[Any, int]:
    try:
        made_for, value, last = orjson.loads(base64.urlsafe_b64decode(after + "=" * (-len(after) % 4)))
        is_time = sort.removeprefix("-") != "name"
        value = datetime.fromisoformat(value) if is_time else str(value)
        good = made_for == sort and isinstance(last, int) and abs(last) < 2**63 and "\0" not in str(value)
    except (ValueError, TypeError):
        good = False
    if not good or (is_time and value.tzinfo is not None):
        raise BadCursor("after: must be the `next` of a page of the same list")
    return value, last


def meanings(reference: str) -> tuple[ColumnElement[bool], ...]:
    """What a user's word for a job may mean, most exact first."""
    namespace, slash, name = reference.partition("/")
    if slash:
        return (and_(job_info.c.namespace == namespace, job_info.c.name == name),)
    return (job_info.c.job_id == reference, job_info.c.name == reference)


def newest(meaning: ColumnElement[bool]) -> Select[Any]:
    """The newest of the jobs meant."""
    return select(job_info).where(meaning).order_by(*NEWEST_FIRST).limit(1)


def count(meaning: ColumnElement[bool]) -> Select[Any]:
    """How many jobs are meant."""
    return select(func.count()).select_from(job_info).where(meaning)


def pods(job_uid: str) -> Select[Any]:
    """The pods of a job."""
    return select(replica_info).where(replica_info.c.job_id == job_uid)


def pod_order(pod: Row) -> tuple[str, int, int]:
    """Sort key: replica type, index (the end of the name), then the order they were first seen in."""
    index = str(pod["name"]).rpartition("-")[2]
    return pod["replica_type"] or "", int(index) if index.isascii() and index.isdigit() else -1, pod["id"]


def events(uid: str) -> Select[Any]:
    """The events of an object and, if it is a job, of its pods."""
    own_pods = select(replica_info.c.pod_id).where(replica_info.c.job_id == uid)
    about = or_(event_info.c.obj_uid == uid, event_info.c.obj_uid.in_(own_pods))
    order = (event_info.c.last_timestamp, event_info.c.first_timestamp, event_info.c.name)
    return select(event_info).where(about).order_by(*order).limit(MOST_ROWS)


def of_job(table: Table, uid: str, *order: str) -> Select[Any]:
    """Rows of one of our tables about a job."""
    return select(table).where(table.c.job_id == uid).order_by(*(table.c[name] for name in order)).limit(MOST_ROWS)


def restarts(uid: str) -> Select[Any]:
    return of_job(restart_info, uid, "gmt_restarted", "restart_id")


def conditions(uid: str) -> Select[Any]:
    return of_job(condition_info, uid, "gmt_changed", "type")


def admissions(job: Row) -> Select[Any]:
    """The answers about a job; those from before it had a UID are known by its name and the time it was created.

    A creation's time is that of the API server after admission, in whole seconds.
    """
    c = admission_info.c
    about = [c.job_id == job["job_id"]]
    if created := job["gmt_created"]:
        named = and_(c.name == job["name"], c.namespace == job["namespace"], c.kind == job["kind"])
        span = (c.gmt_created >= created - SUBMITTING, c.gmt_created <= (job["gmt_finished"] or c.gmt_created))
        about.append(and_(c.job_id.is_(None), named, *span))
    query = select(admission_info).where(or_(*about))
    return query.order_by(c.gmt_created, c.job_id.is_not(None), c.review_uid).limit(MOST_ROWS)


def answers(
    verdict: str | None = None,
    namespace: str | None = None,
    user: str | None = None,
    since: datetime | None = None,
    limit: int = 100,
) -> Select[Any]:
    """The webhook's answers, newest first."""
    c = admission_info.c
    wanted = {c.verdict: verdict, c.namespace: namespace, c.username: user}
    where = [column == value for column, value in wanted.items() if value is not None]
    if since is not None:
        where.append(c.gmt_created >= since)
    return select(admission_info).where(*where).order_by(c.gmt_created.desc(), c.review_uid).limit(limit)


def all_restarts(namespace: str | None = None, since: datetime | None = None, limit: int = 100) -> Select[Any]:
    """Restarts of all jobs with the job's name, newest first."""
    where: list[ColumnElement[bool]] = []
    if namespace is not None:
        where.append(job_info.c.namespace == namespace)
    if since is not None:
        where.append(restart_info.c.gmt_restarted >= since)
    together = restart_info.join(job_info, job_info.c.job_id == restart_info.c.job_id)
    columns = (*restart_info.c, job_info.c.namespace, job_info.c.name, job_info.c.kind)
    newest_first = (restart_info.c.gmt_restarted.desc(), restart_info.c.restart_id)
    return select(*columns).select_from(together).where(*where).order_by(*newest_first).limit(limit)


def snapshot(uid: str) -> Select[Any]:
    """The newest stored form of an object."""
    c = object_snapshot.c
    return select(object_snapshot).where(c.uid == uid).order_by(c.generation.desc()).limit(1)


def submissions(since: datetime, after: tuple[str, int] = ("", -1), limit: int = 100) -> Select[Any]:
    """Submitted objects with who submitted them, to be judged again; a page behind the key ``after``."""
    c = object_snapshot.c
    behind = and_(c.uid >= after[0], or_(c.uid > after[0], c.generation > after[1]))
    where = (c.gmt_modified >= since, c.username.is_not(None), behind)
    return select(object_snapshot).where(*where).order_by(c.uid, c.generation).limit(limit)


def open_rows(live: Live) -> Select[Any]:
    """UID and version of the rows in a list's bounds whose object is thought to exist."""
    jobs, pods = job_info.c, replica_info.c
    if live.what == "pod":
        bounds = [pods.is_in_etcd == 1, _equal(pods.deploy_region, live.region)]
        query = select(pods.pod_id, pods.version)
    else:
        bounds = [jobs.is_in_etcd == 1, jobs.kind == live.kind, _recorded_in(live.region)]
        query = select(jobs.job_id, jobs.version)
    if live.namespace:
        bounds.append((pods if live.what == "pod" else jobs).namespace == live.namespace)
    return query.where(*bounds)


def _recorded_in(region: str | None) -> ColumnElement[bool]:
    """Jobs of controllers of this region: a job's own may be what its tenancy says, its pods' is the controller's."""
    pods = select(replica_info.c.id).where(replica_info.c.job_id == job_info.c.job_id)
    column = replica_info.c.deploy_region
    if region is None:
        return or_(job_info.c.deploy_region.is_(None), pods.where(column.is_(None)).exists())
    elsewhere = pods.where(or_(column.is_(None), column != region))
    return and_(job_info.c.deploy_region == region, ~elsewhere.exists())


def _equal(column: Column[Any], value: str | None) -> ColumnElement[bool]:
    return column.is_(None) if value is None else column == value
