"""``signalbox history``: what a user, and a program, reads."""

import csv
import json
import re
import shutil
from datetime import UTC, datetime

import pytest
from click.testing import CliRunner
from pyarrow import parquet

from history import details
from history.records import event_record
from history.store import Gone
from schemas.records import Admission
from signalbox.run_history import history

WHEN = datetime(2026, 11, 30, 12, tzinfo=UTC)


def read_parquet(path):
    rows = parquet.read_table(path).to_pylist()
    return [row | {"gmt_finished": row["gmt_finished"] and f"{row['gmt_finished']:%Y-%m-%dT%H:%M:%SZ}"} for row in rows]


READ = {
    "csv": lambda path: list(csv.DictReader(path.read_text().splitlines())),
    "jsonl": lambda path: [json.loads(line) for line in path.read_text().splitlines()],
    "parquet": read_parquet,
}


@pytest.fixture
def run(database, monkeypatch):
    """Runs the command as in a pipe; gives exit code, output, errors."""
    monkeypatch.setenv("SIGNALBOX_HISTORY_URL", database)

    def command(*arguments, **environment):
        result = CliRunner().invoke(history, arguments, env=environment, prog_name="signalbox history")
        assert result.exception is None or isinstance(result.exception, SystemExit), result.exception
        return result.exit_code, result.stdout, result.stderr

    return command


@pytest.fixture
def full(store, job, pod, make_event):
    """Two jobs of one name, the newer with a failed pod and an event."""
    store.save([job("a", 1, ("Succeeded", 60)), job("b", 2, ("Failed", 60), name="train", created=100)])
    store.save([pod("p", 3, "Failed", code=137, reason="OOMKilled", job_uid="b"), event_record(make_event("b"))])
    store.save([job("c", 9, ("Running", 10), name="long" * 30, created=200)])


def test_list_newest_first_and_uncut(full, run):
    code, out, err = run("list")

    assert (code, err) == (0, "")
    assert [line.split()[1] for line in out.splitlines()] == ["NAME", "long" * 30, "train", "train"]
    assert "\x1b" not in out


@pytest.mark.parametrize(
    ("options", "uids"),
    [
        ("", "cba"),
        ("--status failed", "b"),
        ("--kind trainingjob --limit 2", "cb"),
        ("--kind PyTorchJob", ""),
        ("-n team --name RAI", "ba"),
        ("--namespace other", ""),
    ],
)
def test_list_filters(full, run, options, uids):
    code, out, _ = run("list", "-o", "json", *options.split())

    assert (code, "".join(row["job_id"] for row in json.loads(out))) == (0, uids)


def test_list_nothing(store, run):
    assert run("list") == (0, "", "No jobs found.\n")
    assert run("list", "-o", "json") == (0, "[]\n", "")


def test_json_has_the_seeds_names(full, run):
    _, out, _ = run("show", "train", "-o", "json")
    shown = json.loads(out)

    assert shown["older"] == 1
    job = set(shown["job"])
    assert job == {
        *("id", "name", "namespace", "job_id", "version", "status", "kind", "resources", "deleted", "is_in_etcd"),
        *("remark", "gmt_created", "gmt_modified", "gmt_finished"),
    }, "unknown ones are left out"
    assert (shown["job"]["job_id"], shown["job"]["gmt_finished"]) == ("b", "2026-11-30T12:01:00Z")
    assert (shown["pods"][0]["is_del"], "deleted" in shown["pods"][0]) == (0, False)
    assert shown["events"][0]["count"] == 1


def test_show(full, run):
    code, out, _ = run("show", "team/train")

    assert code == 0
    said = re.sub(r" +", " ", out)
    for line in ("UID: b\n", "Status: Failed\n", "Remark: JobFailed: said so\n", "Finished: 2026-11-30 12:01:00Z\n"):
        assert line in said
    assert "Older: 1 more job of this name" in said
    assert "train-worker-0 Worker Failed 2026-11-30 12:00:05Z 0:00:45 OOMKilled, exit code 137" in said
    assert "Normal JobRunning TrainingJob/train 1 runs" in said


def test_show_a_deleted_job(full, store, run, clock):
    store.save([], [Gone("job", "c", clock[-1])])
    _, out, _ = run("show", "c")

    assert re.search(r"Status: +Stopped\n", out)
    assert re.search(r"Deleted: +yes\n", out)


def test_a_terminal_is_not_steered(store, job, run):
    store.save([job("a", 1, name="[red]x\x1b[31m\n\x07y", namespace="[/]")])

    for arguments in (("list",), ("show", "a")):
        _, out, _ = run(*arguments)
        assert "[red]x [31m  y" in out
        assert "\x1b" not in out


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (("show", "none"), "Error: no job 'none' in the history\n"),
        (("list", "--history-url", "sqlite:///nowhere/x.db"), "no history database at "),
        (("list", "--history-url", "sqlite:///empty.db"), "no such table: job_info"),
        (("list", "--history-url", "sqlite:///text.db"), "file is not a database"),
        (("list", "--history-url", "postgresql://u:secret@127.0.0.1:1/x"), "onnection refused"),
        (("list", "--history-url", "mysql://u:secret@127.0.0.1:1/x"), "Can't connect to MySQL server"),
        (("list", "--history-url", "oracle://u:secret@h/x"), "must be sqlite, postgresql or mysql"),
    ],
)
def test_what_cannot_be_read_is_one_line(store, run, tmp_path, monkeypatch, arguments, said):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "empty.db").touch()
    (tmp_path / "text.db").write_text("no database at all " * 100)
    code, out, err = run(*arguments)

    assert (code, out, err.count("\n")) == (1, "", 1)
    assert said in err
    assert "secret" not in err


