"""The limits of a policy: each is one function that yields what breaks it. ``LIMITS`` lists them by their field."""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

from policy import amounts
from policy.defaults import EVERY_TYPE
from policy.patterns import STAR, Patterns, image_patterns, patterns
from schemas import faults
from schemas.faults import NOTHING
from schemas.job import Job, integer, mapping, sequence, text
from schemas.quantities import spell

JSON = dict[str, Any]
RUN_POLICY = "runPolicy"


@dataclass(frozen=True, slots=True)
class Breach:
    """A field that does not keep to a limit: ``must`` says what is allowed, ``limit`` is it as the policy writes it.

    ``beyond`` is how far a number is beyond its limit, where it is one; ``low`` tells too little from too much.
    """

    path: str
    must: str
    limit: Any
    found: Any
    beyond: Fraction | None = None
    low: bool = False
    resource: str = ""


Check = Callable[[Job], Iterator[Breach]]
Limit = Callable[[Any], Check]
"""Makes a check of what the policy writes."""


def replicas(written: JSON) -> Check:
    """Pods in all."""

    def check(job: Job) -> Iterator[Breach]:
        yield from _range(job.path(job.kind.spec_key), written, job.total_replicas, " replicas in all")

    return check


def replica_types(written: JSON) -> Check:
    """Pods of one type; ``*`` is every type without a line of its own."""

    def check(job: Job) -> Iterator[Breach]:
        for entry in job.replicas:
            limit = mapping(written.get(entry.type, written.get(EVERY_TYPE)))
            yield from _range(job.replica_path(entry, "replicas"), limit, entry.count, " replicas")

    return check


def run_policy_field(name: str) -> Limit:
    """A number of the run policy."""

    def limit(written: JSON) -> Check:
        def check(job: Job) -> Iterator[Breach]:
            path, value = job.path(RUN_POLICY, name), job.run_policy.get(name)
            if value is None and written.get("required"):
                yield Breach(path, f"must be set{_allowed(written)}", written, NOTHING)
            if (number := integer(value)) is not None:
                yield from _range(path, written, number)

        return check

    return limit


def _allowed(written: Mapping[str, Any]) -> str:
    low, high = written.get("min"), written.get("max")
    if low is not None and high is not None:
        return f", from {low} to {high}"
    return f", at least {low}" if low is not None else f", at most {high}" if high is not None else ""


def _range(path: str, limit: Mapping[str, Any], value: int, what: str = "") -> Iterator[Breach]:
    low, high = limit.get("min"), limit.get("max")
    if low is not None and value < low:
        yield Breach(path, f"must be at least {low}{what}", low, value, Fraction(low - value), low=True)
    if high is not None and value > high:
        yield Breach(path, f"must be at most {high}{what}", high, value, Fraction(value - high))


def queues(written: list[str]) -> Check:
    """The scheduler's queue, which must be named."""
    allowed = patterns(written)

    def check(job: Job) -> Iterator[Breach]:
        path = job.path(RUN_POLICY, "schedulingPolicy", "queue")
        yield from _among(path, mapping(job.run_policy.get("schedulingPolicy")).get("queue"), allowed, required=True)

    return check


def priority_classes(written: list[str]) -> Check:
    """The priority class of the gang and of the pods."""
    allowed = patterns(written)

    def check(job: Job) -> Iterator[Breach]:
        path = job.path(RUN_POLICY, "schedulingPolicy", "priorityClass")
        yield from _among(path, mapping(job.run_policy.get("schedulingPolicy")).get("priorityClass"), allowed)
        yield from _in_pods(job, "priorityClassName", allowed)

    return check


def schedulers(written: list[str]) -> Check:
    """The scheduler of the pods."""
    allowed = patterns(written)
    return lambda job: _in_pods(job, "schedulerName", allowed)


def _in_pods(job: Job, field: str, allowed: Patterns) -> Iterator[Breach]:
    for entry in job.replicas:
        yield from _among(job.replica_path(entry, "template", "spec", field), entry.pod_spec.get(field), allowed)


def clean_pod_policies(written: list[str]) -> Check:
    """Which pods are deleted at the end."""
    allowed = patterns(written)
    return lambda job: _among(job.path(RUN_POLICY, "cleanPodPolicy"), job.clean_pod_policy, allowed)


def restart_policies(written: list[str]) -> Check:
    """What follows a failed pod."""
    allowed = patterns(written)

    def check(job: Job) -> Iterator[Breach]:
        for entry in job.replicas:
            yield from _among(job.replica_path(entry, "restartPolicy"), entry.restart_policy, allowed)

    return check


def images(written: list[str]) -> Check:
    """The images of all containers, as they are written."""
    allowed = image_patterns(written)

    def check(job: Job) -> Iterator[Breach]:
        for path, container in _containers(job):
            yield from _among(f"{path}.image", container.get("image"), allowed, required=True)

    return check


def _among(path: str, value: Any, allowed: Patterns, *, required: bool = False) -> Iterator[Breach]:
    if value in (None, ""):
        if required:
            yield Breach(path, f"must be set to {allowed.shown}", list(allowed.written), NOTHING)
    elif not allowed.has(text(value)):
        yield Breach(path, f"must be {allowed.shown}", list(allowed.written), value)


