import socket
import ssl
import stat
import threading
from pathlib import Path

import pytest
import yaml

from signalbox.local import controlplane, credentials, example, ports
from signalbox.local.paths import deploy_dir

CHOSEN = {name: 20000 + number for number, name in enumerate(controlplane.PORTS)}
BINARY = Path("/bin/true")


def test_ports_are_free_different_and_remembered(tmp_path):
    file = tmp_path / "state" / "cluster.json"
    first = ports.assigned(file, ("a", "b"))
    second = ports.assigned(file, ("a", "b", "c"))
    assert first.items() < second.items()
    assert len(set(second.values())) == 3
    assert all(ports.is_free(port) for port in second.values())


def test_a_port_that_is_listened_on_is_not_free():
    with socket.create_server(("127.0.0.1", 0)) as server:
        assert not ports.is_free(server.getsockname()[1])


@pytest.fixture
def issued(tmp_path):
    return credentials.ensure(tmp_path / "control-plane")


def programs(issued):
    kubeconfig = Path("/kubeconfig")
    return (
        controlplane.etcd(BINARY, CHOSEN, Path("/state")),
        controlplane.apiserver(BINARY, CHOSEN, issued),
        controlplane.controller_manager(BINARY, CHOSEN, kubeconfig),
        controlplane.scheduler(BINARY, CHOSEN, kubeconfig),
        controlplane.kwok(BINARY, deploy_dir(), Path("/state"), kubeconfig),
    )


def test_every_listener_is_on_loopback(issued):
    for program in programs(issued):
        listening = [flag for flag in program.argv if flag.startswith(("--listen", "--bind-address"))]
        assert all("127.0.0.1" in flag for flag in listening), listening
        assert all("//127.0.0.1:" in address for address in program.listens)
        assert bool(listening) == bool(program.listens)


def test_no_secret_is_an_argument(issued):
    arguments = " ".join(flag for program in programs(issued) for flag in program.argv)
    assert not any(token in arguments for token in issued.tokens.values())


def test_credentials_are_private_and_stay(issued):
    assert credentials.ensure(issued.directory) == issued
    assert len(set(issued.tokens.values())) == len(credentials.USERS)
    assert {stat.S_IMODE(path.stat().st_mode) for path in issued.directory.iterdir()} == {0o600}


def test_the_serving_certificate_is_trusted_by_the_ca_in_the_kubeconfig(issued):
    server = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    server.load_cert_chain(issued.certificate, issued.key)
    client = ssl.create_default_context(cadata=issued.ca_pem.decode())
    ours, theirs = socket.socketpair()
    with ours, theirs:
        accept = threading.Thread(target=lambda: server.wrap_socket(theirs, server_side=True).close())
        accept.start()
        with client.wrap_socket(ours, server_hostname="127.0.0.1") as connection:
            assert connection.version() == "TLSv1.3"
        accept.join()


def test_kubeconfig_carries_the_ca_and_verifies_it():
    config = yaml.safe_load(credentials.kubeconfig("https://127.0.0.1:1", b"PEM", token="secret"))
    assert config["clusters"][0]["cluster"] == {
        "server": "https://127.0.0.1:1",
        "certificate-authority-data": "UEVN",
    }
    assert config["users"][0]["user"] == {"token": "secret"}


@pytest.mark.parametrize("file", ["pod-start.yaml", "pod-end.yaml"])
def test_the_stages_of_one_file_are_told_apart_by_one_expression(file):
    """kwok has no shared definitions, so each repeats it; each answers to a word of its own."""
    stages = yaml.safe_load_all((deploy_dir() / "local" / "stages" / file).read_text())
    rules = [rule["jq"] for stage in stages for rule in stage["spec"]["selector"]["matchExpressions"]]
    told_apart = [rule for rule in rules if "def fate" in rule["key"]]
    words = [word for rule in told_apart for word in rule["values"]]
    assert len({rule["key"] for rule in told_apart}) == 1
    assert len(words) == len(set(words)) > 1


@pytest.mark.parametrize(
    ("status", "state", "line"),
    [
        ({}, "", "PyTorchJob j: accepted"),
        ({"conditions": [{"type": "Created", "status": "True"}]}, "Created", "PyTorchJob j: Created"),
        (
            {
                "conditions": [{"type": "Pending", "status": "False"}, {"type": "Running", "status": "True"}],
                "replicaStatuses": {"Master": {"active": 1}, "Worker": {"active": 1, "pending": 1, "failed": 0}},
            },
            "Running",
            "PyTorchJob j: Running (Master 1 active, Worker 1 pending, Worker 1 active)",
        ),
    ],
)
def test_the_example_is_described_in_one_line(status, state, line):
    job = {"kind": "PyTorchJob", "metadata": {"name": "j"}, "status": status}
    assert example.state(job) == state
    assert example.describe(job) == line
