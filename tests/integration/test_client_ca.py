"""``--client-ca`` with a real API server that shows a certificate, configured as docs/operations.md says."""

import json
import sys
import time
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from functools import partial

import pytest
import yaml
from cryptography import x509
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat
from cryptography.x509.oid import ExtendedKeyUsageOID
from rich.console import Console

from certs.files import write_pair
from certs.issue import Issued, Names, common_name, load_key, new_ca, new_leaf
from signalbox.local import binaries, cluster, controlplane, credentials, ports, probes, processes
from signalbox.local.cluster import Cluster
from signalbox.local.paths import deploy_dir
from signalbox.local.processes import Program
from signalbox.local_webhooks import local_configurations

PORTS = (*controlplane.PORTS, "webhook", "webhook-health", "webhook-metrics")
STARTED = ("webhook", "kube-apiserver", "etcd")
API_SERVER = "kube-apiserver"
PLUGINS = ("MutatingAdmissionWebhook", "ValidatingAdmissionWebhook")
JOB = deploy_dir() / "examples" / "trainingjob-minimal.yaml"


def client_certificate(ca, name):
    key, now = ec.generate_private_key(ec.SECP256R1()), datetime.now(UTC)
    certificate = (
        x509.CertificateBuilder()
        .subject_name(common_name(name))
        .issuer_name(x509.load_pem_x509_certificate(ca.certificate).subject)
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - timedelta(hours=1))
        .not_valid_after(now + timedelta(hours=1))
        .add_extension(x509.ExtendedKeyUsage([ExtendedKeyUsageOID.CLIENT_AUTH]), critical=False)
        .sign(load_key(ca.key), hashes.SHA256())
    )
    pem = key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption())
    return Issued(ca.certificate, certificate.public_bytes(Encoding.PEM), pem)


@pytest.fixture(scope="module")
def clients(tmp_path_factory):
    """Directories of certificates: the API server's, and those of others."""
    directory, now = tmp_path_factory.mktemp("clients"), datetime.now(UTC)
    ours, others = new_ca(now), new_ca(now)
    (directory / "ca.crt").write_bytes(ours.certificate)
    for ca, name, at in ((ours, API_SERVER, API_SERVER), (ours, "kubelet", "kubelet"), (others, API_SERVER, "another")):
        write_pair(directory / at, client_certificate(ca, name))
    return directory


