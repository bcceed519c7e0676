"""What the controller and the webhook tell the history, without knowing it.

The wiring (``signalbox``) fills the ``Recorder`` with the history's writer. A recorder must return at once: it may
queue, coalesce or drop, but never wait for a database.
"""

from collections.abc import Mapping
from typing import Any, Protocol

JSON = dict[str, Any]


class Recorder(Protocol):
    """Takes raw Kubernetes objects as they were last seen; each call is idempotent and may be repeated."""

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

    def live_jobs(self, uids: frozenset[str]) -> None:
        """Every job UID that exists now, told once after each start: rows of others are closed."""

    def saved(self, job_uid: str, resource_version: str) -> bool:
        """Whether the terminal state of this job at this version (or newer) is durably stored."""


class NoRecorder:
    """Records nothing: for a controller without a history."""

    def saw_job(self, job: Mapping[str, Any]) -> None: ...
    def saw_pod(self, pod: Mapping[str, Any], job_uid: str, replica_type: str) -> None: ...
    def saw_event(self, event: Mapping[str, Any]) -> None: ...
    def lost_job(self, job: Mapping[str, Any]) -> None: ...
    def lost_pod(self, pod: Mapping[str, Any], job_uid: str, replica_type: str) -> None: ...
    def live_jobs(self, uids: frozenset[str]) -> None: ...

    def saved(self, job_uid: str, resource_version: str) -> bool:  # noqa: ARG002
        return True
