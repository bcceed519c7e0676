"""Deadline, TTL, suspension, success and scaling."""

import pytest

from controller.plan import Obstacle


@pytest.mark.parametrize("policy", ["All", "Running", "None"])
def test_the_deadline_fires_without_any_event(pytorch, policy):
    """kubeflow/trainer#3358"""
    job = pytorch.type("Master").type("Worker", 2).policy(activeDeadlineSeconds=30, cleanPodPolicy=policy)
    job.settle().runs().settle()
    assert (job.wake - job.now).total_seconds() == 30
    assert job.later(29).settle().state == "Running"
    job.later(1).settle()
    assert (job.state, job.reason, job.names) == ("Failed", "DeadlineExceeded", [])


def test_a_lowered_deadline_fires_at_once_and_a_restart_does_not_reset_it(training):
    job = training.type("Worker", 1, "OnFailure").policy(activeDeadlineSeconds=3600).settle().runs().settle()
    job.later(20).ends("worker-0", 137).settle().runs().later(40).settle()
    assert job.policy(activeDeadlineSeconds=30).settle().reason == "DeadlineExceeded"


def test_the_deadline_runs_while_nothing_ever_started(training):
    """kubeflow/trainer#2001"""
    job = training.type("Worker", 1).policy(activeDeadlineSeconds=120).settle()
    waiting = {"waiting": {"reason": "ImagePullBackOff", "message": "not found"}}
    job.pod("worker-0")["status"] = {"phase": "Pending", "containerStatuses": [{"name": "main", "state": waiting}]}
    job.settle()
    assert (job.state, job.message) == ("Pending", "Pod job-worker-0: ImagePullBackOff: not found")
    assert job.later(120).settle().reason == "DeadlineExceeded"


def test_success_before_the_deadline_wins_even_if_seen_late(training):
    job = training.type("Worker", 1).policy(activeDeadlineSeconds=30).settle().runs().settle()
    job.later(29).ends("worker-0").later(100).settle()
    assert job.state == "Succeeded"


def test_success_after_the_deadline_does_not_count(training):
    job = training.type("Worker", 1).policy(activeDeadlineSeconds=30).settle().runs().settle()
    job.later(31).ends("worker-0").settle()
    assert job.reason == "DeadlineExceeded"


@pytest.mark.parametrize(("ttl", "waits"), [(60, 60), (0, 0)])
def test_ttl(training, ttl, waits):
    """kubeflow/trainer#1533"""
    job = training.type("Worker", 1).policy(ttlSecondsAfterFinished=ttl).settle().runs().ends("worker-0").settle()
    if waits:
        assert (job.wake - job.now).total_seconds() == waits
        assert not job.later(waits - 1).settle().deleted_job
        job.later(1).settle()
    assert job.deleted_job


def test_a_changed_ttl_arms_the_timer_again(training):
    job = training.type("Worker", 1).policy(ttlSecondsAfterFinished=60).settle().runs().ends("worker-0").settle()
    job.later(30).policy(ttlSecondsAfterFinished=600).settle()
    assert not job.later(569).settle().deleted_job
    assert job.later(1).settle().deleted_job


def test_a_ttl_added_long_after_the_end(training):
    job = training.type("Worker", 1).settle().runs().ends("worker-0").settle().later(86400)
    assert not job.settle().deleted_job
    assert job.policy(ttlSecondsAfterFinished=60).settle().deleted_job


def test_suspension_removes_all_children_and_resume_starts_as_new(pytorch):
    job = pytorch.type("Master").type("Worker", 2, "OnFailure").settle().runs().ends("worker-1", 137).settle()
    job.runs().later(5).policy(suspend=True, cleanPodPolicy="None")
    job.step()
    assert (job.state, job.reason, len(job.pods)) == ("Pending", "JobSuspending", 3)
    job.settle()
    assert (job.state, job.reason, job.pods, job.services) == ("Suspended", "PyTorchJobSuspended", {}, {})
    assert "startTime" not in job.status

    job.later(60).policy(suspend=False).settle()
    assert job.names == ["master-0", "worker-0", "worker-1"]
    assert job.status["startTime"] == "2026-01-01T12:01:05Z"
    assert job.condition("Suspended")["reason"] == "PyTorchJobResumed"
    assert (job.state, job.status["restarts"]) == ("Pending", 0)
    assert job.runs().settle().state == "Running"


