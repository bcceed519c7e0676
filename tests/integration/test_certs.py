"""Certificates and manifests on the real API server."""

import json
import socket
import subprocess
import threading
import time
from datetime import UTC, datetime, timedelta

import pytest
import yaml
from click.testing import CliRunner

from certs.bundles import CONFIGURATIONS, inject, published_bundles, read_published
from certs.issue import Names, new_ca
from certs.keeper import Keeper, Settings
from certs.rotate import ensure
from certs.servers import OF_SERVICE, Server, finder
from kube.config import connect
from kube.errors import NotFound
from kube.raw import RawKube
from kube.resources import ENDPOINT_SLICES, MUTATING_WEBHOOKS, NAMESPACES, VALIDATING_WEBHOOKS
from signalbox.local import processes
from signalbox.local.paths import deploy_dir
from signalbox.local_webhooks import CONFIGURATIONS_FILE, local_configurations
from signalbox.run_certs import certs

pytestmark = [pytest.mark.cluster, pytest.mark.site]

NAMESPACE = "signalbox-system"
NAMES = Names("signalbox-webhook", NAMESPACE)
COLLECTIONS = {"MutatingWebhookConfiguration": MUTATING_WEBHOOKS, "ValidatingWebhookConfiguration": VALIDATING_WEBHOOKS}


@pytest.fixture(scope="module")
def kube(cluster):
    return RawKube(connect(str(cluster.kubeconfig)))


@pytest.fixture
def configurations(kube):
    """The shipped webhook configurations, matching no namespace so that they are in nobody's way; gone afterwards."""
    for body in yaml.safe_load_all((deploy_dir() / CONFIGURATIONS_FILE).read_bytes()):
        for webhook in body["webhooks"]:
            webhook["namespaceSelector"] = {"matchLabels": {"kubernetes.io/metadata.name": "no-such-namespace"}}
        delete(kube, CONFIGURATIONS[body["metadata"]["name"]])
        kube.create(COLLECTIONS[body["kind"]].path(), body)
    yield
    for path in CONFIGURATIONS.values():
        delete(kube, path)


@pytest.fixture(scope="module", autouse=True)
def nobody_else_keeps_them(cluster):
    """The run's own controller would; whoever needs it next starts it again."""
    processes.stop(cluster.state_dir, "controller")


@pytest.fixture(autouse=True)
def system_namespace(kube):
    """As shipped: its labels make the API server check our pods against the restricted standard."""
    body = yaml.safe_load((deploy_dir() / "base" / "namespace.yaml").read_bytes())
    kube.patch(NAMESPACES.path(name=NAMESPACE), body, kind="apply", force=True)


def delete(kube, path):
    try:
        kube.delete(path)
    except NotFound:
        return


def run(kube, after=timedelta()):
    return ensure(kube, namespace=NAMESPACE, names=NAMES, now=datetime.now(UTC) + after)


def versions(kube):
    return {name: kube.get(path)["metadata"]["resourceVersion"] for name, path in CONFIGURATIONS.items()}


def published(kube):
    return {bundle for bundles in published_bundles(kube).values() for bundle in bundles}


def test_ensure_twice_changes_nothing(kube, configurations):
    first = run(kube)
    before = versions(kube)
    second = run(kube)
    assert second.done == ()
    assert (second.ca_pem, second.cert_pem, second.key_pem) == (first.ca_pem, first.cert_pem, first.key_pem)
    assert versions(kube) == before


def test_both_configurations_carry_the_bundle(kube, configurations):
    assert published(kube) == {b""}
    issued = run(kube)
    assert published(kube) == {issued.ca_pem}


def test_wiped_bundle_is_repaired(kube, configurations):
    issued = run(kube)
    assert inject(kube, b"") == list(CONFIGURATIONS)
    assert published(kube) == {b""}
    assert run(kube).done == tuple(f"caBundle of {name}: changed" for name in CONFIGURATIONS)
    assert published(kube) == {issued.ca_pem}


