"""Signalbox itself on the test run's control plane: webhook, controller and history as real processes."""

import contextlib
import json
import os
import signal
import subprocess
import sys
import time
import urllib.request
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

from signalbox.local import cluster as local
from signalbox.local import credentials, processes
from signalbox.local.cluster import Cluster
from signalbox.local.commands import status
from signalbox.local.paths import deploy_dir, history_url
from signalbox.local.site import STEPS, Site, certificates_dir, start_controller, start_webhook

JSON = dict[str, Any]
EXAMPLES = deploy_dir() / "examples"


class Signalbox:
    """A running Signalbox: what a test may ask of it, and how it is disturbed."""

    def __init__(self, site: Site, kubectl: Any) -> None:
        self._site = site
        self._kubectl = kubectl
        self.state_dir = site.cluster.state_dir
        self.history_url = history_url(self.state_dir)
        self.examples = EXAMPLES

    def install(self) -> None:
        for step in STEPS:
            step.run(self._site)

    def start(self) -> None:
        """Brings up whichever of our processes does not run."""
        start_webhook(self._site)
        start_controller(self._site)

    def control_with(self, *flags: str, kubeconfig: Path | None = None) -> None:
        """Runs the controller with these flags in place of the one there is, until ``start``."""
        start_controller(self._site, *flags, kubeconfig=kubeconfig)

    def kubeconfig_of(self, account: str, path: Path) -> Path:
        """A kubeconfig for a ServiceAccount of the installation, written to ``path``."""
        token = self._kubectl("create", "token", account, "-n", "signalbox-system").stdout.strip()
        cluster = self._site.cluster
        path.write_text(credentials.kubeconfig(cluster.server, cluster.ca_pem, token=token))
        return path

    @property
    def certificates(self) -> Path:
        """Directory of the webhook's certificate, which the controller keeps."""
        return certificates_dir(self._site)

    def stop(self, name: str) -> None:
        """Ends one of our processes in order."""
        assert processes.stop(self.state_dir, name)

    def kill(self, name: str) -> None:
        """SIGKILL: no chance to put anything in order."""
        record = processes.running(self.state_dir, name)
        assert record is not None
        os.kill(record.pid, signal.SIGKILL)
        while record.is_alive():
            time.sleep(0.02)

    def get(self, resource: str, name: str, namespace: str) -> JSON:
        found: JSON = json.loads(self._kubectl("get", resource, name, "-n", namespace, "-o", "json").stdout)
        return found

    def list(self, resource: str, namespace: str) -> list[JSON]:
        found: list[JSON] = json.loads(self._kubectl("get", resource, "-n", namespace, "-o", "json").stdout)["items"]
        return found

    def pods(self, namespace: str) -> dict[str, str]:
        """Pod name to UID."""
        return {pod["metadata"]["name"]: pod["metadata"]["uid"] for pod in self.list("pods", namespace)}

    def state(self, resource: str, name: str, namespace: str) -> str:
        return str(self.get(resource, name, namespace).get("status", {}).get("phase", ""))

    def unserved(self) -> dict[str, str]:
        """Why kinds are not served, as ``signalbox status`` says."""
        shown = CliRunner().invoke(status, ["-o", "json", f"--state-dir={self.state_dir}"])
        found: dict[str, str] = json.loads(shown.stdout)["not_served"]
        return found

    def metric(self, series: str) -> float | None:
        """The value of one series of the controller's metrics."""
        with urllib.request.urlopen(f"http://{self._site.address('controller-metrics')}/metrics", timeout=10) as answer:
            lines = answer.read().decode().splitlines()
        return next((float(line.rsplit(" ", 1)[1]) for line in lines if line.startswith(series + " ")), None)

    @contextlib.contextmanager
    def controller(self, *flags: str) -> Iterator[None]:
        """A controller with other flags, in place of the usual one that has been stopped."""
        binds = (f"--{what}-bind={self._site.address(f'controller-{what}')}" for what in ("health", "metrics"))
        kubeconfig = f"--kubeconfig={self._site.cluster.kubeconfig}"
        argv = [sys.executable, "-m", "signalbox", "controller", kubeconfig, *binds, *flags]
        with (self.state_dir / "controller-flags.log").open("ab") as log:
            process = subprocess.Popen(argv, stdout=log, stderr=log)
        try:
            yield
        finally:
            process.terminate()
            process.wait(30)

    def events(self, namespace: str) -> dict[str, int]:
        """Reasons of the Events that Signalbox wrote, with their counts."""
        ours = [
            e
            for e in self.list("events", namespace)
            if e.get("source", {}).get("component", "").startswith("signalbox")
        ]
        return {event["reason"]: event["count"] for event in ours}


@pytest.fixture(scope="session")
def running(cluster: Cluster, kubectl: Any) -> Signalbox:
    with local.alone(cluster.state_dir):
        found = Signalbox(Site.on(cluster), kubectl)
        found.install()
    return found


@pytest.fixture
def signalbox(running: Signalbox) -> Iterator[Signalbox]:
    """Signalbox, whole again after the test."""
    running.start()
    yield running
    running.start()


@pytest.fixture(scope="session")
def until() -> Callable[..., Any]:
    """``until(f)`` calls ``f`` until it is true and returns what it gave; fails after ``seconds``."""

    def wait(condition: Callable[[], Any], seconds: float = 60.0) -> Any:
        deadline = time.monotonic() + seconds
        while not (value := condition()):
            assert time.monotonic() < deadline, f"not within {seconds} s: {value!r}"
            time.sleep(0.2)
        return value

    return wait


@pytest.fixture(scope="session")
def job_manifest() -> Callable[..., str]:
    """``job_manifest("name", Worker=2, policy="Never", **fates)``: a TrainingJob as JSON text."""

    def make(name: str, *, policy: str = "Never", run_policy: JSON | None = None, replicas: JSON, **fates: str) -> str:
        annotations = {f"fate.signalbox.dev/{key.replace('_', '-')}": value for key, value in fates.items()}
        pod = {
            "metadata": {"annotations": annotations},
            "spec": {"containers": [{"name": "main", "image": "registry.example/train:1"}]},
        }
        specs = {key: {"replicas": count, "restartPolicy": policy, "template": pod} for key, count in replicas.items()}
        job = {
            "apiVersion": "signalbox.dev/v1",
            "kind": "TrainingJob",
            "metadata": {"name": name},
            "spec": {"replicaSpecs": specs, **({"runPolicy": run_policy} if run_policy else {})},
        }
        return json.dumps(job)

    return make
