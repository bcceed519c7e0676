"""What pods ask for, as exact numbers: the larger of request and limit, as the scheduler adds containers up."""

from collections.abc import Iterable, Mapping
from fractions import Fraction
from typing import Any

from schemas.job import Job, Replica, mapping, sequence
from schemas.quantities import parse, quantity

Amounts = dict[str, Fraction]


def of_job(job: Job) -> Amounts:
    """All pods of a job together."""
    total: Amounts = {}
    for entry in job.replicas:
        for name, amount in of_pod(entry).items():
            total[name] = total.get(name, Fraction(0)) + amount * max(entry.count, 0)
    return total


def of_pod(entry: Replica) -> Amounts:
    """One pod of a type: containers and sidecars together, or its largest init container where that is more.

    What the pod names for itself as a whole replaces the sum of its containers; its overhead comes on top.
    """
    sidecars: Amounts = {}
    start: Amounts = {}
    for container in sequence(entry.pod_spec.get("initContainers")):
        if mapping(container).get("restartPolicy") == "Always":
            sidecars = _plus(sidecars, _of(container))
            start = _larger(start, sidecars)
        else:
            start = _larger(start, _plus(sidecars, _of(container)))
    running = _sum([sidecars, *map(_of, entry.containers)])
    whole = {**_larger(running, start), **_of(entry.pod_spec)}
    return _plus(whole, _read(entry.pod_spec.get("overhead")))


def _of(container: Any) -> Amounts:
    resources = mapping(mapping(container).get("resources"))
    return _larger(_read(resources.get("requests")), _read(resources.get("limits")))


def _read(written: Any) -> Amounts:
    """The amounts that are quantities; validation names the others."""
    return {name: amount for name, value in mapping(written).items() if (amount := exact(value)) is not None}


def exact(value: Any) -> Fraction | None:
    """The amount that a JSON value writes, None when it is no quantity."""
    found = quantity(value)
    return None if found is None else parse(found)


def _sum(all_of: Iterable[Amounts]) -> Amounts:
    total: Amounts = {}
    for amounts in all_of:
        total = _plus(total, amounts)
    return total


def _plus(one: Mapping[str, Fraction], other: Mapping[str, Fraction]) -> Amounts:
    return {name: one.get(name, Fraction(0)) + other.get(name, Fraction(0)) for name in {**one, **other}}


def _larger(one: Mapping[str, Fraction], other: Mapping[str, Fraction]) -> Amounts:
    return {name: max(one.get(name, Fraction(0)), other.get(name, Fraction(0))) for name in {**one, **other}}
