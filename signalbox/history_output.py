"""How ``signalbox history`` prints: tables for people, JSON and CSV for programs."""

import sys
from collections.abc import Callable, Iterable
from datetime import datetime, timedelta
from typing import Any

import click
import orjson
from rich import box
from rich.console import Console
from rich.table import Table
from rich.text import Text

from history.export import write_csv
from history.queries import Row

PIPE_WIDTH = 100_000  # characters: a line is never cut or folded when a program reads it
Column = tuple[str, Callable[[Row], Any]]


def field(column: str) -> Callable[[Row], Any]:
    return lambda row: row[column]


def time(column: str) -> Callable[[Row], str]:
    return lambda row: f"{row[column]:%Y-%m-%d %H:%M:%S}Z" if row[column] else ""


def duration(start: str, end: str) -> Callable[[Row], str]:
    return lambda row: str(row[end] - row[start]) if row[start] and row[end] else ""


def seconds(column: str, name: str) -> Callable[[Row], str]:
    """A percentile in ``history.statistics.Times``."""
    return lambda row: str(timedelta(seconds=int(getattr(row[column], name)))) if row[column] else ""


def show(output: str, columns: tuple[Column, ...], rows: list[Row], nothing: str, shaped: Callable[[Row], Any]) -> None:
    """Rows in the form asked for: table, json or csv."""
    match output:
        case "json":
            print_json([shaped(row) for row in rows])
        case "csv":
            sys.stdout.flush()
            write_csv(
                [title.lower().replace(" ", "_") for title, _ in columns], _cells(columns, rows), sys.stdout.buffer
            )
        case _ if rows:
            print_table(columns, rows)
        case _:
            click.echo(nothing, err=True)


def print_table(columns: tuple[Column, ...], rows: Iterable[Row]) -> None:
    console = Console(width=None if sys.stdout.isatty() else PIPE_WIDTH, highlight=False)
    table = Table(box=box.SIMPLE_HEAD if console.is_terminal else None, pad_edge=False)
    for title, _ in columns:
        table.add_column(title, overflow="fold")
    for cells in _cells(columns, rows):
        table.add_row(*(Text(plain(cell)) for cell in cells))
    console.print(table)


def plain(value: Any) -> str:
    """Text that cannot steer a terminal, whatever a job's author wrote."""
    said = "" if value is None else str(value)
    return "".join(char if char.isprintable() else " " for char in said)


def print_json(value: Any) -> None:
    options = orjson.OPT_INDENT_2 | orjson.OPT_NAIVE_UTC | orjson.OPT_UTC_Z
    click.echo(orjson.dumps(value, option=options).decode())


def print_facts(facts: Iterable[tuple[str, Any]]) -> None:
    for label, value in facts:
        if value is not None:
            said = f"{value:%Y-%m-%d %H:%M:%S}Z" if isinstance(value, datetime) else plain(value)
            click.echo(f"{label + ':':<11}{said}")


def _cells(columns: tuple[Column, ...], rows: Iterable[Row]) -> Iterable[list[Any]]:
    return ([value(row) for _, value in columns] for row in rows)
