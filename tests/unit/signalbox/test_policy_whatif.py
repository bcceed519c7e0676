"""``signalbox policy what-if`` on a real database of submissions."""

import json
import sqlite3
from datetime import UTC, datetime, timedelta

import pytest
import yaml
from click.testing import CliRunner

from history import details
from history.store import Store
from schemas.records import Admission
from signalbox.run_policy import policy

NOW = datetime.now(UTC).replace(tzinfo=None, microsecond=0)
CAP = {"limits": {"replicas": {"max": 2}}}
FILL = {"defaults": {"runPolicy": {"backoffLimit": 3}}}
ANNS = {"match": {"users": ["ann"]}}
LABELLED = {"match": {"namespaceSelector": {"matchLabels": {"team": "a"}}}}


def submission(review, user="ann", workers=1, namespace="team", name="train", kind="TrainingJob", update=False):
    pod = {"spec": {"containers": [{"name": "main", "image": "i"}]}}
    meta = {"name": name, "namespace": namespace} | ({"resourceVersion": "7"} if update else {})
    spec = {"replicaSpecs": {"Worker": {"replicas": workers, "template": pod}}}
    obj = {"apiVersion": "signalbox.dev/v1", "kind": kind, "metadata": meta, "spec": spec}
    said = (namespace, name, kind, "CREATE", "allowed")
    return details.submitted(Admission(datetime.now(UTC), review, "", user, ("devs",), *said, object=obj))


@pytest.fixture
def url(tmp_path):
    """Four submissions: two large ones, one of them old, a small one, and one of a kind nobody knows."""
    url = f"sqlite:///{tmp_path}/history.db"
    for age, rows in (
        (0, [submission("r1", workers=3), submission("r2", "bob"), submission("r3", kind="OldJob")]),
        (40, [submission("r4", workers=9, name="old", update=True)]),
    ):
        store = Store(url, clock=lambda age=age: NOW - timedelta(days=age))
        store.upgrade()
        store.save(rows)
        store.close()
    return url


@pytest.fixture
def what_if(tmp_path, url):
    """``what_if(spec, option, ...)``: how the command ends and what it says."""

    def run(*arguments, **spec):
        file = tmp_path / "policy.yaml"
        made = {"apiVersion": "signalbox.dev/v1", "kind": "TrainingPolicy", "metadata": {"name": "p"}, "spec": spec}
        file.write_text(yaml.safe_dump(made))
        return CliRunner().invoke(policy, ["what-if", "-f", str(file), "--history-url", url, *arguments])

    return run


def test_who_would_have_been_refused_and_why(what_if):
    done = what_if(**CAP)
    assert done.exit_code == 1
    lines = done.stdout.splitlines()
    assert lines[0] == f"{NOW}Z TrainingJob team/train by ann: refused"
    assert lines[1].startswith("  refused  spec.replicaSpecs: must be at most 2 replicas in all, says limit replicas")
    assert [line.split() for line in lines if line.startswith("p ")] == [["p", "replicas", "refused", "1"]]
    assert lines[-1] == "3 submissions: 1 refused, 1 unchanged, 1 unreadable"


@pytest.mark.parametrize(
    ("spec", "options", "code", "verdicts"),
    [
        (FILL, (), 0, {"changed": 2, "unreadable": 1}),
        (FILL | {"defaultsMode": "Audit"}, (), 0, {"audited": 2, "unreadable": 1}),
        (CAP | {"enforcement": "Warn"}, (), 0, {"warned": 1, "unchanged": 1, "unreadable": 1}),
        (CAP, ("--since", "60d"), 1, {"refused": 2, "unchanged": 1, "unreadable": 1}),
        (FILL | ANNS, (), 0, {"changed": 1, "unchanged": 1, "unreadable": 1}),
        (FILL | {"match": {"groups": ["devs"]}}, (), 0, {"changed": 2, "unreadable": 1}),
        (CAP | LABELLED, (), 0, {"unchanged": 2, "unreadable": 1}),
        (CAP | LABELLED, ("--namespace-label", "team=b"), 0, {"unchanged": 2, "unreadable": 1}),
        (CAP | LABELLED, ("--namespace-label", "team:team=a"), 1, {"refused": 1, "unchanged": 1, "unreadable": 1}),
    ],
)
def test_sums_and_exit_codes(what_if, spec, options, code, verdicts):
    done = what_if("-o", "json", *options, **spec)
    found = json.loads(done.stdout)
    assert done.exit_code == code
    assert {word: number for word, number in found["sums"]["verdicts"].items() if number} == verdicts
    left_out = "namespaceSelector" in spec.get("match", {}) and not options
    assert found["notEvaluated"] == (["p"] if left_out else [])
    assert ("policy p is not evaluated: it asks for labels of namespaces" in done.stderr) is left_out


def test_json_says_all_of_a_submission(what_if):
    [told] = json.loads(what_if("-o", "json", "--since", "60d", **CAP | {"match": {"users": ["a*"]}}).stdout)[
        "submissions"
    ][1:]
    assert (told["user"], told["operation"], told["name"], told["verdict"]) == ("ann", "UPDATE", "old", "refused")
    [violation] = told["violations"]
    assert (violation["policy"], violation["rule"], violation["found"]) == ("p", "replicas", 9)


@pytest.mark.parametrize(
    ("options", "spec", "said"),
    [
        (("--since", "yesterday"), CAP, '--since: must be a time as in 2026-11-30T12:00:00Z, a date or a span as in'),
        ((), {"limits": {"replicas": {"min": 2, "max": 1}}}, "spec.limits.replicas.min: must be at most max, 1"),
        (("--history-url", "sqlite:////nowhere/h.db"), CAP, "cannot read the history: no history database at"),
        (("--history-url", "postgresql://u@127.0.0.1:1/h"), CAP, "cannot read the history: connection failed"),
        (("--history-url", "oracle://h"), CAP, "--history-url: history URL: must be sqlite, postgresql or mysql"),
        (("--namespace-label", "team"), CAP, "--namespace-label: must be KEY=VALUE"),
    ],
)  # fmt: skip
def test_what_cannot_be_done_is_one_error(what_if, options, spec, said):
    done = what_if(*options, **spec)
    assert done.exit_code == 2
    assert said in done.stderr
    assert "Traceback" not in done.output


def test_a_cut_copy_is_unreadable(what_if, url):
    with sqlite3.connect(url.removeprefix("sqlite:///")) as database:
        database.execute("UPDATE object_snapshot SET object = '{' WHERE uid = 'r1'")
    database.close()
    done = what_if(**CAP)
    assert (done.exit_code, done.stdout.splitlines()[-1]) == (0, "3 submissions: 1 unchanged, 2 unreadable")
