"""What one pod takes from a node, from its raw spec."""

from typing import Any, Literal

from schemas.job import mapping, sequence
from schemas.quantities import Amounts, larger, plus, quantity

Field = Literal["requests", "limits"]


def effective(spec: Any, field: Field) -> Amounts:
    """What the scheduler counts for a pod: all containers and sidecars, or an init container where that is more."""
    sidecars: Amounts = {}
    peak: Amounts = {}
    for container in _each(spec, "initContainers"):
        if container.get("restartPolicy") == "Always":
            sidecars = plus(sidecars, _asked(container, field))
        else:
            peak = larger(peak, plus(sidecars, _asked(container, field)))
    together = sidecars
    for container in _each(spec, "containers"):
        together = plus(together, _asked(container, field))
    return larger(together, peak) | _asked(mapping(spec), field)


def _each(spec: Any, field: str) -> list[Any]:
    return [mapping(item) for item in sequence(mapping(spec).get(field))]


def _asked(holder: Any, field: Field) -> Amounts:
    resources = mapping(holder.get("resources"))
    limits = _amounts(resources.get("limits"))
    if field == "limits":
        return limits
    return limits | _amounts(resources.get("requests"))  # the API server fills a request from the limit


def _amounts(listed: Any) -> Amounts:
    pairs = ((name, quantity(value)) for name, value in mapping(listed).items())
    return {name: amount for name, amount in pairs if isinstance(name, str) and amount is not None}
