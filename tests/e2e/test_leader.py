"""Two real controllers and one Lease: a leader that is killed, told to end, or cut off from the API server.

The figures are printed, and none of them fails a test: who acts when does.
"""

import contextlib
import os
import re
import signal
import socket
import sys
import threading
import time
import urllib.request

import click
import pytest
import yaml

from signalbox.local import accounts, cluster, ports, probes, processes
from signalbox.local.processes import Program

pytestmark = [pytest.mark.cluster, pytest.mark.site]

SYSTEM = "signalbox-system"
WRITES = {"create", "update", "patch", "delete"}


class Proxy:
    """A TCP proxy on loopback that can be cut: bytes wait then, and nobody is told."""

    def __init__(self, target):
        self._target = target
        self._open = threading.Event()
        self._open.set()
        self._sockets = [socket.create_server((ports.LOOPBACK, 0))]
        self._threads = []
        self.port = self._sockets[0].getsockname()[1]
        self._run(self._accept)

    def cut(self):
        self._open.clear()

    def heal(self):
        self._open.set()

    def close(self):
        self.heal()
        for each in tuple(self._sockets):
            with contextlib.suppress(OSError):
                each.shutdown(socket.SHUT_RDWR)
        for thread in tuple(self._threads):
            thread.join(5)
        for each in self._sockets:
            each.close()

    def _run(self, target, *arguments):
        thread = threading.Thread(target=target, args=arguments, daemon=True)
        self._threads.append(thread)
        thread.start()

    def _accept(self):
        with contextlib.suppress(OSError):
            while True:
                near, _ = self._sockets[0].accept()
                self._sockets.append(near)
                far = socket.create_connection((ports.LOOPBACK, self._target))
                self._sockets.append(far)
                self._run(self._pump, near, far)
                self._run(self._pump, far, near)

    def _pump(self, source, sink):
        with contextlib.suppress(OSError):
            while data := source.recv(1 << 16):
                self._open.wait()
                sink.sendall(data)
        for end in (source, sink):
            with contextlib.suppress(OSError):
                end.shutdown(socket.SHUT_RDWR)


class Controller:
    """One controller process beside the others, talking to the API server through a proxy of its own."""

    def __init__(self, name, running):
        self.name = f"controller-{name}"
        self._state_dir = running.state_dir
        self.proxy = Proxy(int(running.server.rpartition(":")[2]))
        self._kubeconfig = cluster.private_dir(running) / f"{self.name}.kubeconfig"
        config = yaml.safe_load(accounts.kubeconfig(running, "signalbox-controller").read_text())
        config["clusters"][0]["cluster"]["server"] = f"https://{ports.LOOPBACK}:{self.proxy.port}"
        self._kubeconfig.write_text(yaml.safe_dump(config))
        chosen = ports.choose(("health", "metrics"))
        self._health, self._metrics = (f"{ports.LOOPBACK}:{chosen[what]}" for what in ("health", "metrics"))

    def start(self):
        command = (sys.executable, "-m", "signalbox", "controller", f"--kubeconfig={self._kubeconfig}")
        binds = (f"--health-bind={self._health}", f"--metrics-bind={self._metrics}")
        ready = f"http://{self._health}/readyz"
        program = Program(self.name, (*command, *binds, "--leader-elect"))
        processes.start(self._state_dir, program, lambda: probes.answers_ok(ready), timeout=90)

    def signal(self, number):
        os.kill(processes.running(self._state_dir, self.name).pid, number)

    def stop(self):
        processes.stop(self._state_dir, self.name)

    def close(self):
        self.stop()
        self.proxy.close()

    @property
    def scraped(self):
        with urllib.request.urlopen(f"http://{self._metrics}/metrics", timeout=5) as answer:
            return answer.read().decode()

    @property
    def leads(self):
        return "signalbox_is_leader 1.0" in self.scraped

    @property
    def writes(self):
        """Writes that the API server answered, and others that were sent, by this process; not those of the Lease."""
        calls = re.findall(r'signalbox_api_calls_total\{code="(\d+)",verb="(\w+)"\} ([\d.]+)', self.scraped)
        return sum(float(count) for _, verb, count in calls if verb in WRITES)


@pytest.fixture
def pair(signalbox, cluster, until):
    """Two controllers instead of the one of the site: the first leads, the second stands by."""
    signalbox.stop("controller")
    first, second = Controller("a", cluster), Controller("b", cluster)
    try:
        first.start()
        until(lambda: first.leads, 60)
        second.start()
        yield first, second
    finally:
        first.close()
        second.close()


@pytest.fixture
def say(capsys):
    def told(line):
        with capsys.disabled():
            click.echo(f"\n  {line}")

    return told


def submit(kubectl, namespace, manifest):
    kubectl("apply", "-n", namespace, "-f", "-", stdin=manifest)


def succeeded(kubectl, namespace, *names):
    targets = (f"tj/{name}" for name in names)
    kubectl("wait", *targets, "-n", namespace, "--for=condition=Succeeded", "--timeout=120s")


@pytest.mark.parametrize(
    ("number", "what", "most"), [(signal.SIGKILL, "SIGKILL", 20), (signal.SIGTERM, "SIGTERM", 3)], ids=["kill", "term"]
)
def test_a_standby_follows(pair, kubectl, namespace, until, job_manifest, signalbox, say, number, what, most):
    first, second = pair
    submit(kubectl, namespace, job_manifest("early", replicas={"Worker": 2}, run_seconds="1"))
    succeeded(kubectl, namespace, "early")
    assert (first.leads, second.leads, second.writes) == (True, False, 0)
    first.signal(number)
    begun = time.monotonic()
    until(lambda: second.leads, 90)
    say(f"after {what} the standby led in {time.monotonic() - begun:.1f} s (meant: under {most} s)")
    submit(kubectl, namespace, job_manifest("late", replicas={"Worker": 2}, run_seconds="1"))
    succeeded(kubectl, namespace, "late")
    assert signalbox.events(namespace)["JobSucceeded"] == 1


def test_a_leader_that_is_cut_off_stops_before_another_leads(pair, kubectl, namespace, until, job_manifest, say):
    first, second = pair
    names = [f"job-{n}" for n in range(5)]
    for name in names:
        submit(kubectl, namespace, job_manifest(name, replicas={"Worker": 2}, run_seconds="1"))
    first.proxy.cut()
    begun = time.monotonic()
    until(lambda: not first.leads or second.leads, 90)
    stopped = time.monotonic() - begun
    assert (first.leads, second.leads) == (False, False)
    until(lambda: second.leads, 90)
    say(f"cut off, the leader stopped after {stopped:.1f} s; another led after {time.monotonic() - begun:.1f} s")
    before = first.writes
    succeeded(kubectl, namespace, *names)
    first.proxy.heal()
    submit(kubectl, namespace, job_manifest("later", replicas={"Worker": 2}, run_seconds="1"))
    succeeded(kubectl, namespace, "later")
    assert first.writes == before
    assert not first.leads
    second.stop()
    until(lambda: first.leads, 90)
    submit(kubectl, namespace, job_manifest("last", replicas={"Worker": 1}, run_seconds="1"))
    succeeded(kubectl, namespace, "last")


def test_the_lease_says_who_leads(pair, kubectl, signalbox):
    lease = signalbox.get("lease", "signalbox-controller", SYSTEM)["spec"]
    assert lease["holderIdentity"].startswith(socket.gethostname())
    assert lease["leaseDurationSeconds"] == 15
    kubectl("get", "lease", "signalbox-controller", "-n", SYSTEM)
