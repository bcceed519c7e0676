"""Signalbox on a local control plane, as the steps of ``signalbox up``: CRDs, certificates, webhook, controller."""

import contextlib
import subprocess
import sys
import time
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

import yaml

from signalbox.local import accounts, cluster, ports, probes, processes
from signalbox.local.cluster import Cluster
from signalbox.local.paths import deploy_dir, history_url
from signalbox.local.processes import Program
from signalbox.local_webhooks import local_configurations

if TYPE_CHECKING:
    from certs.issue import Issued

NAMESPACE = "signalbox-system"
LABEL = "app.kubernetes.io/name=signalbox"
PORTS = (
    *("webhook", "webhook-health", "webhook-metrics"),
    *("controller-health", "controller-metrics"),
    *("history", "history-health", "history-metrics"),
)
ACCOUNTS = ("webhook", "controller")
GRANTED_SECONDS = 10.0
CERTIFICATE_NAMES = ("localhost", ports.LOOPBACK)
"""Of the local webhook, beside those of the Service."""
PROCESSES = (*cluster.PROCESSES, "webhook", "controller", "history")


class KubectlError(Exception):
    """kubectl ended with an error; the message is what it said."""


@dataclass(frozen=True, slots=True)
class Site:
    """Where Signalbox is being set up: the cluster, and the ports its own processes get (by name)."""

    cluster: Cluster
    ports: dict[str, int]

    @classmethod
    def on(cls, running: Cluster) -> "Site":
        return cls(running, ports.assigned(running.state_dir / cluster.PORTS_FILE, PORTS))

    def address(self, name: str) -> str:
        """``127.0.0.1:PORT`` of the listener ``name``."""
        return f"{ports.LOOPBACK}:{self.ports[name]}"


@dataclass(frozen=True, slots=True)
class Step:
    """One step of ``up``; done again on a second ``up``, when it must find everything in place."""

    title: str
    run: Callable[[Site], None]


def apply_crds(site: Site) -> None:
    """The kinds, and the namespace the webhook's Secrets live in."""
    files = (*sorted((deploy_dir() / "crds").glob("*.yaml")), deploy_dir() / "base" / "namespace.yaml")
    apply(site.cluster, *(f"--filename={file}" for file in files))
    kubectl(site.cluster, "wait", "--for=condition=Established", "--timeout=30s", f"--filename={deploy_dir() / 'crds'}")


def apply_rights(site: Site) -> None:
    """The service accounts with exactly the shipped rights, of overlays too, and a token for each process."""
    files = [
        file for part in ("base", "overlays/*", "components/*") for file in deploy_dir().glob(f"{part}/rbac-*.yaml")
    ]
    apply(site.cluster, f"--namespace={NAMESPACE}", *(f"--filename={file}" for file in sorted(files)))
    for process in ACCOUNTS:
        accounts.write(site.cluster, NAMESPACE, f"signalbox-{process}")


def ensure_certificates(site: Site) -> None:
    """Issue what is missing or due into the cluster's Secrets, and write it to ``certs/`` for the webhook process.

    With the rights of the controller, who keeps them in a cluster. Raises KubeError.
    """
    from certs.files import write_pair

    keeper = accounts.kubeconfig(site.cluster, "signalbox-controller")
    write_pair(certificates_dir(site), _once_granted(partial(_issued, keeper, *CERTIFICATE_NAMES)))


def start_webhook(site: Site) -> None:
    arguments = (
        f"--bind={site.address('webhook')}",
        f"--cert-file={certificates_dir(site) / 'tls.crt'}",
        f"--key-file={certificates_dir(site) / 'tls.key'}",
        f"--kubeconfig={accounts.kubeconfig(site.cluster, 'signalbox-webhook')}",
        f"--history-url={history_url(site.cluster.state_dir)}",
        f"--health-bind={site.address('webhook-health')}",
        f"--metrics-bind={site.address('webhook-metrics')}",
    )
    _start(site, "webhook", arguments, f"https://{site.address('webhook')}")


def configure_webhook(site: Site) -> None:
    """Tell the API server to ask the webhook process, at its address on this machine instead of a Service."""
    bundle = (certificates_dir(site) / "ca.crt").read_bytes()
    configurations = local_configurations(f"https://{site.address('webhook')}", bundle)
    apply(site.cluster, "--filename=-", stdin=yaml.safe_dump_all(configurations))


def start_controller(site: Site, *flags: str, kubeconfig: Path | None = None) -> None:
    """With more flags, or as another account than the shipped one, where asked for."""
    arguments = (
        f"--kubeconfig={kubeconfig or accounts.kubeconfig(site.cluster, 'signalbox-controller')}",
        f"--history-url={history_url(site.cluster.state_dir)}",
        "--no-leader-elect",  # the pid file keeps it to one, and a killed one is followed at once
        f"--health-bind={site.address('controller-health')}",
        f"--metrics-bind={site.address('controller-metrics')}",
        *(f"--certificate-name={name}" for name in CERTIFICATE_NAMES),
        f"--certificate-dir={certificates_dir(site)}",
        *flags,
    )
    _start(site, "controller", arguments)


