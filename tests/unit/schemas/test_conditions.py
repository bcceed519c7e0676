"""The state machine: every combination of facts gives exactly one true state, and legal conditions after any others."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from schemas import conditions, kinds
from schemas.conditions import Facts

KIND = kinds.TRAINING_JOB
FACTS = st.builds(
    Facts,
    ended=st.sampled_from(["", "Succeeded", "Failed"]),
    reason=st.sampled_from(["", "DeadlineExceeded"]),
    message=st.just("m"),
    suspend=st.booleans(),
    has_children=st.booleans(),
    replacing=st.sampled_from(["", "pod x is replaced"]),
    scaling=st.booleans(),
    all_running=st.booleans(),
)


@pytest.mark.parametrize(
    ("facts", "state", "reason"),
    [
        (Facts(), "Pending", "JobPending"),
        (Facts(all_running=True), "Running", "JobRunning"),
        (Facts(all_running=True, scaling=True), "Scaling", "JobScaling"),
        (Facts(all_running=True, scaling=True, replacing="x"), "Restarting", "JobRestarting"),
        (Facts(suspend=True, has_children=True, replacing="x"), "Pending", "JobSuspending"),
        (Facts(suspend=True), "Suspended", "JobSuspended"),
        (Facts(suspend=True, ended="Failed", reason="PodFailed"), "Failed", "PodFailed"),
        (Facts(ended="Succeeded", all_running=True), "Succeeded", "JobSucceeded"),
    ],
)
def test_the_first_state_that_holds(facts, state, reason):
    [created, row] = conditions.advanced(KIND, [], facts, "t")
    assert (created["type"], created["status"]) == ("Created", "True")
    assert (row["type"], row["status"], row["reason"]) == (state, "True", reason)


@pytest.mark.parametrize(
    ("reason", "on_kubeflow"),
    [
        ("JobCreated", "PyTorchJobCreated"),
        ("JobRunning", "PyTorchJobRunning"),
        ("JobRestarting", "PyTorchJobRestarting"),
        ("JobSucceeded", "PyTorchJobSucceeded"),
        ("JobSuspended", "PyTorchJobSuspended"),
        ("JobResumed", "PyTorchJobResumed"),
        ("JobFailed", "PyTorchJobFailed"),
        ("PodFailed", "PyTorchJobFailed"),
        ("PermanentExitCode", "PyTorchJobFailed"),
        ("JobPending", "JobPending"),
        ("JobSuspending", "JobSuspending"),
        ("JobScaling", "JobScaling"),
        ("BackoffLimitExceeded", "BackoffLimitExceeded"),
        ("DeadlineExceeded", "DeadlineExceeded"),
    ],
)
def test_reasons_carry_the_kind_on_kubeflow_kinds(reason, on_kubeflow):
    assert conditions.reason_of(kinds.PYTORCH_JOB, reason) == on_kubeflow
    assert conditions.reason_of(KIND, reason) == reason


def test_times_change_with_what_they_tell():
    rows = conditions.advanced(KIND, [], Facts(waiting="a"), "t1")
    rows = conditions.advanced(KIND, rows, Facts(waiting="b"), "t2")
    assert (rows[-1]["lastUpdateTime"], rows[-1]["lastTransitionTime"]) == ("t2", "t1")
    rows = conditions.advanced(KIND, rows, Facts(all_running=True), "t3")
    assert [(row["type"], row["status"], row["lastTransitionTime"]) for row in rows] == [
        ("Created", "True", "t1"),
        ("Pending", "False", "t3"),
        ("Running", "True", "t3"),
    ]
    assert conditions.advanced(KIND, rows, Facts(all_running=True), "t4") == rows


def test_a_false_condition_says_why_it_no_longer_holds():
    rows = conditions.advanced(KIND, [], Facts(all_running=True), "t1")
    rows = conditions.advanced(KIND, rows, Facts(ended="Failed", reason="DeadlineExceeded", message="too long"), "t2")
    ran = conditions.find(rows, "Running")
    assert (ran["status"], ran["reason"], ran["message"]) == ("False", "DeadlineExceeded", "too long")


def test_the_true_state_moves_to_the_end():
    rows = conditions.advanced(KIND, [], Facts(all_running=True), "t1")
    rows = conditions.advanced(KIND, rows, Facts(replacing="x"), "t2")
    rows = conditions.advanced(KIND, rows, Facts(all_running=True), "t3")
    assert [(row["type"], row["status"]) for row in rows] == [
        ("Created", "True"),
        ("Restarting", "False"),
        ("Running", "True"),
    ]


def test_a_resume_is_the_reason_why_suspended_is_false():
    rows = conditions.advanced(KIND, [], Facts(suspend=True), "t1")
    rows = conditions.advanced(KIND, rows, Facts(), "t2")
    assert conditions.find(rows, "Suspended")["reason"] == "JobResumed"


def test_blocked_stands_beside_the_state():
    rows = conditions.advanced(KIND, [], Facts(), "t1")
    assert conditions.with_blocked(rows, blocked=False, reason="x", message="", now="t") == rows
    rows = conditions.with_blocked(rows, blocked=True, reason="QuotaExceeded", message="m", now="t2")
    assert [(row["type"], row["status"]) for row in rows[1:]] == [("Blocked", "True"), ("Pending", "True")]
    rows = conditions.advanced(KIND, rows, Facts(all_running=True), "t3")
    assert conditions.is_true(rows, "Blocked")
    rows = conditions.advanced(KIND, rows, Facts(ended="Failed"), "t4")
    assert not conditions.is_true(rows, "Blocked")


@given(st.lists(FACTS, min_size=1, max_size=6))
def test_after_any_history_exactly_one_state_is_true_and_last(history):
    rows = []
    for step, facts in enumerate(history):
        rows = conditions.advanced(KIND, rows, facts, f"t{step}")
        states = [row["type"] for row in rows if row["status"] == "True"]
        assert states == ["Created", conditions.state_of(facts).type]
        assert rows[-1]["type"] == states[-1]
        assert len({row["type"] for row in rows}) == len(rows)
        assert conditions.advanced(KIND, rows, facts, "later") == rows
