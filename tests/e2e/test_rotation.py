"""Jobs are created all the while certificates, webhooks and the controller change. None may be refused, none lost.

Two replicas of the webhook stand behind a small TCP balancer, as behind a Service; they read the files that the
controller keeps, as a kubelet would. The figures are printed: ``pytest -s``.
"""

import contextlib
import itertools
import json
import os
import socket
import ssl
import sys
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime, timedelta
from functools import partial

import pytest
import yaml
from cryptography import x509

from certs.bundles import published_bundles
from certs.files import write_pair
from certs.issue import Names
from certs.rotate import ensure
from certs.secrets import read_secrets
from kube.config import connect
from kube.errors import KubeError
from kube.handshake import Trust, trust
from kube.raw import RawKube
from kube.resources import Resource
from signalbox.local import ports, probes, processes
from signalbox.local.processes import Program
from signalbox.local.site import CERTIFICATE_NAMES, NAMESPACE
from signalbox.local_webhooks import local_configurations

pytestmark = [pytest.mark.cluster, pytest.mark.site]

JOBS = Resource("signalbox.dev", "v1", "trainingjobs", "TrainingJob")
NAMES = Names("signalbox-webhook", NAMESPACE, CERTIFICATE_NAMES)
RATE = 20
"""Creates a second."""
THREADS = 32
"""Creates under way at once: the rate holds while none takes longer than 1.6 s."""
BUNDLE_WAIT = 3
"""Seconds instead of the 60 that are shipped: there is one API server here."""
PRE_STOP = 2.0
"""Seconds between leaving the balancer and SIGTERM, as the shipped preStop."""
AGAIN = 3.0
"""Seconds of load after each change."""


class Balancer:
    """Passes TCP connections on to the ports in ``targets``, in turn."""

    def __init__(self, targets):
        self.targets = list(targets)
        self._turn = itertools.count()
        self._listening = socket.create_server((ports.LOOPBACK, 0), backlog=64)
        self.port = self._listening.getsockname()[1]
        threading.Thread(target=self._accept, daemon=True).start()

    def close(self):
        self._listening.shutdown(socket.SHUT_RDWR)
        self._listening.close()

    def _accept(self):
        with contextlib.suppress(OSError):
            while True:
                client, _ = self._listening.accept()
                target = self.targets[next(self._turn) % len(self.targets)]
                threading.Thread(target=relay, args=(client, target), daemon=True).start()


def relay(client, port):
    with contextlib.suppress(OSError), client, socket.create_connection((ports.LOOPBACK, port)) as server:
        back = threading.Thread(target=pass_on, args=(server, client), daemon=True)
        back.start()
        pass_on(client, server)
        back.join()


def pass_on(source, sink):
    with contextlib.suppress(OSError):
        while data := source.recv(1 << 16):
            sink.sendall(data)
    for each in (source, sink):
        with contextlib.suppress(OSError):
            each.shutdown(socket.SHUT_RDWR)


class Replicas:
    """The webhook processes, by name, and the balancer in front of them."""

    def __init__(self, state_dir, kubeconfig, certificates):
        self._state_dir, self._kubeconfig, self._certificates = state_dir, kubeconfig, certificates
        self._ports = {name: free_ports(3) for name in ("webhook-a", "webhook-b")}
        for name in self._ports:
            self.start(name)
        self.balancer = Balancer(self.serving)

    @property
    def names(self):
        return list(self._ports)

    @property
    def serving(self):
        return [serving for serving, _, _ in self._ports.values()]

    def start(self, name):
        serve, health, metrics = (f"{ports.LOOPBACK}:{port}" for port in self._ports[name])
        arguments = (
            f"--bind={serve}",
            f"--health-bind={health}",
            f"--metrics-bind={metrics}",
            f"--cert-file={self._certificates / 'tls.crt'}",
            f"--key-file={self._certificates / 'tls.key'}",
            f"--kubeconfig={self._kubeconfig}",
        )
        program = Program(name, (sys.executable, "-m", "signalbox", "webhook", *arguments))
        processes.start(self._state_dir, program, partial(probes.answers_ok, f"http://{health}/readyz"))

    def restart(self, name):
        """As a rolling update does it."""
        self.balancer.targets.remove(self._ports[name][0])
        time.sleep(PRE_STOP)
        processes.stop(self._state_dir, name, grace=40)
        self.start(name)
        self.balancer.targets.append(self._ports[name][0])

    def stop(self):
        self.balancer.close()
        for name in self.names:
            processes.stop(self._state_dir, name)


def free_ports(count):
    with contextlib.ExitStack() as stack:
        sockets = [stack.enter_context(socket.create_server((ports.LOOPBACK, 0))) for _ in range(count)]
        return [each.getsockname()[1] for each in sockets]


class Load:
    """Creates jobs until it is left; suspended ones, that cost no pods.

    On connections that stay open: 2 ms of processor time each, where the API server needs ten times that.
    """

    def __init__(self, kube, namespace, manifest):
        self._kube, self._path, self._job = kube, JOBS.path(namespace), json.loads(manifest("job"))
        self._stop, self._lock = threading.Event(), threading.Lock()
        self._thread = threading.Thread(target=self._run)
        self.refused, self.slowest, self.created = [], 0.0, 0
        self._started = time.monotonic()

    def __enter__(self):
        self._thread.start()
        return self

    def __exit__(self, *_):
        time.sleep(AGAIN)
        self._stop.set()
        self._thread.join()
        self.seconds = time.monotonic() - self._started

    def _run(self):
        with ThreadPoolExecutor(THREADS) as pool:
            for number in itertools.count():
                if self._stop.wait(max(0.0, self._started + number / RATE - time.monotonic())):
                    return
                pool.submit(self._create, f"job-{number}")

    def _create(self, name):
        start = time.monotonic()
        try:
            self._kube.create(self._path, {**self._job, "metadata": {"name": name}})
            with self._lock:
                self.created += 1
        except KubeError as error:
            self.refused.append(f"{name}: {error.message}")
        self.slowest = max(self.slowest, time.monotonic() - start)


