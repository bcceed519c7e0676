"""Failed and lost pods: the whole table, the counting, the delays, and what survives a crash."""

import pytest

POLICIES = ("Never", "OnFailure", "Always", "ExitCode")
FAIL, REPLACE = "fail", "replace"


def outcome(job):
    """What has become of worker 0: the job failed, or the pod is being replaced, and the counted restarts."""
    return (FAIL if job.state == "Failed" else REPLACE, job.status.get("restartsCounted", 0))


def started(world, policy, **run_policy):
    world.type("Master").type("Worker", 2, policy).policy(**run_policy)
    return world.settle().runs().settle()


@pytest.mark.parametrize(
    ("code", "exit_code_policy"),
    [
        (1, FAIL),
        (2, FAIL),
        (126, FAIL),
        (127, FAIL),
        (128, REPLACE),
        (130, REPLACE),
        (134, REPLACE),
        (137, REPLACE),
        (139, REPLACE),
        (143, REPLACE),
        (255, REPLACE),
    ],
)
@pytest.mark.parametrize("policy", POLICIES)
def test_the_exit_code_table(pytorch, policy, code, exit_code_policy):
    """kubeflow/website#443"""
    job = started(pytorch, policy).ends("worker-0", code).settle()
    expected = {"Never": FAIL, "ExitCode": exit_code_policy}.get(policy, REPLACE)
    assert outcome(job) == ((FAIL, 0) if expected is FAIL else (REPLACE, 1))


@pytest.mark.parametrize(
    ("how", "never", "others", "counted"),
    [
        ({"reason": "Evicted"}, FAIL, REPLACE, 0),
        ({"reason": "Preempting"}, FAIL, REPLACE, 0),
        ({"reason": "NodeShutdown"}, FAIL, REPLACE, 0),
        ({"reason": "Terminated"}, FAIL, REPLACE, 0),
        ({"reason": "UnexpectedAdmissionError"}, FAIL, REPLACE, 1),
        ({"reason": "OutOfcpu"}, FAIL, REPLACE, 1),
        ({"reason": "NodeAffinity"}, FAIL, REPLACE, 1),
        ({}, FAIL, REPLACE, 1),
        (
            {"conditions": [{"type": "DisruptionTarget", "status": "True", "reason": "PreemptionByScheduler"}]},
            FAIL,
            REPLACE,
            0,
        ),
    ],
)
@pytest.mark.parametrize("policy", POLICIES)
def test_pods_that_failed_without_an_exit_code(pytorch, policy, how, never, others, counted):
    """kubeflow/trainer#1570, kubedl-io/kubedl#225"""
    job = started(pytorch, policy).fails("worker-0", **how).settle()
    expected = never if policy == "Never" else others
    assert outcome(job) == ((FAIL, 0) if expected is FAIL else (REPLACE, counted))


@pytest.mark.parametrize("policy", POLICIES)
def test_a_deleted_pod_is_replaced_under_every_policy(pytorch, policy):
    """kubeflow/trainer#156"""
    job = started(pytorch, policy)
    job.vanishes("worker-1").settle()
    assert (job.state, job.status["restarts"], job.status.get("restartsCounted", 0)) == ("Restarting", 1, 0)
    assert "worker-1" in job.names
    assert ("Warning", "PyTorchJobRestarting", "the pod of Worker 1 was deleted: it is replaced.") in job.events
    assert job.runs("worker-1").settle().state == "Running"


def test_a_disruption_wins_over_the_exit_code(pytorch):
    job = started(pytorch, "ExitCode")
    job.ends("worker-0", 1, conditions=[{"type": "DisruptionTarget", "status": "True"}]).settle()
    assert outcome(job) == (REPLACE, 0)


@pytest.mark.parametrize(
    ("policy", "reason"),
    [("Never", "PyTorchJobFailed"), ("ExitCode", "PyTorchJobFailed")],
)
def test_the_reason_names_pod_type_container_and_code(pytorch, policy, reason):
    """kubeflow/trainer#2044"""
    job = started(pytorch, policy).ends("worker-1", 1).settle()
    message = "The job failed: pod job-worker-1 (Worker 1) container pytorch failed with exit code 1."
    assert (job.reason, job.message) == (reason, message)
    assert job.status["restarts"] == 0
    assert job.condition("Restarting") is None
    assert job.status["completionTime"]


