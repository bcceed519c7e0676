"""``signalbox history``: what ran, from the database, whether or not the objects still exist."""

import sys
import time as clock
from collections.abc import Callable
from functools import wraps
from typing import IO, Any

import click
import orjson
from sqlalchemy.exc import SQLAlchemyError

from history import durations, export, models, queries, statistics, timeline
from history.api import shapes
from history.fields import utcnow
from history.queries import Row, Wanted
from history.reader import Reader
from history.records import STATUSES
from schemas.kinds import KINDS
from signalbox import history_options
from signalbox.history_output import (
    Column,
    duration,
    field,
    print_facts,
    print_json,
    print_table,
    seconds,
    show,
    time,
)
from signalbox.run_history_serve import serve

WATCH_SECONDS = 2.0
BAR = 48  # characters
CLEAR = "\x1b[H\x1b[2J"

JOBS: tuple[Column, ...] = (
    ("NAMESPACE", field("namespace")),
    ("NAME", field("name")),
    ("KIND", field("kind")),
    ("STATUS", field("status")),
    ("OWNER", field("owner")),
    ("CREATED", time("gmt_created")),
    ("RAN", duration("gmt_job_running", "gmt_finished")),
    ("DELETED", lambda row: "yes" if row["deleted"] else ""),
)
PODS: tuple[Column, ...] = (
    ("POD", field("name")),
    ("TYPE", field("replica_type")),
    ("STATUS", field("status")),
    ("STARTED", time("gmt_started")),
    ("RAN", duration("gmt_started", "gmt_finished")),
    ("REMARK", field("remark")),
)
EVENTS: tuple[Column, ...] = (
    ("LAST SEEN", time("last_timestamp")),
    ("TYPE", field("type")),
    ("REASON", field("reason")),
    ("OBJECT", lambda row: f"{row['kind'] or ''}/{row['obj_name'] or ''}"),
    ("COUNT", field("count")),
    ("MESSAGE", field("message")),
)
RESTARTS: tuple[Column, ...] = (
    ("TIME", time("gmt_restarted")),
    ("JOB", lambda row: f"{row['namespace'] or ''}/{row['name'] or ''}"),
    ("REPLICA", lambda row: f"{row['replica_type'] or ''}-{row['replica_index']}"),
    ("REASON", field("reason")),
    ("EXIT CODE", field("exit_code")),
    ("COUNTED", lambda row: "yes" if row["counted"] else "no"),
    ("MESSAGE", field("message")),
)
DENIED: tuple[Column, ...] = (
    ("TIME", time("gmt_created")),
    ("USER", field("username")),
    ("OPERATION", field("operation")),
    ("JOB", lambda row: f"{row['namespace'] or ''}/{row['name'] or ''}"),
    ("KIND", field("kind")),
    ("POLICY", lambda row: row["policy"] or "built-in"),
    ("WHY", lambda row: "; ".join(map(str, orjson.loads(row["errors"] or "[]")))),
)
STATS: tuple[Column, ...] = (
    ("VALUE", field("value")),
    ("JOBS", field("jobs")),
    ("SUCCEEDED", lambda row: row["outcomes"].get("Succeeded", 0)),
    ("FAILED", lambda row: row["outcomes"].get("Failed", 0)),
    ("RUNNING", lambda row: row["outcomes"].get("Running", 0)),
    ("GPU HOURS", lambda row: f"{row['gpu_hours']:.1f}"),
    ("QUEUED P50", seconds("queue_seconds", "p50")),
    ("QUEUED P90", seconds("queue_seconds", "p90")),
    ("RAN P50", seconds("run_seconds", "p50")),
    ("RAN P90", seconds("run_seconds", "p90")),
)
FACTS = (
    ("Name", "name"),
    ("Namespace", "namespace"),
    ("Kind", "kind"),
    ("UID", "job_id"),
    ("Status", "status"),
    ("Remark", "remark"),
    ("Owner", "owner"),
    ("Tenant", "tenant"),
    ("Region", "deploy_region"),
    ("Resources", "resources"),
    ("Created", "gmt_created"),
    ("Running", "gmt_job_running"),
    ("Finished", "gmt_finished"),
)


class When(click.ParamType[Any]):
    """A span before now, a date or a time."""

    name = "time"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        try:
            return durations.moment(value, utcnow()) if isinstance(value, str) else value
        except ValueError as error:
            self.fail(str(error), param, ctx)


