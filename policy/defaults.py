"""The defaults of a policy: fill what is unset, add to lists by key, never change what is there.

On an update a default applies only where the stored object already holds that very value: a new policy changes
nothing about jobs that are there, and applying the same manifest again gives the same job.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from policy.places import Segments, at, same, with_value
from schemas import faults
from schemas.job import Job, Replica, mapping, sequence

JSON = dict[str, Any]

EVERY_TYPE = "*"
TEMPLATE = ("template",)
POD = ("template", "spec")
EACH, MAIN = "each container", "main container"
RESOURCES = "resources"

# How the fields of ``defaults.replicas.<type>.template`` are found in a pod template.
FILLED_BY_KEY = {
    "labels": (*TEMPLATE, "metadata", "labels"),
    "annotations": (*TEMPLATE, "metadata", "annotations"),
    "nodeSelector": (*POD, "nodeSelector"),
}
FILLED = {"priorityClassName": (*POD, "priorityClassName"), "schedulerName": (*POD, "schedulerName")}
ADDED: dict[str, tuple[Segments, tuple[str, ...]]] = {
    "tolerations": ((*POD, "tolerations"), ("key", "effect")),
    "imagePullSecrets": ((*POD, "imagePullSecrets"), ("name",)),
    "env": ((*POD, "containers", EACH, "env"), ("name",)),
}


@dataclass(frozen=True, slots=True)
class Default:
    """One value to fill in.

    ``type`` is a replica type, ``*``, or empty for the run policy; ``place`` is below that type's entry, or below
    spec. With ``keys`` the value is an item of the list at ``place``, told from others by these fields. ``source`` is
    where the policy says it.
    """

    type: str
    place: Segments
    value: Any
    source: str
    keys: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Applied:
    """A value that was filled in; with ``audit`` one that would have been."""

    path: str
    value: Any
    policy: str
    source: str = ""
    audit: bool = False


def compiled(written: Any) -> tuple[Default, ...]:
    """The defaults of a policy that the schema has found good; a type's own before those of ``*``."""
    parts = mapping(written)
    types = mapping(parts.get("replicas"))
    ordered = sorted(types, key=lambda name: (name == EVERY_TYPE, name))
    return (
        *_run_policy(mapping(parts.get("runPolicy"))),
        *(default for name in ordered for default in _replica(name, mapping(types[name]))),
    )


def _run_policy(policy: Mapping[str, Any]) -> Iterator[Default]:
    for name, value in policy.items():
        if name == "schedulingPolicy":
            for inner, item in mapping(value).items():
                if item is not None:
                    at_ = ("runPolicy", name, inner)
                    yield Default("", at_, item, faults.path("spec", "defaults", *at_))
        elif value is not None:
            yield Default("", ("runPolicy", name), value, faults.path("spec", "defaults", "runPolicy", name))


def _replica(name: str, entry: Mapping[str, Any]) -> Iterator[Default]:
    said = ("spec", "defaults", "replicas", name)
    for field in ("replicas", "restartPolicy"):
        if entry.get(field) is not None:
            yield Default(name, (field,), entry[field], faults.path(*said, field))
    template = mapping(entry.get("template"))
    for field, value in template.items():
        yield from _template(name, field, value, (*said, "template", field))


def _template(name: str, field: str, value: Any, said: Segments) -> Iterator[Default]:
    if field in FILLED_BY_KEY:
        for key, item in mapping(value).items():
            yield Default(name, (*FILLED_BY_KEY[field], key), item, faults.path(*said, key))
    if field in FILLED and value is not None:
        yield Default(name, FILLED[field], value, faults.path(*said))
    if field in ADDED:
        place, keys = ADDED[field]
        for index, item in enumerate(sequence(value)):
            yield Default(name, place, item, faults.path(*said, index), keys)
    if field == RESOURCES:
        for side in ("requests", "limits"):
            for key, item in mapping(mapping(value).get(side)).items():
                place = (*POD, "containers", MAIN, RESOURCES, side, key)
                yield Default(name, place, item, faults.path(*said, side, key))


def fill(job: Job, old: Job | None, defaults: tuple[Default, ...], policy: str) -> tuple[JSON, tuple[Applied, ...]]:
    """The job's object with ``defaults`` filled in, and what was; ``old`` is the stored job on an update."""
    value: Any = dict(job.raw)
    applied: list[Applied] = []
    for default in defaults:
        for place, stored in _targets(job, old, default):
            if not _names_resource(job.raw, place) and (old is None or _held(old.raw, stored, default)):
                value = _filled(value, place, default, policy, applied)
    return value, tuple(applied)


def _targets(job: Job, old: Job | None, default: Default) -> Iterator[tuple[Segments, Segments]]:
    """Where the default belongs in this job, and the same place in the old one."""
    if not default.type:
        yield ("spec", *default.place), ("spec", *default.place)
        return
    for entry in job.replicas:
        if default.type not in (EVERY_TYPE, entry.type, entry.key) or not isinstance(entry.raw, dict):
            continue
        before = old.replica(entry.type) if old else None
        key = before.key if before else entry.key
        for place in _places(entry, default.place):
            yield ("spec", job.kind.spec_key, entry.key, *place), ("spec", job.kind.spec_key, key, *place)


def _places(entry: Replica, place: Segments) -> Iterator[Segments]:
    if EACH in place:
        chosen, mark = list(range(len(entry.containers))), EACH
    elif MAIN in place:
        chosen, mark = [] if entry.main_container is None else [entry.main_container], MAIN
    else:
        yield place
        return
    for index in chosen:
        yield tuple(index if segment == mark else segment for segment in place)


def _names_resource(job: Mapping[str, Any], place: Segments) -> bool:
    """Whether the container's author names the resource on either side: half of a pair would make no valid pod."""
    if RESOURCES not in place[-3:]:
        return False
    written, key = at(job, place[:-2]), place[-1]
    return any(mapping(mapping(written).get(side)).get(str(key)) is not None for side in ("requests", "limits"))


def _held(old: Mapping[str, Any], place: Segments, default: Default) -> bool:
    stored = at(old, place)
    if default.keys:
        return any(same(item, default.value) for item in sequence(stored))
    return stored is not None and same(stored, default.value)


def _filled(value: Any, place: Segments, default: Default, policy: str, applied: list[Applied]) -> Any:
    there = at(value, place)
    if not default.keys:
        changed = with_value(value, place, default.value) if there in (None, "") else value
        path = faults.path(*place)
    else:
        if there is not None and not isinstance(there, list):
            return value
        known = any(_identity(item, default.keys) == _identity(default.value, default.keys) for item in there or ())
        changed = value if known else with_value(value, place, [*(there or ()), default.value])
        path = faults.path(*place, len(there or ()))
    if changed is not value:
        applied.append(Applied(path, default.value, policy, default.source))
    return changed


def _identity(item: Any, keys: tuple[str, ...]) -> list[Any]:
    return [mapping(item).get(key) for key in keys]
