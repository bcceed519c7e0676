"""Fields of a manifest that its kind does not have, each with the name that was probably meant.

The API server drops or refuses such fields before any webhook sees them, so only a check of the manifest itself can
name them all. Pure and total: any JSON gives faults.
"""

from collections.abc import Collection, Iterator, Mapping
from difflib import SequenceMatcher
from functools import cache
from typing import Any

import jsonschema_rs

from schemas import faults
from schemas.faults import Fault
from schemas.kinds import JobKind
from schemas.loader import POLICY_FILE, job_schema, resolved

JSON = dict[str, Any]
Segments = tuple[str | int, ...]

OPEN: JSON = {}
"""A schema that says nothing: every field goes."""
SERVER_META = ("managedFields", "selfLink", "deletionTimestamp", "deletionGracePeriodSeconds")
"""What a stored object carries in its metadata beyond the fields of a pod template's."""
CLOSE_ENOUGH = 0.7  # below this, difflib's ratio pairs words that share no more than their letters
MOST_NAMES = 6


def unknown_fields(kind: JobKind, job: Any) -> Iterator[Fault]:
    """A fault for each field of ``job`` that neither Kubernetes nor the kind's schema knows, in the job's order."""
    return iter(()) if _is_known(kind, job) else _search(object_schema(kind), job, ())


def unknown_in(schema: Mapping[str, Any], value: Any) -> Iterator[Fault]:
    """A fault for each field of ``value`` that ``schema`` does not know."""
    return _search(schema, value, ())


def _is_known(kind: JobKind, job: Any) -> bool:
    """Whether every field is known: the quick answer, and nearly always the whole one."""
    try:
        return _closed_validator(kind).is_valid(job)
    except ValueError:  # nested beyond the library's limit
        return False


@cache
def _closed_validator(kind: JobKind) -> jsonschema_rs.Draft202012Validator:
    return jsonschema_rs.Draft202012Validator(_closed(object_schema(kind)))


def _closed(schema: Mapping[str, Any]) -> JSON:
    """The schema reduced to names: other fields than the known ones are refused, types are of no interest."""
    names: JSON = {"items": _closed(schema["items"])} if "items" in schema else {}
    rest = schema.get("additionalProperties")
    if schema.get("properties"):
        names["properties"] = {key: _closed(value) for key, value in schema["properties"].items()}
        names["additionalProperties"] = bool(rest is True or schema.get("x-kubernetes-preserve-unknown-fields"))
    if isinstance(rest, Mapping):
        names["additionalProperties"] = _closed(rest)
    return names


@cache
def object_schema(kind: JobKind) -> JSON:
    """The schema of a whole object of ``kind``: what its CRD leaves to the API server included."""
    return _object(job_schema(kind))


@cache
def policy_schema() -> JSON:
    """The schema of a whole TrainingPolicy."""
    return _object(resolved(POLICY_FILE))


def _object(schema: JSON) -> JSON:
    parts = schema["properties"]
    metadata = resolved("podtemplate.json")["properties"]["metadata"]
    known = {**metadata["properties"], **dict.fromkeys(SERVER_META, OPEN)}
    return {"properties": {"apiVersion": OPEN, "kind": OPEN, "metadata": {"properties": known}, **parts}}


def _search(schema: Mapping[str, Any], value: Any, at: Segments) -> Iterator[Fault]:
    """Goes no deeper than the schema does, so any depth of ``value`` is safe."""
    if isinstance(value, Mapping):
        for key, item in value.items():
            yield from _field(schema, key, item, at)
    elif isinstance(value, list) and "items" in schema:
        for index, item in enumerate(value):
            yield from _search(schema["items"], item, (*at, index))


def _field(schema: Mapping[str, Any], key: str, item: Any, at: Segments) -> Iterator[Fault]:
    known, rest = schema.get("properties", OPEN), schema.get("additionalProperties")
    if key in known:
        yield from _search(known[key], item, (*at, key))
    elif isinstance(rest, Mapping):
        yield from _search(rest, item, (*at, key))
    elif known and rest is not True and not schema.get("x-kubernetes-preserve-unknown-fields"):
        yield Fault(faults.path(*at, key), must(key, known), got=key)


def must(key: str, known: Collection[str]) -> str:
    """The demand on an unknown ``key``: the nearest name in ``known``, or those that come closest."""
    near = nearest(key, known)
    if near is not None:
        return f"must be a known field: did you mean {near}?"
    ranked = sorted(known, key=lambda name: (-_likeness(key, name), name))
    return f"must be a known field: {', '.join(ranked[:MOST_NAMES])}{', …' if len(ranked) > MOST_NAMES else ''}"


def nearest(key: str, known: Collection[str]) -> str | None:
    """The name in ``known`` that ``key`` stands for: the same but for case, '_' and '-', else the most alike."""
    for name in known:
        if _bare(name) == _bare(key):
            return name
    best = max(known, key=lambda name: (_likeness(key, name), name), default=None)
    return best if best is not None and _likeness(key, best) >= CLOSE_ENOUGH else None


def _bare(name: str) -> str:
    return name.lower().replace("_", "").replace("-", "")


def _likeness(one: str, other: str) -> float:
    return SequenceMatcher(None, _bare(one)[:100], _bare(other)).ratio()
