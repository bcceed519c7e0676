"""``signalbox check``: every fault of the jobs in manifest files, with its line. Needs no cluster."""

import sys
from collections.abc import Callable

import click
import orjson

from signalbox.findings import ERROR, WARNING, Finding, Manifest, Reading, counted, judge, plain, read_all, read_some
from signalbox.findings import stray as strayed
from signalbox.sources import STDIN

FAULTS, USAGE = 1, 2
COLOURS = {ERROR: "red", WARNING: "yellow"}
MOST_KINDS = 5
FILES = {
    "metavar": "FILE|DIR|-",
    "multiple": True,
    "required": True,
    "help": "A file, a directory (searched for .yaml, .yml and .json) or - for standard input; may be repeated.",
}

manifest_files = click.option("-f", "--filename", "paths", **FILES)  # type: ignore[arg-type]


@click.command()
@manifest_files
@click.option("--old", metavar="FILE", help="Check an update: FILE holds the job as it is stored.")
@click.option("-o", "--output", type=click.Choice(["text", "json", "github"]), default="text", show_default=True)
def check(paths: tuple[str, ...], old: str | None, output: str) -> None:
    """Check manifests as the webhook would, and name unknown fields.

    Exits with 0 when all is good (warnings are), 1 when there are faults, 2 when a file is no manifest.
    """
    reading = read_some(paths)
    found = [*reading.unreadable, *_update(reading, old)] if old else findings(reading)
    OUTPUTS[output](found)
    if output != "json":
        click.echo(summary(reading, found), err=output == "github")
    sys.exit(exit_code(reading, found))


def findings(reading: Reading) -> list[Finding]:
    """What is to be said, file by file."""
    strays = filter(None, map(strayed, reading.manifests))
    return [*reading.unreadable, *strays, *(item for job in reading.jobs for item in judge(job))]


def exit_code(reading: Reading, found: list[Finding]) -> int:
    """0, 1 or 2: what cannot be read outweighs what is wrong."""
    if reading.unreadable:
        return USAGE
    return FAULTS if any(item.severity == ERROR for item in found) else 0


def _update(reading: Reading, old: str) -> list[Finding]:
    """The findings about an update; a usage error unless both sides are the same job."""
    stored = read_all([old])
    if stored.unreadable:
        raise click.UsageError(f"--old: {stored.unreadable[0]}")
    if reading.unreadable:
        return []
    before, after = _only_job(stored, "--old"), _only_job(reading, "-f")
    if not _same(before, after):
        raise click.UsageError(f"--old: must be the same job, {after.title} (got {before.title})")
    return judge(after, before.value)


def _only_job(reading: Reading, option: str) -> Manifest:
    if len(reading.jobs) != 1:
        got = len(reading.jobs)
        raise click.UsageError(f"{option}: must hold exactly one job when an update is checked (got {got})")
    return reading.jobs[0]


def _same(before: Manifest, after: Manifest) -> bool:
    """Kind and name are equal; a namespace that one side leaves out is the other's."""
    one, other = before.identity, after.identity
    named = one["name"] == other["name"] and before.kind == after.kind
    return named and (one["namespace"] == other["namespace"] or not one["namespace"] or not other["namespace"])


def summary(reading: Reading, found: list[Finding]) -> str:
    """One line: how many jobs, faults and warnings, and what was passed over."""
    errors = sum(item.severity == ERROR for item in found)
    warnings = len(found) - errors
    parts = [f"{counted(errors, 'error') if errors else 'no errors'} in {counted(len(reading.jobs), 'job')}"]
    if warnings:
        parts.append(counted(warnings, "warning"))
    if skipped := reading.skipped():
        names = [name for name, _ in skipped.most_common(MOST_KINDS)] + ["…"] * (len(skipped) > MOST_KINDS)
        total = counted(skipped.total(), "document")
        parts.append(plain(f"skipped {total} of kinds that Signalbox does not serve ({', '.join(names)})"))
    return "; ".join(parts)


def _print_text(found: list[Finding]) -> None:
    for item in found:
        before, severity, after = str(item).partition(f" {item.severity}: ")
        coloured = click.style(severity, fg=COLOURS[item.severity], bold=True)
        click.echo(f"{before}{coloured}{after}")  # click drops the colour where no terminal reads it


def _print_json(found: list[Finding]) -> None:
    click.echo(orjson.dumps([item.as_json() for item in found], option=orjson.OPT_INDENT_2).decode())


def _print_github(found: list[Finding]) -> None:
    for item in found:
        click.echo(annotation(item))


def annotation(item: Finding) -> str:
    """The finding as a workflow command of GitHub Actions, which shows it beside its line."""
    place = {} if item.file == STDIN else {"file": item.file}
    if item.position:
        place |= {"line": str(item.position.line), "col": str(item.position.column)}
    properties = ",".join(f"{key}={_escaped(value, property_=True)}" for key, value in place.items())
    return f"::{item.severity}{' ' if properties else ''}{properties}::{_escaped(item.said)}"


def _escaped(value: str, *, property_: bool = False) -> str:
    """As GitHub's own toolkit escapes it: the rest of the line is text, a property ends at a comma or colon."""
    codes = {"%": "%25", "\r": "%0D", "\n": "%0A", **({":": "%3A", ",": "%2C"} if property_ else {})}
    return "".join(codes.get(char, char) for char in value)


OUTPUTS: dict[str, Callable[[list[Finding]], None]] = {
    "text": _print_text,
    "json": _print_json,
    "github": _print_github,
}
