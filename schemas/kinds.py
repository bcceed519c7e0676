"""The kind table: every job kind Signalbox serves is one row of ``KINDS``, never a code path.

A row says where a kind lives in the API and what its replica types, main container, port and defaults are.
Adding a kind means adding a row, a schema file, an example and goldens.
"""

from dataclasses import dataclass, field
from typing import Literal


@dataclass(frozen=True, slots=True)
class ReplicaType:
    """One replica type of a kind, in canonical case, with what a job gets when it says nothing."""

    name: str
    replicas_default: int = 1
    indexed: bool = True
    """Whether the names of its children end in their index; a type of one pod may do without."""


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
    """Without a leader: the types whose replicas must all succeed; empty means every type there is.

    A kind that cannot do without its leader names the leader here again.
    """
    container: str
    """Name of the main container."""
    port_name: str
    port: int
    restart_policy_default: str = "Never"
    reason_prefix: str = "Job"
    """What condition reasons start with (``PyTorchJobSucceeded``)."""
    env: str = ""
    """Which rule of ``schemas.env`` wires the pods together."""
    fixed_world: bool = True
    """Pods are told at their start how many there are, and do not learn of a scaling unless the job is elastic."""
    env_in_main_only: bool = False
    """Only the main container is told about the others; otherwise every container is."""
    labels: str = "signalbox"
    """Which label scheme of ``schemas.names`` the children carry."""
    role_types: tuple[str, ...] = ()
    """Types whose index 0 carries the role label, first present wins; empty means the leader or else the first type."""
    services: Literal["replica", "job", "none"] = "replica"
    """One headless Service per replica, one for the whole job (with hostname and subdomain), or none."""
    extras: str = ""
    """Which rule of ``controller.extras`` makes children besides pods and Services."""
    all_decide_on: str = ""
    """The ``spec.successPolicy`` under which all replicas of the deciders count; without it index 0 alone does."""
    any_decides_if_elastic: bool = False
    """With an elasticPolicy the first decider that succeeds is enough (kubeflow/trainer#1751)."""
    managers: frozenset[str] = field(default_factory=lambda: frozenset({"signalbox.dev/controller"}))
    """Values of ``runPolicy.managedBy`` that mean this controller."""

    def __hash__(self) -> int:
        return hash((self.group, self.kind))

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
    services="job",
)

MASTER = ReplicaType("Master")
WORKER = ReplicaType("Worker")

PYTORCH_JOB = JobKind(
    kind="PyTorchJob",
    group="kubeflow.org",
    version="v1",
    plural="pytorchjobs",
    singular="pytorchjob",
    short_names=("ptj",),
    spec_key="pytorchReplicaSpecs",
    types=(MASTER, WORKER),
    leaders=("Master",),
    deciders=("Worker",),
    container="pytorch",
    port_name="pytorchjob-port",
    port=23456,
    restart_policy_default="OnFailure",
    reason_prefix="PyTorchJob",
    env="pytorch",
    labels="kubeflow",
    role_types=("Master", "Worker"),
    any_decides_if_elastic=True,
    managers=KUBEFLOW_MANAGERS,
)

TF_JOB = JobKind(
    kind="TFJob",
    group="kubeflow.org",
    version="v1",
    plural="tfjobs",
    singular="tfjob",
    short_names=("tfj",),
    spec_key="tfReplicaSpecs",
    types=(ReplicaType("Chief"), MASTER, ReplicaType("PS"), WORKER, ReplicaType("Evaluator")),
    leaders=("Chief", "Master"),
    deciders=("Worker",),
    container="tensorflow",
    port_name="tfjob-port",
    port=2222,
    reason_prefix="TFJob",
    env="tensorflow",
    env_in_main_only=True,
    labels="kubeflow",
    role_types=("Chief", "Master", "Worker"),
    all_decide_on="AllWorkers",
    managers=KUBEFLOW_MANAGERS,
)

