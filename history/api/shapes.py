"""The rows as JSON: the seed's names, times with a zone, embedded JSON as JSON, and the schema of each."""

from collections.abc import Mapping
from typing import Any

import orjson
from sqlalchemy import DateTime, Integer, Table

from history import models
from history.queries import Row

OPTIONS = orjson.OPT_NAIVE_UTC | orjson.OPT_UTC_Z
RENAMED = {"replica_info": {"deleted": "is_del"}}
"""Columns that the seed names differently in JSON."""
EMBEDDED = {"user_groups", "errors", "defaults"}
"""Columns of ours that hold JSON lists."""
TABLES = {
    "Job": models.job_info,
    "Pod": models.replica_info,
    "Event": models.event_info,
    "Restart": models.restart_info,
    "Condition": models.condition_info,
    "Admission": models.admission_info,
}


def shaped(table: Table, row: Row) -> Row:
    """A row for the outside; what is unknown is left out, as the seed's omitempty does."""
    renamed = RENAMED.get(table.name, {})
    return {
        renamed.get(name, name): orjson.loads(value) if name in EMBEDDED else value
        for name, value in row.items()
        if value is not None
    }


def dumps(value: Any) -> bytes:
    """JSON with times as RFC 3339 in UTC."""
    return orjson.dumps(value, option=OPTIONS)


def schemas() -> dict[str, Any]:
    """JSON Schemas of all tables by name."""
    return {name: _schema(table) for name, table in TABLES.items()}


def _schema(table: Table) -> Mapping[str, Any]:
    renamed = RENAMED.get(table.name, {})
    properties = {
        renamed.get(str(column.name), str(column.name)): _type(column.name, column.type) for column in table.columns
    }
    required = [renamed.get(str(column.name), str(column.name)) for column in table.columns if not column.nullable]
    return {"type": "object", "properties": properties, "required": required}


def _type(name: str, kind: Any) -> Mapping[str, Any]:
    if name in EMBEDDED:
        return {"type": "array", "items": {}}
    if isinstance(kind, DateTime):
        return {"type": "string", "format": "date-time"}
    return {"type": "integer"} if isinstance(kind, Integer) else {"type": "string"}
