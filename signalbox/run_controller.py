"""``signalbox controller``: wires the controller, the history's writer and the health listeners together."""

import gc
import signal
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from signalbox import history_options
from signalbox.keeping import certificate_options
from signalbox.kind_words import kinds_named

if TYPE_CHECKING:
    from controller.run import Run
    from history.chores import Chores
    from kube.config import Connection
    from kube.lease import Election
    from schemas.records import Recorder

HISTORY_SECONDS = 10.0
RELEASE_SECONDS = 6.0
COLLECTIONS = (50_000, 20, 20)
"""The collector's thresholds: decoded JSON is a crowd of new objects without a circle in it (bench/README.md)."""
LEASE = "signalbox-controller"


@click.command(context_settings={"show_default": True})
@click.option(
    "--kubeconfig", type=click.Path(path_type=Path, dir_okay=False), help="Absent: in-cluster, or the usual places."
)
@click.option("--context", help="Context of the kubeconfig.")
@click.option("--namespace", "-n", default="", help="Serve this namespace only.")
@click.option(
    "--kinds",
    default="",
    callback=lambda _context, _option, value: kinds_named(value),
    metavar="KIND,...",
    help="Serve these kinds only, e.g. TrainingJob,tfjobs.kubeflow.org. Absent: all.",
)
@history_options.sink
@click.option(
    "--history-token-secret", default="", help="Make this Secret with the tokens of the history's process, if missing."
)
@click.option(
    "--history-grace", type=click.FloatRange(min=0), default=600.0, help="Seconds a TTL waits for the history."
)
@click.option(
    "--leader-elect/--no-leader-elect",
    default=True,
    help="Act only while holding the Lease, so that several controllers can run.",
)
@click.option("--lease-namespace", default="signalbox-system", help="Where the Lease is.")
@click.option("--take-over", is_flag=True, help="Serve kinds even while another operator that serves them is at work.")
@click.option("--health-bind", default="0.0.0.0:8081", metavar="HOST:PORT", help="Where to serve /healthz and /readyz.")
@click.option("--metrics-bind", default="0.0.0.0:8080", metavar="HOST:PORT", help="Where to serve /metrics.")
@click.option("--workers", type=click.IntRange(1, 64), default=4, help="Reconciles that run at once.")
@click.option(
    "--status-interval", type=click.FloatRange(min=0), default=1.0, help="Seconds a change of counts alone waits."
)
@click.option(
    "--policy-scan",
    type=click.FloatRange(min=1),
    default=600.0,
    help="Seconds between two looks at all stored jobs for what policies say of them.",
)
@certificate_options
@click.option(
    "--force-delete-after",
    type=click.FloatRange(min=0),
    help="Seconds after its grace period at which a pod that does not go is force-deleted. Absent: never.",
)
@click.option(
    "--gang-scheduler",
    type=click.Choice(["volcano", "scheduler-plugins", "none"]),
    default="none",
    help="Whose PodGroup each job gets.",
)
@click.option("--gang-scheduler-name", default="", help="The schedulerName of pods in a gang, if not the usual one.")
@click.option(
    "--kubectl-delivery-image",
    default="kubeflow/kubectl-delivery:latest",
    help="Brings kubectl to the launcher of an MPIJob.",
)
@click.option("--log-level", default="info", type=click.Choice(["debug", "info", "warning", "error"]))
@history_options.keeping
def controller(**options: Any) -> None:
    """Create the pods of jobs and keep their status, until SIGTERM."""
    from kube.config import ConfigError
    from signalbox.logs import configure

    configure(options["log_level"])
    try:
        _run(options)
    except (ConfigError, ValueError) as error:
        raise click.UsageError(str(error)) from error


