"""Where the connection comes from, and what is said when it does not."""

import base64
import json
import subprocess
import sys
from pathlib import Path

import pytest
import yaml

from kube import config
from kube.config import ConfigError, TokenFile, connect, in_cluster

CA = b"-----BEGIN CERTIFICATE-----\n"
CA_DATA = base64.b64encode(CA).decode()


@pytest.fixture(autouse=True)
def nowhere(monkeypatch, tmp_path):
    """No configuration but what the test makes."""
    for name in ("KUBECONFIG", "KUBERNETES_SERVICE_HOST", "KUBERNETES_SERVICE_PORT"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setattr(Path, "home", lambda: tmp_path / "home")


@pytest.fixture
def write(tmp_path):
    """Writes a kubeconfig with one context ``c`` and answers its path."""

    def written(name="config", *, user=None, cluster=None, context="c", **top):
        document = {
            "current-context": context,
            "contexts": [{"name": context, "context": {"cluster": "k", "user": "u", "namespace": "ns"}}],
            "clusters": [{"name": "k", "cluster": {"server": "https://k:6443/"} | (cluster or {})}],
            "users": [{"name": "u", "user": {"token": "t"} if user is None else user}],
        }
        path = tmp_path / name
        path.write_text(yaml.safe_dump(document | top))
        return str(path)

    return written


@pytest.fixture
def account(tmp_path):
    """A service account's directory."""
    directory = tmp_path / "account"
    directory.mkdir()
    for name, text in (("token", "pod-token\n"), ("ca.crt", CA.decode()), ("namespace", "here")):
        (directory / name).write_text(text)
    return directory


def test_token_and_ca_data(write):
    found = connect(write(cluster={"certificate-authority-data": CA_DATA}))
    assert (found.server, found.ca_pem, found.token(), found.namespace) == ("https://k:6443", CA, "t", "ns")
    assert (found.client_cert_pem, found.client_key_pem, found.insecure) == (None, None, False)


def test_files_are_relative_to_the_kubeconfig(write, tmp_path):
    for name in ("ca", "crt", "key", "tok"):
        (tmp_path / name).write_text(f"{name}\n")
    user = {"client-certificate": "crt", "client-key": str(tmp_path / "key"), "tokenFile": "tok"}
    found = connect(write(user=user, cluster={"certificate-authority": "ca", "insecure-skip-tls-verify": True}))
    assert (found.ca_pem, found.client_cert_pem, found.client_key_pem) == (b"ca\n", b"crt\n", b"key\n")
    assert (found.token(), found.insecure) == ("tok", True)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"context": ""}, "current-context: required"),
        ({"contexts": []}, "contexts: has no entry named 'c'"),
        ({"clusters": None}, "clusters: has no entry named 'k'"),
        ({"users": [{"name": "other"}]}, "users: has no entry named 'u'"),
        ({"users": {"u": {}}}, "users: must be a list"),
        ({"cluster": {"server": "k:6443"}}, r"cluster.server: must be an http\(s\) URL \(got 'k:6443'\)"),
        ({"cluster": {"server": None}}, "cluster.server: must be"),
        ({"cluster": {"certificate-authority": "absent"}}, "absent: cannot read certificate-authority in .*config"),
        ({"cluster": {"certificate-authority-data": "%"}}, "certificate-authority-data: must be base64"),
        ({"cluster": {"proxy-url": "http://p"}}, "cluster.proxy-url: not supported"),
        ({"user": {"as": "admin", "token": "t"}}, "user.as: not supported"),
        ({"user": {"tokenFile": "absent"}}, "absent: cannot read token"),
        ({"user": {"client-key-data": CA_DATA}}, "client-certificate and client-key must be given together"),
    ],
)
def test_errors_name_file_and_field(write, change, message):
    with pytest.raises(ConfigError, match=message) as caught:
        connect(write(**change))
    assert "config" in str(caught.value) or "absent" in str(caught.value)


