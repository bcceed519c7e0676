"""The history's process as the manifests start it: with their arguments, and the rights of the shipped accounts."""

import base64
import json
import os
import socket
import subprocess
import sys
import urllib.error
import urllib.request

import pytest
import yaml
from click.testing import CliRunner

from signalbox.manifests import manifests

pytestmark = [pytest.mark.cluster, pytest.mark.site]

SYSTEM = "signalbox-system"
SECRET = "signalbox-history-tokens"


@pytest.fixture(scope="module")
def containers():
    """By name, as they are shipped with a history on a volume."""
    result = CliRunner().invoke(manifests, ["--history-volume"])
    objects = yaml.load_all(result.stdout, Loader=yaml.CSafeLoader)
    found = [each["spec"]["template"]["spec"]["containers"][0] for each in objects if each["kind"] == "Deployment"]
    return {each["name"]: each for each in found}


@pytest.fixture(scope="module")
def arguments(containers):
    return {name: each["args"] for name, each in containers.items()}


def free_port():
    with socket.create_server(("127.0.0.1", 0)) as found:
        return found.getsockname()[1]


@pytest.fixture
def port():
    return free_port()


@pytest.fixture
def on_this_machine(tmp_path, port):
    """What stands for the pods' Service, mounts and volume."""
    (tmp_path / "tokens").mkdir()
    here = {
        "http://signalbox-history:8090": f"http://127.0.0.1:{port}",
        "0.0.0.0:8090": f"127.0.0.1:{port}",
        "--metrics-bind=0.0.0.0:8080": f"--metrics-bind=127.0.0.1:{free_port()}",
        "/run/signalbox/tokens": f"{tmp_path}/tokens",
        "/run/signalbox/history": f"{tmp_path}/tokens",
        "/var/lib/signalbox": str(tmp_path),
    }

    def changed(argument):
        for there, place in here.items():
            argument = argument.replace(there, place)
        return argument

    return changed


@pytest.fixture
def serve(tmp_path, arguments, on_this_machine):
    """Starts the process without a kubeconfig and a home: it must not need the API server."""
    started = []

    def start():
        argv = [sys.executable, "-m", "signalbox", *map(on_this_machine, arguments["history"])]
        environment = {"PATH": os.environ["PATH"], "HOME": str(tmp_path / "nowhere")}
        with (tmp_path / "history.log").open("ab") as log:
            started.append(subprocess.Popen(argv, env=environment, cwd=tmp_path, stdout=log, stderr=log))

    yield start
    for process in started:
        process.terminate()
        assert process.wait(20) == 0


@pytest.fixture
def judge(tmp_path, containers, on_this_machine):
    """A webhook with the variables that are shipped; gives its address."""
    shipped = {each["name"]: each["value"] for each in containers["webhook"]["env"]}
    history = {name: on_this_machine(value) for name, value in shipped.items() if "HISTORY" in name}
    bind, health, metrics = (f"127.0.0.1:{free_port()}" for _ in range(3))
    argv = [sys.executable, "-m", "signalbox", "webhook", "--no-tls", f"--bind={bind}"]
    environment = {"PATH": os.environ["PATH"], "HOME": str(tmp_path / "nowhere"), **history}
    with (tmp_path / "webhook.log").open("ab") as log:
        process = subprocess.Popen(
            [*argv, f"--health-bind={health}", f"--metrics-bind={metrics}"],
            env=environment, cwd=tmp_path, stdout=log, stderr=log,
        )  # fmt: skip
    yield f"http://{bind}/validate"
    process.terminate()
    assert process.wait(40) == 0


def refused(url, uid):
    """Whether a review of a job without pods was answered with a refusal."""
    kind = {"group": "signalbox.dev", "version": "v1", "kind": "TrainingJob"}
    job = {"metadata": {"name": "refused"}, "spec": {"replicaSpecs": {}}}
    asking = {"uid": uid, "operation": "CREATE", "kind": kind, "namespace": "ml", "name": "refused", "object": job}
    review = {"apiVersion": "admission.k8s.io/v1", "kind": "AdmissionReview", "request": asking}
    try:
        request = urllib.request.Request(url, json.dumps(review).encode(), {"Content-Type": "application/json"})
        with urllib.request.urlopen(request, timeout=10) as answer:
            return not json.loads(answer.read())["response"]["allowed"]
    except OSError:
        return False


def asked(port, token, what="jobs"):
    request = urllib.request.Request(f"http://127.0.0.1:{port}/api/v1/{what}", headers={"Authorization": token})
    try:
        with urllib.request.urlopen(request, timeout=10) as answer:
            return answer.status, json.loads(answer.read())["items"]
    except urllib.error.HTTPError as error:
        with error:
            return error.code, []
    except OSError:
        return 0, []


def tokens(kubectl):
    found = kubectl("get", "secret", SECRET, "-n", SYSTEM, "-o", "json", "--ignore-not-found").stdout
    return {key: base64.b64decode(value).decode() for key, value in json.loads(found)["data"].items()} if found else {}


def test_jobs_reach_the_page_with_tokens_that_the_controller_has_made(
    signalbox, kubectl, namespace, until, job_manifest, arguments, on_this_machine, serve, port, tmp_path
):
    """In the order of a first `kubectl apply`: the Secret is mounted after the controller has begun to send."""
    kubectl("delete", "secret", SECRET, "-n", SYSTEM, "--ignore-not-found")
    signalbox.stop("controller")
    flags = [flag for flag in arguments["controller"] if flag.startswith("--history-")]
    assert len(flags) == 3
    signalbox.control_with(*map(on_this_machine, flags))
    kubectl("create", "-n", namespace, "-f", "-", stdin=job_manifest("told", replicas={"Worker": 1}, run_seconds="1"))
    kubectl("wait", "tj/told", "-n", namespace, "--for=condition=Succeeded", "--timeout=60s")
    found = until(lambda: tokens(kubectl))
    for key, token in found.items():
        (tmp_path / "tokens" / key).write_text(token)
    serve()

    def told():
        _, jobs = asked(port, f"Bearer {found['page']}")
        return [job["status"] for job in jobs if (job["namespace"], job["name"]) == (namespace, "told")]

    until(lambda: told() == ["Succeeded"], 90)
    assert asked(port, f"Bearer {found['ingest']}")[0] == 401
    assert asked(port, "")[0] == 401
    kubectl("delete", "secret", SECRET, "-n", SYSTEM)
    until(lambda: tokens(kubectl), 90)
    assert tokens(kubectl) != found


def test_what_the_webhook_refuses_reaches_the_page(until, judge, serve, port, tmp_path):
    """The tokens come after the webhook has begun to send."""
    until(lambda: refused(judge, "review-1"), 60)
    for key in ("ingest", "page"):
        (tmp_path / "tokens" / key).write_text(f"token-to-{key}")
    serve()

    def told():
        _, answers = asked(port, "Bearer token-to-page", "admissions")
        return [(answer["namespace"], answer["name"], answer["verdict"]) for answer in answers]

    until(lambda: ("ml", "refused", "refused") in told(), 90)


def test_the_history_has_no_more_rights_than_anybody(signalbox, kubectl):
    def rights(account):
        return kubectl("auth", "can-i", "--list", "-n", SYSTEM, f"--as=system:serviceaccount:{SYSTEM}:{account}").stdout

    assert rights("signalbox-history") == rights("nobody")
    assert rights("signalbox-controller") != rights("nobody")
