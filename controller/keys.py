"""What is in the queue, and how jobs and kinds are called by it."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from kube.resources import Resource
from schemas.job import mapping, text
from schemas.kinds import JobKind

JSON = Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class Key:
    """One job in the queue."""

    kind: JobKind
    namespace: str
    name: str

    @property
    def named(self) -> dict[str, str]:
        """As it stands in a line of the log."""
        return {"kind": self.kind.kind, "namespace": self.namespace, "job": self.name}


def key_of(kind: JobKind, job: JSON) -> Key:
    metadata = mapping(job.get("metadata"))
    return Key(kind, text(metadata.get("namespace")), text(metadata.get("name")))


def uid_of(item: JSON) -> str:
    return text(mapping(item.get("metadata")).get("uid"))


def resource_of(kind: JobKind) -> Resource:
    return Resource(kind.group, kind.version, kind.plural, kind.kind)
