"""Who decides that a job has succeeded: every kind, with and without its leader (kubeflow/trainer#751, #1188)."""

import pytest

from controller import success
from schemas import defaults, kinds
from schemas.job import Job


def job_of(kind, types, **spec):
    entry = {"template": {"spec": {"containers": [{"name": kind.container, "image": "img"}]}}}
    entries = {name: {**entry, "replicas": count} for name, count in types.items()}
    raw = {"metadata": {"name": "job"}, "spec": {kind.spec_key: entries, **spec}}
    return Job(kind, defaults.default(kind, raw))


TF, PT, XGB = kinds.TF_JOB, kinds.PYTORCH_JOB, kinds.XGBOOST_JOB
PADDLE, JAX, MPI, OWN = kinds.PADDLE_JOB, kinds.JAX_JOB, kinds.MPI_JOB, kinds.TRAINING_JOB
W = "Worker"

# kind, types, further spec, the replicas that decide, whether any one of them is enough
DECIDERS = [
    (TF, {"Chief": 1, W: 2, "PS": 1}, {}, [("Chief", 0)], False),
    (TF, {"Master": 1, W: 2}, {}, [("Master", 0)], False),
    (TF, {"Chief": 1, W: 2}, {"successPolicy": "AllWorkers"}, [("Chief", 0)], False),
    (TF, {W: 2, "PS": 2, "Evaluator": 1}, {}, [(W, 0)], False),
    (TF, {W: 2, "PS": 2}, {"successPolicy": ""}, [(W, 0)], False),
    (TF, {W: 2, "PS": 2}, {"successPolicy": "AllWorkers"}, [(W, 0), (W, 1)], False),
    (TF, {W: 2}, {"successPolicy": 3}, [(W, 0)], False),
    (TF, {W: 0, "PS": 2}, {}, [], False),
    (TF, {"PS": 2}, {}, [], False),
    (PT, {"Master": 1, W: 2}, {}, [("Master", 0)], False),
    (PT, {W: 2}, {}, [(W, 0), (W, 1)], False),
    (PT, {W: 2}, {"elasticPolicy": {}}, [(W, 0), (W, 1)], True),
    (XGB, {"Master": 1, W: 2}, {}, [("Master", 0)], False),
    (XGB, {W: 2}, {}, [], False),
    (PADDLE, {"Master": 1, W: 2}, {}, [("Master", 0)], False),
    (PADDLE, {W: 2}, {}, [(W, 0), (W, 1)], False),
    (PADDLE, {W: 2}, {"elasticPolicy": {}}, [(W, 0), (W, 1)], False),
    (JAX, {W: 3}, {}, [(W, 0), (W, 1), (W, 2)], False),
    (MPI, {"Launcher": 1, W: 2}, {}, [("Launcher", 0)], False),
    (MPI, {W: 2}, {}, [], False),
    (OWN, {"chief": 1, W: 1}, {}, [("chief", 0)], False),
    (OWN, {"a": 1, "b": 1}, {}, [("a", 0), ("b", 0)], False),
    (OWN, {"a": 1, "b": 2}, {"successPolicy": {"policy": "AnyReplica", "type": "b"}}, [("b", 0), ("b", 1)], True),
    (OWN, {"Master": 1, "b": 1}, {"successPolicy": {"policy": "AllReplicas"}}, [("Master", 0), ("b", 0)], False),
]


@pytest.mark.parametrize(
    ("kind", "types", "spec", "replicas", "any_one"),
    DECIDERS,
    ids=[f"{row[0].kind}-{'-'.join(row[1])}-{row[2]}" for row in DECIDERS],
)
def test_who_decides(kind, types, spec, replicas, any_one):
    found = success.decision(job_of(kind, types, **spec))
    assert list(found.replicas) == replicas
    assert found.any_one == any_one


@pytest.mark.parametrize(("kind", "types"), [(TF, {"PS": 2}), (XGB, {W: 2}), (MPI, {W: 2})])
def test_nobody_is_never_success(kind, types):
    assert not success.decision(job_of(kind, types)).met_by({(name, 0) for name in types})


@pytest.mark.parametrize(
    ("types", "spec", "ended", "state"),
    [
        ({W: 2, "PS": 1}, {}, ["worker-0"], "Succeeded"),
        ({W: 2, "PS": 1}, {}, ["worker-1"], "Running"),
        ({W: 2, "PS": 1}, {}, ["ps-0"], "Running"),
        ({W: 2, "PS": 1}, {"successPolicy": "AllWorkers"}, ["worker-0"], "Running"),
        ({W: 2, "PS": 1}, {"successPolicy": "AllWorkers"}, ["worker-0", "worker-1"], "Succeeded"),
        ({"Chief": 1, W: 2, "Evaluator": 1}, {}, ["worker-0", "worker-1", "evaluator-0"], "Running"),
        ({"Chief": 1, W: 2, "Evaluator": 1}, {}, ["chief-0"], "Succeeded"),
    ],
)
def test_a_tfjob_lives_until_its_deciders_are_done(new_world, types, spec, ended, state):
    world = new_world(TF)
    for name, count in types.items():
        world.type(name, count)
    world.job["spec"].update(spec)
    world.settle().runs().settle()
    for name in ended:
        world.ends(name)
    assert world.settle().state == state


def test_an_mpijob_ends_with_its_launcher(new_world):
    world = new_world(MPI).type("Launcher").type(W, 2).settle()
    assert world.names == ["launcher", "worker-0", "worker-1"]
    assert world.services == {}
    world.runs().settle().ends("launcher").settle()
    assert (world.state, world.reason) == ("Succeeded", "MPIJobSucceeded")


@pytest.mark.parametrize(
    ("policy", "ends", "state"),
    [
        (None, ["worker-0"], "Succeeded"),
        (None, ["worker-1"], "Running"),
        ("AllWorkers", ["worker-0", "worker-1"], "Running"),
        ("AllWorkers", ["worker-0", "worker-1", "worker-2"], "Succeeded"),
    ],
)
def test_worker_0_stands_for_the_chief_and_parameter_servers_never_end(new_world, policy, ends, state):
    """kubeflow/trainer#751, #634"""
    job = new_world(TF).type("Worker", 3, "Never").type("PS", 1, "Never")
    if policy:
        job.job["spec"]["successPolicy"] = policy
    job.settle().runs().settle()
    for name in ends:
        job.ends(name)
    assert job.settle().state == state
    assert ("ps-0" in job.names) is (state == "Running")
