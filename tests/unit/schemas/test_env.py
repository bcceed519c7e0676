"""What each replica is told about the others: recorded from the Kubeflow operator, and TrainingJob's own."""

import orjson
import pytest

from schemas import defaults, env, kinds
from schemas.job import Job


def variables(job, kind, replica_type, index=0):
    return env.cluster_env(Job(kind, defaults.default(kind, job)), replica_type, index)


def at_master(world, rank, host="job-master-0", port="23456"):
    return {
        "PYTHONUNBUFFERED": "1",
        "MASTER_PORT": port,
        "PET_MASTER_PORT": port,
        "MASTER_ADDR": host,
        "PET_MASTER_ADDR": host,
        "WORLD_SIZE": world,
        "RANK": rank,
        "PET_NODE_RANK": rank,
    }


@pytest.mark.parametrize(
    ("types", "replica", "index", "expected"),
    [
        ({"Master": 1}, "Master", 0, {**at_master("1", "0"), "PET_NPROC_PER_NODE": "auto", "PET_NNODES": "1"}),
        (
            {"Master": 1, "Worker": 2},
            "Master",
            0,
            {**at_master("3", "0"), "PET_NPROC_PER_NODE": "auto", "PET_NNODES": "3"},
        ),
        (
            {"Master": 1, "Worker": 2},
            "Worker",
            1,
            {**at_master("3", "2"), "PET_NPROC_PER_NODE": "auto", "PET_NNODES": "3"},
        ),
        ({"Worker": 3}, "Worker", 1, {"PYTHONUNBUFFERED": "1", "PET_NPROC_PER_NODE": "auto", "PET_NNODES": "3"}),
    ],
)
def test_pytorch(make_job, types, replica, index, expected):
    found = variables(make_job(**types), kinds.PYTORCH_JOB, replica, index)
    assert found == expected
    assert list(found) == list(expected)  # the recorded order


def test_processes_per_node_multiply_the_world(make_job, changed):
    job = changed(make_job(Master=1, Worker=1), "spec.nprocPerNode", "4")
    found = variables(job, kinds.PYTORCH_JOB, "Worker")
    assert (found["WORLD_SIZE"], found["PET_NPROC_PER_NODE"], found["PET_NNODES"]) == ("8", "4", "2")


def test_the_users_own_number_of_the_port(make_job, changed):
    ports = [{"containerPort": 29400, "name": "pytorchjob-port"}]
    at = "spec.pytorchReplicaSpecs.Master.template.spec.containers.0.ports"
    job = changed(make_job(Master=1, Worker=1), at, ports)
    found = variables(job, kinds.PYTORCH_JOB, "Worker")
    assert (found["MASTER_PORT"], found["PET_MASTER_PORT"]) == ("29400", "29400")


def test_elastic(make_job, changed):
    policy = {
        "minReplicas": 1,
        "maxReplicas": 4,
        "maxRestarts": 10,
        "rdzvBackend": "c10d",
        "rdzvId": "run-7",
        "rdzvConf": [{"key": "timeout", "value": "300"}, {"key": "a", "value": "b"}],
    }
    job = changed(changed(make_job(Worker=2), "spec.elasticPolicy", policy), "spec.nprocPerNode", "4")
    assert variables(job, kinds.PYTORCH_JOB, "Worker", 1) == {
        "PYTHONUNBUFFERED": "1",
        "PET_NPROC_PER_NODE": "4",
        "PET_RDZV_ENDPOINT": "job-worker-0:23456",
        "PET_RDZV_BACKEND": "c10d",
        "PET_NNODES": "1:4",
        "PET_MAX_RESTARTS": "10",
        "PET_RDZV_ID": "run-7",
        "PET_RDZV_CONF": "timeout=300,a=b",
    }


@pytest.mark.parametrize(
    ("types", "replica", "index", "host", "rank"),
    [
        ({"Worker": 2}, "Worker", 1, "job-worker-0.job", "1"),
        ({"b": 2, "a": 2}, "b", 1, "job-a-0.job", "3"),
        ({"Master": 1, "Evaluator": 2}, "Evaluator", 1, "job-master-0.job", "2"),
        ({"a": 1, "leader": 1}, "a", 0, "job-leader-0.job", "1"),
    ],
)
def test_training_job(make_job, types, replica, index, host, rank):
    found = variables(make_job(kinds.TRAINING_JOB, **types), kinds.TRAINING_JOB, replica, index)
    world = str(sum(types.values()))
    expected = {**at_master(world, rank, host, "29500"), "PET_NPROC_PER_NODE": "auto", "PET_NNODES": world}
    assert found == expected


def tf_config(job, replica_type, index=0):
    found = variables(job, kinds.TF_JOB, replica_type, index)
    return orjson.loads(found["TF_CONFIG"]) if found else None


