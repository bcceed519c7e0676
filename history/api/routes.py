"""The routes under /api/v1."""

import re
from collections.abc import Callable
from http import HTTPStatus
from typing import Any

from flask import Blueprint, Response, request
from sqlalchemy.exc import DataError

from history import metrics, models, queries, statistics, timeline, wire
from history.api import openapi, parameters, shapes
from history.api.problems import Problem
from history.fields import utcnow
from history.queries import Row
from history.reader import Reader
from history.store import Store

JSON_TYPE = "application/json"
UID = re.compile(r"[A-Za-z0-9._-]{1,64}", re.ASCII)
BY_PART = {
    "pods": lambda reader, job: reader.pods(job["job_id"]),
    "restarts": lambda reader, job: reader.restarts(job["job_id"]),
    "events": lambda reader, job: reader.events(job["job_id"]),
    "admissions": lambda reader, job: reader.admissions(job),
    "conditions": lambda reader, job: reader.conditions(job["job_id"]),
}


def create(reader: Reader, store: Store | None) -> Blueprint:
    """All routes; those that write only with a ``store``."""
    api = Blueprint("api", __name__, url_prefix="/api/v1")
    api.add_url_rule("/jobs", "jobs", lambda: _json(_jobs(reader)))
    api.add_url_rule("/jobs/<uid>", "job", lambda uid: _json(_job(reader, uid)))
    api.add_url_rule("/jobs/<uid>/timeline", "timeline", lambda uid: _json(_timeline(reader, uid)))
    for part in BY_PART:
        api.add_url_rule(f"/jobs/<uid>/{part}", part, _part_of_job(reader, part))
    api.add_url_rule("/restarts", "all_restarts", lambda: _json(_restarts(reader)))
    api.add_url_rule("/admissions", "all_admissions", lambda: _json(_admissions(reader)))
    api.add_url_rule("/statistics", "statistics", lambda: _json(_statistics(reader)))
    api.add_url_rule("/openapi.json", "openapi", _document)
    if store is not None:
        api.add_url_rule("/ingest", "ingest", lambda: _ingest(store), methods=["POST"])
        api.add_url_rule("/ingest/live", "ingest_live", lambda: _json(_ingest_live(store)), methods=["POST"])
    return api


def _json(value: Any) -> Response:
    return Response(shapes.dumps(value), content_type=JSON_TYPE)


def _query() -> dict[str, list[str]]:
    return request.args.to_dict(flat=False)


def _document() -> Response:
    parameters.read((), _query())
    return _json(openapi.document())


def _jobs(reader: Reader) -> Row:
    page = reader.page(parameters.wanted(_query()))
    return {"items": [shapes.shaped(models.job_info, row) for row in page.rows], "next": page.next}


def _found(reader: Reader, uid: str) -> Row:
    parameters.read((), _query())
    job = reader.by_uid(uid) if UID.fullmatch(uid) else None
    if job is None:
        raise Problem(HTTPStatus.NOT_FOUND, "There is no job of this UID.")
    return job


def _part(reader: Reader, job: Row, part: str) -> list[Row]:
    table = shapes.TABLES[openapi.PARTS[part]]
    return [shapes.shaped(table, row) for row in BY_PART[part](reader, job)]


def _part_of_job(reader: Reader, part: str) -> Callable[[str], Response]:
    return lambda uid: _json({"items": _part(reader, _found(reader, uid), part)})


def _job(reader: Reader, uid: str) -> Row:
    job = _found(reader, uid)
    parts = {part: _part(reader, job, part) for part in openapi.PARTS}
    return {"job": shapes.shaped(models.job_info, job), **parts, "object": timeline.last_object(reader, uid)}


def _timeline(reader: Reader, uid: str) -> Row:
    job = _found(reader, uid)
    restarts = reader.restarts(job["job_id"])
    bars = timeline.bars(reader.pods(job["job_id"]), restarts)
    return {
        "pods": [_bar(bar) for bar in bars],
        "conditions": _part(reader, job, "conditions"),
    }


def _bar(bar: timeline.Bar) -> Row:
    pod = {name: bar.pod[name] for name in ("pod_id", "name", "replica_type", "status")}
    times = {"created": bar.created, "started": bar.started, "finished": bar.finished}
    restart = shapes.shaped(models.restart_info, bar.restart) if bar.restart else None
    return {key: value for key, value in {**pod, **times, "restart": restart}.items() if value is not None}


def _restarts(reader: Reader) -> Row:
    rows = reader.rows(queries.all_restarts(**parameters.read(parameters.RESTARTS, _query())))
    return {"items": [shapes.shaped(models.restart_info, row) for row in rows]}


def _admissions(reader: Reader) -> Row:
    rows = reader.rows(queries.answers(**parameters.read(parameters.ANSWERS, _query())))
    return {"items": [shapes.shaped(models.admission_info, row) for row in rows]}


def _statistics(reader: Reader) -> Row:
    values = parameters.read(parameters.STATISTICS, _query())
    group = values.pop("by", "owner")
    return {"items": statistics.by(reader, group, queries.Wanted(**values), utcnow())}


def _ingest(store: Store) -> Response:
    outcome = "failed"
    try:
        store.save(*wire.read(request.get_data(cache=False)))
        outcome = "accepted"
    except wire.NotABatch as error:
        outcome = "refused"
        raise Problem(HTTPStatus.BAD_REQUEST, str(error)) from error
    except DataError as error:
        outcome = "refused"
        raise Problem(HTTPStatus.UNPROCESSABLE_ENTITY, "The database refuses the batch.") from error
    finally:
        metrics.INGEST.labels(outcome).inc()
    return Response(status=HTTPStatus.NO_CONTENT.value)


def _ingest_live(store: Store) -> Row:
    try:
        live = wire.live(request.get_data(cache=False))
    except wire.NotABatch as error:
        raise Problem(HTTPStatus.BAD_REQUEST, str(error)) from error
    return {"closed": store.close_missing(live)}