def test_a_new_ca_is_published_beside_the_old(kube, configurations):
    """cert-manager/cert-manager#5519: the API server accepts a bundle of two CAs, and the Secrets follow."""
    old = run(kube).ca_pem
    new = run(kube, timedelta(days=4 * 365))
    assert new.ca_pem.endswith(old)
    assert new.ca_pem != old
    assert published(kube) == {new.ca_pem}


@pytest.fixture
def kept(cluster, configurations):
    """A keeper at work, over a connection of its own."""
    kube, stop = RawKube(connect(str(cluster.kubeconfig))), threading.Event()
    keeper = Keeper(kube, Settings(NAMESPACE, NAMES), leading=lambda: True)
    thread = threading.Thread(target=keeper.run, args=(stop,))
    thread.start()
    yield
    stop.set()
    kube.stop_watches()
    thread.join(30)
    kube.close()
    assert not thread.is_alive()


def settled(kube):
    """What both configurations carry, once they carry the same."""
    eventually(lambda: len(published(kube) | {b""}) == 2 and b"" not in published(kube), seconds=30)
    return published(kube)


def test_kept_bundles_come_back_when_they_are_wiped_or_replaced(kube, kept):
    good = settled(kube)
    for wrong in (b"", new_ca(datetime.now(UTC)).certificate):
        inject(kube, wrong)
        eventually(lambda: published(kube) == good, seconds=30)


def test_a_fight_over_the_bundle_is_told(kube, kubectl, kept):
    good = settled(kube)
    for _ in range(3):
        inject(kube, b"")
        eventually(lambda: published(kube) == good, seconds=30)

    def told():
        events = kubectl("get", "events", "-n", "default", "--field-selector=reason=CABundleContested", "-o", "name")
        return len(events.stdout.split()) == len(CONFIGURATIONS)

    eventually(told, seconds=30)


def test_servers_are_the_ready_endpoints_of_the_service(kube, configurations):
    """As the EndpointSlice controller writes them; here nobody else does."""
    metadata = {"name": "by-hand", "namespace": NAMESPACE, "labels": {OF_SERVICE: "signalbox-webhook"}}
    ready, leaving = ({"addresses": [f"192.0.2.{n}"], "conditions": {"ready": n == 1}} for n in (1, 2))
    body = {"metadata": metadata, "addressType": "IPv4", "endpoints": [ready, leaving]}
    kube.create(ENDPOINT_SLICES.path(NAMESPACE), body | {"ports": [{"name": "https", "port": 9443}]})
    try:
        found = finder(kube)(read_published(kube))
    finally:
        delete(kube, ENDPOINT_SLICES.path(NAMESPACE, "by-hand"))
    assert found == [Server("192.0.2.1", 9443, "signalbox-webhook.signalbox-system.svc")]


def test_missing_configurations_are_reported(kube):
    for path in CONFIGURATIONS.values():
        delete(kube, path)
    assert [line for line in run(kube).done if "caBundle" in line] == [
        f"caBundle of {name}: not found" for name in CONFIGURATIONS
    ]


def test_commands(cluster, kube, configurations, tmp_path):
    here = ["--kubeconfig", str(cluster.kubeconfig), "--namespace", NAMESPACE]
    extra = ["--extra-name", "127.0.0.1", "--out", str(tmp_path / "tls")]
    result = CliRunner().invoke(certs, ["ensure", *here, *extra])
    assert result.exit_code == 0, result.output
    assert (tmp_path / "tls" / "tls.key").read_bytes().startswith(b"-----BEGIN PRIVATE KEY-----")
    shown = CliRunner().invoke(certs, ["show", *here, "-o", "json"])
    assert shown.exit_code == 0, shown.output
    found = json.loads(shown.output)
    assert "127.0.0.1" in found["server"]["names"]
    assert found["trusted_by"] == dict.fromkeys(CONFIGURATIONS, True)
    inject(kube, b"")
    shown = CliRunner().invoke(certs, ["show", *here])
    assert shown.exit_code == 1
    assert "trusted by signalbox-mutating: no" in shown.output