def test_a_job_created_suspended_has_no_child(pytorch):
    job = pytorch.type("Master").policy(suspend=True).settle()
    assert (job.state, job.pods, job.services, job.created) == ("Suspended", {}, {}, [])
    assert [row["type"] for row in job.status["conditions"]] == ["Created", "Suspended"]


def test_quota_is_freed_only_when_pods_are_gone(training):
    job = training.type("Worker", 2).settle().runs("worker-0").settle().policy(suspend=True)
    job.step()
    assert job.replica("Worker")["active"] == 2
    job.leaves("worker-0").leaves("worker-1")
    job.step()
    assert (job.replica("Worker")["active"], job.state) == (2, "Pending")
    job.policy(suspend=False)
    job.step()
    assert job.reason == "JobSuspending"  # a suspension that has begun completes before a resume is acted on
    job.vanishes("worker-0", "worker-1").step()
    assert job.state == "Suspended"
    assert job.settle().names == ["worker-0", "worker-1"]


def test_a_finished_job_ignores_suspend(training):
    job = training.type("Worker", 1).settle().runs().ends("worker-0").settle()
    before = dict(job.status)
    assert job.policy(suspend=True).settle().status == before


def test_a_succeeded_index_is_not_run_again(pytorch):
    """kubeflow/trainer#1997"""
    job = pytorch.type("Master").type("Worker", 2, "OnFailure").settle().runs().ends("worker-1").settle()
    assert job.state == "Running"
    job.vanishes("worker-1").settle()
    assert (job.names, job.state) == (["master-0", "worker-0"], "Running")
    assert (job.replica("Worker")["succeeded"], job.replica("Worker")["succeededIndexes"]) == (1, "1")
    assert job.ends("master-0").settle().state == "Succeeded"


@pytest.mark.parametrize(
    ("success", "ends", "state"),
    [
        (None, ["worker-0"], "Running"),
        (None, ["worker-0", "worker-1", "eval-0"], "Succeeded"),
        ({"policy": "AllReplicas", "type": "Worker"}, ["worker-0", "worker-1"], "Succeeded"),
        ({"policy": "AnyReplica"}, ["eval-0"], "Succeeded"),
        ({"policy": "AnyReplica", "type": "Worker"}, ["eval-0"], "Running"),
        ({"policy": "Leader", "type": "Eval"}, ["eval-0"], "Succeeded"),
    ],
)
def test_success_policies(training, success, ends, state):
    training.type("Worker", 2).type("Eval", 1)
    if success:
        training.job["spec"]["successPolicy"] = success
    job = training.settle().runs().settle()
    for name in ends:
        job.ends(name)
    assert job.settle().state == state


def test_any_elastic_worker_decides(pytorch):
    pytorch.type("Worker", 3).job["spec"]["elasticPolicy"] = {"minReplicas": 1, "maxReplicas": 4}
    assert pytorch.settle().runs().ends("worker-2").settle().state == "Succeeded"


def test_zero_of_zero_is_never_success(pytorch):
    job = pytorch.type("Worker", 0).settle()
    assert job.state == "Pending"


def test_scaling_up_and_down(training):
    job = training.type("Worker", 2).settle().runs().settle()
    kept = [job.uid("worker-0"), job.uid("worker-1")]
    job.scale("Worker", 4).settle()
    assert (job.state, len(job.names)) == ("Scaling", 4)
    assert job.runs("worker-2", "worker-3").settle().state == "Running"
    assert job.replica("Worker")["initial"] == 2
    job.scale("Worker", 2).settle()
    assert (job.state, job.names, job.replica("Worker")["createdIndexes"]) == (
        "Running",
        ["worker-0", "worker-1"],
        "0-1",
    )
    assert [job.uid("worker-0"), job.uid("worker-1")] == kept
    assert (job.status["restarts"], job.replica("Worker").get("failed", 0)) == (0, 0)


