"""Children that are neither pods nor Services: which a job has, and how a stored one differs. Pure.

A gang's PodGroup, and what the rule of the kind's row adds. They come before Services and pods.
"""

from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass
from typing import Any

from controller import gang, mpi
from controller.settings import Settings
from schemas import quantities
from schemas.job import Job, Replica, mapping
from schemas.kinds import JobKind

JSON = dict[str, Any]


@dataclass(frozen=True, slots=True)
class Sort:
    """One sort of extra child: where it lives in the API, and when it goes."""

    group: str
    version: str
    plural: str
    kind: str
    goes_with_end: bool = False
    """Deleted when the job ends, whatever the cleanPodPolicy; else it goes with the job. Suspension takes all."""
    fixed: tuple[str, ...] = ()
    """Top-level fields that the API server lets nobody change."""

    @property
    def key(self) -> str:
        """What actions and snapshots call it: ``configmaps``, ``roles.rbac.authorization.k8s.io``."""
        return f"{self.plural}.{self.group}" if self.group else self.plural


@dataclass(frozen=True, slots=True)
class Extra:
    """One wanted child."""

    sort: Sort
    manifest: JSON

    @property
    def name(self) -> str:
        return str(self.manifest["metadata"]["name"])


@dataclass(frozen=True, slots=True)
class Rule:
    """What a kind adds. ``children`` gets the job and the names of its running pods, in the order of ``sorts``."""

    sorts: tuple[Sort, ...]
    children: Callable[[Job, Collection[str]], list[JSON]]
    equipped: Callable[[JSON, Job, Replica, Settings], JSON]
    """The pod of one replica with what it needs of them."""


POD_GROUPS = {
    name: Sort(row.group, row.version, "podgroups", "PodGroup", goes_with_end=True)
    for name, row in gang.SCHEDULERS.items()
}

RULES: dict[str, Rule] = {
    "mpi": Rule(
        (
            Sort("", "v1", "configmaps", "ConfigMap"),
            Sort("", "v1", "serviceaccounts", "ServiceAccount"),
            Sort(mpi.RBAC, "v1", "roles", "Role"),
            Sort(mpi.RBAC, "v1", "rolebindings", "RoleBinding", fixed=("roleRef",)),
        ),
        mpi.children,
        lambda pod, job, entry, settings: mpi.equipped(pod, job, entry, settings.kubectl_delivery_image),
    ),
}

SORTS = (*POD_GROUPS.values(), *(sort for rule in RULES.values() for sort in rule.sorts))
IDENTITY = ("apiVersion", "kind", "metadata")
GO_WITH_END = tuple(sort.key for sort in SORTS if sort.goes_with_end)


def sorts(kinds: Collection[JobKind], settings: Settings) -> tuple[Sort, ...]:
    """What a controller of these kinds has to watch."""
    found = [POD_GROUPS[settings.gang_scheduler]] if settings.gang_scheduler in POD_GROUPS else []
    for rule in {kind.extras: RULES[kind.extras] for kind in kinds if kind.extras in RULES}.values():
        found += rule.sorts
    return tuple(dict.fromkeys(found))


def wanted(job: Job, settings: Settings, running: Collection[str]) -> list[Extra]:
    """Every extra child of the job, in the order in which they are created."""
    found = []
    if scheduler := gang.SCHEDULERS.get(settings.gang_scheduler):
        specs = {entry.type: equipped({"spec": dict(entry.pod_spec)}, job, entry, settings) for entry in job.replicas}
        manifest = gang.pod_group(job, scheduler, {name: pod["spec"] for name, pod in specs.items()})
        found.append(Extra(POD_GROUPS[settings.gang_scheduler], manifest))
    if rule := RULES.get(job.kind.extras):
        found += map(Extra, rule.sorts, rule.children(job, running))
    return found


def equipped(pod: JSON, job: Job, entry: Replica, settings: Settings) -> JSON:
    """The pod with what the rule of its kind adds."""
    rule = RULES.get(job.kind.extras)
    return rule.equipped(pod, job, entry, settings) if rule else pod


def change(extra: Extra, stored: Mapping[str, Any]) -> JSON | None:
    """The merge patch that makes ``stored`` what is wanted; None when it is.

    Only fields that we set count: what the API server or the scheduler fills in beside them is theirs.
    """
    found = {}
    for key, value in extra.manifest.items():
        if key not in (*IDENTITY, *extra.sort.fixed) and (changed := _changed(stored.get(key), value)):
            found[key] = changed
    return found or None


def _changed(stored: Any, wanted: Any) -> Any:
    """``wanted`` where it differs, field by field one level down; None when nothing does."""
    if not isinstance(wanted, dict):
        return None if stored == wanted else wanted
    have = mapping(stored)
    differing = {field: value for field, value in wanted.items() if not _same(field, have.get(field), value)}
    return {field: _patch(have.get(field), value) for field, value in differing.items()} or None


def _same(name: str, stored: Any, wanted: Any) -> bool:
    if name != "minResources" or not isinstance(stored, Mapping):
        return bool(stored == wanted)
    return stored.keys() == wanted.keys() and all(quantities.equal(stored[key], wanted[key]) for key in wanted)


def _patch(stored: Any, wanted: Any) -> Any:
    """A map as a whole: what is no longer in it is taken out."""
    if not isinstance(wanted, dict):
        return wanted
    return {**dict.fromkeys(mapping(stored)), **wanted}