def test_manifests_are_valid(cluster):
    """Every object of deploy/base, fields and all, as the API server sees it."""
    command = ["kubectl", "--kubeconfig", str(cluster.kubeconfig), "apply", "--server-side", "--dry-run=server"]
    result = subprocess.run(
        [*command, "--field-manager=test", "--force-conflicts", "-k", str(deploy_dir() / "base")],
        capture_output=True,
        text=True,
        check=False,
    )
    assert result.returncode == 0, result.stderr
    assert "Warning" not in result.stderr
    assert "deployment.apps/signalbox-webhook serverside-applied" in result.stdout


@pytest.fixture
def job(kubectl, namespace):
    """A job of the time before the webhook went away, held by a finalizer."""
    crds = sorted((deploy_dir() / "crds").glob("*.yaml"))
    kubectl("apply", "--server-side", "--force-conflicts", *(f"--filename={file}" for file in crds))
    kubectl("wait", "--for=condition=Established", "--timeout=30s", *(f"--filename={file}" for file in crds))
    kubectl("create", "--filename=-", stdin=json.dumps(training_job(namespace, "old", finalizers=["example.org/hold"])))
    return "old"


def training_job(namespace, name, **metadata):
    containers = [{"name": "main", "image": "train"}]
    worker = {"replicas": 1, "template": {"spec": {"containers": containers}}}
    return {
        "apiVersion": "signalbox.dev/v1",
        "kind": "TrainingJob",
        "metadata": {"name": name, "namespace": namespace, **metadata},
        "spec": {"replicaSpecs": {"worker": worker}},
    }


@pytest.fixture
def stopped_webhook(kube, namespace, job):
    """The shipped configurations, calling a port nobody listens on, for jobs of one namespace only."""
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    paths = []
    for body in local_configurations(f"https://127.0.0.1:{port}", run(kube).ca_pem):
        body["metadata"]["name"] += f"-{namespace}"
        body["webhooks"] = body["webhooks"][:1]  # not the one for policies, which are no namespace's
        body["webhooks"][0]["namespaceSelector"] = {"matchLabels": {"kubernetes.io/metadata.name": namespace}}
        kube.create(COLLECTIONS[body["kind"]].path(), body)
        paths.append(COLLECTIONS[body["kind"]].path(name=body["metadata"]["name"]))
    yield
    for path in paths:
        delete(kube, path)


def test_stopped_webhook_stops_only_our_jobs(kubectl, namespace, job, stopped_webhook):
    """open-policy-agent/gatekeeper#2423, kubeedge/kubeedge#7178: others work on, status is written, what is being
    deleted goes; new jobs are refused with the reason.
    """
    here = f"--namespace={namespace}"
    kubectl("create", "configmap", "unrelated", here)
    kubectl("create", "deployment", "unrelated", "--image=train", here)

    def refused():
        created = kubectl(
            "create", "--dry-run=server", "--filename=-", stdin=json.dumps(training_job(namespace, "new")), check=False
        )
        return 'failed calling webhook "validate.signalbox.dev"' in created.stderr

    eventually(refused)  # the API server reads its configurations a moment later
    status = json.dumps({"status": {"startTime": "2026-11-04T12:00:00Z"}})
    kubectl("patch", "trainingjob", job, here, "--subresource=status", "--type=merge", f"--patch={status}")
    kubectl("delete", "trainingjob", job, here, "--wait=false")
    kubectl("patch", "trainingjob", job, here, "--type=merge", '--patch={"metadata":{"finalizers":null}}')
    assert kubectl("get", "trainingjobs", here, "--output=name").stdout == ""


def eventually(holds, seconds=10):
    deadline = time.monotonic() + seconds
    while not holds():
        assert time.monotonic() < deadline, f"not within {seconds} s"
        time.sleep(0.2)