def test_out_of_memory_is_named(training):
    job = training.type("Worker", 1, "ExitCode").settle().runs().ends("worker-0", 137, "OOMKilled").settle()
    [entry] = job.status["restartHistory"]
    assert (entry["reason"], entry["exitCode"], entry["index"], entry["counted"]) == ("OOMKilled", 137, 0, True)
    assert "exit code 137 (OOMKilled)" in job.events[-1][2]


def test_a_replaced_pod_keeps_its_name_and_the_others_their_uids(pytorch):
    """kubeflow/common#186"""
    job = started(pytorch, "ExitCode")
    before = {name: job.uid(name) for name in job.names}
    job.ends("worker-0", 137).settle()
    assert job.state == "Restarting"
    after = {name: job.uid(name) for name in job.names}
    assert [name for name in before if before[name] != after[name]] == ["worker-0"]
    assert job.runs("worker-0").settle().state == "Running"
    assert job.replica("Worker")["failed"] == 1


def test_the_failed_pod_is_deleted_only_after_its_count_is_stored(training):
    job = training.type("Worker", 1, "ExitCode").settle().runs().settle().ends("worker-0", 137)
    uid = job.uid("worker-0")
    job.step()
    assert (job.status["pendingRestarts"], job.status["restartsCounted"], job.uid("worker-0")) == ([uid], 1, uid)
    job.settle()
    assert (job.status.get("pendingRestarts"), job.status["restartsCounted"]) == (None, 1)
    assert job.uid("worker-0") != uid


@pytest.mark.parametrize(("limit", "pods"), [(0, 1), (1, 2), (2, 3)])
def test_backoff_limit_counts_retries(training, limit, pods):
    """kubeflow/common#167: the limit is retries, as batch/v1 means it."""
    job = training.type("Worker", 1, "ExitCode").policy(backoffLimit=limit).settle()
    for _ in range(pods):
        assert job.state != "Failed"
        job.runs().ends("worker-0", 137).settle().later(400).settle()
    assert (job.state, job.reason) == ("Failed", "BackoffLimitExceeded")
    assert (job.created.count("job-worker-0"), job.status["restarts"]) == (pods, limit)


def test_restarts_in_place_count_toward_the_limit(training):
    job = training.type("Worker", 2, "OnFailure").policy(backoffLimit=3).settle().runs()
    job.restarts_in_place("worker-0", 2).restarts_in_place("worker-1", 1).settle()
    assert job.state == "Running"
    job.restarts_in_place("worker-1", 2).settle()
    assert job.reason == "BackoffLimitExceeded"


def test_restarts_in_place_are_kept_when_their_pod_is_replaced(training):
    job = training.type("Worker", 1, "OnFailure").settle().runs().restarts_in_place("worker-0", 2)
    job.fails("worker-0", containerStatuses=[{"name": "main", "restartCount": 2}]).settle()
    assert (job.status["restarts"], job.status["restartsCounted"]) == (3, 3)


def test_disruptions_use_up_nothing(training):
    """kubernetes-sigs/kueue#4406"""
    job = training.type("Worker", 1, "OnFailure").policy(backoffLimit=0).settle()
    for _ in range(5):
        job.runs().fails("worker-0", reason="Evicted").settle()
    assert (job.state, job.status["restarts"], job.status.get("restartsCounted", 0)) == ("Restarting", 5, 0)
    assert job.created.count("job-worker-0") == 6
    job.runs().ends("worker-0", 137).settle()
    assert job.reason == "BackoffLimitExceeded"


