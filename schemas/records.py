"""What the controller and the webhook tell the history, without knowing it.

The wiring (``signalbox``) fills the ``Recorder`` with the history's writer. A recorder must return at once: it may
queue, coalesce or drop, but never wait for a database.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Literal, Protocol

JSON = dict[str, Any]


@dataclass(frozen=True, slots=True)
class Admission:
    """One answer of the webhook to a submission that was no dry run."""

    time: datetime
    """When it was answered, with its time zone."""
    review: str
    """UID of the AdmissionReview; each webhook and each attempt has its own."""
    uid: str
    """UID of the job; empty while it has none: the API server gives it between mutation and validation."""
    user: str
    groups: tuple[str, ...]
    namespace: str
    name: str
    kind: str
    operation: str
    """CREATE, UPDATE or DELETE; SCAN for a job that is stored and breaks a policy."""
    verdict: str
    """``allowed``, ``warned``, ``defaulted`` or ``refused``; empty where only the object is to be kept."""
    policy: str = ""
    """Names of the policies that had a say, separated by commas; empty for the built-in rules alone."""
    errors: tuple[str, ...] = ()
    """The faults or warnings, as the user read them."""
    defaults: tuple[Mapping[str, Any], ...] = ()
    """What was filled in: JSON patch operations, each with the ``policy`` it came from if any."""
    object: Mapping[str, Any] | None = None
    """What was submitted."""
    size: int = 0
    """Bytes of the review, of which not too many may wait."""


@dataclass(frozen=True, slots=True)
class Live:
    """A complete list: every job of one kind, or every pod of jobs, that there was in one namespace or in all.

    Rows within these bounds that are not in it, and not newer than it, are of objects that are gone. What could not be
    listed whole is never told.
    """

    what: Literal["job", "pod"]
    uids: frozenset[str]
    version: str
    """resourceVersion of the list."""
    kind: str = ""
    """Of jobs: the kind that was listed."""
    namespace: str = ""
    """The one namespace that was listed; empty for all."""
    region: str | None = None
    """Of the rows that may be closed: several clusters may write into one database. The recorder's to set."""


class Recorder(Protocol):
    """Takes raw Kubernetes objects as they were last seen; each call is idempotent and may be repeated."""

    @property
    def keeps(self) -> bool:
        """Whether anything is kept: otherwise nobody needs to list what exists."""

    def saw_job(self, job: Mapping[str, Any]) -> None:
        """A job as stored by the API server (apiVersion, kind, metadata, spec, status)."""

    def saw_pod(self, pod: Mapping[str, Any], job_uid: str, replica_type: str) -> None:
        """A pod of a job; ``replica_type`` in the job's own spelling."""

    def saw_event(self, event: Mapping[str, Any]) -> None:
        """A core/v1 Event about a job or pod of ours."""

    def lost_job(self, job: Mapping[str, Any]) -> None:
        """A job whose object is gone; ``job`` is its last known state."""

    def lost_pod(self, pod: Mapping[str, Any], job_uid: str, replica_type: str) -> None:
        """A pod whose object is gone; ``pod`` is its last known state."""

    def saw_restarts(self, job: Mapping[str, Any], lines: Sequence[Mapping[str, Any]]) -> None:
        """Restarts that were just counted, as lines of ``status.restartHistory``, which may hold fewer of them."""

    def live(self, found: Live) -> None:
        """What existed in one list, told once after each start: rows of others in its bounds are closed."""

    def admission(self, record: Admission) -> None:
        """An answer of the webhook."""

    def saved(self, job_uid: str, resource_version: str) -> bool:
        """Whether the terminal state of this job at this version (or newer) is durably stored."""


class NoRecorder:
    """Records nothing: for a process without a history."""

    keeps = False

    def saw_job(self, job: Mapping[str, Any]) -> None: ...
    def saw_pod(self, pod: Mapping[str, Any], job_uid: str, replica_type: str) -> None: ...
    def saw_event(self, event: Mapping[str, Any]) -> None: ...
    def lost_job(self, job: Mapping[str, Any]) -> None: ...
    def lost_pod(self, pod: Mapping[str, Any], job_uid: str, replica_type: str) -> None: ...
    def saw_restarts(self, job: Mapping[str, Any], lines: Sequence[Mapping[str, Any]]) -> None: ...
    def live(self, found: Live) -> None: ...
    def admission(self, record: Admission) -> None: ...

    def saved(self, job_uid: str, resource_version: str) -> bool:  # noqa: ARG002
        return True