@pytest.mark.parametrize(
    ("text", "message"), [("[", "not YAML"), ("- a", "must be a mapping"), ("", "must be a mapping")]
)
def test_files_that_are_no_kubeconfig(tmp_path, text, message):
    (tmp_path / "config").write_text(text)
    with pytest.raises(ConfigError, match=message):
        connect(str(tmp_path / "config"))


def test_missing_file():
    with pytest.raises(ConfigError, match="/absent: cannot read kubeconfig: No such file"):
        connect("/absent")


def test_in_cluster(account, monkeypatch):
    monkeypatch.setenv("KUBERNETES_SERVICE_HOST", "fd00::1")
    monkeypatch.setenv("KUBERNETES_SERVICE_PORT", "6443")
    found = in_cluster(account)
    assert (found.server, found.ca_pem, found.token(), found.namespace) == (
        "https://[fd00::1]:6443",
        CA,
        "pod-token",
        "here",
    )


def test_order_of_the_sources(write, account, monkeypatch, tmp_path):
    monkeypatch.setattr(config, "SERVICE_ACCOUNT", account)
    with pytest.raises(ConfigError, match="no cluster"):
        connect()
    (tmp_path / "home" / ".kube").mkdir(parents=True)
    write("home/.kube/config", user={"token": "home"})
    assert connect().token() == "home"
    monkeypatch.setenv("KUBERNETES_SERVICE_HOST", "10.0.0.1")
    assert connect().token() == "pod-token"
    monkeypatch.setenv("KUBECONFIG", write("listed", user={"token": "listed"}))
    assert connect().token() == "listed"
    assert connect(write("explicit", user={"token": "explicit"})).token() == "explicit"


def test_token_file_is_read_again_and_survives_a_gap(tmp_path):
    now = [0.0]
    path = tmp_path / "token"
    path.write_text("first\n")
    token = TokenFile(path, period=60, monotonic=lambda: now[0])
    path.write_text("second")
    answers = []
    for now[0], action in ((59, None), (60, None), (119, path.unlink), (121, None), (122, lambda: path.write_text(""))):
        if action:
            action()
        answers.append(token())
    assert answers == ["first", "second", "second", "second", "second"]
    path.write_text("third")
    now[0] = 200
    assert token() == "third"


def test_empty_token_file(tmp_path):
    (tmp_path / "token").write_text("\n")
    with pytest.raises(ConfigError, match="token is empty"):
        TokenFile(tmp_path / "token")


def test_list_of_files_is_merged_by_the_official_client(write, monkeypatch, tmp_path):
    first = write("one", context="first", users=[])
    second = write("two", context="second", user={"token": "second"})
    monkeypatch.setenv("KUBECONFIG", f"{first}:{tmp_path}/absent:{second}")
    found = connect()
    assert (found.server, found.token(), found.namespace) == ("https://k:6443", "second", "ns")
    with pytest.raises(ConfigError, match="third"):
        connect(context="third")


def test_exec_plugin(write, tmp_path):
    answer = {"apiVersion": "client.authentication.k8s.io/v1", "kind": "ExecCredential", "status": {"token": "x"}}
    plugin = tmp_path / "plugin"
    plugin.write_text(f"#!/bin/sh\necho '{json.dumps(answer)}'\n")
    plugin.chmod(0o755)
    user = {"exec": {"command": str(plugin), "apiVersion": answer["apiVersion"], "interactiveMode": "Never"}}
    assert connect(write(user=user)).token() == "x"
    plugin.write_text("#!/bin/sh\nexit 1\n")
    with pytest.raises(ConfigError, match="neither the file nor a plugin gave any credentials"):
        connect(write(user=user))


def test_official_client_is_not_imported_without_need(write):
    program = f"import sys, kube.raw, kube.reflector, kube.config as c; c.connect({write()!r}); print(*sys.modules)"
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert "kubernetes" not in done.stdout.split()
