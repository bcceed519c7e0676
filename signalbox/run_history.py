"""``signalbox history``: what ran, from the database, whether or not the objects still exist."""

import sys
from collections.abc import Callable, Iterable
from datetime import datetime
from functools import wraps
from typing import Any

import click
import orjson
from rich import box
from rich.console import Console
from rich.table import Table
from rich.text import Text
from sqlalchemy.exc import SQLAlchemyError

from history.queries import Row, Wanted
from history.reader import Reader
from history.records import STATUSES
from schemas.kinds import KINDS
from signalbox.local.paths import default_state_dir, history_url

PIPE_WIDTH = 100_000  # characters: a line is never cut or folded when a program reads it
POD_JSON = {"deleted": "is_del"}
"""Columns that the seed names differently in JSON."""

Column = tuple[str, Callable[[Row], Any]]


def _time(column: str) -> Callable[[Row], str]:
    return lambda row: f"{row[column]:%Y-%m-%d %H:%M:%S}Z" if row[column] else ""


def _duration(start: str, end: str) -> Callable[[Row], str]:
    return lambda row: str(row[end] - row[start]) if row[start] and row[end] else ""


def _field(column: str) -> Callable[[Row], Any]:
    return lambda row: row[column]


JOBS: tuple[Column, ...] = (
    ("NAMESPACE", _field("namespace")),
    ("NAME", _field("name")),
    ("KIND", _field("kind")),
    ("STATUS", _field("status")),
    ("CREATED", _time("gmt_created")),
    ("RAN", _duration("gmt_job_running", "gmt_finished")),
    ("DELETED", lambda row: "yes" if row["deleted"] else ""),
)
PODS: tuple[Column, ...] = (
    ("POD", _field("name")),
    ("TYPE", _field("replica_type")),
    ("STATUS", _field("status")),
    ("STARTED", _time("gmt_started")),
    ("RAN", _duration("gmt_started", "gmt_finished")),
    ("REMARK", _field("remark")),
)
EVENTS: tuple[Column, ...] = (
    ("LAST SEEN", _time("last_timestamp")),
    ("TYPE", _field("type")),
    ("REASON", _field("reason")),
    ("OBJECT", lambda row: f"{row['kind'] or ''}/{row['obj_name'] or ''}"),
    ("COUNT", _field("count")),
    ("MESSAGE", _field("message")),
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


def _local_history() -> str:
    return history_url(default_state_dir())


def reading(command: Callable[..., None]) -> Callable[..., None]:
    """Gives a command the ``store`` at --history-url; a database that cannot be read is one line and exit code 1."""

    @click.option(
        "--history-url",
        envvar="SIGNALBOX_HISTORY_URL",
        default=_local_history,
        help="SQLAlchemy URL of the history  [default: the local cluster's]",
    )
    @click.option("-o", "--output", type=click.Choice(["table", "json"]), default="table", show_default=True)
    @wraps(command)
    def run(*, history_url: str, **options: Any) -> None:
        try:
            store = Reader(history_url)
            try:
                command(store, **options)
            finally:
                store.close()
        except (SQLAlchemyError, OSError, ValueError) as error:
            raise click.ClickException(f"cannot read the history: {_reason(error)}") from None

    return run


@click.group()
def history() -> None:
    """What ran: jobs, their pods and events, also after the objects are gone."""


@history.command("list")
@click.option("--kind", type=click.Choice([kind.kind for kind in KINDS], case_sensitive=False))
@click.option("-n", "--namespace", help="Exactly this namespace.")
@click.option("--name", help="A part of the name.")
@click.option("--status", type=click.Choice(STATUSES, case_sensitive=False))
@click.option("--limit", type=click.IntRange(min=1, max=100_000), default=100, show_default=True)
@reading
def list_jobs(store: Reader, output: str, **filters: Any) -> None:
    """List jobs, newest first."""
    rows = store.jobs(Wanted(**filters))
    if output == "json":
        return _print_json([_json(row) for row in rows])
    return _print_table(JOBS, rows) if rows else click.echo("No jobs found.", err=True)


@history.command("show")
@click.argument("job")
@reading
def show_job(store: Reader, output: str, job: str) -> None:
    """Show one JOB (a UID, a name or NAMESPACE/NAME; the newest if several) with its pods and events."""
    row, older = store.job(job)
    if row is None:
        raise click.ClickException(f"no job {job!r} in the history")
    pods, events = store.pods(row["job_id"]), store.events(row["job_id"])
    if output == "json":
        shown = [[_json(item, POD_JSON) for item in pods], [_json(item) for item in events]]
        return _print_json({"job": _json(row), "pods": shown[0], "events": shown[1], "older": older})
    _print_facts(row, older)
    for title, columns, rows in (("Pods", PODS, pods), ("Events", EVENTS, events)):
        click.echo(f"\n{title}: {len(rows) or 'none'}")
        if rows:
            _print_table(columns, rows)
    return None


def _print_facts(row: Row, older: int) -> None:
    for label, column in FACTS:
        value = _time(column)(row) if isinstance(row[column], datetime) else row[column]
        if value is not None:
            click.echo(f"{label + ':':<11}{_plain(value)}")
    if row["deleted"]:
        click.echo(f"{'Deleted:':<11}yes")
    if older:
        click.echo(f"{'Older:':<11}{older} more {'job' if older == 1 else 'jobs'} of this name; show them by UID")


def _print_table(columns: tuple[Column, ...], rows: Iterable[Row]) -> None:
    console = Console(width=None if sys.stdout.isatty() else PIPE_WIDTH, highlight=False)
    table = Table(box=box.SIMPLE_HEAD if console.is_terminal else None, pad_edge=False)
    for title, _ in columns:
        table.add_column(title, overflow="fold")
    for row in rows:
        table.add_row(*(Text(_plain(value(row))) for _, value in columns))
    console.print(table)


def _plain(value: Any) -> str:
    """Text that cannot steer a terminal, whatever a job's author wrote."""
    said = "" if value is None else str(value)
    return "".join(char if char.isprintable() else " " for char in said)


def _json(row: Row, renamed: dict[str, str] | None = None) -> Row:
    """A row by the seed's JSON names; what is unknown is left out, as the seed's omitempty does."""
    return {(renamed or {}).get(name, name): value for name, value in row.items() if value is not None}


def _print_json(value: Any) -> None:
    options = orjson.OPT_INDENT_2 | orjson.OPT_NAIVE_UTC | orjson.OPT_UTC_Z
    click.echo(orjson.dumps(value, option=options).decode())


def _reason(error: Exception) -> str:
    """The first line of what the driver said."""
    said = str(getattr(error, "orig", None) or error).strip().splitlines()
    return said[0] if said else type(error).__name__
