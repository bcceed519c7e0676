"""``signalbox controller``: wires the controller, the history's writer and the health listeners together."""

import signal
import threading
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

if TYPE_CHECKING:
    from controller.run import Run
    from schemas.records import Recorder

HISTORY_SECONDS = 10.0


@click.command(context_settings={"show_default": True})
@click.option(
    "--kubeconfig", type=click.Path(path_type=Path, dir_okay=False), help="Absent: in-cluster, or the usual places."
)
@click.option("--context", help="Context of the kubeconfig.")
@click.option("--namespace", "-n", default="", help="Serve this namespace only.")
@click.option("--history-url", default="", help="SQLAlchemy URL of the history; empty keeps none.")
@click.option(
    "--history-grace", type=click.FloatRange(min=0), default=600.0, help="Seconds a TTL waits for the history."
)
@click.option("--region", help="What the history says about where jobs ran.")
@click.option("--health-bind", default="0.0.0.0:8081", metavar="HOST:PORT", help="Where to serve /healthz and /readyz.")
@click.option("--metrics-bind", default="0.0.0.0:8080", metavar="HOST:PORT", help="Where to serve /metrics.")
@click.option("--workers", type=click.IntRange(1, 64), default=4, help="Reconciles that run at once.")
@click.option(
    "--status-interval", type=click.FloatRange(min=0), default=1.0, help="Seconds a change of counts alone waits."
)
@click.option("--log-level", default="info", type=click.Choice(["debug", "info", "warning", "error"]))
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

    kubeconfig = options["kubeconfig"]
    kube = RawKube(connect(str(kubeconfig) if kubeconfig else None, options["context"]), on_call=metrics.on_call)
    settings = Settings(
        namespace=options["namespace"],
        workers=options["workers"],
        status_interval=options["status_interval"],
        history_grace=options["history_grace"],
    )
    recorder = _recorder(options["history_url"], options["region"])
    run = Run(Loop(kube, KINDS, recorder, settings))
    _serve(run, options["health_bind"], options["metrics_bind"])
    _until_told(run)
    if close := getattr(recorder, "close", None):
        close(HISTORY_SECONDS)
    kube.close()


def _recorder(url: str, region: str | None) -> "Recorder":
    from schemas.records import NoRecorder

    if not url:
        return NoRecorder()
    from history.writer import Writer

    return Writer(url, region=region)


def _until_told(run: "Run") -> None:
    """Runs until SIGTERM or SIGINT, also while the first lists are awaited."""
    told = threading.Event()
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, lambda *_: told.set())
    threading.Thread(target=run.start, daemon=True).start()
    told.wait()
    run.stop()


def _serve(run: "Run", health_bind: str, metrics_bind: str) -> None:
    import orjson
    from prometheus_client import CONTENT_TYPE_LATEST, generate_latest

    from webhook.ops import JSON, Answer, listen, serve
    from webhook.settings import address

    def answer(good: bool, word: str) -> Answer:
        from http import HTTPStatus

        status = HTTPStatus.OK if good else HTTPStatus.SERVICE_UNAVAILABLE
        return Answer(status, JSON, orjson.dumps({word: good}))

    def measured() -> Answer:
        from http import HTTPStatus

        run.measure(time.monotonic())
        return Answer(HTTPStatus.OK, CONTENT_TYPE_LATEST, generate_latest())

    health = {
        "/healthz": lambda: answer(run.is_healthy(time.monotonic()), "alive"),
        "/readyz": lambda: answer(run.is_ready(), "ready"),
    }
    serve(listen("health-bind", address("health-bind", health_bind)).detach(), health)
    serve(listen("metrics-bind", address("metrics-bind", metrics_bind)).detach(), {"/metrics": measured})
