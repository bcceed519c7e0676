"""``signalbox history``: what a user, and a program, reads."""

import json
import re
import shutil

import pytest
from click.testing import CliRunner

from history.records import event_record
from history.store import Gone
from signalbox.run_history import history


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