def reading(*outputs: str, watch: bool = False) -> Callable[[Callable[..., None]], Callable[..., None]]:
    """Gives a command the ``reader`` at --history-url; a database that cannot be read is one line and exit code 1."""

    def decorate(command: Callable[..., None]) -> Callable[..., None]:
        @click.option(
            "--history-url",
            envvar="SIGNALBOX_HISTORY_URL",
            default=history_options.local_history,
            help="SQLAlchemy URL of the history  [default: the local cluster's]",
        )
        @wraps(command)
        def run(*, history_url: str, watch: bool = False, **options: Any) -> None:
            try:
                reader = Reader(history_url)
                try:
                    _repeated(lambda: command(reader, **options), watch)
                finally:
                    reader.close()
            except (SQLAlchemyError, OSError, ValueError) as error:
                raise click.ClickException(f"cannot read the history: {_reason(error)}") from None

        if outputs:
            run = click.option("-o", "--output", type=click.Choice(outputs), default=outputs[0], show_default=True)(run)
        return (
            click.option("-w", "--watch", is_flag=True, help="Print again and again, until Ctrl-C.")(run)
            if watch
            else run
        )

    return decorate


def _repeated(print_once: Callable[[], None], watch: bool) -> None:
    print_once()
    while watch:
        clock.sleep(WATCH_SECONDS)
        click.echo(CLEAR if sys.stdout.isatty() else "", nl=False)
        print_once()


def filtering(command: Callable[..., None]) -> Callable[..., None]:
    """Adds the options of ``Wanted``."""
    for option in (
        click.option("--kind", type=click.Choice([kind.kind for kind in KINDS], case_sensitive=False)),
        click.option("-n", "--namespace", help="Exactly this namespace."),
        click.option("--name", help="A part of the name."),
        click.option("--status", type=click.Choice(STATUSES, case_sensitive=False)),
        click.option("--owner", help="Exactly this owner."),
        click.option("--tenant", help="Exactly this tenant."),
        click.option("--since", type=When(), help="Created then or later: 30d, 2026-11-30."),
        click.option("--until", type=When(), help="Created before then."),
    ):
        command = option(command)
    return command


@click.group()
def history() -> None:
    """What ran: jobs, their pods and events, also after the objects are gone."""


history.add_command(serve)


@history.command("list")
@filtering
@click.option("--sort", type=click.Choice(queries.SORT_NAMES), default="-created", show_default=True)
@click.option("--limit", type=click.IntRange(min=1, max=queries.MOST_JOBS), default=100, show_default=True)
@reading("table", "json", "csv", watch=True)
def list_jobs(reader: Reader, output: str, **filters: Any) -> None:
    """List jobs, newest first."""
    rows = list(reader.every(Wanted(**filters)))
    show(output, JOBS, rows, "No jobs found.", lambda row: shapes.shaped(models.job_info, row))


@history.command("show")
@click.argument("job")
@reading("table", "json", watch=True)
def show_job(reader: Reader, output: str, job: str) -> None:
    """Show one JOB (a UID, a name or NAMESPACE/NAME; the newest if several) with its pods and events."""
    row, older = _job(reader, job)
    uid = row["job_id"]
    pods, events, restarts = reader.pods(uid), reader.events(uid), reader.restarts(uid)
    if output == "json":
        parts = {
            "pods": (models.replica_info, pods),
            "events": (models.event_info, events),
            "restarts": (models.restart_info, restarts),
            "conditions": (models.condition_info, reader.conditions(uid)),
            "admissions": (models.admission_info, reader.admissions(row)),
        }
        shaped = {name: [shapes.shaped(table, item) for item in rows] for name, (table, rows) in parts.items()}
        return print_json({"job": shapes.shaped(models.job_info, row), **shaped, "older": older})
    print_facts((label, row[column]) for label, column in FACTS)
    more = f"{older} more {'job' if older == 1 else 'jobs'} of this name; show them by UID" if older else None
    print_facts((("Deleted", "yes" if row["deleted"] else None), ("Older", more)))
    named = [restart | row for restart in restarts]
    for title, columns, rows in (("Pods", PODS, pods), ("Restarts", RESTARTS, named), ("Events", EVENTS, events)):
        if rows or title != "Restarts":
            click.echo(f"\n{title}: {len(rows) or 'none'}")
        if rows:
            print_table(columns, rows)
    return None


@history.command("events")
@click.argument("job")
@reading("table", "json", "csv", watch=True)
def list_events(reader: Reader, output: str, job: str) -> None:
    """List the events of a JOB and of its pods, oldest first."""
    rows = reader.events(_job(reader, job)[0]["job_id"])
    show(output, EVENTS, rows, "No events found.", lambda row: shapes.shaped(models.event_info, row))


