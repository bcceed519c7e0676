"""What one replica takes from a node, from a raw pod spec, in the two forms of the seed's ``resources`` columns."""

from typing import Any, Literal

import orjson

from history.fields import NAME, POD_RESOURCES, TEXT, Object, at, each, number, text
from history.quantities import Amounts, larger, plus, quantity
from schemas.kinds import JobKind

Field = Literal["requests", "limits"]


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
    found = {field: effective(at(pod, "spec"), field) for field in ("requests", "limits")}
    return _dumped({field: amounts for field, amounts in found.items() if amounts}, POD_RESOURCES)


def effective(spec: Any, field: Field) -> Amounts:
    """What the scheduler counts for a pod: all containers and sidecars, or an init container where that is more."""
    sidecars: Amounts = {}
    peak: Amounts = {}
    for container in each(spec, "initContainers"):
        if container.get("restartPolicy") == "Always":
            sidecars = plus(sidecars, _asked(container, field))
        else:
            peak = larger(peak, plus(sidecars, _asked(container, field)))
    together = sidecars
    for container in each(spec, "containers"):
        together = plus(together, _asked(container, field))
    return larger(together, peak) | _asked(spec, field)


def _asked(holder: Any, field: Field) -> Amounts:
    limits = _amounts(at(holder, "resources", "limits"))
    if field == "limits":
        return limits
    return limits | _amounts(at(holder, "resources", "requests"))  # the API server fills a request from the limit


def _amounts(listed: Any) -> Amounts:
    if not isinstance(listed, dict):
        return {}
    pairs = ((text(name, NAME), quantity(value)) for name, value in listed.items())
    return {name: amount for name, amount in pairs if name is not None and amount is not None}


def _replica(spec: Any, default: int) -> dict[str, Any]:
    replicas = number(at(spec, "replicas"))
    return {
        "replicas": default if replicas is None else replicas,
        "resources": effective(at(spec, "template", "spec"), "requests"),
    }


def _dumped(value: dict[str, Any], width: int) -> str | None:
    dumped = orjson.dumps(value)
    return dumped.decode() if value and len(dumped) <= width else None