def _run(options: dict[str, Any]) -> None:
    from controller import metrics
    from controller.loop import Loop
    from controller.run import Run
    from controller.settings import Settings
    from kube.config import connect
    from kube.raw import RawKube
    from schemas.kinds import KINDS
    from signalbox import keeping, tokens

    kubeconfig = options["kubeconfig"]
    connection = connect(str(kubeconfig) if kubeconfig else None, options["context"])
    election = _election(connection, options, lambda leads: run.lead() if leads else run.stand_by())
    kube = RawKube(connection, on_call=metrics.on_call, fence=election.remaining if election else None)
    settings = Settings(
        namespace=options["namespace"],
        workers=options["workers"],
        status_interval=options["status_interval"],
        history_grace=options["history_grace"],
        force_delete_after=options["force_delete_after"],
        gang_scheduler=options["gang_scheduler"],
        gang_scheduler_name=options["gang_scheduler_name"],
        kubectl_delivery_image=options["kubectl_delivery_image"],
        take_over=options["take_over"],
        policy_scan=options["policy_scan"],
    )
    leading = election.leading if election else lambda: True
    recorder, chores = _recorder(options, leading)
    run = Run(Loop(kube, options["kinds"] or KINDS, recorder, settings), leading=election.leading if election else None)
    _serve(run, options["health_bind"], options["metrics_bind"])
    stop = threading.Event()
    keeping.start(keeping.keeper(kube, options, leading=leading), stop)
    tokens.start(kube, keeping.own_namespace(), options["history_token_secret"], leading, stop)
    _until_told(run, election)
    stop.set()
    if close := getattr(recorder, "close", None):
        close(HISTORY_SECONDS)
    if chores:
        chores.close()
    kube.close()


def _election(
    connection: "Connection", options: dict[str, Any], on_change: Callable[[bool], None]
) -> "Election | None":
    """The candidate, with a connection of its own. A controller of one namespace competes only with its like."""
    if not options["leader_elect"]:
        return None
    from kube.election import Terms
    from kube.lease import Election, Place
    from kube.raw import RawKube

    terms = Terms()
    name = "-".join(filter(None, (LEASE, options["namespace"])))
    kube = RawKube(connection, timeout=terms.renew / 2)
    return Election(kube, Place(options["lease_namespace"], name), on_change=on_change, terms=terms)


def _recorder(options: dict[str, Any], leading: Callable[[], bool]) -> "tuple[Recorder, Chores | None]":
    from schemas.records import NoRecorder

    url = history_options.url_of(options["history_url"], options["history_url_file"])
    wishes = history_options.taken(options)
    if not url:
        return NoRecorder(), None
    from controller import metrics

    token_file, region = options["history_token_file"], options["region"]
    writer, chores = history_options.open_writer(url, token_file, region, wishes, leading)
    metrics.HISTORY_WAITING.set_function(lambda: writer.waiting)
    metrics.HISTORY_LAG.set_function(writer.lag_seconds)
    metrics.HISTORY_DROPPED.set_function(lambda: writer.dropped)
    return writer, chores


def _until_told(run: "Run", election: "Election | None") -> None:
    """Runs until SIGTERM or SIGINT, also while the first lists are awaited.

    The Lease is given up once the workers have finished: from then on another controller may act.
    """
    told, over = threading.Event(), threading.Event()
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, lambda *_: told.set())
    running = threading.Thread(target=_lead, args=(run, election, over), daemon=True)
    running.start()
    told.wait()
    run.stop()
    over.set()
    running.join(RELEASE_SECONDS)


def _lead(run: "Run", election: "Election | None", over: threading.Event) -> None:
    """Stand for election with warm caches only; without an election lead at once."""
    run.start()
    _spare_collector()
    if election is None:
        run.lead()
    else:
        election.run(over)


def _spare_collector() -> None:
    """What has been loaded stays, so it is not looked through again and again."""
    gc.collect()
    gc.freeze()
    gc.set_threshold(*COLLECTIONS)


def _serve(run: "Run", health_bind: str, metrics_bind: str) -> None:
    from http import HTTPStatus

    from prometheus_client import CONTENT_TYPE_LATEST, generate_latest

    from kube.listeners import Answer, address, as_json, listen, serve

    def status() -> Answer:
        return as_json(True, leads=run.leading(), not_served=run.not_served)

    def measured() -> Answer:
        run.measure(time.monotonic())
        return Answer(HTTPStatus.OK, CONTENT_TYPE_LATEST, generate_latest())

    def alive() -> Answer:
        good = run.is_healthy(time.monotonic())
        return as_json(good, alive=good)

    def ready() -> Answer:
        good = run.is_ready()
        return as_json(good, ready=good)

    serve(
        listen("health-bind", address("health-bind", health_bind)),
        {"/healthz": alive, "/readyz": ready, "/status": status},
    )
    serve(listen("metrics-bind", address("metrics-bind", metrics_bind)), {"/metrics": measured})
