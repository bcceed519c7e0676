"""What a policy is asked about: a job and who does what with it."""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any

from schemas.job import Job, mapping
from schemas.kinds import JobKind

JSON = dict[str, Any]

SERVICE_ACCOUNT = "system:serviceaccount:"


@dataclass(frozen=True)
class Request:
    """One submission, or one stored job.

    ``user`` is None for a stored job: nobody knows any more who asked. ``namespace_labels`` is None when they could
    not be had. ``old`` is the stored object on an update.
    """

    kind: JobKind
    object: JSON
    operation: str = "CREATE"
    old: JSON | None = None
    namespace: str = ""
    namespace_labels: Mapping[str, str] | None = field(default_factory=dict)
    user: str | None = None
    groups: tuple[str, ...] = ()
    uid: str = ""
    dry_run: bool = False

    @cached_property
    def job(self) -> Job:
        return Job(self.kind, self.object)

    @cached_property
    def labels(self) -> Mapping[str, Any]:
        """The job's own labels."""
        return mapping(self.job.metadata.get("labels"))

    @property
    def service_account(self) -> str:
        """``namespace/name`` when a service account asks, else empty."""
        name = self.user or ""
        return name.removeprefix(SERVICE_ACCOUNT).replace(":", "/", 1) if name.startswith(SERVICE_ACCOUNT) else ""

    def about(self, value: JSON) -> "Request":
        """The same request with another object."""
        return replace(self, object=value)

    def as_it_was(self) -> "Request | None":
        """The old object as if it were submitted now; None when there is none."""
        return replace(self, object=self.old, old=None) if self.old is not None else None

    @property
    def as_cel(self) -> JSON:
        """What expressions read as ``request``: the names of an AdmissionRequest."""
        return {
            "uid": self.uid,
            "kind": {"group": self.kind.group, "version": self.kind.version, "kind": self.kind.kind},
            "resource": {"group": self.kind.group, "version": self.kind.version, "resource": self.kind.plural},
            "name": self.job.name,
            "namespace": self.namespace,
            "operation": self.operation,
            "userInfo": {"username": self.user or "", "groups": list(self.groups)},
            "dryRun": self.dry_run,
        }

    @property
    def namespace_as_cel(self) -> JSON:
        """What expressions read as ``namespaceObject``."""
        return {"metadata": {"name": self.namespace, "labels": dict(self.namespace_labels or {})}}
