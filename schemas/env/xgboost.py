"""What XGBoost's launch scripts read: the tracker on the Master, this pod's rank, and all workers."""

from schemas.env.places import Variables, address, port, rank
from schemas.job import Job


def tracker(job: Job, replica_type: str, index: int) -> Variables:
    """The Master's address for every pod; the workers' addresses as soon as there is more than one pod."""
    alone: Variables = {
        "MASTER_PORT": str(port(job, "Master")),
        "MASTER_ADDR": address(job, "Master", 0),
        "WORLD_SIZE": str(job.total_replicas),
        "RANK": str(rank(job, replica_type, index)),
        "PYTHONUNBUFFERED": "1",
    }
    if job.total_replicas <= 1:
        return alone
    entry = job.replica("Worker")
    workers = [address(job, "Worker", at) for at in (entry.indexes if entry else ())]
    return {**alone, "WORKER_PORT": str(port(job, "Worker")), "WORKER_ADDRS": ",".join(workers)}