@pytest.mark.parametrize(("elastic", "warned"), [(False, True), (True, False)])
def test_running_pods_that_do_not_learn_of_a_scaling_are_warned_about(pytorch, elastic, warned):
    """kubeflow/trainer#1948: WORLD_SIZE of a running pod never changes."""
    pytorch.type("Worker", 1)
    if elastic:
        pytorch.job["spec"]["elasticPolicy"] = {"minReplicas": 1, "maxReplicas": 4}
    job = pytorch.settle().runs().settle().scale("Worker", 2).settle()
    assert [reason for _, reason, _ in job.events[-2:]] == (
        ["JobScaling", "WorldSizeKept"] if warned else ["PyTorchJobRunning", "JobScaling"]
    )


def test_an_obstacle_is_shown_and_passes(training):
    """PaddleFlow/paddle-operator#43"""
    job = training.type("Worker", 2)
    job.obstacle = Obstacle("QuotaExceeded", "exceeded quota: pods=2")
    job.step()
    blocked = job.condition("Blocked")
    assert (job.state, blocked["status"], blocked["reason"]) == ("Pending", "True", "QuotaExceeded")
    job.obstacle = None
    job.settle()
    assert (len(job.names), job.condition("Blocked")["status"], job.status["restarts"]) == (2, "False", 0)


def test_a_pod_that_does_not_go_is_force_deleted_once(training):
    """kubeflow/trainer#956"""
    job = training.type("Worker", 2, "OnFailure").settle().runs().settle()
    first = job.uid("worker-1")
    job.leaves("worker-1", grace=30).later(10**6).settle()
    assert job.uid("worker-1") == first  # by default never
    job.patient(60)
    job.later(30 + 59 - 10**6).settle()
    assert (job.uid("worker-1"), (job.wake - job.now).total_seconds()) == (first, 1)
    job.later(1).settle()
    assert job.uid("worker-1") != first
    assert job.created.count("job-worker-1") == 2


def test_a_force_deleted_pod_that_finalizers_hold_is_left_to_them(training):
    job = training.type("Worker", 1, "OnFailure").settle().runs().settle().leaves("worker-0", grace=0)
    job.patient(0)
    job.later(60).settle()
    assert (job.created.count("job-worker-0"), job.state) == (1, "Restarting")


@pytest.mark.parametrize("ending", ["suspended", "finished"])
def test_pods_that_do_not_go_are_force_deleted_whatever_the_job_waits_for(training, ending):
    job = training.type("Worker", 2).settle().runs().settle().leaves("worker-1")
    job.patient(0)
    job.ends("worker-0", 1) if ending == "finished" else job.policy(suspend=True)
    job.later(60).settle()
    assert "worker-1" not in job.names


def test_a_pod_is_force_deleted_before_its_job_goes(training):
    job = training.type("Worker", 2).policy(ttlSecondsAfterFinished=60).settle().runs().settle().leaves("worker-1")
    job.ends("worker-0", 1).settle().patient(0)
    assert job.later(60).settle().deleted_job
    assert "worker-1" not in job.names


def test_a_completion_in_the_future_is_waited_for_with_one_warning(training):
    job = training.type("Worker", 1).policy(ttlSecondsAfterFinished=60).settle().runs().ends("worker-0").settle()
    job.later(-3600).settle()
    assert job.notices == [
        "status.completionTime 2026-01-01T12:00:00Z is in the future: ttlSecondsAfterFinished counts from then."
    ]
    assert not job.later(3600 + 59).settle().deleted_job
    assert job.later(1).settle().deleted_job
    assert len(job.notices) == 1


def test_a_ttl_beyond_the_calendar_is_never(training):
    job = training.type("Worker", 1).settle().runs().ends("worker-0").settle()
    job.status["completionTime"] = "9999-12-31T23:59:59Z"
    assert not job.policy(ttlSecondsAfterFinished=2**31 - 1).settle().deleted_job