def start_history(site: Site) -> None:
    """The pages and the REST interface, reading what the controller writes."""
    url = f"http://{site.address('history')}"
    health, metrics = site.address("history-health"), site.address("history-metrics")
    arguments = (
        f"--bind={site.address('history')}",
        f"--history-url={history_url(site.cluster.state_dir)}",
        f"--health-bind={health}",
        f"--metrics-bind={metrics}",
    )
    argv = (sys.executable, "-m", "signalbox", "history", "serve", *arguments)
    program = Program("history", argv, (f"{url}/", f"http://{health}/healthz", f"http://{metrics}/metrics"))
    processes.start(site.cluster.state_dir, program, partial(probes.answers_ok, f"http://{health}/healthz"))


STEPS = (
    Step("custom resource definitions", apply_crds),
    Step("accounts and their rights", apply_rights),
    Step("certificates", ensure_certificates),
    Step("webhook", start_webhook),
    Step("webhook configurations", configure_webhook),
    Step("controller", start_controller),
    Step("history page", start_history),
)


def apply(running: Cluster, *arguments: str, stdin: str | None = None) -> str:
    """``kubectl apply --server-side``. Raises KubectlError."""
    return kubectl(running, "apply", "--server-side", "--force-conflicts", *arguments, stdin=stdin)


def kubectl(running: Cluster, *arguments: str, stdin: str | None = None) -> str:
    """What kubectl prints. Raises KubectlError."""
    done = cluster.kubectl(running, *arguments, stdin=stdin)
    if done.returncode:
        raise KubectlError(f"kubectl {' '.join(arguments)}:\n{done.stderr.strip()}")
    return done.stdout


def install(kubeconfig: Path) -> None:
    """Apply all of ``deploy/`` to the cluster behind ``kubeconfig`` and issue its certificates.

    Raises KubectlError, and KubeError where the certificates cannot be stored.
    """
    argv = ["kubectl", f"--kubeconfig={kubeconfig}", "apply", "--server-side", f"--kustomize={deploy_dir()}"]
    done = subprocess.run(argv, check=False, capture_output=True, text=True)
    if done.returncode:
        raise KubectlError(done.stderr.strip())
    _issued(kubeconfig)


def uninstall(kubeconfig: Path, *, purge: bool) -> Iterator[str]:
    """Take Signalbox out of the cluster; yields what kubectl says. Jobs and kinds stay unless ``purge``.

    Raises KubectlError.
    """
    ours = f"--selector={LABEL}"
    steps = [
        ("mutatingwebhookconfigurations,validatingwebhookconfigurations", ours),
        ("clusterrolebindings,clusterroles", ours),
        ("namespaces", ours),
        *([("customresourcedefinitions", ours)] if purge else []),
    ]
    for what in steps:
        argv = ("kubectl", f"--kubeconfig={kubeconfig}", "delete", *what, "--ignore-not-found", "--timeout=120s")
        done = subprocess.run(argv, check=False, capture_output=True, text=True)
        if done.returncode:
            raise KubectlError(done.stderr.strip())
        yield from done.stdout.splitlines()


def start(running: Cluster, show: Callable[[str, Callable[[], None]], None], steps: Iterable[Step] = STEPS) -> Site:
    """Do all steps in order, each through ``show(title, run)``."""
    site = Site.on(running)
    for step in steps:
        show(step.title, partial(step.run, site))
    return site


def _once_granted(call: "Callable[[], Issued]") -> "Issued":
    """The API server knows new rights a moment after they were made: until then ``call`` is made again."""
    from kube.errors import Forbidden

    deadline = time.monotonic() + GRANTED_SECONDS
    while True:
        try:
            return call()
        except Forbidden:
            if time.monotonic() > deadline:
                raise
            time.sleep(0.1)


def _issued(kubeconfig: Path, *extra: str) -> "Issued":
    from certs.issue import Names
    from certs.rotate import ensure
    from kube.config import connect
    from kube.raw import RawKube

    names = Names("signalbox-webhook", NAMESPACE, extra)
    with contextlib.closing(RawKube(connect(str(kubeconfig)))) as kube:
        return ensure(kube, namespace=NAMESPACE, names=names, now=datetime.now(UTC))


def _start(site: Site, name: str, arguments: tuple[str, ...], *serves: str) -> None:
    health, metrics = (f"http://{site.address(f'{name}-{what}')}" for what in ("health", "metrics"))
    listens = (*serves, f"{health}/healthz", f"{metrics}/metrics")
    program = Program(name, (sys.executable, "-m", "signalbox", name, *arguments), listens)
    processes.start(site.cluster.state_dir, program, partial(probes.answers_ok, f"{health}/healthz"))


def certificates_dir(site: Site) -> Path:
    """Where the local webhook's certificate is kept."""
    return site.cluster.state_dir / "certs"
