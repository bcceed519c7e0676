"""CustomResourceDefinitions from the JSON Schema files: the same source as validation, so the two cannot differ.

A CRD holds types only. Enums, ranges and cross-field rules are the webhook's, so that one answer names every fault;
literal defaults are the webhook's too, since the API server would fill them before any admin policy could.
"""

from typing import Any

from schemas.kinds import JobKind
from schemas.loader import POLICY_FILE, job_schema, resolved

JSON = dict[str, Any]

KEPT = ("description", "type", "format", "required")
EXTENSIONS = (
    "x-kubernetes-int-or-string",
    "x-kubernetes-preserve-unknown-fields",
    "x-kubernetes-list-type",
    "x-kubernetes-list-map-keys",
)
# ports.protocol is the one default the API server fills itself: pods get it anyway, and no policy is about it.
PROTOCOL = "protocol"


def crd(kind: JobKind) -> JSON:
    """The CustomResourceDefinition of a kind, ready to apply client-side and server-side."""
    names = {
        "kind": kind.kind,
        "listKind": f"{kind.kind}List",
        "plural": kind.plural,
        "singular": kind.singular,
        "shortNames": list(kind.short_names),
        "categories": ["all"],
    }
    subresources: JSON = {"status": {}}
    if scale := _scale(kind):
        subresources["scale"] = scale
    version = _version(kind.version, job_schema(kind), subresources, _columns())
    return _definition(kind.group, "Namespaced", names, version)


def policy_crd() -> JSON:
    """The CustomResourceDefinition of TrainingPolicy."""
    names = {
        "kind": "TrainingPolicy",
        "listKind": "TrainingPolicyList",
        "plural": "trainingpolicies",
        "singular": "trainingpolicy",
        "shortNames": ["tpol"],
    }
    version = _version("v1", resolved(POLICY_FILE), {"status": {}}, POLICY_COLUMNS)
    return _definition("signalbox.dev", "Cluster", names, version)


def _definition(group: str, scope: str, names: JSON, version: JSON) -> JSON:
    return {
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": f"{names['plural']}.{group}"},
        "spec": {"group": group, "scope": scope, "names": names, "versions": [version]},
    }


def _version(name: str, schema: JSON, subresources: JSON, columns: list[JSON]) -> JSON:
    return {
        "name": name,
        "served": True,
        "storage": True,
        "schema": {"openAPIV3Schema": structural(schema)},
        "subresources": subresources,
        "additionalPrinterColumns": columns,
    }


def _scale(kind: JobKind) -> JSON | None:
    """``/scale`` works on Worker.replicas, the one type that every scalable kind has."""
    if kind.types and "Worker" not in {row.name for row in kind.types}:
        return None
    return {
        "specReplicasPath": f".spec.{kind.spec_key}.Worker.replicas",
        "statusReplicasPath": ".status.replicaStatuses.Worker.active",
        "labelSelectorPath": ".status.replicaStatuses.Worker.selector",
    }


def _columns() -> list[JSON]:
    return [
        {"name": "State", "type": "string", "jsonPath": ".status.phase"},
        {"name": "Replicas", "type": "string", "jsonPath": ".status.replicaSummary"},
        {"name": "Restarts", "type": "integer", "jsonPath": ".status.restarts"},
        {"name": "Age", "type": "date", "jsonPath": ".metadata.creationTimestamp"},
    ]


POLICY_COLUMNS: list[JSON] = [
    {"name": "Priority", "type": "integer", "jsonPath": ".spec.priority"},
    {"name": "Enforcement", "type": "string", "jsonPath": ".spec.enforcement"},
    {"name": "Ready", "type": "string", "jsonPath": '.status.conditions[?(@.type=="Ready")].status'},
    {"name": "Matched", "type": "integer", "jsonPath": ".status.matched"},
    {"name": "Denied", "type": "integer", "jsonPath": ".status.denied"},
    {"name": "Warned", "type": "integer", "jsonPath": ".status.warned"},
    {"name": "Audited", "type": "integer", "jsonPath": ".status.audited"},
    {"name": "Defaulted", "type": "integer", "jsonPath": ".status.defaulted"},
    {"name": "Age", "type": "date", "jsonPath": ".metadata.creationTimestamp"},
]


def structural(schema: Any, name: str = "") -> JSON:
    """A JSON Schema as an OpenAPI v3 structural schema: types, descriptions and list semantics, nothing else."""
    result: JSON = {key: schema[key] for key in (*KEPT, *EXTENSIONS) if key in schema}
    if "properties" in schema:
        result["properties"] = {key: structural(value, key) for key, value in schema["properties"].items()}
    for key in ("items", "additionalProperties"):
        if isinstance(schema.get(key), dict):
            result[key] = structural(schema[key])
    if name == PROTOCOL and "enum" in schema:
        result["default"] = "TCP"
    return result


def shortcomings(kind: JobKind, installed: JSON) -> list[str]:
    """What an installed CRD lacks that the controller relies on: other projects' CRDs of a kind prune our status.

    Each entry is a phrase such as "status.restarts is dropped"; none means that the kind can be served.
    """
    [ours] = crd(kind)["spec"]["versions"]
    versions = [item for item in installed.get("spec", {}).get("versions", []) if item.get("name") == kind.version]
    if not versions or not versions[0].get("served"):
        return [f"version {kind.version} is not served"]
    theirs = versions[0]
    have = theirs.get("subresources") or {}
    lacking = [f"the {name} subresource is missing" for name in ours["subresources"] if name not in have]
    scale, wanted = have.get("scale"), ours["subresources"].get("scale")
    if scale is not None and wanted is not None and any(scale.get(key) != wanted[key] for key in wanted):
        lacking.append("the scale subresource has other paths")
    status = ours["schema"]["openAPIV3Schema"]["properties"]["status"]
    schema = (theirs.get("schema") or {}).get("openAPIV3Schema") or {}
    return lacking + _dropped(status, _below(schema, "status"), "status")


def _below(schema: JSON, name: str) -> JSON | None:
    """The schema of a field; empty where every unknown field is kept, None where it is dropped."""
    found: JSON | None = (schema.get("properties") or {}).get(name)
    return {} if found is None and _keeps_all(schema) else found


def _keeps_all(schema: JSON) -> bool:
    return not schema or schema.get("x-kubernetes-preserve-unknown-fields") is True


def _dropped(ours: JSON, theirs: JSON | None, path: str) -> list[str]:
    """Where values of ``ours`` would be dropped, or refused for their type; the outermost field of each place."""
    if theirs is None:
        return [f"{path} is dropped"]
    if "type" in theirs and "type" in ours and theirs["type"] != ours["type"]:
        return [f"{path} is of type {theirs['type']}"]
    found = []
    for name, schema in ours.get("properties", {}).items():
        found += _dropped(schema, _below(theirs, name), f"{path}.{name}")
    for key, suffix in (("items", "[]"), ("additionalProperties", ".*")):
        if isinstance(ours.get(key), dict):
            inner = theirs.get(key)
            found += _dropped(ours[key], {} if inner is None and _keeps_all(theirs) else inner, path + suffix)
    return found
