"""What ``tf.distribute`` reads: one JSON document, TF_CONFIG, that names every task and the pod's own."""

from typing import Any

import orjson

from schemas.env.places import Variables, address, port
from schemas.job import Job

JSON = dict[str, Any]

PARAMETER_SERVER = "PS"
WORKER = "Worker"


def tf_config(job: Job, replica_type: str, index: int) -> Variables:
    """TF_CONFIG; a job of one pod has nobody to find, and TensorFlow takes its absence for a local run."""
    if job.total_replicas == 1:
        return {}
    task = {"type": replica_type.lower(), "index": index}
    if job.spec.get("enableDynamicWorker") is True:
        config: JSON = {"cluster": _sparse(job, replica_type, index), "task": task}
    else:
        config = {"cluster": _dense(job), "task": task, "environment": "cloud"}
    return {"TF_CONFIG": orjson.dumps(config).decode()}


def _dense(job: Job) -> JSON:
    """Every task of every type, by type name; a type without replicas is no part of the cluster."""
    types = sorted(entry.type for entry in job.replicas if entry.count > 0)
    return {name.lower(): _tasks(job, name) for name in types}


def _sparse(job: Job, replica_type: str, index: int) -> JSON:
    """What a task must know while workers come and go: itself and, unless it is one, the parameter servers."""
    own = _task(job, replica_type, index)
    cluster: JSON = {"worker": {}, "ps": _tasks(job, PARAMETER_SERVER)}
    if replica_type == WORKER:
        return {**cluster, "worker": {str(index): own}}
    return {**cluster, replica_type.lower(): [own]}


def _tasks(job: Job, replica_type: str) -> list[str]:
    entry = job.replica(replica_type)
    return [_task(job, replica_type, index) for index in (entry.indexes if entry else ())]


def _task(job: Job, replica_type: str, index: int) -> str:
    return f"{address(job, replica_type, index)}.{job.namespace}.svc:{port(job, replica_type)}"
