"""What Open MPI and Intel MPI read on the launcher: how to reach the workers. Workers are told nothing."""

from schemas.env.places import Variables
from schemas.job import Job, Replica, mapping

REMOTE_SHELL = "/etc/mpi/kubexec.sh"
HOSTFILE = "/etc/mpi/hostfile"


def launcher(job: Job, replica_type: str, index: int) -> Variables:  # noqa: ARG001
    """The remote shell and the host file for the leading type."""
    entry = job.replica(replica_type)
    if entry is None or replica_type != job.leader_type:
        return {}
    # NVIDIA's container runtime shows all GPUs of the node to a container that asks for none
    hidden: Variables = {} if _has_gpu(entry) else {"NVIDIA_VISIBLE_DEVICES": "", "NVIDIA_DRIVER_CAPABILITIES": ""}
    return {
        "OMPI_MCA_plm_rsh_agent": REMOTE_SHELL,
        "OMPI_MCA_orte_default_hostfile": HOSTFILE,
        **hidden,
        "I_MPI_HYDRA_BOOTSTRAP": "rsh",
        "I_MPI_HYDRA_BOOTSTRAP_EXEC": REMOTE_SHELL,
    }


def _has_gpu(entry: Replica) -> bool:
    limits = (mapping(mapping(mapping(item).get("resources")).get("limits")) for item in entry.containers)
    return any("gpu" in name or name.startswith("nvidia.com/") for each in limits for name in each)
