"""Rules about a change: what must stay as it is while a job runs."""

from collections.abc import Iterator
from typing import Any

from schemas.faults import FORBIDDEN, Fault, path
from schemas.job import Job, mapping
from schemas.rules.base import update_rule

ALWAYS_MUTABLE = (
    ("runPolicy", "suspend"),
    ("runPolicy", "ttlSecondsAfterFinished"),
    ("runPolicy", "activeDeadlineSeconds"),
    ("runPolicy", "backoffLimit"),
    ("runPolicy", "cleanPodPolicy"),
    ("runPolicy", "schedulingPolicy", "minAvailable"),
    ("elasticPolicy", "minReplicas"),
    ("elasticPolicy", "maxReplicas"),
)
MANAGER = ("runPolicy", "managedBy")


@update_rule(source="kubeflow/trainer#2203")
def manager_stays(old: Job, new: Job) -> Iterator[Fault]:
    """managedBy never changes: two controllers must never run one job in turn."""
    before, after = old.run_policy.get("managedBy"), new.run_policy.get("managedBy")
    if before != after:
        yield Fault(new.path(*MANAGER), "must not change", after, FORBIDDEN)


@update_rule(source="kubernetes-sigs/jobset#624")
def spec_stays(old: Job, new: Job) -> Iterator[Fault]:
    """The spec changes only while suspended (before or after), but for replicas and the run policy's limits."""
    if old.suspended or new.suspended:
        return
    for segments, value in changes(_frozen(old), _frozen(new)):
        yield Fault(path("spec", *segments), "must not change unless the job is suspended", value, FORBIDDEN)


def changes(old: Any, new: Any, at: tuple[str | int, ...] = ()) -> Iterator[tuple[tuple[str | int, ...], Any]]:
    """The deepest paths where two documents differ, with the new value; lists of other length count as one.

    An absent object counts as an empty one.
    """
    old = {} if old is None and isinstance(new, dict) else old
    new = {} if new is None and isinstance(old, dict) else new
    if type(old) is not type(new):
        yield at, new
    elif isinstance(old, dict):
        for key in sorted(old.keys() | new.keys()):
            yield from changes(old.get(key), new.get(key), (*at, key))
    elif isinstance(old, list) and len(old) == len(new):
        for index, (before, after) in enumerate(zip(old, new, strict=True)):
            yield from changes(before, after, (*at, index))
    elif old != new:
        yield at, new


def _frozen(job: Job) -> dict[str, Any]:
    """The part of the spec that must stay."""
    mutable = [*ALWAYS_MUTABLE, MANAGER, *((job.kind.spec_key, entry.key, "replicas") for entry in job.replicas)]
    spec: Any = dict(job.spec)
    for segments in mutable:
        spec = _without(spec, segments)
    return dict(spec)


def _without(value: Any, segments: tuple[str, ...]) -> Any:
    if not isinstance(value, dict) or segments[0] not in value:
        return value
    head, *rest = segments
    if not rest:
        return {key: item for key, item in value.items() if key != head}
    inner = _without(mapping(value[head]) and value[head], tuple(rest))
    return {**value, head: inner or None}