def test_reading_creates_nothing(run, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    for arguments in (("list",), ("show", "x"), ("list", "--history-url", "sqlite:///.signalbox/history.db")):
        assert run(*arguments)[0] == 1

    assert list(tmp_path.iterdir()) == []


def test_reading_beside_a_writer(full, store, run):
    """A reader sees what is committed while a write is under way."""
    with store._engine.begin():
        assert run("list")[0] == 0


def test_a_copied_database_is_read(full, store, run, tmp_path):
    store.close()
    shutil.copy(tmp_path / "history.db", tmp_path / "copy.db")

    assert "train" in run("list", "--history-url", f"sqlite:///{tmp_path}/copy.db")[1]


@pytest.fixture
def replaced(full, store, make_job):
    """Job b's worker was replaced once; somebody was refused."""
    failed = make_job("b", 2, ("Failed", 60))
    line = {"time": "2026-11-30T12:00:50Z", "uid": "p", "replicaType": "Worker", "index": 0, "reason": "OOMKilled"}
    failed["status"]["restartHistory"] = [line | {"exitCode": 137, "counted": True}]
    said = {"user": "ann", "groups": (), "namespace": "team", "name": "wrong", "kind": "TrainingJob"}
    answer = Admission(WHEN, "r1", "", **said, operation="CREATE", verdict="refused", errors=("spec.x: must be set",))
    store.save([*details.restarts(failed), details.admission(answer)])


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        ("events train", "Normal JobRunning TrainingJob/train 1 runs"),
        ("restarts", "2026-11-30 12:00:50Z team/train Worker-0 OOMKilled 137 yes"),
        ("restarts team/train", "team/train Worker-0 OOMKilled 137 yes"),
        ("denied", "2026-11-30 12:00:00Z ann CREATE team/wrong TrainingJob built-in spec.x: must be set"),
        ("denied --user ann -o csv", "2026-11-30 12:00:00Z,ann,CREATE,team/wrong,TrainingJob,built-in,spec.x"),
        ("stats --by kind", "TrainingJob 3 1 1 1"),
        ("stats --by status --since 2026-11-30 -o csv", "Failed,1,0,1,0"),
        ("timeline train", "OOMKilled 137"),
        ("list --owner nobody -o csv", "namespace,name,kind,status,owner,created,ran,deleted"),
    ],
)
def test_what_each_command_prints(replaced, run, arguments, said):
    code, out, err = run(*arguments.split())

    assert (code, err) == (0, "")
    assert said in re.sub(r" +", " ", out)


def test_a_timeline_is_drawn(replaced, run):
    """Pod created at second 1, started at 5, ended at 50; the job's row says it began at 100."""
    _, out, _ = run("timeline", "b")

    bar = re.search(r"(\.+)(=+)x", out)
    assert bar is not None
    assert (len(bar[1]), len(bar[2])) == (2, 21)


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        ("restarts --user x", "No such option"),
        ("restarts none", "no job 'none'"),
        ("list --since soon", "must be a time"),
        ("denied --since 1d", "Nothing was refused."),
    ],
)
def test_mistakes_are_told(store, run, arguments, said):
    assert said in run(*arguments.split())[2]


@pytest.mark.parametrize("kind", ["csv", "jsonl", "parquet"])
def test_export(full, run, tmp_path, kind, monkeypatch):
    monkeypatch.setattr("history.reader.BATCH", 2)
    code, _, err = run("export", "--format", kind, "-o", str(tmp_path / "out"))

    assert (code, err) == (0, "3 jobs written\n")
    rows = READ[kind](tmp_path / "out")
    assert [row["job_id"] for row in rows] == ["c", "b", "a"]
    assert [row["gmt_finished"] for row in rows[1:]] == ["2026-11-30T12:01:00Z"] * 2
    assert not rows[0].get("gmt_finished")


def test_a_spreadsheet_runs_nothing(store, job, run):
    store.save([job("a", 1, name="=cmd()")])

    assert "'=cmd()" in run("export", "--format", "csv")[1]


def test_watching_prints_again(full, run, monkeypatch):
    naps = []

    def nap(seconds):
        naps.append(seconds)
        if len(naps) == 2:
            raise KeyboardInterrupt

    monkeypatch.setattr("signalbox.run_history.clock.sleep", nap)
    code, out, _ = run("list", "--watch")

    assert (code, out.count("NAMESPACE")) == (1, 2)
