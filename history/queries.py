"""The questions the history answers, as statements."""

from dataclasses import dataclass
from typing import Any

from sqlalchemy import ColumnElement, Select, and_, func, or_, select

from history.models import event_info, job_info, replica_info


@dataclass(frozen=True, slots=True)
class Wanted:
    """Which jobs: all filters that are set must hold."""

    kind: str | None = None
    namespace: str | None = None
    name: str | None = None
    """A part of the name, in any case."""
    status: str | None = None
    limit: int = 100


ANY = Wanted()
NEWEST_FIRST = (job_info.c.gmt_created.desc(), job_info.c.id.desc())


def jobs(wanted: Wanted) -> Select[Any]:
    """Jobs by filter, newest first."""
    exact = {"kind": wanted.kind, "namespace": wanted.namespace, "status": wanted.status}
    filters = [job_info.c[column] == value for column, value in exact.items() if value is not None]
    if wanted.name is not None:
        filters.append(func.lower(job_info.c.name).contains(wanted.name.lower(), autoescape=True))
    return select(job_info).where(*filters).order_by(*NEWEST_FIRST).limit(wanted.limit)


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


def pod_order(pod: dict[str, Any]) -> tuple[str, int, int]:
    """Sort key: replica type, index (the end of the name), then the order they were first seen in."""
    index = str(pod["name"]).rpartition("-")[2]
    return pod["replica_type"] or "", int(index) if index.isascii() and index.isdigit() else -1, pod["id"]


def events(uid: str) -> Select[Any]:
    """The events of an object and, if it is a job, of its pods."""
    own_pods = select(replica_info.c.pod_id).where(replica_info.c.job_id == uid)
    about = or_(event_info.c.obj_uid == uid, event_info.c.obj_uid.in_(own_pods))
    order = (event_info.c.last_timestamp, event_info.c.first_timestamp, event_info.c.name)
    return select(event_info).where(about).order_by(*order)
