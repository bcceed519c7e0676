"""What ``jax.distributed.initialize`` is given: the coordinator, the number of processes, and this one's."""

from schemas.env.places import Variables, address, port, rank
from schemas.job import Job


def coordinator(job: Job, replica_type: str, index: int) -> Variables:
    """The first Worker coordinates."""
    return {
        "PYTHONUNBUFFERED": "1",
        "COORDINATOR_PORT": str(port(job, "Worker")),
        "COORDINATOR_ADDRESS": address(job, "Worker", 0),
        "NUM_PROCESSES": str(job.total_replicas),
        "PROCESS_ID": str(rank(job, replica_type, index)),
    }
