"""The kind table: every job kind Signalbox serves is one row of ``KINDS``, never a code path.

A row says where a kind lives in the API and what its replica types, main container, port and defaults are.
Adding a kind means adding a row, a schema file, an example and goldens.
"""

from dataclasses import dataclass, field


@dataclass(frozen=True, slots=True)
class ReplicaType:
    """One replica type of a kind, in canonical case, with what a job gets when it says nothing."""

    name: str
    replicas_default: int = 1


@dataclass(frozen=True, slots=True)
class JobKind:
    """One row of the kind table."""

    kind: str
    group: str
    version: str
    plural: str
    singular: str
    short_names: tuple[str, ...]
    spec_key: str
    """The field under ``spec`` that maps replica type to replica spec."""
    types: tuple[ReplicaType, ...]
    """The closed set of replica types in their canonical order; empty when any DNS label is a type."""
    leaders: tuple[str, ...]
    """Types whose success decides the job's, first present wins; compared ignoring case."""
    deciders: tuple[str, ...]
    """Without a leader: the types whose replicas must all succeed; empty means every type there is."""
    container: str
    """Name of the main container."""
    port_name: str
    port: int
    restart_policy_default: str = "Never"
    reason_prefix: str = "Job"
    """What condition reasons start with (``PyTorchJobSucceeded``)."""
    env: str = ""
    """Which rule of ``schemas.env`` wires the pods together."""
    labels: str = "signalbox"
    """Which label scheme of ``schemas.names`` the children carry."""
    service_per_replica: bool = True
    """One headless Service per replica; otherwise one for the whole job, with hostname and subdomain."""
    managers: frozenset[str] = field(default_factory=lambda: frozenset({"signalbox.dev/controller"}))
    """Values of ``runPolicy.managedBy`` that mean this controller."""

    @property
    def api_version(self) -> str:
        return f"{self.group}/{self.version}"

    @property
    def schema_file(self) -> str:
        return f"{self.kind.lower()}.json"


KUBEFLOW_MANAGERS = frozenset({"signalbox.dev/controller", "kubeflow.org/training-operator"})

TRAINING_JOB = JobKind(
    kind="TrainingJob",
    group="signalbox.dev",
    version="v1",
    plural="trainingjobs",
    singular="trainingjob",
    short_names=("tj", "tjob"),
    spec_key="replicaSpecs",
    types=(),
    leaders=("Master", "Chief", "Launcher", "Leader"),
    deciders=(),
    container="main",
    port_name="main",
    port=29500,
    env="torch",
    service_per_replica=False,
)

PYTORCH_JOB = JobKind(
    kind="PyTorchJob",
    group="kubeflow.org",
    version="v1",
    plural="pytorchjobs",
    singular="pytorchjob",
    short_names=("ptj",),
    spec_key="pytorchReplicaSpecs",
    types=(ReplicaType("Master"), ReplicaType("Worker")),
    leaders=("Master",),
    deciders=("Worker",),
    container="pytorch",
    port_name="pytorchjob-port",
    port=23456,
    restart_policy_default="OnFailure",
    reason_prefix="PyTorchJob",
    env="pytorch",
    labels="kubeflow",
    managers=KUBEFLOW_MANAGERS,
)

KINDS: tuple[JobKind, ...] = (TRAINING_JOB, PYTORCH_JOB)


def find(kind: str, group: str) -> JobKind | None:
    """The row of ``kind`` in API group ``group``, or None when Signalbox does not serve it."""
    return next((row for row in KINDS if row.kind == kind and row.group == group), None)
