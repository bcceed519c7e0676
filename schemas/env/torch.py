"""What torch.distributed and torchrun read: MASTER_*, RANK and WORLD_SIZE, and torchrun's own PET_*."""

from typing import Any

from schemas.env.places import Variables, address, port, rank
from schemas.job import Job, integer, mapping, sequence, text

LONGEST_NUMBER = 9  # digits; Python refuses to read thousands of them


def pytorch_job(job: Job, replica_type: str, index: int) -> Variables:
    """What Kubeflow's PyTorchJob gets: the master's address only when there is a Master."""
    leader = job.leader_type
    at_master = _rendezvous_at(job, leader, replica_type, index) if leader else {}
    return {"PYTHONUNBUFFERED": "1", **at_master, **_torchrun(job)}


def training_job(job: Job, replica_type: str, index: int) -> Variables:
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
    countable = written.isascii() and written.isdigit() and len(written) <= LONGEST_NUMBER
    return int(written) if countable else 1


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
    variables: Variables = {
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
