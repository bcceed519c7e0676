"""The environment that lets the pods of a job find each other: one rule per framework, chosen by the kind's row."""

from schemas.env import jax, mpi, paddle, tensorflow, torch, xgboost
from schemas.env.places import Rule, Variables, address, port, rank
from schemas.job import Job, Replica

__all__ = ["RULES", "Variables", "address", "cluster_env", "port", "rank", "reached", "variable_names"]

RULES: dict[str, Rule] = {
    "torch": torch.training_job,
    "pytorch": torch.pytorch_job,
    "tensorflow": tensorflow.tf_config,
    "xgboost": xgboost.tracker,
    "paddle": paddle.rendezvous,
    "jax": jax.coordinator,
    "mpi": mpi.launcher,
}

# How the names of all variables begin: most manifests set none of them, and are told apart cheaply by this.
PREFIXES = (
    "COORDINATOR_",
    "I_MPI_",
    "MASTER_",
    "NUM_PROCESSES",
    "NVIDIA_",
    "OMPI_MCA_",
    "PADDLE_",
    "PET_",
    "POD_IP_",
    "PROCESS_ID",
    "PYTHONUNBUFFERED",
    "RANK",
    "TF_CONFIG",
    "WORKER_",
    "WORLD_SIZE",
)


def cluster_env(job: Job, replica_type: str, index: int) -> Variables:
    """Variables for the containers of one replica, in order; a name the user has set is left to the user."""
    rule = RULES.get(job.kind.env)
    return rule(job, replica_type, index) if rule else {}


def variable_names(job: Job, replica_type: str) -> set[str]:
    """The names that ``cluster_env`` would set on any replica of this type."""
    return set(cluster_env(_small(job), replica_type, 0))


def _small(job: Job) -> Job:
    """The job with at most two replicas of a type: the same names, without the addresses of two billion pods."""
    entries = {entry.key: {**entry.spec, "replicas": min(entry.count, 2)} for entry in job.replicas}
    return Job(job.kind, {**job.raw, "spec": {**job.spec, job.kind.spec_key: entries}})


def reached(entry: Replica) -> list[int]:
    """Indexes of the containers that get the variables: every one, or the main one alone, by the kind's row."""
    if not entry.kind.env_in_main_only:
        return list(range(len(entry.containers)))
    return [] if entry.main_container is None else [entry.main_container]
