"""Settings of the controller process, made once at the start and passed in."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Settings:
    """Each field is one flag of ``signalbox controller``."""

    namespace: str = ""
    """The one namespace to serve; empty for all."""
    workers: int = 4
    """Reconciles that run at once."""
    status_interval: float = 1.0
    """Seconds for which a status change of counts alone may wait."""
    history_grace: float = 600.0
    """Seconds for which a job's TTL waits for its saved history row."""
    force_delete_after: float | None = None
    """Seconds after its grace period at which a pod that does not go is force-deleted; None for never."""
    crd_interval: float = 20.0
    """Seconds between two looks at the installed CRDs."""
    policy_scan: float = 600.0
    """Seconds between two looks at all stored jobs for what breaks a policy."""
    resync: float = 600.0
    """Seconds after which an untouched job is looked at again."""
    gang_scheduler: str = "none"
    """``volcano``, ``scheduler-plugins`` or ``none``: whose PodGroups are made."""
    gang_scheduler_name: str = ""
    """The ``schedulerName`` of pods in a gang; empty for the usual one."""
    kubectl_delivery_image: str = "kubeflow/kubectl-delivery:latest"
    """The init container that brings kubectl to the launcher of an MPIJob."""
    take_over: bool = False
    """Whether to serve kinds that another operator serves too."""