def test_the_delay_grows_and_the_failed_pod_stays_meanwhile(training):
    """kubernetes/kubernetes#27997: at once, then 10 s, 20 s, 40 s, at most 6 min."""
    job = training.type("Worker", 1, "ExitCode").settle()
    for attempt, delay in enumerate([0, 10, 20, 40, 80, 160, 320, 360, 360], start=1):
        job.runs().later(1).ends("worker-0", 137).settle()
        if delay:
            failed = job.uid("worker-0")
            assert job.later(delay - 1).settle().uid("worker-0") == failed
            assert job.wake is not None
            job.later(1).settle()
        assert job.pod("worker-0")["metadata"]["annotations"]["signalbox.dev/attempt"] == str(attempt)


def test_the_delay_starts_again_after_ten_healthy_minutes(training):
    job = training.type("Worker", 1, "ExitCode").settle()
    job.runs().ends("worker-0", 137).settle().runs().later(601).ends("worker-0", 137).settle()
    assert job.pod("worker-0")["metadata"]["annotations"]["signalbox.dev/attempt"] == "1"


def test_few_pods_in_ten_minutes(training):
    job = training.type("Worker", 1, "ExitCode").settle()
    for _ in range(600):
        if job.pods and job.pod("worker-0")["status"]["phase"] == "Pending":
            job.runs().later(1).ends("worker-0", 137)
        job.settle().later(1)
    assert job.created.count("job-worker-0") < 10


def test_an_init_container_that_fails_gives_the_code(training):
    job = training.type("Worker", 1, "ExitCode").settle()
    ended = {"name": "setup", "state": {"terminated": {"exitCode": 2}}, "restartCount": 0}
    job.fails("worker-0", initContainerStatuses=[ended]).settle()
    assert "container setup failed with exit code 2" in job.message


@pytest.mark.parametrize(
    ("pod_policy", "code", "state"),
    [
        ("Never", 0, "Succeeded"),
        ("OnFailure", 0, "Succeeded"),
        ("Always", 0, "Running"),
        ("Never", 1, "Failed"),
        ("OnFailure", 1, "Running"),
        ("Always", 1, "Running"),
    ],
)
def test_a_sidecar_that_never_ends(training, pod_policy, code, state):
    """kubeflow/trainer#1183"""
    job = training.type("Worker", 1, pod_policy).settle().runs().settle()
    job.ends("worker-0", code, phase="Running").settle()
    assert job.state == state


def test_a_sidecars_code_never_counts(training):
    job = training.type("Worker", 1, "ExitCode").settle().runs().ends("worker-0", 137)
    job.pod("worker-0")["status"]["containerStatuses"].append(
        {"name": "proxy", "state": {"terminated": {"exitCode": 1}}}
    )
    assert outcome(job.settle()) == (REPLACE, 1)


RULES = [
    {"codes": [3], "action": "Fail"},
    {"range": "40-50", "action": "Ignore"},
    {"codes": [137], "action": "Restart", "replicaTypes": ["Master"]},
]


@pytest.mark.parametrize(
    ("code", "policy", "expected"),
    [
        (3, "ExitCode", (FAIL, 0)),
        (45, "ExitCode", (REPLACE, 0)),
        (51, "ExitCode", (FAIL, 0)),
        (137, "Never", (FAIL, 0)),
        (40, "Never", (REPLACE, 0)),
    ],
)
def test_exit_code_rules_come_before_the_table(pytorch, code, policy, expected):
    job = started(pytorch, policy, exitCodeRules=RULES).ends("worker-0", code).settle()
    assert outcome(job) == expected


def test_restarting_the_whole_job(training):
    job = training.type("Worker", 3, "Never").policy(exitCodeRules=[{"codes": [9], "action": "RestartJob"}])
    job.settle().runs().settle()
    before = {job.uid(name) for name in job.names}
    job.ends("worker-2").settle().ends("worker-0", 9).settle()
    assert job.state == "Restarting"
    assert (job.status["round"], job.status["restarts"], job.status["restartsCounted"]) == (1, 1, 1)
    assert len(job.names) == 3
    assert before & {job.uid(name) for name in job.names} == set()
    assert {pod["metadata"]["annotations"]["signalbox.dev/round"] for pod in job.pods.values()} == {"1"}
    job.runs().settle()
    assert job.state == "Running"
    assert job.replica("Worker").get("succeeded", 0) == 0