def test_a_finished_job_that_is_suspended_keeps_its_ttl(training):
    """kubeflow/trainer#2159 is about jobs that have not finished: those have no TTL."""
    job = training.type("Worker", 1).policy(ttlSecondsAfterFinished=60).settle().runs().ends("worker-0").settle()
    assert job.policy(suspend=True).later(60).settle().deleted_job


def test_a_suspended_job_has_no_ttl(training):
    """kubeflow/trainer#2159"""
    job = training.type("Worker", 1).policy(suspend=True, ttlSecondsAfterFinished=0).settle().later(9999).settle()
    assert (job.deleted_job, job.state) == (False, "Suspended")


def test_a_missing_completion_time_is_the_end_of_the_last_transition(training):
    """kubeflow/trainer#1553"""
    job = training.type("Worker", 1).policy(ttlSecondsAfterFinished=60).settle().runs().ends("worker-0").settle()
    del job.status["completionTime"]
    assert job.later(60).settle().deleted_job


def test_an_obstacle_that_nobody_meets_any_more_is_over(training):
    """With a deadline, whose timer must not keep it alive."""
    job = training.type("Worker", 2).policy(activeDeadlineSeconds=600).settle()
    job.obstacle = Obstacle("QuotaExceeded", "exceeded quota: pods=2")
    job.scale("Worker", 3).step()
    assert job.condition("Blocked")["status"] == "True"
    job.scale("Worker", 2).settle()
    assert job.condition("Blocked")["status"] == "False"


@pytest.mark.parametrize("at", ["before", "after"])
def test_an_invalid_job_can_be_suspended(training, at):
    job = training.type("Worker", 1)
    if at == "after":
        job.settle().runs().settle()
    job.faults = ("spec.x: must be y (got 1)",)
    job.policy(suspend=True).settle()
    assert (job.state, job.pods, job.services) == ("Suspended", {}, {})


END = {
    "Succeeded": lambda job: job.ends("master-0"),
    "PyTorchJobFailed": lambda job: job.ends("master-0", 1),
    "BackoffLimitExceeded": lambda job: job.policy(backoffLimit=0).ends("worker-0", 137),
    "DeadlineExceeded": lambda job: job.policy(activeDeadlineSeconds=1).later(9),
}
EVERYONE = {"master-0", "worker-0", "worker-1", "worker-2", "worker-3"}


@pytest.mark.parametrize("policy", ["All", "Running", "None"])
@pytest.mark.parametrize("end", END)
def test_every_kind_of_end_and_every_clean_pod_policy(pytorch, end, policy):
    """kubeflow/trainer#3419, #1579, #1191: the same in every kind of end but the deadline, which stops what runs."""
    job = pytorch.type("Master", 1, "Never").type("Worker", 4, "OnFailure").policy(cleanPodPolicy=policy)
    job.settle().runs("master-0", "worker-0", "worker-1", "worker-2").ends("worker-1").settle()  # worker-3 is pending
    END[end](job)
    ended = {name for name in job.names if job.pod(name)["status"]["phase"] in ("Succeeded", "Failed")}
    job.settle()
    expected = {"All": set(), "Running": ended, "None": EVERYONE}[policy]
    if end == "DeadlineExceeded":
        expected = expected & ended
    assert {*job.names} == expected
    assert bool(job.services) is (policy == "None")
    assert job.status["completionTime"]
    assert not job.replica("Worker").get("pending") or policy == "None"


def test_a_pod_is_force_deleted_only_once_its_loss_is_stored(training):
    """A crash in between must not turn an eviction into a deletion by hand."""
    job = training.type("Worker", 1, "OnFailure").settle().runs().settle().leaves("worker-0")
    job.patient(0)
    job.later(3600).step()
    assert (job.names, len(job.status["pendingRestarts"])) == (["worker-0"], 1)
    assert job.settle().created.count("job-worker-0") == 2
