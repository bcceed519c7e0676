"""Built-in defaults: fill what is absent, never rewrite what a user wrote.

Pure and total: any JSON in, JSON out; ``default(kind, default(kind, job)) == default(kind, job)``. Nothing is changed
in place: unchanged parts of the result are the same objects as in the input, which keeps the diff cheap.
"""

from collections.abc import Mapping
from typing import Any

from schemas.job import Job, Replica, integer, mapping, sequence
from schemas.kinds import JobKind, known_type
from schemas.loader import UNSET_MARK, resolved

JSON = dict[str, Any]
DEFAULT_MARK = "x-signalbox-default"


def default(kind: JobKind, job: JSON, old: Mapping[str, Any] | None = None) -> JSON:
    """``job`` with everything filled in that it left out; ``old`` is the stored object on an update.

    A job without a usable ``spec`` comes back as it is: validation names the fault.
    """
    spec = job.get("spec")
    if not isinstance(spec, dict):
        return job
    old_map = mapping(mapping(mapping(old).get("spec")).get(kind.spec_key))
    filled = {**spec, **_run_policy(spec), **_replica_map(kind, spec, old_map)}
    filled |= _elastic_policy(kind, filled)
    return job if filled == spec else {**job, "spec": filled}


def _run_policy(spec: JSON) -> JSON:
    policy = spec.get("runPolicy")
    if policy is not None and not isinstance(policy, dict):
        return {}
    schema = resolved("common.json")["$defs"]["RunPolicy"]["properties"]
    return {"runPolicy": _with_literals(policy or {}, schema)}


def _with_literals(value: JSON, properties: Mapping[str, Any]) -> JSON:
    """``value`` with the schema's literal defaults where a property is absent, null or, if so marked, empty."""
    missing = {
        name: schema[DEFAULT_MARK]
        for name, schema in properties.items()
        if DEFAULT_MARK in schema and _is_unset(value.get(name), schema)
    }
    return {**value, **missing}


def _is_unset(value: Any, schema: Mapping[str, Any]) -> bool:
    return value is None or (value == "" and bool(schema.get(UNSET_MARK)))


def _replica_map(kind: JobKind, spec: JSON, old_map: Mapping[str, Any]) -> JSON:
    entries = spec.get(kind.spec_key)
    if not isinstance(entries, dict):
        return {}
    folded = _folded(kind, entries, old_map)
    return {kind.spec_key: {key: _replica(kind, key, value) for key, value in folded.items()}}


def _folded(kind: JobKind, entries: JSON, old_map: Mapping[str, Any]) -> JSON:
    """The replica map with its keys in canonical case (kubedl-io/kubedl#30).

    Two spellings of one type stay as they are, for validation to refuse, unless this is a second apply of the same
    lower-case manifest: the canonical key is the stored one, and the new spelling is merged over it.
    """
    folded: JSON = {}
    for key, value in entries.items():
        known = known_type(kind, key)
        name = known.name if known else key
        if name == key:
            folded.setdefault(key, value)
        elif name not in entries and not _twice(kind, entries, name):
            folded[name] = value
        elif name in entries and entries[name] == old_map.get(name) and key not in old_map:
            folded[name] = merge_patch(entries[name], value)
        else:
            folded[key] = value
    return folded


def _twice(kind: JobKind, entries: JSON, name: str) -> bool:
    return sum(key.lower() == name.lower() for key in entries) > 1 if kind.types else False


def merge_patch(target: Any, patch: Any) -> Any:
    """RFC 7386: ``patch`` merged over ``target``; null removes."""
    if not isinstance(patch, dict):
        return patch
    merged = dict(target) if isinstance(target, dict) else {}
    for key, value in patch.items():
        if value is None:
            merged.pop(key, None)
        else:
            merged[key] = merge_patch(merged.get(key), value)
    return merged


def _replica(kind: JobKind, key: str, raw: Any) -> Any:
    if not isinstance(raw, dict):
        return raw
    entry = Replica(kind, key, raw)
    filled = dict(raw)
    if raw.get("replicas") is None:
        filled["replicas"] = entry.default_count
    if raw.get("restartPolicy") in (None, ""):
        filled["restartPolicy"] = kind.restart_policy_default
    return _with_port(kind, entry, filled)


def _with_port(kind: JobKind, entry: Replica, filled: JSON) -> JSON:
    """The kind's port on the main container, unless it has a port of that name."""
    index = entry.main_container
    if index is None or not kind.port:
        return filled
    container = entry.containers[index]
    ports = container.get("ports")
    if ports is not None and not isinstance(ports, list):
        return filled
    if any(mapping(port).get("name") == kind.port_name for port in sequence(ports)):
        return filled
    port = {"containerPort": kind.port, "name": kind.port_name, "protocol": "TCP"}
    containers = list(entry.containers)
    containers[index] = {**container, "ports": [*sequence(ports), port]}
    template = {**entry.template, "spec": {**entry.pod_spec, "containers": containers}}
    return {**filled, "template": template}


def _elastic_policy(kind: JobKind, spec: JSON) -> JSON:
    """Absent bounds are set so that the job's own replicas keep them (kubeflow/trainer#2278)."""
    job = Job(kind, {"spec": spec})
    policy, worker = job.elastic_policy, job.replica("Worker")
    if policy is None or worker is None or not isinstance(spec["elasticPolicy"], dict):
        return {}
    low, high = policy.get("minReplicas"), policy.get("maxReplicas")
    missing: JSON = {}
    if low is None:
        missing["minReplicas"] = max(1, min(worker.count, _bound(high, worker.count)))
    if high is None:
        missing["maxReplicas"] = max(1, worker.count, _bound(low, 1))
    return {"elasticPolicy": {**policy, **missing}} if missing else {}


def _bound(value: Any, otherwise: int) -> int:
    number = integer(value)
    return otherwise if number is None else number
