"""What ``paddle.distributed.launch`` reads: the job, its size, and where to meet."""

from schemas.env.places import Variables, address, port, rank
from schemas.job import Job

# The first pod binds the address it is told, so it is told its own IP: its DNS name may not resolve yet.
OWN_IP: Variables = {"POD_IP_DUMMY": {"fieldRef": {"apiVersion": "v1", "fieldPath": "status.podIP"}}}


def rendezvous(job: Job, replica_type: str, index: int) -> Variables:
    """Collective training meets at the first Worker; with a Master it is the parameter server, and they meet there."""
    first = job.leader_type or "Worker"
    number = port(job, first)
    own = rank(job, replica_type, index) == 0
    return {
        "PYTHONUNBUFFERED": "1",
        "PADDLE_JOB_ID": job.name,
        "PADDLE_NNODES": str(job.total_replicas),
        **(OWN_IP if own else {}),
        "PADDLE_MASTER": f"$(POD_IP_DUMMY):{number}" if own else f"{address(job, first, 0)}:{number}",
        **(_role(job, replica_type) if job.leader_type else {}),
    }


def _role(job: Job, replica_type: str) -> Variables:
    """One server or one trainer per pod."""
    return {"PADDLE_SERVER_NUM": "1"} if replica_type == job.leader_type else {"PADDLE_TRAINER_NUM": "1"}
