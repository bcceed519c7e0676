"""The OpenAPI 3.1 document, from the tables of parameters and columns."""

from collections.abc import Iterable, Mapping
from importlib.metadata import version
from typing import Any

from history.api import parameters, shapes
from history.api.parameters import Parameter
from history.api.problems import CONTENT_TYPE

JSON = dict[str, Any]
PROBLEM: JSON = {
    "type": "object",
    "required": ["type", "title", "status", "detail"],
    "properties": {
        "type": {"type": "string"},
        "title": {"type": "string"},
        "status": {"type": "integer"},
        "detail": {"type": "string"},
        "errors": {"type": "array", "items": {"type": "string"}},
    },
}
TIMES: JSON = {
    "type": ["object", "null"],
    "description": "Percentiles in seconds.",
    "required": ["p50", "p90", "p99"],
    "properties": {name: {"type": "number"} for name in ("p50", "p90", "p99")},
}
GROUP: JSON = {
    "type": "object",
    "required": ["value", "jobs", "outcomes", "gpu_hours", "queue_seconds", "run_seconds"],
    "properties": {
        "value": {"type": ["string", "null"]},
        "jobs": {"type": "integer"},
        "outcomes": {"type": "object", "additionalProperties": {"type": "integer"}},
        "gpu_hours": {"type": "number"},
        "queue_seconds": TIMES,
        "run_seconds": TIMES,
    },
}
TIMELINE: JSON = {
    "type": "object",
    "required": ["pods", "conditions"],
    "properties": {
        "pods": {
            "type": "array",
            "items": {
                "type": "object",
                "required": ["pod_id"],
                "properties": {
                    "pod_id": {"type": "string"},
                    "name": {"type": "string"},
                    "replica_type": {"type": "string"},
                    "status": {"type": "string"},
                    "created": {"type": "string", "format": "date-time"},
                    "started": {"type": "string", "format": "date-time"},
                    "finished": {"type": "string", "format": "date-time"},
                    "restart": {"$ref": "#/components/schemas/Restart"},
                },
            },
        },
        "conditions": {"type": "array", "items": {"$ref": "#/components/schemas/Condition"}},
    },
}
UID: JSON = {
    "name": "uid",
    "in": "path",
    "required": True,
    "description": "UID of a job.",
    "schema": {"type": "string", "minLength": 1, "maxLength": 64, "pattern": "^[A-Za-z0-9._-]+$"},
}
PARTS = {"pods": "Pod", "restarts": "Restart", "events": "Event", "admissions": "Admission", "conditions": "Condition"}
"""What can be had of a job: the path's last step and the schema of its items."""


def document() -> JSON:
    """The whole document."""
    return {
        "openapi": "3.1.0",
        "info": {
            "title": "Signalbox history",
            "version": version("signalbox"),
            "description": "What ran, for whom, how long, on how many GPUs, and why it failed. Read-only.",
        },
        "servers": [{"url": "/"}],
        "paths": _paths(),
        "components": {
            "schemas": {**shapes.schemas(), "Problem": PROBLEM, "Group": GROUP, "Timeline": TIMELINE},
            "securitySchemes": {"token": {"type": "http", "scheme": "bearer"}},
        },
        "security": [{}, {"token": []}],
    }


def _paths() -> JSON:
    paths = {
        "/api/v1/jobs": _get("Jobs by filter, in pages.", _page("Job"), parameters.LIST),
        "/api/v1/jobs/{uid}": _get("One job with all that is known of it.", _whole_job(), path=[UID]),
        "/api/v1/jobs/{uid}/timeline": _get("When each pod ran, and what replaced it.", _ref("Timeline"), path=[UID]),
        "/api/v1/restarts": _get("Replaced pods of all jobs, the newest first.", _list("Restart"), parameters.RESTARTS),
        "/api/v1/admissions": _get("The webhook's answers, newest first.", _list("Admission"), parameters.ANSWERS),
        "/api/v1/statistics": _get("Jobs counted by a column.", _list("Group"), parameters.STATISTICS),
        "/api/v1/openapi.json": _get("This document.", {"type": "object"}),
    }
    for part, schema in PARTS.items():
        paths[f"/api/v1/jobs/{{uid}}/{part}"] = _get(f"The {part} of one job.", _list(schema), path=[UID])
    return paths


def _get(summary: str, schema: JSON, query: Iterable[Parameter] = (), path: Iterable[JSON] = ()) -> JSON:
    listed = [*path, *(_parameter(one) for one in query)]
    answers = {
        "200": {"description": "Found.", "content": {"application/json": {"schema": schema}}},
        "400": _problem("The query is wrong; `errors` says what is allowed."),
        "401": _problem("The token is missing or wrong."),
        "503": _problem("The database does not answer."),
    }
    if path:
        answers["404"] = _problem("There is no such job.")
    return {"get": {"summary": summary, "parameters": listed, "responses": answers}}


def _parameter(one: Parameter) -> Mapping[str, Any]:
    return {"name": one.name, "in": "query", "description": one.description, "schema": one.schema}


def _problem(description: str) -> JSON:
    return {"description": description, "content": {CONTENT_TYPE: {"schema": _ref("Problem")}}}


def _ref(name: str) -> JSON:
    return {"$ref": f"#/components/schemas/{name}"}


def _list(name: str) -> JSON:
    items = {"type": "array", "items": _ref(name)}
    return {"type": "object", "required": ["items"], "properties": {"items": items}}


def _page(name: str) -> JSON:
    page = _list(name)
    page["properties"]["next"] = {"type": ["string", "null"], "description": "For `after`; null at the end."}
    return {**page, "required": ["items", "next"]}


def _whole_job() -> JSON:
    lists = {part: {"type": "array", "items": _ref(schema)} for part, schema in PARTS.items()}
    snapshot = {"type": ["object", "null"], "description": "The object as it was last seen, without its status."}
    properties = {"job": _ref("Job"), **lists, "object": snapshot}
    return {"type": "object", "required": list(properties), "properties": properties}