def test_the_leaders_success_beats_a_failure_in_the_same_moment(pytorch):
    """kubeflow/trainer#751"""
    job = started(pytorch, "Never").ends("worker-1", 1).ends("master-0").settle()
    assert (job.state, job.replica("Worker")["failed"]) == ("Succeeded", 1)


@pytest.mark.parametrize("disrupted", [True, False])
def test_a_container_that_ended_after_the_deletion_has_no_code(pytorch, disrupted):
    job = started(pytorch, "ExitCode").leaves("worker-0").later(1)
    status = {"conditions": [{"type": "DisruptionTarget", "status": "True", "reason": "EvictionByEvictionAPI"}]}
    job.ends("worker-0", 1, **(status if disrupted else {})).settle()
    assert outcome(job) == (REPLACE, 0)
    job.vanishes("worker-0").settle()
    assert (job.status["restarts"], job.state) == (1, "Restarting")
    assert "worker-0" in job.names


def test_a_success_after_the_deletion_does_not_count(training):
    job = training.type("Worker", 1, "OnFailure").settle().runs().settle().leaves("worker-0").later(1)
    job.ends("worker-0").settle()
    assert job.state != "Succeeded"
    assert job.vanishes("worker-0").settle().names == ["worker-0"]


def test_a_terminating_pod_is_waited_for(training):
    """kubeflow/trainer#956: never two pods of one index; an Event says at once which is lost."""
    job = training.type("Worker", 2, "OnFailure").settle().runs().settle().leaves("worker-1").settle()
    told = "pod job-worker-1 (Worker 1) was deleted: it is replaced."
    assert (job.state, job.events[-1]) == ("Restarting", ("Warning", "JobRestarting", told))
    assert job.message == "pod job-worker-1 (Worker 1) is being deleted and is being replaced."
    assert [name for name in job.created if name != "job"] == ["job-worker-0", "job-worker-1"]
    assert job.replica("Worker")["active"] == 2
    assert job.later(600).settle().names == ["worker-0", "worker-1"]
    assert job.vanishes("worker-1").settle().names == ["worker-0", "worker-1"]
    assert (job.status["restarts"], job.status.get("restartsCounted", 0)) == (1, 0)


def test_a_lost_node_makes_the_pod_no_running_one(training):
    """kubeflow/trainer#956"""
    job = training.type("Worker", 2, "OnFailure").settle().runs().settle()
    job.pod("worker-0")["status"]["reason"] = "NodeLost"
    assert (job.settle().state, job.reason, job.replica("Worker")["active"]) == ("Pending", "NodeLost", 1)
    told = ("Warning", "NodeLost", "pod job-worker-0 (Worker 0): the node does not answer.")
    assert job.events[-1] == told
    assert "pending" not in job.replica("Worker")
    del job.pod("worker-0")["status"]["reason"]
    assert job.settle().state == "Running"
    job.pod("worker-0")["status"]["reason"] = "NodeLost"
    job.leaves("worker-0").settle()
    assert (job.state, job.status["restartHistory"][-1]["reason"]) == ("Restarting", "NodeLost")
    assert job.vanishes("worker-0").settle().names == ["worker-0", "worker-1"]


@pytest.mark.parametrize(("policy", "expected"), [("Never", (FAIL, 0)), ("OnFailure", (REPLACE, 0))])
def test_an_eviction_is_one_whether_or_not_the_end_of_its_container_is_seen(pytorch, policy, expected):
    """kubernetes-sigs/kueue#4406"""
    job = started(pytorch, policy).leaves("worker-0")
    job.pod("worker-0")["status"]["conditions"] = [
        {"type": "DisruptionTarget", "status": "True", "reason": "EvictionByEvictionAPI"}
    ]
    assert outcome(job.settle()) == expected


def test_a_pod_scaled_away_and_wanted_again_is_not_lost(training):
    """kubeflow/trainer#2070"""
    job = training.type("Worker", 2, "OnFailure").settle().runs().settle()
    job.slow_deletes = True
    job.scale("Worker", 1).settle()
    job.scale("Worker", 2).settle().ends("worker-1", 143).settle()
    assert (job.status["restarts"], job.status["replicaStatuses"]["Worker"].get("failed", 0)) == (0, 0)
    job.slow_deletes = False
    job.vanishes("worker-1").settle().runs().settle()
    assert (job.state, job.status["restarts"]) == ("Running", 0)