def test_a_tfjob_of_one_pod_is_alone(make_job):
    assert tf_config(make_job(kinds.TF_JOB, Worker=1), "Worker") is None


def test_tf_config_leaves_out_types_without_replicas(make_job):
    """0 workers is a common spelling of none: TensorFlow would wait for an empty task."""
    config = tf_config(make_job(kinds.TF_JOB, Chief=1, Worker=0, PS=1), "Chief")
    assert config["cluster"] == {"chief": ["job-chief-0.ns.svc:2222"], "ps": ["job-ps-0.ns.svc:2222"]}
    assert config["task"] == {"type": "chief", "index": 0}


def test_tf_config_has_the_users_port_of_each_type(make_job, changed):
    ports = [{"containerPort": 5000, "name": "tfjob-port"}]
    at = "spec.tfReplicaSpecs.PS.template.spec.containers.0.ports"
    config = tf_config(changed(make_job(kinds.TF_JOB, PS=1, Worker=1), at, ports), "Worker")
    assert config["cluster"] == {"ps": ["job-ps-0.ns.svc:5000"], "worker": ["job-worker-0.ns.svc:2222"]}


@pytest.mark.parametrize(
    ("replica", "index", "cluster"),
    [
        (
            "Worker",
            1,
            {"worker": {"1": "job-worker-1.ns.svc:2222"}, "ps": ["job-ps-0.ns.svc:2222", "job-ps-1.ns.svc:2222"]},
        ),
        ("PS", 1, {"worker": {}, "ps": ["job-ps-1.ns.svc:2222"]}),
        (
            "Chief",
            0,
            {
                "worker": {},
                "ps": ["job-ps-0.ns.svc:2222", "job-ps-1.ns.svc:2222"],
                "chief": ["job-chief-0.ns.svc:2222"],
            },
        ),
    ],
)
def test_dynamic_workers_see_themselves_and_the_parameter_servers(make_job, changed, replica, index, cluster):
    job = changed(make_job(kinds.TF_JOB, Chief=1, PS=2, Worker=2), "spec.enableDynamicWorker", True)
    config = tf_config(job, replica, index)
    assert config == {"cluster": cluster, "task": {"type": replica.lower(), "index": index}}


def test_xgboost_with_workers_of_none(make_job):
    found = variables(make_job(kinds.XGBOOST_JOB, Master=1, Worker=0), kinds.XGBOOST_JOB, "Master")
    assert found == {
        "MASTER_PORT": "9999",
        "MASTER_ADDR": "job-master-0",
        "WORLD_SIZE": "1",
        "RANK": "0",
        "PYTHONUNBUFFERED": "1",
    }


@pytest.mark.parametrize(
    ("limits", "hidden"),
    [
        ({"cpu": "1"}, True),
        ({"nvidia.com/gpu": 1}, False),
        ({"amd.com/gpu": 1}, False),
        ({"nvidia.com/mig-1g.5gb": 1}, False),
    ],
)
def test_a_launcher_without_gpus_sees_none(make_job, changed, limits, hidden):
    at = "spec.mpiReplicaSpecs.Launcher.template.spec.containers.0.resources"
    job = changed(make_job(kinds.MPI_JOB, Launcher=1, Worker=2), at, {"limits": limits})
    found = variables(job, kinds.MPI_JOB, "Launcher")
    assert ("NVIDIA_VISIBLE_DEVICES" in found) == hidden
    assert found["OMPI_MCA_plm_rsh_agent"] == found["I_MPI_HYDRA_BOOTSTRAP_EXEC"] == "/etc/mpi/kubexec.sh"
    assert variables(job, kinds.MPI_JOB, "Worker") == {}


@pytest.mark.parametrize("kind", kinds.KINDS, ids=lambda kind: kind.kind)
def test_names_are_known_without_building_two_billion_addresses(make_job, kind):
    types = dict.fromkeys(kind.leaders[:1], 1)
    small, huge = (make_job(kind, **types, Worker=count) for count in (3, 2**31 - 1))
    for name in (*types, "Worker"):
        expected = set(variables(small, kind, name))
        assert env.variable_names(Job(kind, defaults.default(kind, huge)), name) == expected


def test_a_number_of_thousands_of_digits_is_none(make_job, changed):
    job = changed(make_job(Master=1), "spec.nprocPerNode", "9" * 5000)
    assert variables(job, kinds.PYTORCH_JOB, "Master")["WORLD_SIZE"] == "1"


def test_every_variable_begins_with_a_known_prefix(make_job):
    """The prefixes let most manifests pass without building any variable."""
    types = {"Master": 1, "Worker": 2}
    for kind in kinds.KINDS:
        names = [row.name for row in kind.types] or list(types)
        job = Job(kind, defaults.default(kind, make_job(kind, **dict.fromkeys(names, 2))))
        for name in names:
            assert all(variable.startswith(env.PREFIXES) for variable in env.variable_names(job, name)), kind.kind
