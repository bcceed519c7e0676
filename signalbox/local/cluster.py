"""Start and stop of a local control plane: etcd, API server, controller manager, scheduler, kwok with two nodes.

Its objects last as long as its etcd: what is started again after ``stop`` is empty.
"""

import contextlib
import fcntl
import shutil
import subprocess
from collections.abc import Iterator
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from rich.console import Console

from signalbox.local import binaries, controlplane, credentials, ports, probes, processes
from signalbox.local.paths import deploy_dir
from signalbox.local.processes import StartError

PROCESSES = ("etcd", "kube-apiserver", "kube-controller-manager", "kube-scheduler", "kwok")
NODES = 2
PORTS_FILE = "cluster.json"
LOCK = ".lock"


KUBECTL_SECONDS = 180
"""No call of kubectl may take longer; those that wait have shorter limits of their own."""


@dataclass(frozen=True, slots=True)
class Cluster:
    """A running control plane. ``token`` is the administrator's; ``ca_pem`` (PEM) is what verifies ``server``."""

    kubeconfig: Path
    server: str
    token: str
    ca_pem: bytes
    state_dir: Path


def start_control_plane(state_dir: Path, *, console: Console) -> Cluster:
    """Start whatever of the control plane does not run yet and wait until pods can run.

    Raises StartError (with the end of the log of the process that failed) and BuildError.
    """
    state_dir = state_dir.resolve()
    found = binaries.ensure(binaries.read_module(deploy_dir() / "local"), console)
    with alone(state_dir):
        if not processes.running(state_dir, "etcd"):
            _stop(state_dir)  # what is left of a cluster whose objects are lost
        chosen = ports.assigned(state_dir / PORTS_FILE, controlplane.PORTS)
        issued = credentials.ensure(_directory(state_dir))
        server = f"https://{ports.LOOPBACK}:{chosen['kube-apiserver']}"
        cluster = Cluster(state_dir / "kubeconfig", server, issued.tokens["admin"], issued.ca_pem, state_dir)
        _write_kubeconfigs(cluster, issued)
        _start_storage(cluster, found, chosen, issued)
        _start_components(cluster, found, chosen)
    return cluster


def stop(state_dir: Path) -> list[str]:
    """End every process that was started in ``state_dir``, last started first; names of those that ran.

    The cluster's objects and credentials go with it. Everything else in the directory stays: logs, databases.
    """
    state_dir = state_dir.resolve()
    with alone(state_dir):
        return _stop(state_dir)


@contextlib.contextmanager
def alone(state_dir: Path) -> Iterator[None]:
    """One process at a time starts or stops something in ``state_dir``; the others wait here."""
    state_dir.mkdir(parents=True, exist_ok=True)
    with (state_dir / LOCK).open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield


def kubectl(cluster: Cluster, *arguments: str, stdin: str | None = None) -> subprocess.CompletedProcess[str]:
    """Run kubectl as the administrator of ``cluster`` and capture its output; the caller looks at the return code."""
    argv = ["kubectl", f"--kubeconfig={cluster.kubeconfig}", f"--cache-dir={cluster.state_dir / 'kubectl'}", *arguments]
    return subprocess.run(argv, check=False, input=stdin, capture_output=True, text=True, timeout=KUBECTL_SECONDS)


def _stop(state_dir: Path) -> list[str]:
    others = [name for name in processes.names(state_dir) if name not in PROCESSES]
    ended = [name for name in (*others, *reversed(PROCESSES)) if processes.stop(state_dir, name)]
    shutil.rmtree(_directory(state_dir), ignore_errors=True)
    (state_dir / PORTS_FILE).unlink(missing_ok=True)
    return ended


def _write_kubeconfigs(cluster: Cluster, issued: credentials.Credentials) -> None:
    write = partial(credentials.kubeconfig, cluster.server, cluster.ca_pem)
    credentials.write_private(cluster.kubeconfig, write(token=cluster.token))
    for user, token in issued.tokens.items():
        credentials.write_private(_kubeconfig_of(cluster, user), write(token=token))


def _start_storage(
    cluster: Cluster, found: dict[str, Path], chosen: dict[str, int], issued: credentials.Credentials
) -> None:
    etcd = controlplane.etcd(found["etcd"], chosen, _directory(cluster.state_dir))
    processes.start(cluster.state_dir, etcd, lambda: probes.answers_ok(f"{etcd.listens[0]}/health"))
    apiserver = controlplane.apiserver(found["kube-apiserver"], chosen, issued)
    asks = partial(probes.answers_ok, f"{cluster.server}/readyz", token=cluster.token, ca_pem=cluster.ca_pem)
    processes.start(cluster.state_dir, apiserver, asks, timeout=60)


def _start_components(cluster: Cluster, found: dict[str, Path], chosen: dict[str, int]) -> None:
    directory = _directory(cluster.state_dir)
    programs = (
        controlplane.kwok(found["kwok"], deploy_dir(), directory, _kubeconfig_of(cluster, "kwok")),
        controlplane.controller_manager(
            found["kube-controller-manager"], chosen, _kubeconfig_of(cluster, "system:kube-controller-manager")
        ),
        controlplane.scheduler(found["kube-scheduler"], chosen, _kubeconfig_of(cluster, "system:kube-scheduler")),
    )
    for program in programs:
        processes.launch(cluster.state_dir, program)
    nodes = partial(probes.nodes_ready, cluster.server, token=cluster.token, ca_pem=cluster.ca_pem, wanted=NODES)
    if not nodes():
        _create_nodes(cluster)
    for program in programs:
        for address in program.listens:
            healthy = partial(probes.answers_ok, f"{address}/healthz")
            processes.await_ready(cluster.state_dir, program.name, healthy)
    processes.await_ready(cluster.state_dir, "kwok", nodes)


def _create_nodes(cluster: Cluster) -> None:
    manifest = str(deploy_dir() / "local" / "nodes.yaml")
    done = kubectl(cluster, "create", "--validate=false", "-f", manifest)
    if done.returncode and "AlreadyExists" not in done.stderr:
        raise StartError(f"the nodes of {manifest} could not be created:\n{done.stderr}")


def private_dir(cluster: Cluster) -> Path:
    """Where what is worth nothing after this cluster is kept; ``stop`` deletes it."""
    return _directory(cluster.state_dir)


def _directory(state_dir: Path) -> Path:
    return state_dir / "control-plane"


def _kubeconfig_of(cluster: Cluster, user: str) -> Path:
    return _directory(cluster.state_dir) / f"{user.replace(':', '-')}.kubeconfig"
