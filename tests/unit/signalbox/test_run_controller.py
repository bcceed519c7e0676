"""The controller's flags."""

import pytest
from click.testing import CliRunner

from kube.config import Connection
from signalbox import history_options, run_controller
from signalbox.run_controller import controller


@pytest.mark.parametrize(
    ("flag", "text"),
    [
        ("--kinds=PyTorchJob,Deployment", "got 'Deployment'"),
        ("--kinds=pytorchjobs.example.com", "PyTorchJob.kubeflow.org"),
        ("--force-delete-after=-1", "is not in the range"),
    ],
)
def test_a_wrong_flag_is_one_error_that_names_it(flag, text):
    result = CliRunner().invoke(controller, [flag], terminal_width=1000)
    assert result.exit_code == 2
    assert flag.split("=")[0] in result.stderr
    assert text in " ".join(result.stderr.replace("│", " ").split())


@pytest.fixture
def connection():
    return Connection("https://127.0.0.1:1", None, lambda: None, None, None)


@pytest.mark.parametrize(
    ("namespace", "path"),
    [
        ("", "/apis/coordination.k8s.io/v1/namespaces/system/leases/signalbox-controller"),
        ("ml", "/apis/coordination.k8s.io/v1/namespaces/system/leases/signalbox-controller-ml"),
    ],
)
def test_controllers_of_different_namespaces_do_not_compete(connection, namespace, path):
    options = {"leader_elect": True, "namespace": namespace, "lease_namespace": "system"}
    election = run_controller._election(connection, options, lambda leads: None)
    assert election._place.path == path
    assert not election.leading()


def test_without_an_election_there_is_no_candidate(connection):
    options = {"leader_elect": False, "namespace": "", "lease_namespace": "system"}
    assert run_controller._election(connection, options, lambda leads: None) is None


def test_the_url_of_the_history_comes_from_a_file(tmp_path):
    file = tmp_path / "url"
    assert history_options.url_of("", file) == ""
    file.write_text("postgresql+psycopg://u:p@db/h\n")
    assert history_options.url_of("", file) == "postgresql+psycopg://u:p@db/h"
    assert history_options.url_of("sqlite:///h.db", None) == "sqlite:///h.db"


def test_two_urls_are_refused(tmp_path):
    arguments = ["--history-url", "sqlite:///h.db", "--history-url-file", str(tmp_path / "url")]
    kubeconfig = tmp_path / "kubeconfig"
    kubeconfig.write_text(
        "{current-context: c, contexts: [{name: c, context: {cluster: c, user: u}}], users: [{name: u, user: {}}],"
        " clusters: [{name: c, cluster: {server: 'https://127.0.0.1:1'}}]}"
    )
    result = CliRunner().invoke(run_controller.controller, [*arguments, "--kubeconfig", str(kubeconfig)])
    assert result.exit_code == 2
    assert "--history-url and --history-url-file: only one of them may be given" in result.output
