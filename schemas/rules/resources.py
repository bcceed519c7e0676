"""Rules about the resources that containers and pods ask for."""

from collections.abc import Mapping
from fractions import Fraction
from functools import lru_cache
from typing import Any

from schemas import names
from schemas.demand import effective
from schemas.faults import FORBIDDEN, NOTHING, REQUIRED
from schemas.job import Replica, mapping, sequence, text
from schemas.quantities import parse, quantity
from schemas.rules.base import Flaw, Flaws, Segments, container_rule, distinct, one_of, pod_rule

HUGE_PAGES = "hugepages-"
MOST_REMEMBERED = 1000  # characters in the names and amounts of one container
CORE = ("cpu", "memory")
OF_CONTAINERS = (*CORE, "ephemeral-storage")


@container_rule(source="Kubernetes: container resources", of=("resources",))
def container_resources_make_sense(container: Mapping[str, Any], _: Replica) -> Flaws:
    """Requests are within limits; extended resources and huge pages are whole, each request equal to its limit."""
    written = mapping(container.get("resources"))
    limits, requests = (_spelled(mapping(written.get(field))) for field in ("limits", "requests"))
    if sum(map(len, limits + requests)) > MOST_REMEMBERED or not _is_known_good(limits, requests):
        yield from _container_flaws(written)


def _container_flaws(written: Mapping[str, Any]) -> Flaws:
    yield from _names(written, OF_CONTAINERS, extended=True)
    yield from _amounts(written)


def _spelled(written: Mapping[str, Any]) -> tuple[str, ...]:
    """The names, then the amounts."""
    return (*written, *map(str, written.values()))


@lru_cache(maxsize=1024)
def _is_known_good(limits: tuple[str, ...], requests: tuple[str, ...]) -> bool:
    """Whether nothing is wrong with these amounts: jobs ask for the same few all the time, and fractions are slow."""
    written = {"limits": _read(limits), "requests": _read(requests)}
    return not any(_container_flaws(written))


def _read(spelled: tuple[str, ...]) -> dict[str, str]:
    half = len(spelled) // 2
    return dict(zip(spelled[:half], spelled[half:], strict=True))


@pod_rule(source="Kubernetes: pod-level resources", of=("resources",))
def pod_resources_make_sense(entry: Replica) -> Flaws:
    """Resources of the pod as a whole are cpu, memory or huge pages, and hold what its containers ask for."""
    written = entry.pod_spec.get("resources")
    if not isinstance(written, Mapping):
        return
    if written.get("claims") is not None:
        yield Flaw(
            ("spec", "resources", "claims"), "must be absent: containers have claims", written["claims"], FORBIDDEN
        )
    for flaw in (*_names(written, CORE, extended=False), *_amounts(written)):
        yield flaw._replace(at=("spec", *flaw.at))
    for name, asked in amounts(effective({**entry.pod_spec, "resources": None}, "requests")).items():
        offered = amounts(written.get("requests")).get(name)
        if offered is not None and asked > offered:
            must = f"must be at least what the containers request, {float(asked):g}"
            yield Flaw(("spec", "resources", "requests", name), must, written["requests"][name])
    most = amounts(written.get("limits"))
    for at, container in entry.all_containers:
        for name, amount in _limits(container).items() if at[1] == "containers" else ():
            if amount > most.get(name, amount):
                must = f"must be at most the pod's limit, {float(most[name]):g}"
                yield Flaw((*at, "resources", "limits", name), must, container["resources"]["limits"][name])


def amounts(written: Any) -> dict[str, Fraction]:
    """Resource name to exact amount; what is no quantity is left out."""
    found = {name: parse(value) for name, value in mapping(written).items() if quantity(value) is not None}
    return {name: amount for name, amount in found.items() if amount is not None}


def _names(written: Mapping[str, Any], known: tuple[str, ...], *, extended: bool) -> Flaws:
    for field in ("limits", "requests"):
        for name in mapping(written.get(field)):
            if name not in known and not name.startswith(HUGE_PAGES) and not (extended and _is_extended(name)):
                also = " or a name such as nvidia.com/gpu" if extended else ""
                must = f"must have {', '.join(known)}, {HUGE_PAGES}<size>{also}"
                yield Flaw(("resources", field), must, name)


