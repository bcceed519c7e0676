"""What one replica takes from a node, from a raw pod spec, in the two forms of the seed's ``resources`` columns."""

from typing import Any

import orjson

from history.fields import NAME, POD_RESOURCES, TEXT, Object, at, number, text
from schemas.demand import Field, effective
from schemas.kinds import JobKind
from schemas.quantities import Amounts

FIELDS: tuple[Field, ...] = ("requests", "limits")


def of_job(kind: JobKind | None, job: Object) -> str | None:
    """``{type: {replicas, resources}}``, resources being the requests of one replica (seed type Job).

    None for a kind that is not served, for a spec without replica specs, and when it does not fit: never half a JSON.
    """
    specs = at(job, "spec", kind.spec_key) if kind else None
    if kind is None or not isinstance(specs, dict):
        return None
    defaults = {replica.name: replica.replicas_default for replica in kind.types}
    replicas = {text(name, NAME) or "": _replica(spec, defaults.get(name, 1)) for name, spec in specs.items()}
    return _dumped(replicas, TEXT)


def of_pod(pod: Object) -> str | None:
    """A ResourceRequirements: ``{requests, limits}`` of the whole pod (seed type Pod)."""
    found = {field: _asked(at(pod, "spec"), field) for field in FIELDS}
    return _dumped({field: amounts for field, amounts in found.items() if amounts}, POD_RESOURCES)


def _replica(spec: Any, default: int) -> dict[str, Any]:
    replicas = number(at(spec, "replicas"))
    return {
        "replicas": default if replicas is None else replicas,
        "resources": _asked(at(spec, "template", "spec"), "requests"),
    }


def _asked(spec: Any, field: Field) -> Amounts:
    """What a pod asks for, as far as its names can be stored."""
    named = ((text(name, NAME), amount) for name, amount in effective(spec, field).items())
    return {name: amount for name, amount in named if name is not None}


def _dumped(value: dict[str, Any], width: int) -> str | None:
    dumped = orjson.dumps(value)
    return dumped.decode() if value and len(dumped) <= width else None