def required_entries(field: str) -> Limit:
    """Labels or annotations that the job must have."""

    def limit(written: list[str]) -> Check:
        wanted = [(key, patterns([value or STAR])) for key, _, value in (item.partition("=") for item in written)]

        def check(job: Job) -> Iterator[Breach]:
            there = mapping(job.metadata.get(field))
            for key, allowed in wanted:
                path = faults.path("metadata", field, key)
                if not text(there.get(key)):
                    yield Breach(path, "must be set", list(written), NOTHING)
                else:
                    yield from _among(path, there[key], allowed)

        return check

    return limit


def pod_resources(written: JSON) -> Check:
    """What one pod may ask for."""
    bounds = _bounds(written)

    def check(job: Job) -> Iterator[Breach]:
        for entry in job.replicas:
            path = job.replica_path(entry, "template", "spec", "containers")
            yield from _amounts(path, bounds, amounts.of_pod(entry), "in one pod")

    return check


def job_resources(written: JSON) -> Check:
    """What all pods may ask for together."""
    bounds = _bounds(written)
    return lambda job: _amounts(job.path(job.kind.spec_key), bounds, amounts.of_job(job), "in all pods together")


Bounds = list[tuple[str, str, Any, Fraction]]


def _bounds(written: JSON) -> Bounds:
    """(resource, min or max, as written, exact) of each bound."""
    found = [(name, side, mapping(limit).get(side)) for name, limit in written.items() for side in ("min", "max")]
    return [(name, side, value, size) for name, side, value in found if (size := amounts.exact(value)) is not None]


def _amounts(path: str, bounds: Bounds, there: amounts.Amounts, where: str) -> Iterator[Breach]:
    for name, side, written, limit in bounds:
        amount = there.get(name, Fraction(0))
        beyond = amount - limit if side == "max" else limit - amount
        if beyond > 0:
            words = "at most" if side == "max" else "at least"
            shown = spell(amount, binary=str(written).endswith("i"))
            must = f"must ask for {words} {written} {name} {where}"
            yield Breach(path, must, written, shown, beyond, low=side == "min", resource=name)


def forbid(written: list[str]) -> Check:
    """What no pod may use."""

    def check(job: Job) -> Iterator[Breach]:
        for name in written:
            yield from FORBIDDEN[name](job)

    return check


def _host_network(job: Job) -> Iterator[Breach]:
    for entry in job.replicas:
        if entry.pod_spec.get("hostNetwork") is True:
            path = job.replica_path(entry, "template", "spec", "hostNetwork")
            yield Breach(path, "must not be true", "HostNetwork", True)


def _host_path(job: Job) -> Iterator[Breach]:
    for entry in job.replicas:
        for index, volume in enumerate(sequence(entry.pod_spec.get("volumes"))):
            if (found := mapping(volume).get("hostPath")) is not None:
                path = job.replica_path(entry, "template", "spec", "volumes", index, "hostPath")
                yield Breach(path, "must not be set", "HostPath", mapping(found).get("path", found))


def _privileged(job: Job) -> Iterator[Breach]:
    for path, container in _containers(job):
        if mapping(container.get("securityContext")).get("privileged") is True:
            yield Breach(f"{path}.securityContext.privileged", "must not be true", "Privileged", True)


def _host_ports(job: Job) -> Iterator[Breach]:
    for path, container in _containers(job):
        for index, port in enumerate(sequence(container.get("ports"))):
            if (found := mapping(port).get("hostPort")) not in (None, 0):
                yield Breach(f"{path}.ports[{index}].hostPort", "must not be set", "HostPorts", found)


FORBIDDEN: dict[str, Check] = {
    "HostNetwork": _host_network,
    "HostPath": _host_path,
    "HostPorts": _host_ports,
    "Privileged": _privileged,
}


def _containers(job: Job) -> Iterator[tuple[str, Mapping[str, Any]]]:
    """Every container of every kind, with its path."""
    for entry in job.replicas:
        for field in ("initContainers", "containers", "ephemeralContainers"):
            for index, container in enumerate(sequence(entry.pod_spec.get(field))):
                yield job.replica_path(entry, "template", "spec", field, index), mapping(container)


LIMITS: dict[str, Limit] = {
    "replicas": replicas,
    "replicaTypes": replica_types,
    "ttlSecondsAfterFinished": run_policy_field("ttlSecondsAfterFinished"),
    "activeDeadlineSeconds": run_policy_field("activeDeadlineSeconds"),
    "backoffLimit": run_policy_field("backoffLimit"),
    "queues": queues,
    "priorityClasses": priority_classes,
    "cleanPodPolicies": clean_pod_policies,
    "restartPolicies": restart_policies,
    "schedulers": schedulers,
    "images": images,
    "requiredLabels": required_entries("labels"),
    "requiredAnnotations": required_entries("annotations"),
    "podResources": pod_resources,
    "jobResources": job_resources,
    "forbid": forbid,
}


def compiled(written: Any) -> tuple[tuple[str, Check], ...]:
    """(field, check) of each limit that says something, in the order of ``LIMITS``."""
    parts = mapping(written)
    return tuple((name, limit(parts[name])) for name, limit in LIMITS.items() if parts.get(name))