@pytest.fixture(scope="module")
def kube(cluster):
    return RawKube(connect(str(cluster.kubeconfig)), timeout=30)


@pytest.fixture(scope="module")
def site(running, cluster):
    """Signalbox with two replicas of the webhook and a controller that waits less; as it was, afterwards."""
    running.start()
    running.control_with(f"--bundle-wait={BUNDLE_WAIT}")
    replicas = Replicas(cluster.state_dir, cluster.kubeconfig, running.certificates)
    try:
        yield replicas
    finally:
        replicas.stop()
        running.install()


@pytest.fixture
def replicas(site, running, kubectl, kube, until):
    """The API server calls them, and they are trusted."""
    apply(kubectl, site, (running.certificates / "ca.crt").read_bytes())
    until(lambda: bundles(kube) == {read_secrets(kube, NAMESPACE).stored.ca.certificate})
    return site


def apply(kubectl, replicas, bundle):
    configurations = local_configurations(f"https://{ports.LOOPBACK}:{replicas.balancer.port}", bundle)
    arguments = ("apply", "--server-side", "--force-conflicts", "--filename=-")
    kubectl(*arguments, stdin=yaml.safe_dump_all(configurations))


def bundles(kube):
    return {bundle for found in published_bundles(kube).values() for bundle in found}


@pytest.fixture
def load(kube, namespace, job_manifest, until, request):
    """``with load() as running``: afterwards every job was created, and the controller has seen to it.

    Defaults may be missing: that webhook may fail, and the controller fills them in again.
    """

    @contextlib.contextmanager
    def run(what):
        manifest = partial(job_manifest, replicas={"Worker": 1}, run_policy={"suspend": True}, policy="")
        with Load(kube, namespace, manifest) as running:
            yield running
        until(lambda: not unseen(kube, namespace), seconds=60)
        jobs = kube.list(JOBS.path(namespace)).items
        lost = running.created - len(jobs)
        bare = sum(not job["spec"]["replicaSpecs"]["Worker"]["restartPolicy"] for job in jobs)
        rate, busy = running.created / running.seconds, os.getloadavg()[0]
        sys.stdout.write(
            f"\n{what}: {running.created} jobs in {running.seconds:.1f} s ({rate:.1f}/s, load {busy:.1f}),"
            f" {len(running.refused)} refused, {lost} lost,"
            f" {bare} without defaults, slowest create {1000 * running.slowest:.0f} ms\n"
        )
        assert running.refused == []
        assert lost == 0

    return run


def unseen(kube, namespace):
    """Jobs that the controller has not told anything about."""
    return [job for job in kube.list(JOBS.path(namespace)).items if not job.get("status", {}).get("conditions")]


def shown(replicas, authority):
    """Whether all replicas show a leaf of this CA."""
    return all(trust(ports.LOOPBACK, port, authority) is Trust.TRUSTED for port in replicas.serving)


def serial(port):
    pem = ssl.get_server_certificate((ports.LOOPBACK, port), timeout=10)
    return x509.load_pem_x509_certificate(pem.encode()).serial_number


def issued_serial(issued):
    return x509.load_pem_x509_certificate(issued.cert_pem).serial_number


def renew(kube, what):
    overlap = timedelta(seconds=BUNDLE_WAIT)
    return ensure(kube, namespace=NAMESPACE, names=NAMES, now=datetime.now(UTC), overlap=overlap, renew=what)


def test_leaf_rotation(replicas, kube, load, until, running):
    with load("leaf rotation"):
        issued = renew(kube, "server")
        write_pair(running.certificates, issued)  # as a kubelet would; the controller does so when it looks
        until(lambda: {serial(port) for port in replicas.serving} == {issued_serial(issued)})
    assert bundles(kube) == {issued.ca_pem}


def test_ca_rotation(replicas, kube, load, until):
    start = time.monotonic()
    with load("CA rotation"):
        before = read_secrets(kube, NAMESPACE).stored.ca.certificate
        new = renew(kube, "ca").ca_pem.removesuffix(before)
        until(lambda: shown(replicas, new), seconds=60)
        until(lambda: bundles(kube) == {new}, seconds=60)
        seconds = time.monotonic() - start
        sys.stdout.write(f"\nCA changed in {seconds:.1f} s, of which {BUNDLE_WAIT} s waiting for API servers\n")
    assert not shown(replicas, before)


def test_rolling_restart_of_the_webhook(replicas, load):
    with load("rolling restart of the webhook"):
        for name in replicas.names:
            replicas.restart(name)


@pytest.mark.parametrize("end", ["stop", "kill"])
def test_restart_of_the_controller(replicas, load, running, end):
    with load(f"controller: {end} and start"):
        getattr(running, end)("controller")
        time.sleep(1)
        running.control_with(f"--bundle-wait={BUNDLE_WAIT}")


def test_configurations_applied_again_without_a_bundle_heal(replicas, kube, kubectl, until, namespace, job_manifest):
    good = bundles(kube)
    apply(kubectl, replicas, b"")
    start = time.monotonic()
    until(lambda: bundles(kube) == good)
    sys.stdout.write(f"\ncaBundle wiped: put right {time.monotonic() - start:.1f} s later\n")
    kube.create(JOBS.path(namespace), json.loads(job_manifest("after", replicas={"Worker": 1})))
