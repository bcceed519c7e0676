"""A job of any kind, read tolerantly: what is ill-typed reads as absent, so that no rule crashes on any JSON."""

import re
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from schemas import faults
from schemas.kinds import JobKind, known_type

JSON = dict[str, Any]
EMPTY: Mapping[str, Any] = {}
NUMBER = re.compile(r"[0-9]{1,9}")
INT32 = 2**31 - 1
MOST_REPLICAS = 10_000
"""Of all types together. Five times the largest job in public reports (Worker 2000, nolar/kopf#1087 and the like), two
pods for every node of the largest cluster that Kubernetes is tested for (5000); a slip of the hand is larger still."""


def mapping(value: Any) -> Mapping[str, Any]:
    """``value`` when it is an object, else an empty one."""
    # nearly every one is a dict, and asking an abstract class costs ten times as much
    return value if type(value) is dict or isinstance(value, Mapping) else EMPTY


def sequence(value: Any) -> list[Any]:
    """``value`` when it is a list, else an empty one."""
    return value if isinstance(value, list) else []


def integer(value: Any) -> int | None:
    """``value`` when it is an integer (true and false are none), else None."""
    return value if isinstance(value, int) and not isinstance(value, bool) else None


def number(value: Any) -> int | None:
    """The number that a string of at most nine ASCII digits writes; None for anything else, whatever its length."""
    return int(value) if isinstance(value, str) and NUMBER.fullmatch(value) else None


def text(value: Any) -> str:
    """``value`` when it is a string, else the empty string."""
    return value if isinstance(value, str) else ""


@dataclass(frozen=True)
class Replica:
    """One entry of the replica map: its key as written, its canonical type, and its spec."""

    kind: JobKind
    key: str
    raw: Any

    @cached_property
    def type(self) -> str:
        """The canonical spelling of the type for kinds with a closed set, else the key itself."""
        known = known_type(self.kind, self.key)
        return known.name if known else self.key

    @cached_property
    def spec(self) -> Mapping[str, Any]:
        return mapping(self.raw)

    @cached_property
    def count(self) -> int:
        """Wanted pods; the default where nothing usable is written."""
        count = integer(self.spec.get("replicas"))
        return self.default_count if count is None else count

    @property
    def indexes(self) -> range:
        """The indexes of the wanted pods; never more than a valid job has, so that no loop over them is endless."""
        return range(min(max(self.count, 0), MOST_REPLICAS))

    @property
    def default_count(self) -> int:
        known = known_type(self.kind, self.key)
        return known.replicas_default if known else 1

    @cached_property
    def restart_policy(self) -> str:
        return text(self.spec.get("restartPolicy")) or self.kind.restart_policy_default

    @cached_property
    def template(self) -> Mapping[str, Any]:
        return mapping(self.spec.get("template"))

    @cached_property
    def pod_spec(self) -> Mapping[str, Any]:
        return mapping(self.template.get("spec"))

    @cached_property
    def containers(self) -> list[Any]:
        return sequence(self.pod_spec.get("containers"))

    @cached_property
    def all_containers(self) -> tuple[tuple[tuple[str | int, ...], Mapping[str, Any]], ...]:
        """Every container that is an object, init containers first, with its path below the template."""
        return tuple(
            (("spec", name, index), container)
            for name in ("initContainers", "containers")
            for index, container in enumerate(sequence(self.pod_spec.get(name)))
            if isinstance(container, Mapping)
        )

    @cached_property
    def main_container(self) -> int | None:
        """Index of the main container: the kind's name, or the only one there is; None when there is none
        (kubeflow/trainer#563).
        """
        return main_container(self.kind, self.containers)


def main_container(kind: JobKind, containers: list[Any]) -> int | None:
    """Index in ``containers`` of the one that trains: named as the kind says, else the only one."""
    for index, container in enumerate(containers):
        if mapping(container).get("name") == kind.container:
            return index
    return 0 if len(containers) == 1 and isinstance(containers[0], Mapping) else None