@history.command("restarts")
@click.argument("job", required=False)
@click.option("-n", "--namespace", help="Exactly this namespace.")
@click.option("--since", type=When(), help="Then or later: 30d, 2026-11-30.")
@click.option("--limit", type=click.IntRange(min=1, max=queries.MOST_ROWS), default=100, show_default=True)
@reading("table", "json", "csv", watch=True)
def list_restarts(reader: Reader, output: str, job: str | None, **filters: Any) -> None:
    """List the pods that were replaced: of one JOB, or of all, the newest first."""
    if job is None:
        rows = reader.rows(queries.all_restarts(**filters))
    else:
        row, _ = _job(reader, job)
        rows = [
            restart | {key: row[key] for key in ("namespace", "name")} for restart in reader.restarts(row["job_id"])
        ]
    show(output, RESTARTS, rows, "No restarts found.", lambda row: shapes.shaped(models.restart_info, row))


@history.command("denied")
@click.option("-n", "--namespace", help="Exactly this namespace.")
@click.option("--user", help="Exactly this user.")
@click.option("--since", type=When(), help="Then or later: 30d, 2026-11-30.")
@click.option("--limit", type=click.IntRange(min=1, max=queries.MOST_ROWS), default=100, show_default=True)
@reading("table", "json", "csv", watch=True)
def list_denied(reader: Reader, output: str, **filters: Any) -> None:
    """List submissions that the webhook refused, the newest first."""
    rows = reader.rows(queries.answers(verdict="refused", **filters))
    show(output, DENIED, rows, "Nothing was refused.", lambda row: shapes.shaped(models.admission_info, row))


@history.command("stats")
@click.option("--by", "group", type=click.Choice(statistics.GROUPS), default="owner", show_default=True)
@filtering
@reading("table", "json", "csv")
def print_stats(reader: Reader, output: str, group: str, **filters: Any) -> None:
    """Count jobs by owner, kind, ...: outcomes, GPU-hours, how long they waited and ran."""
    rows = statistics.by(reader, group, Wanted(**filters), utcnow())
    columns = ((group.upper(), STATS[0][1]), *STATS[1:])
    show(output, columns, rows, "No jobs found.", lambda row: row)


@history.command("timeline")
@click.argument("job")
@reading("table", "json", watch=True)
def print_timeline(reader: Reader, output: str, job: str) -> None:
    """Draw when each pod of a JOB waited (.) and ran (=), and what it was replaced for."""
    row, _ = _job(reader, job)
    bars = timeline.bars(reader.pods(row["job_id"]), reader.restarts(row["job_id"]))
    if output == "json":
        return print_json([_bar(bar) for bar in bars])
    first, last = timeline.span(row, bars, utcnow())
    columns: tuple[Column, ...] = (
        ("POD", field("name")),
        ("STATUS", field("status")),
        (f"{first:%Y-%m-%d %H:%M:%S}Z".ljust(BAR - 9) + f"{last:%H:%M:%S}Z", field("drawn")),
        ("REPLACED", field("why")),
    )
    rows = [{**bar.pod, "drawn": timeline.drawn(bar, first, last, BAR), "why": timeline.why(bar)} for bar in bars]
    return print_table(columns, rows) if rows else click.echo("No pods found.", err=True)


@history.command("export")
@filtering
@click.option("--format", "form", type=click.Choice(list(export.FORMATS)), default="jsonl", show_default=True)
@click.option("--limit", type=click.IntRange(min=1), default=10**9, help="At most so many jobs.")
@click.option("--output", "-o", "out", type=click.File("wb"), default="-", help="File; absent or -: standard output.")
@reading()
def export_jobs(reader: Reader, form: str, out: IO[bytes], **filters: Any) -> None:
    """Write jobs, newest first, as CSV, JSON Lines or Parquet."""
    number = export.FORMATS[form](reader.every(Wanted(**filters)), out)
    click.echo(f"{number} jobs written", err=True)


def _job(reader: Reader, reference: str) -> tuple[Row, int]:
    row, older = reader.job(reference)
    if row is None:
        raise click.ClickException(f"no job {reference!r} in the history")
    return row, older


def _bar(bar: timeline.Bar) -> Row:
    times = {"created": bar.created, "started": bar.started, "finished": bar.finished}
    return {"name": bar.pod["name"], "status": bar.pod["status"], **times, "replaced": timeline.why(bar) or None}


def _reason(error: Exception) -> str:
    """The first line of what the driver said."""
    said = str(getattr(error, "orig", None) or error).strip().splitlines()
    return said[0] if said else type(error).__name__