XGBOOST_JOB = JobKind(
    kind="XGBoostJob",
    group="kubeflow.org",
    version="v1",
    plural="xgboostjobs",
    singular="xgboostjob",
    short_names=("xgbj",),
    spec_key="xgbReplicaSpecs",
    types=(MASTER, WORKER),
    leaders=("Master",),
    deciders=("Master",),
    container="xgboost",
    port_name="xgboostjob-port",
    port=9999,
    reason_prefix="XGBoostJob",
    env="xgboost",
    labels="kubeflow",
    role_types=("Master",),
    managers=KUBEFLOW_MANAGERS,
)

PADDLE_JOB = JobKind(
    kind="PaddleJob",
    group="kubeflow.org",
    version="v1",
    plural="paddlejobs",
    singular="paddlejob",
    short_names=("pdj",),
    spec_key="paddleReplicaSpecs",
    types=(MASTER, WORKER),
    leaders=("Master",),
    deciders=("Worker",),
    container="paddle",
    port_name="master",
    port=36543,
    restart_policy_default="OnFailure",
    reason_prefix="PaddleJob",
    env="paddle",
    labels="kubeflow",
    role_types=("Master",),
    managers=KUBEFLOW_MANAGERS,
)

JAX_JOB = JobKind(
    kind="JAXJob",
    group="kubeflow.org",
    version="v1",
    plural="jaxjobs",
    singular="jaxjob",
    short_names=("jaxj",),
    spec_key="jaxReplicaSpecs",
    types=(WORKER,),
    leaders=(),
    deciders=("Worker",),
    container="jax",
    port_name="jaxjob-port",
    port=6666,
    reason_prefix="JAXJob",
    env="jax",
    labels="kubeflow",
    role_types=("Worker",),
    managers=KUBEFLOW_MANAGERS,
)

MPI_JOB = JobKind(
    kind="MPIJob",
    group="kubeflow.org",
    version="v1",
    plural="mpijobs",
    singular="mpijob",
    short_names=("mpij",),
    spec_key="mpiReplicaSpecs",
    types=(ReplicaType("Launcher", indexed=False), ReplicaType("Worker", replicas_default=0)),
    leaders=("Launcher",),
    deciders=("Launcher",),
    container="mpi",
    port_name="",
    port=0,
    reason_prefix="MPIJob",
    env="mpi",
    fixed_world=False,
    env_in_main_only=True,
    labels="kubeflow",
    role_types=("Launcher",),
    services="none",
    extras="mpi",
    managers=KUBEFLOW_MANAGERS,
)

KINDS: tuple[JobKind, ...] = (TRAINING_JOB, PYTORCH_JOB, TF_JOB, XGBOOST_JOB, PADDLE_JOB, JAX_JOB, MPI_JOB)


def find(kind: str, group: str) -> JobKind | None:
    """The row of ``kind`` in API group ``group``, or None when Signalbox does not serve it."""
    return next((row for row in KINDS if row.kind == kind and row.group == group), None)


def known_type(kind: JobKind, key: str) -> ReplicaType | None:
    """The row of replica type ``key``, spelling ignored; None where the kind has no such type or an open set."""
    return next((row for row in kind.types if row.name.lower() == key.lower()), None)


def serving(plural: str, group: str) -> JobKind | None:
    """The row whose objects live under ``plural`` in API group ``group``."""
    return next((row for row in KINDS if row.plural == plural and row.group == group), None)


def named(words: str) -> tuple[JobKind, ...]:
    """The rows that a comma-separated list names: kinds or plurals, alone or with their group, in any case.

    ValueError for the first word that is no kind.
    """
    wanted: dict[JobKind, None] = {}
    for word in filter(None, (part.strip() for part in words.split(","))):
        found = [row for row in KINDS if word.lower() in _words(row)]
        if not found:
            known = ", ".join(f"{row.kind}.{row.group}" for row in KINDS)
            raise ValueError(f"must be kinds out of {known} (got {word!r})")
        wanted |= dict.fromkeys(found)
    return tuple(wanted)


def _words(row: JobKind) -> set[str]:
    return {f"{name}{group}".lower() for name in (row.kind, row.plural) for group in ("", f".{row.group}")}