def test_one_pods_fatal_failure_does_not_hide_behind_anothers_restart(training):
    """kubedl-io/kubedl#36"""
    rules = [{"codes": [9], "action": "RestartJob"}]
    job = training.type("Worker", 3, "ExitCode").policy(exitCodeRules=rules).settle().runs().settle()
    job.ends("worker-0", 137).ends("worker-1", 9).ends("worker-2", 1).settle()
    assert (job.state, job.reason, job.replica("Worker")["failed"]) == ("Failed", "PermanentExitCode", 3)


def test_restarting_the_whole_job_keeps_the_restarts_made_in_place(training):
    rules = [{"codes": [9], "action": "RestartJob"}]
    job = training.type("Worker", 2, "OnFailure").policy(exitCodeRules=rules, backoffLimit=9).settle().runs()
    job.restarts_in_place("worker-1", 3).settle().ends("worker-0", 9).settle()
    assert (job.status["restarts"], job.status["restartsCounted"]) == (4, 4)


def test_more_failures_than_the_status_may_list_are_counted_one_after_the_other(training):
    """nolar/kopf#1087: the size of a status is bounded."""
    job = training.type("Worker", 600, "ExitCode").settle().runs().settle()
    for index in range(600):
        job.ends(f"worker-{index}", 137)
    job.step()
    assert len(job.status["pendingRestarts"]) == 500
    job.settle()
    assert (job.status["restartsCounted"], len(job.names), job.state) == (600, 600, "Restarting")


@pytest.mark.parametrize("ahead", [0, 3600])
def test_no_delay_is_longer_than_the_longest_whatever_the_clocks_say(training, ahead):
    job = training.type("Worker", 1, "ExitCode").settle().runs().ends("worker-0", 137).settle()
    first = job.uid("worker-0")
    job.later(ahead).runs().ends("worker-0", 137).later(-ahead).settle()  # the node's clock runs ahead of ours
    job.later(-86400).settle()
    assert job.later(10).settle().uid("worker-0") != first


@pytest.mark.parametrize(
    ("policy", "index", "expected"),
    [("Always", 1, (REPLACE, 1)), (None, 0, (FAIL, 0))],
    ids=["a sidecar", "an ordinary init container"],
)
def test_which_init_containers_code_counts(training, policy, index, expected):
    """kubernetes/kubernetes#121319: a sidecar is an init container that is restarted always."""
    inits = [{"name": "setup", "image": "i"}, {"name": "proxy", "image": "i", "restartPolicy": "Always"}]
    job = training.type("Worker", 1, "ExitCode", initContainers=inits).settle()
    name = inits[index]["name"]
    ended = {"name": name, "state": {"terminated": {"exitCode": 2}}, "restartCount": 0}
    assert outcome(job.fails("worker-0", initContainerStatuses=[ended]).settle()) == expected


def test_a_container_that_has_run_before_hides_the_codes_of_init_containers(training):
    job = training.type("Worker", 1, "ExitCode", initContainers=[{"name": "setup", "image": "i"}]).settle().runs()
    done = {"name": "setup", "state": {"terminated": {"exitCode": 2}}}
    main = {"name": "main", "state": {"waiting": {}}, "lastState": {"terminated": {"exitCode": 3}}, "restartCount": 1}
    job.fails("worker-0", initContainerStatuses=[done], containerStatuses=[main]).settle()
    assert outcome(job) == (REPLACE, 2)


@pytest.mark.parametrize("written", ["1" * 5000, "¹", "-1", "x"])
def test_an_annotation_that_is_no_number_counts_as_absent(training, written):
    job = training.type("Worker", 1, "ExitCode").settle().runs()
    job.pod("worker-0")["metadata"]["annotations"] = {"signalbox.dev/attempt": written, "signalbox.dev/round": written}
    assert outcome(job.ends("worker-0", 137).settle()) == (REPLACE, 1)
