"""What each replica is told about the others: recorded from the Kubeflow operator, and TrainingJob's own."""

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
