"""``signalbox default``: manifests with everything filled in that the webhook would fill in."""

import sys
from collections.abc import Callable, Container
from typing import Any

import click
import orjson

from schemas import patch
from signalbox import yaml11
from signalbox.composing import value_of
from signalbox.findings import ERROR, Manifest, Reading, defaulted, judge, listed, plain, read_some
from signalbox.run_check import FAULTS, USAGE, manifest_files
from signalbox.sources import Document

JSON = dict[str, Any]
Good = Container[Manifest]


@click.command()
@manifest_files
@click.option("-o", "--output", type=click.Choice(["yaml", "json", "patch"]), default="yaml", show_default=True)
def default(paths: tuple[str, ...], output: str) -> None:
    """Print the manifests with their defaults; other documents pass through.

    An invalid job is not printed: its faults go to standard error, and the exit code is 1 (2 for a file that is
    no manifest).
    """
    reading = read_some(paths)
    good = good_jobs(reading, "is invalid and was not printed")
    click.echo(OUTPUTS[output](reading, good), nl=False)
    sys.exit(exit_code(reading, good))


def good_jobs(reading: Reading, outcome: str) -> list[Manifest]:
    """The jobs without faults. All that is wrong, and the ``outcome`` for a bad job, is said on standard error."""
    good = []
    for item in reading.unreadable:
        click.echo(str(item), err=True)
    for job in reading.jobs:
        errors = [item for item in judge(job) if item.severity == ERROR]
        if not errors:
            good.append(job)
            continue
        click.echo("\n".join(map(str, errors)), err=True)
        click.echo(plain(f"{job.source.file}: {job.title} {outcome}"), err=True)
    return good


def exit_code(reading: Reading, good: list[Manifest]) -> int:
    """0 when every job is good, 1 when one is not, 2 when a file is no manifest."""
    if reading.unreadable:
        return USAGE
    return 0 if len(good) == len(reading.jobs) else FAULTS


def _as_yaml(reading: Reading, good: Good) -> str:
    """The files as they are written, comments and all; only what gets defaults is written anew."""
    text = ""
    for document, objects in reading.contents:
        value = _filled(document, objects, good)
        if value is None and objects:
            continue
        anew = any(item.kind for item in objects) and value != value_of(document.node)
        piece = yaml11.dump(value) if anew else document.text.rstrip("\n") + "\n"
        separator = "---\n" if text and (anew or not document.explicit) else ""
        text += separator + piece
    return text


def _as_json(reading: Reading, good: Good) -> str:
    """One object, or a List of all of them as kubectl prints it."""
    filled = [_filled(document, objects, good) for document, objects in reading.contents]
    values = [value for value in filled if value is not None]
    if not values:
        return ""
    return _json(values[0] if len(values) == 1 else {"apiVersion": "v1", "kind": "List", "items": values})


def _as_patches(reading: Reading, good: Good) -> str:
    """The JSON patch (RFC 6902) of each job."""
    return _json([{**job.identity, "patch": _patch(job)} for job in reading.jobs if job in good])


def _patch(job: Manifest) -> list[JSON]:
    return patch.diff(job.value, _defaulted(job))


def _json(value: Any) -> str:
    return orjson.dumps(value, option=orjson.OPT_INDENT_2).decode() + "\n"


def _filled(document: Document, objects: list[Manifest], good: Good) -> Any:
    """The document with its good jobs filled in and the bad ones left out; None when that leaves nothing."""
    kept = [_defaulted(item) for item in objects if item.kind is None or item in good]
    if listed(document.node) is not None:
        return {**value_of(document.node), "items": kept} if kept or not objects else None
    return kept[0] if kept else None


def _defaulted(manifest: Manifest) -> Any:
    return defaulted(manifest.kind, manifest.value) if manifest.kind else manifest.value


OUTPUTS: dict[str, Callable[[Reading, Good], str]] = {"yaml": _as_yaml, "json": _as_json, "patch": _as_patches}
