import json

import pytest
from click.testing import CliRunner

from signalbox.local import cluster, processes
from signalbox.local.commands import down, status
from signalbox.local.processes import Program


@pytest.fixture
def run(tmp_path):
    def invoke(command, *arguments):
        result = CliRunner().invoke(command, [*arguments, f"--state-dir={tmp_path / 'state'}"])
        assert result.exit_code == 0, result.output
        return result.output

    return invoke


@pytest.fixture
def webhook(tmp_path):
    """A process called webhook in a state directory that ``up`` has used."""
    with cluster.alone(tmp_path / "state"):
        record = processes.launch(tmp_path / "state", Program("webhook", ("sleep", "60"), ("https://127.0.0.1:9443",)))
    yield record
    processes.stop(tmp_path / "state", "webhook")


def test_status_lists_every_process(run, webhook):
    shown = json.loads(run(status, "-o", "json"))
    rows = {row["name"]: row for row in shown["processes"]}
    assert rows["webhook"]["pid"] == webhook.pid
    assert rows["webhook"]["listens"] == ["https://127.0.0.1:9443"]
    assert rows["etcd"] == {"name": "etcd", "state": "stopped", "pid": None, "listens": [], "uptime_seconds": None}
    assert shown["kubeconfig"].endswith("/state/kubeconfig")
    assert "running" in run(status)


def test_status_names_what_has_ended_by_itself(run, webhook, tmp_path):
    record = processes.read(tmp_path / "state", "webhook")
    pid_file = (tmp_path / "state" / "webhook.pid").read_text()
    processes.stop(tmp_path / "state", "webhook")
    (tmp_path / "state" / "webhook.pid").write_text(pid_file)
    rows = {row["name"]: row["state"] for row in json.loads(run(status, "-o", "json"))["processes"]}
    assert not record.is_alive()
    assert rows["webhook"] == "ended"


@pytest.mark.parametrize(("flags", "kept"), [((), True), (("--purge",), False)])
def test_down_ends_what_runs_and_keeps_the_history_unless_purged(run, webhook, tmp_path, flags, kept):
    history = tmp_path / "state" / "history.db"
    history.write_text("rows")
    assert run(down, *flags) == "ended webhook\n"
    assert not webhook.is_alive()
    assert history.exists() is kept


def test_down_leaves_a_directory_alone_that_is_not_its_own(run, tmp_path):
    (tmp_path / "state").mkdir()
    (tmp_path / "state" / "thesis.tex").touch()
    assert run(down, "--purge") == "nothing was running\n"
    assert (tmp_path / "state" / "thesis.tex").exists()
