"""The main course of a job, one decision after the other."""

import json

import pytest


def test_a_job_runs_to_its_end(pytorch):
    job = pytorch.type("Master").type("Worker", 2).settle()
    assert job.names == ["master-0", "worker-0", "worker-1"]
    assert sorted(job.services) == ["job-master-0", "job-worker-0", "job-worker-1"]
    assert (job.state, job.reason) == ("Pending", "JobPending")
    assert job.status["startTime"] == "2026-01-01T12:00:00Z"
    assert job.replica("Worker") == {
        "initial": 2,
        "pending": 2,
        "createdIndexes": "0-1",
        "labelSelector": {"matchLabels": job.replica("Worker")["labelSelector"]["matchLabels"]},
        "selector": "training.kubeflow.org/job-name=job,training.kubeflow.org/operator-name=pytorchjob-controller,"
        "training.kubeflow.org/replica-type=worker",
    }

    job.later(5).runs().settle()
    assert (job.state, job.reason, job.status["replicaSummary"]) == ("Running", "PyTorchJobRunning", "3/3")
    assert job.replica("Worker")["active"] == 2

    job.later(5).ends("master-0").settle()
    assert (job.state, job.reason) == ("Succeeded", "PyTorchJobSucceeded")
    assert job.message == "Master 0 has succeeded."
    assert job.status["completionTime"] == "2026-01-01T12:00:10Z"
    assert job.names == ["master-0"]  # cleanPodPolicy Running takes the workers
    assert job.services == {}
    assert job.events == [
        ("Normal", "PyTorchJobRunning", "Every pod is running or has succeeded."),
        ("Normal", "PyTorchJobSucceeded", "Master 0 has succeeded."),
    ]
    assert [row["type"] for row in job.status["conditions"]] == ["Created", "Pending", "Running", "Succeeded"]
    assert job.writes <= 5


def test_an_idle_job_is_silent(pytorch):
    job = pytorch.type("Master").settle().runs().settle()
    writes = job.writes
    for _ in range(10):
        assert not job.later(60).step()
    assert job.writes == writes


def test_nothing_is_created_after_the_end(pytorch):
    job = pytorch.type("Master").type("Worker", 2).settle().runs().settle().ends("master-0").settle()
    before = dict(job.status)
    created = list(job.created)
    job.pods.clear()
    job.services.clear()
    job.later(1000).settle()
    assert job.created == created
    assert job.status["conditions"] == before["conditions"]
    assert job.status["completionTime"] == before["completionTime"]


@pytest.mark.parametrize(
    ("manager", "ours"),
    [
        (None, True),
        ("signalbox.dev/controller", True),
        ("kubeflow.org/training-operator", True),
        ("kueue.x-k8s.io/multikueue", False),
        ("", False),
    ],
)
def test_managed_by(pytorch, manager, ours):
    job = pytorch.type("Master")
    if manager is not None:
        job.policy(managedBy=manager)
    job.settle()
    assert (bool(job.pods), bool(job.status)) == (ours, ours)


def test_a_job_that_is_being_deleted_is_left_alone(pytorch):
    job = pytorch.type("Master")
    job.job["metadata"]["deletionTimestamp"] = "2026-01-01T11:59:00Z"
    assert not job.step()


@pytest.mark.parametrize(
    ("policy", "left", "services"),
    [("All", [], 0), ("Running", ["worker-0"], 0), ("None", ["master-0", "worker-0", "worker-1", "worker-2"], 4)],
)
def test_clean_pod_policy_after_a_failure(pytorch, policy, left, services):
    job = pytorch.type("Master", policy="Never").type("Worker", 3).policy(cleanPodPolicy=policy).settle()
    job.runs("master-0", "worker-1").ends("worker-0").settle()
    job.ends("master-0", 0, phase="Running").fails("master-0").runs("worker-1").settle()
    assert job.state == "Failed"
    assert (job.names if policy != "Running" else [n for n in job.names if n != "master-0"], len(job.services)) == (
        left,
        services,
    )


def test_an_invalid_job_without_pods_is_blocked_and_goes_on_when_edited(pytorch):
    job = pytorch.type("Master")
    job.faults = ("spec.x: must be y (got 1)",)
    job.settle()
    blocked = job.condition("Blocked")
    assert (blocked["status"], blocked["reason"], blocked["message"]) == ("True", "InvalidSpec", job.faults[0])
    assert (job.pods, job.state) == ({}, "Pending")
    job.faults = ()
    job.settle()
    assert (job.names, job.condition("Blocked")["status"]) == (["master-0"], "False")


def test_an_invalid_job_with_pods_runs_on(pytorch):
    job = pytorch.type("Master").settle().runs()
    job.faults = ("spec.x: must be y (got 1)",)
    job.settle()
    assert (job.state, job.condition("Blocked")["status"], job.names) == ("Running", "True", ["master-0"])


def test_a_scheduling_policy_without_a_gang_scheduler_is_told_about_once(training):
    job = training.type("Worker", 1).policy(schedulingPolicy={"queue": "a"}).settle().runs().settle()
    assert [reason for _, reason, _ in job.events] == ["NoGangScheduler", "JobRunning"]


@pytest.mark.parametrize("worst", [False, True])
def test_the_size_of_a_status_does_not_follow_the_number_of_pods(training, worst):
    """nolar/kopf#1087: 2000 workers; at worst every second one has failed, so that no index joins another."""
    job = training.type("Worker", 2000, "ExitCode").settle().runs().settle()
    for index in range(0, 2000, 2) if worst else ():
        job.ends(f"worker-{index}", 137)
    job.step()
    size = len(json.dumps(job.status))
    assert size < (100_000 if worst else 3_000)
