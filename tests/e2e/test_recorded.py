"""What the webhook answers reaches the history: refusals, who submitted, which policy filled in what."""

import json
import os
import signal
import socket
import subprocess
import sys
import urllib.request
from datetime import UTC, datetime

import pytest
from click.testing import CliRunner

from history.reader import Reader
from signalbox.local import processes
from signalbox.run_history import history

pytestmark = pytest.mark.cluster

ADMIN = "kubernetes-admin"
LONG_AGO = datetime(2026, 1, 1, tzinfo=UTC).replace(tzinfo=None)


@pytest.fixture
def policy(kubectl, namespace, until, job_manifest):
    """A cap of two replicas and a default, for this namespace alone; every worker knows it."""
    name = f"cap-{namespace}"
    spec = {"limits": {"replicas": {"max": 2}}, "defaults": {"runPolicy": {"backoffLimit": 3}}}
    spec["match"] = {"namespaces": [namespace]}
    made = {"apiVersion": "signalbox.dev/v1", "kind": "TrainingPolicy", "metadata": {"name": name}, "spec": spec}
    kubectl("apply", "-f", "-", stdin=json.dumps(made))
    probe = job_manifest("probe", replicas={"Worker": 3})
    dry = ("apply", "-n", namespace, "--dry-run=server", "-f", "-")
    until(lambda: all(name in kubectl(*dry, stdin=probe, check=False).stderr for _ in range(6)), 60)
    yield name
    kubectl("delete", "tpol", name)


def test_a_refusal_and_a_default_are_told(signalbox, kubectl, namespace, policy, until, job_manifest):
    def apply(name, workers):
        manifest = job_manifest(name, replicas={"Worker": workers}, never_ends="true")
        return kubectl("apply", "-n", namespace, "-f", "-", stdin=manifest, check=False)

    assert apply("large", 5).returncode == 1
    assert apply("small", 1).returncode == 0
    user = json.loads(kubectl("auth", "whoami", "-o", "json").stdout)["status"]["userInfo"]["username"]

    def denied():
        ran = CliRunner().invoke(history, ["denied", "-n", namespace, f"--history-url={signalbox.history_url}"])
        return ran.stdout

    [line] = until(lambda: [line for line in denied().splitlines() if "large" in line], 60)
    for said in (user, "CREATE", f"{namespace}/large", policy, "must be at most 2 replicas in all"):
        assert said in line
    assert "probe" not in denied(), "dry runs are not recorded"

    reader = Reader(signalbox.history_url)
    row = until(lambda: reader.job(f"{namespace}/small")[0], 60)
    until(lambda: reader.job(f"{namespace}/small")[0]["owner"] == user, 60)
    answers = until(lambda: len(found := reader.admissions(row)) == 2 and found, 60)
    assert [(one["verdict"], one["username"], one["policy"]) for one in answers] == [
        ("defaulted", user, policy),
        ("allowed", user, None),
    ]
    reader.close()
    address = processes.running(signalbox.state_dir, "history").listens[0].rstrip("/")
    page = fetched(f"{address}/jobs/{row['job_id']}")
    for said in (user, policy, "/spec/runPolicy/backoffLimit"):
        assert said in page
    page = fetched(f"{address}/policy?since=1d&verdict=refused")
    assert (f"{namespace}/large" in page, "must be at most 2 replicas in all" in page) == (True, True)


def fetched(url):
    with urllib.request.urlopen(url, timeout=30) as answer:
        return answer.read().decode()


@pytest.fixture
def second(signalbox, kubectl, tmp_path, until):
    """A webhook of our own beside the site's, over plain HTTP: its process and ``ask(review)``."""
    sockets = [socket.create_server(("127.0.0.1", 0)) for _ in range(3)]
    bind, health, metrics = (f"127.0.0.1:{each.getsockname()[1]}" for each in sockets)
    for each in sockets:
        each.close()
    arguments = [f"--bind={bind}", f"--health-bind={health}", f"--metrics-bind={metrics}", "--no-tls"]
    arguments += [f"--kubeconfig={signalbox.state_dir / 'kubeconfig'}", f"--history-url=sqlite:///{tmp_path}/h.db"]
    environment = {key: value for key, value in os.environ.items() if key != "PROMETHEUS_MULTIPROC_DIR"}
    with (tmp_path / "log").open("wb") as log:
        argv = [sys.executable, "-m", "signalbox", "webhook", *arguments]
        process = subprocess.Popen(argv, stderr=log, env=environment)

    def ask(request):
        body = json.dumps({"apiVersion": "admission.k8s.io/v1", "kind": "AdmissionReview", "request": request})
        with urllib.request.urlopen(f"http://{bind}/mutate", body.encode(), timeout=30) as answer:
            return json.load(answer)["response"]

    def serves():
        try:
            return fetched(f"http://{health}/readyz")
        except OSError:
            return ""

    until(serves, 90)
    yield process, ask
    process.kill()
    process.wait()


def test_nothing_that_waits_is_lost_at_sigterm(second, kubectl, namespace, policy, until, job_manifest, tmp_path):
    process, ask = second
    job = json.loads(job_manifest("large", replicas={"Worker": 5}))
    request = {"kind": {"group": "signalbox.dev", "version": "v1", "kind": "TrainingJob"}, "operation": "CREATE"}
    request |= {"object": job, "namespace": namespace, "userInfo": {"username": ADMIN, "groups": []}}
    until(lambda: all(policy in str(ask(request | {"uid": "dry", "dryRun": True})) for _ in range(6)), 60)
    before = denials(kubectl, policy)
    for number in range(5):
        assert not ask(request | {"uid": f"r{number}"})["allowed"]
    process.send_signal(signal.SIGTERM)
    assert process.wait(60) == 0

    assert denials(kubectl, policy) == before + 5
    reader = Reader(f"sqlite:///{tmp_path}/h.db")
    assert sorted(row["uid"] for row in reader.submissions(LONG_AGO)) == [f"r{number}" for number in range(5)]
    reader.close()


def denials(kubectl, policy):
    return json.loads(kubectl("get", "tpol", policy, "-o", "json").stdout).get("status", {}).get("denied", 0)