def _is_extended(name: str) -> bool:
    """Whether a name is the cluster's own: with a domain, and not of the form that quotas use."""
    if "/" not in name or not names.is_qualified_name(name):
        return False
    return "kubernetes.io/" in name or (
        not name.startswith("requests.") and names.is_qualified_name(f"requests.{name}")
    )


def _amounts(written: Mapping[str, Any]) -> Flaws:
    limits, requests = amounts(written.get("limits")), amounts(written.get("requests"))
    for field, found in (("limits", limits), ("requests", requests)):
        for name, amount in found.items():
            if must := _wrong(name, amount):
                yield Flaw(("resources", field, name), must, written[field][name])
    for name, amount in requests.items():
        if must := _beyond(name, amount, limits.get(name)):
            yield Flaw(("resources", "requests", name), must, written["requests"][name])
    both = [*limits, *requests]
    if any(name.startswith(HUGE_PAGES) for name in both) and not any(name in CORE for name in both):
        yield Flaw(("resources",), "must have cpu or memory beside huge pages", NOTHING, REQUIRED)


def _wrong(name: str, amount: Fraction) -> str:
    if amount < 0:
        return "must not be negative"
    if _is_whole(name) and amount.denominator != 1:
        return "must be a whole number"
    if name.startswith(HUGE_PAGES):
        size = parse(name.removeprefix(HUGE_PAGES))
        if not size or (amount / size).denominator != 1:
            return "must be a multiple of the page size"
    return ""


def _is_whole(name: str) -> bool:
    return "/" in name and "kubernetes.io/" not in name


def _beyond(name: str, request: Fraction, limit: Fraction | None) -> str:
    if _is_whole(name) or name.startswith(HUGE_PAGES):
        return "" if request == limit else "must equal its limit: this resource is never shared"
    return f"must be at most its limit, {float(limit):g}" if limit is not None and request > limit else ""


def _limits(container: Mapping[str, Any]) -> dict[str, Fraction]:
    return amounts(mapping(container.get("resources")).get("limits"))


@pod_rule(source="Kubernetes: dynamic resource allocation", of=("resourceClaims",))
def claims_have_one_source(entry: Replica) -> Flaws:
    """resourceClaims have different names and one source each."""
    claims = [mapping(item) for item in sequence(entry.pod_spec.get("resourceClaims"))]
    at: Segments = ("spec", "resourceClaims")
    yield from distinct((((*at, n, "name"), text(claim.get("name"))) for n, claim in enumerate(claims)), "claim's name")
    for index, claim in enumerate(claims):
        yield from one_of(claim, ("resourceClaimName", "resourceClaimTemplateName"), (*at, index))


@container_rule(source="Kubernetes: dynamic resource allocation", of=("resources",))
def claims_are_the_pods(container: Mapping[str, Any], entry: Replica) -> Flaws:
    """A container claims what the pod has, each claim or request of it once."""
    claims = sequence(mapping(container.get("resources")).get("claims"))
    if not claims:
        return
    known = [mapping(item).get("name") for item in sequence(entry.pod_spec.get("resourceClaims"))]
    seen: set[tuple[str, str]] = set()
    for index, claim in enumerate(claims):
        name, request = text(mapping(claim).get("name")), text(mapping(claim).get("request"))
        again = any(name == other and (part == request or not part or not request) for other, part in seen)
        if name and (again or name not in known):
            must = "must not be claimed twice" if again else "must be one of the pod's resourceClaims"
            yield Flaw(("resources", "claims", index, "name"), must, name)
        seen.add((name, request))


@container_rule(source="Kubernetes: in-place resize", of=("resizePolicy",))
def resize_policies_differ(container: Mapping[str, Any], entry: Replica) -> Flaws:
    """One resize policy per resource; under Never no container is restarted for it."""
    policies = [mapping(item) for item in sequence(container.get("resizePolicy"))]
    yield from distinct(
        ((("resizePolicy", n, "resourceName"), text(item.get("resourceName"))) for n, item in enumerate(policies)),
        "resourceName",
    )
    if entry.restart_policy in ("Never", "ExitCode"):
        for index, item in enumerate(policies):
            if item.get("restartPolicy") == "RestartContainer":
                must = f"must be NotRequired: the replica's restartPolicy is {entry.restart_policy}"
                yield Flaw(("resizePolicy", index, "restartPolicy"), must, item["restartPolicy"])
