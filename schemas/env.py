"""The environment that lets the pods of a job find each other: one rule per framework, chosen by the kind's row."""

from collections.abc import Callable
from typing import Any

from schemas import names
from schemas.job import Job, integer, mapping, sequence, text

Variables = dict[str, str]
Rule = Callable[[Job, str, int], Variables]


def cluster_env(job: Job, replica_type: str, index: int) -> Variables:
    """Variables for every container of one replica, in order; a name the user has set is left to the user."""
    rule = RULES.get(job.kind.env)
    return rule(job, replica_type, index) if rule else {}


def variable_names(job: Job, replica_type: str) -> set[str]:
    """The names that ``cluster_env`` would set on any replica of this type."""
    return set(cluster_env(job, replica_type, 0))


def address(job: Job, replica_type: str, index: int) -> str:
    """The DNS name, within the namespace, of one replica."""
    name = names.child(job.name, replica_type, index)
    return name if job.kind.service_per_replica else f"{name}.{job.name}"


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


def _pytorch(job: Job, replica_type: str, index: int) -> Variables:
    """What Kubeflow's PyTorchJob gets: the master's address only when there is a Master."""
    leader = job.leader_type
    at_master = _rendezvous_at(job, leader, replica_type, index) if leader else {}
    return {"PYTHONUNBUFFERED": "1", **at_master, **_torchrun(job)}


def _torch(job: Job, replica_type: str, index: int) -> Variables:
    """What a TrainingJob gets: always an address, the leader's or else the first type's."""
    first = job.leader_type or job.replicas[0].type
    return {"PYTHONUNBUFFERED": "1", **_rendezvous_at(job, first, replica_type, index), **_torchrun(job)}


def _rendezvous_at(job: Job, leader: str, replica_type: str, index: int) -> Variables:
    host, number = address(job, leader, 0), str(port(job, leader))
    position = str(rank(job, replica_type, index))
    return {
        "MASTER_PORT": number,
        "PET_MASTER_PORT": number,
        "MASTER_ADDR": host,
        "PET_MASTER_ADDR": host,
        "WORLD_SIZE": str(job.total_replicas * _processes(job)),
        "RANK": position,
        "PET_NODE_RANK": position,
    }


def _processes(job: Job) -> int:
    written = text(job.spec.get("nprocPerNode"))
    return int(written) if written.isascii() and written.isdigit() else 1


def _torchrun(job: Job) -> Variables:
    elastic = job.elastic_policy
    if elastic is None:
        return {
            "PET_NPROC_PER_NODE": text(job.spec.get("nprocPerNode")) or "auto",
            "PET_NNODES": str(job.total_replicas),
        }
    return _processes_per_node(job, elastic) | _elastic(job, elastic)


def _processes_per_node(job: Job, elastic: Any) -> Variables:
    old_place = integer(elastic.get("nProcPerNode"))
    return {"PET_NPROC_PER_NODE": text(job.spec.get("nprocPerNode")) or (str(old_place) if old_place else "auto")}


def _elastic(job: Job, elastic: Any) -> Variables:
    host = text(elastic.get("rdzvHost")) or address(job, "Worker", 0)
    number = integer(elastic.get("rdzvPort")) or port(job, "Worker")
    variables = {
        "PET_RDZV_ENDPOINT": f"{host}:{number}",
        "PET_RDZV_BACKEND": text(elastic.get("rdzvBackend")) or "c10d",
        "PET_NNODES": f"{elastic.get('minReplicas')}:{elastic.get('maxReplicas')}",
    }
    if (restarts := integer(elastic.get("maxRestarts"))) is not None:
        variables["PET_MAX_RESTARTS"] = str(restarts)
    if rdzv_id := text(elastic.get("rdzvId")):
        variables["PET_RDZV_ID"] = rdzv_id
    if pairs := [mapping(item) for item in sequence(elastic.get("rdzvConf"))]:
        variables["PET_RDZV_CONF"] = ",".join(f"{text(p.get('key'))}={text(p.get('value'))}" for p in pairs)
    if elastic.get("standalone") is True:
        variables["PET_STANDALONE"] = ""
    return variables


RULES: dict[str, Rule] = {"torch": _torch, "pytorch": _pytorch}
