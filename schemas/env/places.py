"""Where a replica of a job is found: its DNS name, its port and its rank."""

from collections.abc import Callable
from typing import Any

from schemas import names
from schemas.job import Job, integer, mapping, sequence

Variables = dict[str, str | dict[str, Any]]
"""Name to value, or to the ``valueFrom`` of a variable that only the kubelet knows."""
Rule = Callable[[Job, str, int], Variables]


def address(job: Job, replica_type: str, index: int) -> str:
    """The DNS name, within the namespace, of one replica."""
    name = names.child(job.kind, job.name, replica_type, index)
    return f"{name}.{job.name}" if job.kind.services == "job" else name


def port(job: Job, replica_type: str) -> int:
    """The kind's port on the main container of a type: the user's number when the user named that port."""
    entry = job.replica(replica_type)
    at = entry.main_container if entry else None
    if entry is None or at is None:
        return job.kind.port
    for item in sequence(entry.containers[at].get("ports")):
        number = integer(mapping(item).get("containerPort"))
        if mapping(item).get("name") == job.kind.port_name and number is not None:
            return number
    return job.kind.port


def rank(job: Job, replica_type: str, index: int) -> int:
    """Position of a replica in the whole job: the leader first, then types in name order."""
    before = 0
    for entry in job.replicas:
        if entry.type == replica_type:
            break
        before += max(entry.count, 0)
    return before + index
