"""Options of every process that writes the history, and what they start."""

from collections.abc import Callable
from dataclasses import dataclass
from datetime import timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click
import structlog

from history import durations
from signalbox.local.paths import default_state_dir, history_url

if TYPE_CHECKING:
    from history.chores import Chores
    from history.store import Store
    from history.writer import Writer


def local_history() -> str:
    """URL of the local cluster's history."""
    return history_url(default_state_dir())


FILE = click.Path(path_type=Path, dir_okay=False)
FOREVER = "forever"


class Span(click.ParamType[timedelta | None]):
    """A span of time, or ``forever`` for None."""

    name = "span"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> timedelta | None:
        if isinstance(value, timedelta) or value == FOREVER:
            return None if value == FOREVER else value
        try:
            return durations.parse(value)
        except ValueError as error:
            self.fail(f"{error}, or {FOREVER}", param, ctx)


@dataclass(frozen=True, slots=True)
class Keeping:
    """What is done with the history beside writing it."""

    history_keep: timedelta | None
    snapshot_keep: timedelta | None
    notify_url: str
    notify_secret_file: Path | None


def sink(command: Callable[..., Any]) -> Callable[..., Any]:
    """Adds the options that say where records go: ``history_url``, ``_url_file``, ``_token_file`` and ``region``."""
    for option in (
        click.option("--region", help="What the history says about where jobs ran."),
        click.option("--history-token-file", type=FILE, help="Token for the history's process."),
        click.option(
            "--history-url-file",
            type=FILE,
            help="File with that URL, as of a mounted Secret; while there is none, no history is kept.",
        ),
        click.option("--history-url", default="", help="SQLAlchemy URL of the history, or http(s) URL of its process."),
    ):
        command = option(command)
    return command


def url_of(url: str, file: Path | None) -> str:
    """The URL that was given, empty for no history. ValueError when it was given twice.

    It may hold a password, so it is better in a file than among the arguments, which everyone can list.
    """
    if file is None:
        return url
    if url:
        raise ValueError("--history-url and --history-url-file: only one of them may be given")
    try:
        return file.read_text().strip()
    except FileNotFoundError:
        structlog.get_logger().warning("no history is kept", file=str(file), reason="the file does not exist")
        return ""


def keeping(command: Callable[..., Any]) -> Callable[..., Any]:
    """Adds the options of ``Keeping``."""
    for option in (
        click.option(
            "--history-keep", type=Span(), default=FOREVER, help="Forget jobs so long after their end (180d)."
        ),
        click.option("--snapshot-keep", type=Span(), default="30d", help="Forget objects' YAML after so long."),
        click.option("--notify-url", default="", help="POST here when a job has finished."),
        click.option("--notify-secret-file", type=FILE, help="Key of the posts' HMAC-SHA256 signature."),
    ):
        command = option(command)
    return command


def taken(options: dict[str, Any]) -> Keeping:
    """Takes the options of ``keeping`` out of ``options``."""
    return Keeping(**{name: options.pop(name) for name in Keeping.__dataclass_fields__})


def open_writer(
    url: str, token_file: Path | None, region: str | None, keeping: Keeping, leading: Callable[[], bool]
) -> "tuple[Writer, Chores | None]":
    """A recorder at ``url``, and the chores, done while ``leading``, if that is a database. Raises ValueError."""
    from history.sink import open_sink
    from history.store import Store
    from history.writer import Writer

    sink = open_sink(url, token_file, notify=bool(keeping.notify_url))
    chores = open_chores(Store(url), keeping, leading) if isinstance(sink, Store) else None
    return Writer(sink, region=region), chores


def open_chores(store: "Store", keeping: Keeping, leading: Callable[[], bool] = lambda: True) -> "Chores":
    """Retention and notifications on a database. Raises ValueError for a URL that can never work."""
    from history.chores import Chores
    from history.notify import Notifier
    from history.retention import Keep

    notifier = Notifier(store, keeping.notify_url, keeping.notify_secret_file) if keeping.notify_url else None
    return Chores(store, Keep(keeping.history_keep, keeping.snapshot_keep), notifier, leading)
