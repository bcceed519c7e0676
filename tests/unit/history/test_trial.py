"""A pasted policy: read within bounds, tried on what was submitted, shown as text."""

from datetime import UTC, datetime
from html import escape

import pytest

from history import details
from history.api.app import HEADERS, create_app
from history.web import trial
from schemas.records import Admission

CAP = (
    "apiVersion: signalbox.dev/v1\nkind: TrainingPolicy\nmetadata: {name: cap}\nspec: {limits: {replicas: {max: 1}}}\n"
)
SELECTOR = CAP.replace("spec: {", "spec: {match: {namespaceSelector: {matchLabels: {a: b}}}, ")
SCRIPT = "<script>alert(1)</script>"
LONG_AGO = datetime(2026, 1, 1, tzinfo=UTC).replace(tzinfo=None)


@pytest.fixture
def full(store, make_job):
    """Three submissions of two workers each, by a user whose name is a script."""
    for number in range(3):
        said = ("team", "train", "TrainingJob", "CREATE", "allowed")
        obj = make_job(f"j{number}")
        obj["metadata"] = {"name": "train", "namespace": "team"}
        store.save([details.submitted(Admission(datetime.now(UTC), f"r{number}", "", SCRIPT, (), *said, object=obj))])
    return store


@pytest.fixture
def post(full):
    client = create_app(full).test_client()
    return lambda policy, **form: client.post("/policy/what-if", data={"policy": policy, "since": "3650d", **form})


def test_the_answer_names_jobs_users_and_rules_as_text(post):
    answer = post(CAP + f"# {SCRIPT}")
    assert answer.status_code == 200
    assert answer.text.count("must be at most 1 replicas in all, says limit replicas of policy cap (got 2)") == 3
    assert SCRIPT not in answer.text
    assert answer.text.count(escape(SCRIPT)) == 4  # three users, and the text to be changed
    assert answer.headers["Content-Security-Policy"] == HEADERS["Content-Security-Policy"]


def test_a_policy_that_asks_for_labels_is_left_out(post):
    text = post(SELECTOR).text
    assert "Policy cap was not evaluated" in text
    assert "says limit replicas" not in text


@pytest.mark.parametrize(
    ("written", "said"),
    [
        ("", "must hold a TrainingPolicy"),
        ("kind: Job", "must hold a TrainingPolicy"),
        ("a: [", "must be YAML"),
        ("[" * 60_000, "must be YAML"),
        ("a: &x [1]\nb: *x", "aliases are not taken"),
        ("? {a: b}\n: c", "must be YAML"),
        ("a: !!binary eA==", "must be YAML"),
        ("a: !!python/object:os.system {}", "must be YAML"),
        ("#" * (trial.MOST_TEXT + 1), "must be at most 65536 characters"),
        (CAP.replace("max: 1", "max: x"), "cap: spec.limits.replicas.max: must be an integer"),
        (CAP.replace("name: cap", ""), "metadata.name: must be set"),
        (CAP + "---\n" + CAP, "differ from the others"),
    ],
)
def test_what_is_no_policy_is_told_with_the_text(post, written, said):
    answer = post(written)
    assert answer.status_code == 422
    assert said in answer.text


def test_a_body_that_is_too_large_is_not_read(post):
    assert post("x" * (trial.MOST_BODY + 1)).status_code == 413


@pytest.mark.parametrize(("since", "status"), [("1d", 200), ("yesterday", 400)])
def test_the_span(post, since, status):
    assert post(CAP, since=since).status_code == status


def test_bounds_of_number_and_time(full, monkeypatch):
    monkeypatch.setattr(trial, "MOST_SHOWN", 1)
    found = trial.tried(full, CAP, LONG_AGO)
    assert (found.complete, found.sums.words["refused"], len(found.shown)) == (True, 3, 1)
    monkeypatch.setattr(trial, "MOST_SUBMISSIONS", 2)
    assert (trial.tried(full, CAP, LONG_AGO).complete, trial.tried(full, CAP, LONG_AGO).sums.submissions) == (False, 2)
    monkeypatch.setattr(trial, "SECONDS", -1.0)
    policies, _ = trial.read(CAP)
    late = trial._tried(full, policies, LONG_AGO)
    assert (late.complete, late.sums.submissions) == (False, 0)


def test_times_stay_texts():
    written = CAP.replace(
        "limits:", "exceptions: [{match: {users: [a]}, until: 2027-01-01T00:00:00Z, reason: r}], limits:"
    )
    policies, faults = trial.read(written)
    assert faults == []
    assert policies[0].exemptions[0].until == datetime(2027, 1, 1, tzinfo=UTC)


def test_one_trial_at_a_time(full, monkeypatch):
    monkeypatch.setattr(trial, "SECONDS", 0.01)
    with trial._one_at_a_time:
        answer = create_app(full).test_client().post("/policy/what-if", data={"policy": CAP})
    assert answer.status_code == 503
    assert "Another policy is being tried" in answer.text
