"""Other operators that serve the same kinds, and how to tell that one of them is at work. Pure.

Two operators on one job would each create its pods and overwrite the other's status.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from schemas.job import mapping, text
from schemas.kinds import JobKind

JSON = Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class Rival:
    """An operator, by the names that its own manifests give its Deployment and its Lease. ``serves`` are plurals."""

    name: str
    group: str
    serves: frozenset[str]
    deployments: tuple[str, ...]
    leases: tuple[str, ...]

    def claims(self, kind: JobKind) -> bool:
        return kind.group == self.group and kind.plural in self.serves


RIVALS = (
    Rival(
        "Kubeflow's training operator",
        "kubeflow.org",
        frozenset({"jaxjobs", "mpijobs", "paddlejobs", "pytorchjobs", "tfjobs", "xgboostjobs"}),
        ("training-operator",),
        ("1ca428e5.training-operator.kubeflow.org",),
    ),
    Rival("the MPI operator", "kubeflow.org", frozenset({"mpijobs"}), ("mpi-operator",), ("mpi-operator",)),
)


@dataclass(frozen=True, slots=True)
class Sighting:
    """A Lease as it was first seen in this version, at ``since`` (monotonic seconds)."""

    version: str
    since: float


Sightings = Mapping[str, Sighting]


def sighted(leases: Iterable[JSON], before: Sightings, now: float) -> dict[str, Sighting]:
    """What is remembered of the Leases, by UID, for the next look."""
    found = {}
    for lease in leases:
        metadata = mapping(lease.get("metadata"))
        uid, version = text(metadata.get("uid")), text(metadata.get("resourceVersion"))
        last = before.get(uid)
        found[uid] = last if last and last.version == version else Sighting(version, now)
    return found


def at_work(deployments: Sequence[JSON], leases: Sequence[JSON], seen: Sightings, now: float) -> str:
    """What shows that an operator works, as ``Deployment kubeflow/training-operator``; empty when nothing does."""
    signs = [_called("Deployment", each) for each in deployments if _is_wanted(each)]
    signs += [_called("Lease", each) for each in leases if _is_kept(each, seen, now)]
    return " and ".join(signs)


def _is_wanted(deployment: JSON) -> bool:
    """A Deployment scaled to zero is how an operator is parked."""
    replicas = mapping(deployment.get("spec")).get("replicas")
    return not isinstance(replicas, int) or replicas > 0


def _is_kept(lease: JSON, seen: Sightings, now: float) -> bool:
    """Held, and not yet watched unchanged for its duration; other machines' clocks say nothing."""
    spec = mapping(lease.get("spec"))
    sighting = seen[text(mapping(lease.get("metadata")).get("uid"))]
    duration = spec.get("leaseDurationSeconds")
    patience = duration if isinstance(duration, int) else 0
    return bool(spec.get("holderIdentity")) and now - sighting.since <= patience


def _called(kind: str, found: JSON) -> str:
    metadata = mapping(found.get("metadata"))
    return f"{kind} {metadata.get('namespace')}/{metadata.get('name')}"
