"""What every child of a job carries: whose it is. Pure."""

from collections.abc import Mapping
from typing import Any

from schemas import names
from schemas.job import Job

JSON = dict[str, Any]


def owner(job: Job) -> JSON:
    """The reference by which children belong to the job's UID."""
    return {
        "apiVersion": job.kind.api_version,
        "kind": job.kind.kind,
        "name": job.name,
        "uid": job.uid,
        "controller": True,
        "blockOwnerDeletion": True,
    }


def job_labels(job: Job) -> JSON:
    """The labels that say which job, and no replica."""
    labels = names.type_labels(job.kind, job.name, "")
    return {key: value for key, value in labels.items() if value}


def metadata(job: Job, name: str, labels: Mapping[str, str]) -> JSON:
    """The metadata of a child that is no pod, with the label that our watches select by."""
    return {
        "name": name,
        "namespace": job.namespace,
        "labels": {**labels, names.JOB_UID: job.uid},
        "ownerReferences": [owner(job)],
    }
