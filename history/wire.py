"""Batches of the history as JSON: what the writers of other processes send to the one that has the database."""

from collections.abc import Iterable, Mapping
from dataclasses import asdict
from datetime import datetime
from typing import Any

import orjson
from sqlalchemy import BigInteger, Column, DateTime, String, Text

from history.store import COLUMNS, OBJECTS, TARGETS, Gone, Record
from schemas.records import Live

KINDS: dict[str, type[Record]] = {target.table.name: kind for kind, target in TARGETS.items()}
NAMES = {kind: name for name, kind in KINDS.items()}
WHATS = frozenset(what for what, _ in OBJECTS)
UNSET: Any = object()


class NotABatch(ValueError):  # noqa: N818 - it reads as what it says
    """What was sent is no batch of this version; the text says where."""


def batch(records: Iterable[Record], gone: Iterable[Gone]) -> bytes:
    """A batch: ``{"records": [[table, {column: value}]], "gone": [[what, uid, time]]}``, times naive UTC."""
    rows = [[NAMES[type(record)], record] for record in records]
    return orjson.dumps({"records": rows, "gone": [[one.what, one.uid, one.seen_at] for one in gone]})


def read(body: bytes) -> tuple[list[Record], list[Gone]]:
    """The batch in ``body``; raises NotABatch."""
    document = document_of(body)
    records = [_record(at, item) for at, item in enumerate(_list(document, "records"))]
    return records, [_gone(at, item) for at, item in enumerate(_list(document, "gone"))]


def listed(live: Live) -> bytes:
    """A complete list: its fields, the UIDs in order."""
    return orjson.dumps({**asdict(live), "uids": sorted(live.uids)})


def live(body: bytes) -> Live:
    """The complete list in ``body``; raises NotABatch."""
    document = document_of(body)
    uids = _list(document, "uids")
    if not all(isinstance(uid, str) for uid in uids):
        raise NotABatch("uids: must be a list of UIDs")
    match document:
        case {"what": "job" | "pod" as what, "version": str(version), "kind": str(kind), "namespace": str(namespace)}:
            region = document.get("region")
            if (what == "pod" or kind) and (region is None or isinstance(region, str)):
                return Live(what, frozenset(uids), version, kind, namespace, region)
    raise NotABatch("what: must be job with a kind, or pod, each with version, namespace and region")


def document_of(body: bytes) -> Mapping[str, Any]:
    """The JSON object in ``body``; raises NotABatch."""
    try:
        document = orjson.loads(body)
    except orjson.JSONDecodeError as error:
        raise NotABatch(f"body: must be JSON ({error})") from error
    if not isinstance(document, dict):
        raise NotABatch("body: must be a JSON object")
    return document


def _list(document: Mapping[str, Any], name: str) -> list[Any]:
    found = document.get(name)
    if not isinstance(found, list):
        raise NotABatch(f"{name}: must be a list")
    return found


def _record(at: int, item: Any) -> Record:
    match item:
        case [str(name), dict(row)] if name in KINDS:
            kind, columns = KINDS[name], TARGETS[KINDS[name]].table.c
            values = {column: _value(columns[column], row.get(column, UNSET), at) for column in COLUMNS[kind]}
            return kind(**values)
    raise NotABatch(f"records[{at}]: must be a known table and a row")


def _value(column: Column[Any], value: Any, at: int) -> Any:
    """What the column can take, as in a record; UNSET and what does not fit are refused."""
    if value is None and column.nullable:
        return None
    fits = False
    match column.type:
        case DateTime():
            value = _time(value)
            fits = value is not None
        case Text():
            fits = isinstance(value, str) and "\0" not in value
        case String(length=width):
            fits = isinstance(value, str) and len(value) <= (width or 0) and "\0" not in value
        case BigInteger():
            fits = isinstance(value, int) and abs(value) < 2**63
        case _:
            fits = isinstance(value, int) and abs(value) < 2**31
    if not fits or isinstance(value, bool):
        raise NotABatch(f"records[{at}].{column.name}: must be a value of type {column.type}")
    return value


def _gone(at: int, item: Any) -> Gone:
    match item:
        case [str(what), str(uid), str(time)] if what in WHATS and (when := _time(time)):
            return Gone(what, uid, when)
    raise NotABatch(f"gone[{at}]: must be job or pod, a UID and a time")


def _time(value: Any) -> datetime | None:
    try:
        time = datetime.fromisoformat(value)
    except (ValueError, TypeError):
        return None
    return time if time.tzinfo is None else None