@dataclass(frozen=True)
class Job:
    """A view of one job object; never changes it."""

    kind: JobKind
    raw: Mapping[str, Any]

    def as_now(self, raw: Mapping[str, Any]) -> "Job":
        """The job with another status or metadata and the same spec: what was read of the spec is not read again."""
        now = Job(self.kind, raw)
        known = vars(self)
        vars(now).update({name: known[name] for name in OF_SPEC if name in known})
        return now

    @cached_property
    def metadata(self) -> Mapping[str, Any]:
        return mapping(self.raw.get("metadata"))

    @cached_property
    def name(self) -> str:
        return text(self.metadata.get("name"))

    @property
    def namespace(self) -> str:
        return text(self.metadata.get("namespace"))

    @property
    def uid(self) -> str:
        return text(self.metadata.get("uid"))

    @cached_property
    def spec(self) -> Mapping[str, Any]:
        return mapping(self.raw.get("spec"))

    @property
    def status(self) -> Mapping[str, Any]:
        return mapping(self.raw.get("status"))

    @cached_property
    def run_policy(self) -> Mapping[str, Any]:
        return mapping(self.spec.get("runPolicy"))

    @property
    def deleting(self) -> bool:
        return self.metadata.get("deletionTimestamp") is not None

    @property
    def suspended(self) -> bool:
        return self.run_policy.get("suspend") is True

    @property
    def clean_pod_policy(self) -> str:
        return text(self.run_policy.get("cleanPodPolicy")) or "Running"

    @property
    def managed_by_us(self) -> bool:
        """Absent, and the names in the kind's row, mean this controller; anything else someone else."""
        manager = self.run_policy.get("managedBy")
        return manager is None or manager in self.kind.managers

    @cached_property
    def replica_map(self) -> Mapping[str, Any]:
        return mapping(self.spec.get(self.kind.spec_key))

    @cached_property
    def replicas(self) -> tuple[Replica, ...]:
        """All entries, the leader first, then in name order: the order in which ranks are counted."""
        entries = [Replica(self.kind, key, value) for key, value in self.replica_map.items()]
        leader = self.leader_type
        return tuple(sorted(entries, key=lambda entry: (entry.type != leader, entry.type)))

    def replica(self, replica_type: str) -> Replica | None:
        return next((entry for entry in self.replicas if entry.type == replica_type), None)

    @cached_property
    def total_replicas(self) -> int:
        return sum(max(entry.count, 0) for entry in self.replicas)

    @cached_property
    def success_policy(self) -> Mapping[str, Any]:
        return mapping(self.spec.get("successPolicy"))

    @cached_property
    def leader_types(self) -> list[str]:
        """Types present that lead by their name, in the kind's order; more than one needs a successPolicy."""
        present = {key.lower(): key for key in self.replica_map}
        found = [present[name.lower()] for name in self.kind.leaders if name.lower() in present]
        return [Replica(self.kind, key, None).type for key in found]

    @cached_property
    def leader_type(self) -> str | None:
        """The one type whose success decides, when there is one."""
        if self.success_policy.get("policy") == "Leader":
            return text(self.success_policy.get("type")) or None
        if self.success_policy:
            return None
        return self.leader_types[0] if self.leader_types else None

    @cached_property
    def deciding(self) -> tuple[Replica, ...]:
        """The entries that decide success: the leader's, or those of the successPolicy, or else the kind's."""
        wanted = self.leader_type or text(self.success_policy.get("type"))
        if wanted:
            return tuple(entry for entry in self.replicas if entry.type == wanted)
        everyone = bool(self.success_policy) or not self.kind.deciders
        return tuple(entry for entry in self.replicas if everyone or entry.type in self.kind.deciders)

    @property
    def first_decides(self) -> bool:
        """Without a leader: whether index 0 of the deciding types decides alone, by the kind and the successPolicy."""
        return bool(self.kind.all_decide_on) and self.spec.get("successPolicy") != self.kind.all_decide_on

    @property
    def min_available(self) -> int | None:
        return integer(mapping(self.run_policy.get("schedulingPolicy")).get("minAvailable"))

    @property
    def elastic_policy(self) -> Mapping[str, Any] | None:
        policy = self.spec.get("elasticPolicy")
        return policy if isinstance(policy, Mapping) else None

    def path(self, *segments: str | int) -> str:
        """A path below ``spec``."""
        return faults.path("spec", *segments)

    def replica_path(self, entry: Replica, *segments: str | int) -> str:
        """A path below the entry of one replica type."""
        return self.path(self.kind.spec_key, entry.key, *segments)


OF_SPEC = (
    "spec",
    "run_policy",
    "replica_map",
    "replicas",
    "total_replicas",
    "success_policy",
    "leader_types",
    "leader_type",
    "deciding",
)
"""What a job tells of its spec alone."""
