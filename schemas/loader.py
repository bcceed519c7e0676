"""Reads the JSON Schema files of this package and joins them: no other I/O happens in ``schemas``."""

from collections.abc import Iterator, Mapping
from functools import cache
from importlib import resources
from typing import Any

import jsonschema_rs
import orjson

from schemas.kinds import JobKind

JSON = dict[str, Any]

# A rule asks for these, and names the container that is missing however much of its path is missing.
RULED = frozenset({"template", "containers"})
POLICY_FILE = "trainingpolicy.json"
UNSET_MARK = "x-signalbox-empty-is-unset"
LIMITS_MARK = "x-signalbox-limits"
"""Beside a ``$ref``: the file whose keywords are laid over it for validation, and for nothing else."""


@cache
def document(name: str) -> JSON:
    """The schema file ``v1/<name>`` as it is written."""
    content: JSON = orjson.loads(resources.files("schemas").joinpath("v1", name).read_bytes())
    return content


@cache
def resolved(name: str) -> JSON:
    """The schema file with every ``$ref`` inlined; keys beside a ``$ref`` win over what it points to."""
    joined = _inline(document(name))
    assert isinstance(joined, dict)
    return joined


def job_schema(kind: JobKind) -> JSON:
    """The joined schema of a kind: ``spec`` and ``status``."""
    return resolved(kind.schema_file)


@cache
def policy_validator() -> jsonschema_rs.Draft202012Validator:
    """A compiled validator of a whole TrainingPolicy, made once per process."""
    return jsonschema_rs.Draft202012Validator(_strict(resolved(POLICY_FILE)))


@cache
def validator(kind: JobKind) -> jsonschema_rs.Draft202012Validator:
    """A compiled validator of a whole job of ``kind``, made once per process."""
    return jsonschema_rs.Draft202012Validator(strict(kind))


def strict(kind: JobKind) -> JSON:
    """What the validator checks: the schema without status, null allowed where a field may be absent."""
    return _strict(job_schema(kind))


def _strict(schema: JSON) -> JSON:
    spec = _nullable(_checked({"properties": {"spec": schema["properties"]["spec"]}}))
    return {"type": "object", **spec}


def _inline(node: Any) -> Any:
    if isinstance(node, list):
        return [_inline(item) for item in node]
    if not isinstance(node, dict):
        return node
    own = {key: _inline(value) for key, value in node.items() if key != "$ref"}
    return {**_inline(_target(node["$ref"])), **own} if "$ref" in node else own


def _target(ref: str) -> Any:
    name, _, pointer = ref.partition("#")
    found: Any = document(name)
    for part in pointer.strip("/").split("/") if pointer.strip("/") else ():
        found = found[part]
    return {key: value for key, value in found.items() if key not in ("$schema", "title")}


def _checked(node: Any) -> Any:
    """The schema in plain JSON Schema: int-or-string becomes a type, extension and annotation keys go."""
    if isinstance(node, list):
        return [_checked(item) for item in node]
    if not isinstance(node, dict):
        return node
    if LIMITS_MARK in node:
        node = _overlaid(node, resolved(node[LIMITS_MARK]))
    plain = dict(_keywords(node))
    if node.get("x-kubernetes-int-or-string"):
        plain["type"] = ["integer", "string"]
    if node.get(UNSET_MARK) and "enum" in node:
        plain["enum"] = [*node["enum"], ""]
    return plain


def _overlaid(base: Any, over: Any) -> Any:
    """``base`` with the keywords of ``over`` added at every depth; lists of required names are joined."""
    if isinstance(base, list):
        return [*base, *(item for item in over if item not in base)]
    if not isinstance(base, dict):
        return over
    return {**base, **{key: _overlaid(base[key], value) if key in base else value for key, value in over.items()}}


def _keywords(node: Mapping[str, Any]) -> Iterator[tuple[str, Any]]:
    for key in KEYWORDS:
        if key in node:
            yield key, _checked(node[key])
    if "properties" in node:
        yield "properties", {name: _checked(value) for name, value in node["properties"].items()}
    if "required" in node:
        yield "required", [name for name in node["required"] if name not in RULED]
    if node.get("type") == "integer" and node.get("format") in INTEGER_RANGES:
        low, high = INTEGER_RANGES[node["format"]]
        yield from (("minimum", node.get("minimum", low)), ("maximum", node.get("maximum", high)))


KEYWORDS = (
    *("type", "enum", "minimum", "maximum", "pattern", "minLength", "maxLength", "minItems", "maxItems"),
    *("items", "additionalProperties"),
)
INTEGER_RANGES = {"int32": (-(2**31), 2**31 - 1), "int64": (-(2**63), 2**63 - 1)}


def _nullable(node: Any) -> Any:
    """Null equals absent in every optional property, as the API server reads it; never in lists or maps."""
    if isinstance(node, list):
        return [_nullable(item) for item in node]
    if not isinstance(node, dict):
        return node
    loose = {key: _nullable(value) for key, value in node.items() if key != "properties"}
    if "properties" in node:
        needed = set(node.get("required", ()))
        loose["properties"] = {
            name: _nullable(value) if name in needed else _or_null(_nullable(value))
            for name, value in node["properties"].items()
        }
    return loose


def _or_null(schema: JSON) -> JSON:
    if "type" not in schema:
        return schema
    types = schema["type"] if isinstance(schema["type"], list) else [schema["type"]]
    enum = {"enum": [*schema["enum"], None]} if "enum" in schema else {}
    return {**schema, "type": [*types, "null"], **enum}
