"""``signalbox up``, ``down`` and ``status``."""

import contextlib
import json
import shlex
import shutil
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import click
from rich.console import Console
from rich.table import Table

from kube.config import ConfigError
from kube.errors import KubeError
from signalbox.local import binaries, cluster, example, probes, processes, site
from signalbox.local.paths import default_state_dir, deploy_dir
from signalbox.local.progress import shown

EXAMPLE = "pytorch-mnist.yaml"
FAILURES = (binaries.BuildError, processes.StartError, site.KubectlError, example.ExampleError, KubeError, ConfigError)

state_dir_option = click.option(
    "--state-dir",
    type=click.Path(path_type=Path, file_okay=False),
    default=default_state_dir,
    help="Where the local cluster's files are  [default: .signalbox of the checkout]",
)


@click.command()
@click.option("--kubeconfig", type=click.Path(path_type=Path, exists=True), help="Install into this cluster instead.")
@click.option("--no-example", is_flag=True, help="Do not run the example job.")
@state_dir_option
def up(kubeconfig: Path | None, no_example: bool, state_dir: Path) -> None:
    """Start a real local cluster with Signalbox on it and run an example job.

    What already runs is used again. With --kubeconfig, install into an existing cluster and start nothing here.
    """
    console = Console()
    with _explained():
        if kubeconfig:
            _install(kubeconfig, console)
            return
        begin = time.monotonic()
        state_dir = state_dir.resolve()
        running = _control_plane(state_dir, console)
        started = site.start(running, _shown_on(console))
        if not no_example:
            example.run(running, deploy_dir() / "examples" / EXAMPLE, console)
        console.print(_processes(state_dir))
        console.print(_next_steps(started, time.monotonic() - begin), highlight=False, soft_wrap=True)


@click.command()
@click.option("--kubeconfig", type=click.Path(path_type=Path, exists=True), help="Uninstall from this cluster instead.")
@click.option("--purge", is_flag=True, help="Also delete all other files; in a cluster the kinds, with every job.")
@state_dir_option
def down(kubeconfig: Path | None, purge: bool, state_dir: Path) -> None:
    """End what `signalbox up` has started. The job history stays.

    The cluster's objects are gone then; the next `up` starts with an empty cluster. With --kubeconfig, take Signalbox
    out of an existing cluster: first the webhook configurations, so that nobody waits for a webhook that is gone.
    """
    if kubeconfig:
        with _explained():
            for line in site.uninstall(kubeconfig, purge=purge):
                click.echo(line)
        return
    known = (state_dir / cluster.LOCK).exists()
    ended = cluster.stop(state_dir) if known else []
    if purge and known:
        shutil.rmtree(state_dir)
    click.echo(f"ended {', '.join(ended)}" if ended else "nothing was running")


@click.command()
@click.option("-o", "--output", type=click.Choice(["table", "json"]), default="table", help="How to print it.")
@state_dir_option
def status(output: str, state_dir: Path) -> None:
    """Show the processes of the local cluster, where its kubeconfig is, and which kinds cannot be served."""
    if output == "json":
        found = {
            "kubeconfig": str(state_dir / "kubeconfig"),
            "processes": _rows(state_dir),
            "not_served": _not_served(state_dir),
        }
        click.echo(json.dumps(found, indent=1))
        return
    console = Console()
    console.print(_processes(state_dir))
    for kind, reason in _not_served(state_dir).items():
        console.print(f"[yellow]{kind} is not served:[/] {reason}", highlight=False, soft_wrap=True)
    console.print(f"kubeconfig: {state_dir / 'kubeconfig'}", highlight=False, soft_wrap=True)


def _not_served(state_dir: Path) -> dict[str, str]:
    """Kinds that the controller leaves alone, each with the reason; none when it does not run."""
    record = processes.running(state_dir, "controller")
    health = [url for url in record.listens if url.endswith("/healthz")] if record else []
    return {
        kind: reason
        for url in health
        for kind, reason in probes.document(url.removesuffix("healthz") + "status").get("not_served", {}).items()
    }


def _control_plane(state_dir: Path, console: Console) -> cluster.Cluster:
    binaries.ensure(binaries.read_module(deploy_dir() / "local"), console)
    with shown("control plane", console):
        return cluster.start_control_plane(state_dir, console=console)


def _install(kubeconfig: Path, console: Console) -> None:
    with shown(f"manifests of {deploy_dir()} and certificates", console):
        site.install(kubeconfig)
    console.print(f"Watch it start: kubectl --kubeconfig={kubeconfig} -n {site.NAMESPACE} get pods", highlight=False)


def _shown_on(console: Console) -> Callable[[str, Callable[[], None]], None]:
    def show(title: str, run: Callable[[], None]) -> None:
        with shown(title, console):
            run()

    return show


@contextlib.contextmanager
def _explained() -> Iterator[None]:
    """Failures that say themselves what is wrong, without a traceback."""
    try:
        yield
    except FAILURES as failure:
        raise click.ClickException(str(failure)) from failure


def _rows(state_dir: Path) -> list[dict[str, Any]]:
    names = dict.fromkeys((*site.PROCESSES, *processes.names(state_dir)))
    return [_row(name, processes.read(state_dir, name)) for name in names]


def _row(name: str, record: processes.Record | None) -> dict[str, Any]:
    if record is None or not record.is_alive():
        return {
            "name": name,
            "state": "ended" if record else "stopped",
            "pid": None,
            "listens": [],
            "uptime_seconds": None,
        }
    listens = list(record.listens)
    return {
        "name": name,
        "state": "running",
        "pid": record.pid,
        "listens": listens,
        "uptime_seconds": round(record.uptime()),
    }


def _processes(state_dir: Path) -> Table:
    table = Table("process", "state", "pid", "up", "listens on", box=None, header_style="bold", pad_edge=False)
    colours = {"running": "green", "ended": "red", "stopped": "dim"}
    for row in _rows(state_dir):
        state = f"[{colours[row['state']]}]{row['state']}"
        up_for = "" if row["uptime_seconds"] is None else f"{row['uptime_seconds']} s"
        table.add_row(row["name"], state, str(row["pid"] or ""), up_for, "\n".join(row["listens"]))
    return table


def _next_steps(started: site.Site, seconds: float) -> str:
    command = shlex.quote("signalbox" if shutil.which("signalbox") else sys.argv[0])
    return f"""
Ready in {seconds:.0f} s. What ran: http://{started.address("history")}/   Try next:
  export KUBECONFIG={started.cluster.kubeconfig}
  kubectl get pytorchjobs,trainingjobs,pods
  kubectl apply -f {deploy_dir() / "examples-faulty" / "invalid.yaml"}   # is refused: every fault, each with its path
  {command} history list
  {command} down
"""
