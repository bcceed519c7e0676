"""From the API server's own OpenAPI document to ``v1/podtemplate.json``: the schema of every pod template.

Pure: the document comes in (``GET /openapi/v3/api/v1``), the schema goes out. Validation and CRDs share the result.
"""

import re
from collections.abc import Mapping
from typing import Any

JSON = dict[str, Any]

ROOT = "io.k8s.api.core.v1.PodTemplateSpec"
PREFIX = "#/components/schemas/"
KEPT = ("type", "format", "enum", "required")

# Only these keep list-type map: pods refuse duplicate names in them. Pods accept duplicates in env and ports
# (kubernetes/kubernetes#122126), and the other core lists have keys that are optional once defaults are dropped.
MAP_LISTS = frozenset({"containers", "initContainers", "volumes"})

# Server-side bookkeeping that no template carries.
DROPPED = frozenset({"managedFields", "selfLink", "deletionTimestamp", "deletionGracePeriodSeconds"})


def from_openapi(document: Mapping[str, Any]) -> JSON:
    """The JSON Schema of a PodTemplateSpec, all references inlined, each description cut to its first sentence."""
    return {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "title": f"PodTemplateSpec of core/v1, Kubernetes {document['info']['version']}",
        **_schema({"$ref": PREFIX + ROOT}, document["components"]["schemas"]),
    }


def _schema(source: Mapping[str, Any], types: Mapping[str, Any]) -> JSON:
    source = _dereferenced(source, types)
    if _is_int_or_string(source):
        return _described(source, _int_or_string(source))
    schema: JSON = {key: source[key] for key in KEPT if key in source}
    if "properties" in source:
        schema["properties"] = {
            name: _property(name, value, types) for name, value in source["properties"].items() if name not in DROPPED
        }
    if "items" in source:
        schema["items"] = _schema(source["items"], types)
    if isinstance(source.get("additionalProperties"), Mapping):
        schema["additionalProperties"] = _schema(source["additionalProperties"], types)
    if source.get("type") == "object" and not {"properties", "additionalProperties"} & schema.keys():
        schema["x-kubernetes-preserve-unknown-fields"] = True
    return _described(source, schema)


def _dereferenced(source: Mapping[str, Any], types: Mapping[str, Any]) -> JSON:
    """``source`` with its ``$ref`` or single ``allOf`` merged in; its own description wins."""
    refs = [source, *source.get("allOf", ())]
    merged: JSON = {}
    for part in refs:
        if "$ref" in part:
            merged |= types[part["$ref"].removeprefix(PREFIX)]
    return merged | {key: value for key, value in source.items() if key not in ("$ref", "allOf", "default")}


def _property(name: str, source: Mapping[str, Any], types: Mapping[str, Any]) -> JSON:
    schema = _schema(source, types)
    if schema.get("type") != "array":
        return schema
    if name in MAP_LISTS:
        return schema | {"x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": ["name"]}
    return schema | {"x-kubernetes-list-type": "atomic"}


def _is_int_or_string(source: Mapping[str, Any]) -> bool:
    return source.get("format") == "int-or-string" or len(source.get("oneOf", ())) > 1


def _int_or_string(source: Mapping[str, Any]) -> JSON:
    schema: JSON = {"x-kubernetes-int-or-string": True}
    if source.get("format") != "int-or-string":
        schema["$ref"] = "common.json#/$defs/Quantity"
    return schema


def _described(source: Mapping[str, Any], schema: JSON) -> JSON:
    text = first_sentence(source.get("description", ""))
    return {"description": text, **schema} if text else schema


def first_sentence(text: str) -> str:
    """The first sentence of ``text`` on one line, without the list of enum values that follows in core's documents."""
    line = " ".join(text.split("\n\n", maxsplit=1)[0].split())
    match = re.match(r"(.+?(?<!i\.e)(?<!e\.g)(?<!etc)\.)(?:\s|$)", line)
    return match[1] if match else line