class Place:
    """An API server and a webhook of their own, on this machine."""

    def __init__(self, state_dir, clients):
        self.state_dir, self.clients = state_dir, clients
        self.ports = ports.assigned(state_dir / "ports.json", PORTS)
        self.issued = credentials.ensure(state_dir / "credentials")
        self.binaries = binaries.read_module(deploy_dir() / "local")
        self.server = f"https://127.0.0.1:{self.ports['kube-apiserver']}"
        self.cluster = Cluster(
            state_dir / "kubeconfig", self.server, self.issued.tokens["admin"], self.issued.ca_pem, state_dir
        )
        content = credentials.kubeconfig(self.server, self.issued.ca_pem, token=self.cluster.token)
        credentials.write_private(self.cluster.kubeconfig, content)

    def start_api_server(self, client):
        """With the certificate in this directory, or None."""
        found = binaries.ensure(self.binaries, Console(stderr=True))
        etcd = controlplane.etcd(found["etcd"], self.ports, self.state_dir)
        processes.start(self.state_dir, etcd, partial(probes.answers_ok, f"{etcd.listens[0]}/health"))
        program = controlplane.apiserver(found["kube-apiserver"], self.ports, self.issued)
        if client is not None:
            flag = f"--admission-control-config-file={self.admission(client)}"
            program = replace(program, argv=(*program.argv, flag))
        asks = partial(probes.answers_ok, f"{self.server}/readyz", token=self.cluster.token, ca_pem=self.cluster.ca_pem)
        processes.start(self.state_dir, program, asks, timeout=90)

    def admission(self, client):
        """The files of docs/operations.md; the webhook is called by its address here, not by its Service."""
        shown = {
            "client-certificate": str(self.clients / client / "tls.crt"),
            "client-key": str(self.clients / client / "tls.key"),
        }
        host = f"127.0.0.1:{self.ports['webhook']}"
        kubeconfig = {"apiVersion": "v1", "kind": "Config", "users": [{"name": host, "user": shown}]}
        (self.state_dir / "webhook-clients.yaml").write_text(yaml.safe_dump(kubeconfig))
        configuration = {
            "apiVersion": "apiserver.config.k8s.io/v1",
            "kind": "WebhookAdmissionConfiguration",
            "kubeConfigFile": str(self.state_dir / "webhook-clients.yaml"),
        }
        document = {
            "apiVersion": "apiserver.config.k8s.io/v1",
            "kind": "AdmissionConfiguration",
            "plugins": [{"name": name, "configuration": configuration} for name in PLUGINS],
        }
        file = self.state_dir / f"admission-{client}.yaml"
        file.write_text(yaml.safe_dump(document))
        return file

    def start_webhook(self):
        now = datetime.now(UTC)
        ca = new_ca(now)
        leaf = new_leaf(ca, Names("signalbox-webhook", "signalbox-system", ("127.0.0.1",)), now)
        write_pair(self.state_dir / "tls", Issued(ca.certificate, leaf.certificate, leaf.key))
        self.webhook_ca = ca.certificate
        flags = (
            f"--cert-file={self.state_dir / 'tls' / 'tls.crt'}",
            f"--key-file={self.state_dir / 'tls' / 'tls.key'}",
            f"--client-ca={self.clients / 'ca.crt'}",
            f"--client-name={API_SERVER}",
            *(f"--{name}bind=127.0.0.1:{self.ports[f'webhook{port}']}" for name, port in BINDS),
        )
        health = f"http://127.0.0.1:{self.ports['webhook-health']}/readyz"
        program = Program("webhook", (sys.executable, "-m", "signalbox", "webhook", *flags))
        processes.start(self.state_dir, program, partial(probes.answers_ok, health), timeout=60)

    def kubectl(self, *arguments, stdin=None):
        return cluster.kubectl(self.cluster, *arguments, stdin=stdin)

    def install(self):
        self.done("apply", "--server-side", "-f", str(deploy_dir() / "crds" / "trainingjob.yaml"))
        self.done("apply", "--server-side", "-f", "-", stdin=self.configurations())
        end = time.monotonic() + 30
        while self.kubectl("get", "trainingjobs.signalbox.dev").returncode:
            assert time.monotonic() < end, "the kind is not served"
            time.sleep(0.2)

    def done(self, *arguments, stdin=None):
        found = self.kubectl(*arguments, stdin=stdin)
        assert found.returncode == 0, found.stderr

    def configurations(self):
        return yaml.safe_dump_all(local_configurations(f"https://127.0.0.1:{self.ports['webhook']}", self.webhook_ca))

    def log(self):
        return [json.loads(line) for line in (self.state_dir / "webhook.log").read_text().splitlines()]

    def refusals(self):
        return [line["reason"] for line in self.log() if line["message"] == "client refused"]


BINDS = (("", ""), ("health-", "-health"), ("metrics-", "-metrics"))


@pytest.fixture(scope="module")
def place(tmp_path_factory, clients):
    found = Place(tmp_path_factory.mktemp("place"), clients)
    try:
        found.start_webhook()
        found.start_api_server(API_SERVER)
        found.install()
        yield found
    finally:
        for name in STARTED:
            processes.stop(found.state_dir, name)


def creates(place):
    return place.kubectl("create", "--dry-run=server", "-o", "json", "-f", str(JOB))


def test_the_reviews_of_an_api_server_that_shows_its_certificate_pass(place):
    """Defaults are there, and faults are told: both webhooks were asked."""
    done = creates(place)
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout)["spec"]["runPolicy"]["cleanPodPolicy"]
    faulty = place.kubectl("create", "-f", str(deploy_dir() / "examples-faulty" / "invalid.yaml"))
    assert "spec.runPolicy.backoffLimit: must be an integer" in faulty.stderr


@pytest.mark.parametrize(
    ("client", "reason"),
    [
        (None, "it shows no certificate"),
        ("another", "its certificate is not of --client-ca"),
        ("kubelet", "its certificate is for kubelet, not for kube-apiserver"),
    ],
)
def test_one_without_it_is_refused_and_the_log_says_why(place, client, reason):
    """A new API server each time: connections that have been let in stay."""
    processes.stop(place.state_dir, "kube-apiserver")
    place.start_api_server(client)
    before = len(place.refusals())
    done = creates(place)
    assert done.returncode == 1
    assert 'failed calling webhook "validate.signalbox.dev"' in done.stderr
    new = place.refusals()[before:]
    assert new
    assert all(each.startswith(reason) for each in new)
