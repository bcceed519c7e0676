"""``signalbox up`` as a user runs it: on this machine, and into a cluster that exists already."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

pytestmark = [pytest.mark.cluster, pytest.mark.site]

SYSTEM = "signalbox-system"


def run(*arguments, **environment):
    command = [sys.executable, "-m", "signalbox", *arguments]
    return subprocess.run(command, capture_output=True, text=True, check=False, env={**os.environ, **environment})


def test_up_twice_status_and_down(tmp_path):
    state_dir = str(tmp_path / "state")
    try:
        first = run("up", "--state-dir", state_dir)
        assert first.returncode == 0, first.stderr
        assert "PyTorchJob pytorch-mnist: Succeeded" in first.stdout
        rows = json.loads(run("status", "--state-dir", state_dir, "-o", "json").stdout)["processes"]
        assert {row["state"] for row in rows} == {"running"}
        for row in rows:
            assert all(address in first.stdout for address in row["listens"])
        listed = run("history", "list", "--history-url", f"sqlite:///{state_dir}/history.db")
        assert "pytorch-mnist  PyTorchJob  Succeeded" in listed.stdout
        second = run("up", "--state-dir", state_dir)
        assert second.returncode == 0, second.stderr
        again = json.loads(run("status", "--state-dir", state_dir, "-o", "json").stdout)["processes"]
        assert [row["pid"] for row in again] == [row["pid"] for row in rows]
    finally:
        ended = run("down", "--state-dir", state_dir, "--purge")
    assert ended.stdout.startswith("ended ")
    assert not [row["pid"] for row in rows if is_running(row["pid"])]


def is_running(pid):
    try:
        state = Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()[0]
    except FileNotFoundError:
        return False
    return state != "Z"


def test_up_into_an_existing_cluster(signalbox, cluster, kubectl):
    try:
        done = run("up", "--kubeconfig", str(cluster.kubeconfig))
        assert done.returncode == 0, done.stderr
        deployments = json.loads(kubectl("get", "deployments", "-n", SYSTEM, "-o", "json").stdout)["items"]
        assert {item["metadata"]["name"] for item in deployments} == {"signalbox-webhook", "signalbox-controller"}
        secret = json.loads(kubectl("get", "secret", "signalbox-webhook-tls", "-n", SYSTEM, "-o", "json").stdout)
        for name in (
            "mutatingwebhookconfiguration/signalbox-mutating",
            "validatingwebhookconfiguration/signalbox-validating",
        ):
            for webhook in json.loads(kubectl("get", name, "-o", "json").stdout)["webhooks"]:
                assert webhook["clientConfig"]["service"]["namespace"] == SYSTEM
                assert webhook["clientConfig"]["caBundle"] == secret["data"]["ca.crt"]
        # the service accounts can do what their processes do, and no more
        for account, verb, resource, answer in (
            ("controller", "create", "pods", "yes"),
            ("controller", "update", "trainingjobs.signalbox.dev --subresource=finalizers", "yes"),
            ("controller", "get", "secrets", "no"),
            ("webhook", "get", "trainingjobs.signalbox.dev", "yes"),
            ("webhook", "list", "trainingjobs.signalbox.dev", "no"),
        ):
            who = f"--as=system:serviceaccount:{SYSTEM}:signalbox-{account}"
            assert kubectl("auth", "can-i", verb, *resource.split(), who, "-A", check=False).stdout.strip() == answer
    finally:
        signalbox.install()
