"""``signalbox policy``: policies tried on manifests, tested and measured, without a cluster."""

import sys
import time
from collections.abc import Iterable, Iterator
from datetime import UTC, datetime
from typing import Any

import click

from policy.model import PolicySet
from schemas.job import mapping, text
from schemas.times import parse
from signalbox import history_options
from signalbox.findings import ERROR, Manifest, Reading, counted, plain, read_some
from signalbox.policy_cases import Circumstances, as_json, pretty, verdict_of, word
from signalbox.policy_files import read_policies
from signalbox.run_check import FAULTS, USAGE
from webhook.review import Verdict

JSON = dict[str, Any]
SOURCES: Any = {"multiple": True, "required": True, "metavar": "FILE|DIR|-"}


@click.group()
def policy() -> None:
    """Try TrainingPolicies on manifests, without a cluster."""


def circumstances(function: Any) -> Any:
    """The options that say who submits what where and when."""
    for option in (
        click.option("--user", default="", help="Who submits the jobs."),
        click.option("--group", "groups", multiple=True, help="A group of the user; may be repeated."),
        click.option("-n", "--namespace", default="default", show_default=True, help="Where a manifest names none."),
        click.option("--namespace-label", "labels", multiple=True, metavar="[NS:]KEY=VALUE",
                     help="A label of all namespaces, or of one; Namespace manifests count too."),
        click.option("--now", metavar="TIME", help="RFC 3339: when exceptions are looked at. Absent means now."),
    ):  # fmt: skip
        function = option(function)
    return function


@policy.command()
@click.option("-f", "--filename", "policies", help="Policies; may be repeated.", **SOURCES)
@click.option("-r", "--resources", help="Jobs (and Namespaces, for their labels); may be repeated.", **SOURCES)
@click.option("-o", "--output", type=click.Choice(["table", "json"]), default="table", show_default=True)
@circumstances
def check(policies: tuple[str, ...], resources: tuple[str, ...], output: str, **given: Any) -> None:
    """Say what the webhook would say of each job under these policies.

    Exits with 0 when no job is refused, 1 when one is, 2 when a file is unreadable or a policy invalid.
    """
    found = read_policies(policies)
    reading = read_some(resources)
    around = around_of(reading, **given)
    verdicts = [(job, verdict_of(found, job.kind, job.value, around)) for job in reading.jobs if job.kind]
    if output == "json":
        click.echo(pretty([{**job.identity, **as_json(verdict)} for job, verdict in verdicts]))
    else:
        for job, verdict in verdicts:
            click.echo("\n".join(map(plain, _lines(job, verdict))))
        click.echo(_summary(verdicts, found))
    for item in reading.unreadable:
        click.echo(str(item), err=True)
    sys.exit(USAGE if reading.unreadable else FAULTS if any(not verdict.allowed for _, verdict in verdicts) else 0)


def _lines(job: Manifest, verdict: Verdict) -> Iterator[str]:
    yield f"{job.title} ({job.source.file}): {word(verdict)}"
    for fault in verdict.faults:
        place = job.finding(ERROR, fault.path, fault.message).position
        yield f"  refused  {job.source.file}:{place.line if place else 1}: {fault}"
    yield from (f"  warned   {warning}" for warning in verdict.warnings)
    for item in verdict.judgement.of("audited"):
        yield f"  audited  {item.fault}"
    for applied in verdict.applied:
        verb = "would be" if applied.audit else "is"
        yield f"  default  {applied.path} {verb} {pretty(applied.value)} (policy {applied.policy})".replace("\n", " ")
    yield from (f"  expired  {text_}" for text_ in verdict.judgement.expired)


def _summary(verdicts: list[tuple[Manifest, Verdict]], policies: PolicySet) -> str:
    refused = sum(not verdict.allowed for _, verdict in verdicts)
    return f"{counted(refused, 'job')} of {len(verdicts)} refused under {len(policies.all)} policies"


def around_of(
    reading: Reading, user: str, groups: tuple[str, ...], namespace: str, labels: tuple[str, ...], now: str | None
) -> Circumstances:
    moment = datetime.now(UTC) if now is None else parse(now)
    if moment is None:
        raise click.UsageError(f'--now: must be a time of RFC 3339 (got "{now}")')
    return Circumstances(moment, namespace, _labels(reading, namespace, labels), user, groups)


def label_pairs(written: Iterable[str]) -> Iterator[tuple[str, str, str]]:
    """(namespace, key, value) of each KEY=VALUE or NAMESPACE:KEY=VALUE; no namespace means all."""
    for each in written:
        key, is_pair, value = each.partition("=")
        one, is_one, key_of_one = key.partition(":")
        if not is_pair:
            raise click.UsageError(f'--namespace-label: must be KEY=VALUE or NAMESPACE:KEY=VALUE (got "{each}")')
        yield (one, key_of_one, value) if is_one else ("", key, value)


def _labels(reading: Reading, namespace: str, written: Iterable[str]) -> dict[str, dict[str, str]]:
    """Labels by namespace: of Namespace manifests, over them those of the command line, over all the name's own."""
    names = {namespace, *(text(job.metadata.get("namespace")) or namespace for job in reading.jobs)}
    found: dict[str, dict[str, str]] = {name: {} for name in names}
    for item in reading.manifests:
        if item.kind_name == "Namespace" and item.api_version == "v1":
            found.setdefault(text(item.metadata.get("name")), {}).update(mapping(item.metadata.get("labels")))
    for one, key, value in label_pairs(written):
        for name in [one] if one else list(found):
            found.setdefault(name, {})[key] = value
    return {name: {"kubernetes.io/metadata.name": name, **labels} for name, labels in found.items()}


@policy.command()
@click.argument("files", nargs=-1, required=True, metavar="FILE...")
@click.option("-o", "--output", type=click.Choice(["table", "json"]), default="table", show_default=True)
def test(files: tuple[str, ...], output: str) -> None:
    """Run test files: each says which policies are given, and what is expected of which jobs.

    Exits with 0 when all is as expected, 1 when something is not, 2 when a file cannot be used.
    """
    from signalbox.policy_tests import Outcome, run

    outcomes: list[Outcome] = [outcome for file in files for outcome in run(file)]
    if output == "json":
        click.echo(pretty([outcome.as_json for outcome in outcomes]))
    else:
        for outcome in outcomes:
            click.echo("\n".join(map(plain, outcome.lines)))
        failed = sum(not outcome.passed for outcome in outcomes)
        click.echo(f"{counted(len(outcomes), 'case')}, {failed} failed")
    sys.exit(0 if all(outcome.passed for outcome in outcomes) else FAULTS)


@policy.command()
@click.option("-f", "--filename", "policies", help="Policies; may be repeated.", **SOURCES)
@click.option("-r", "--resources", help="Jobs; may be repeated.", **SOURCES)
@click.option("--seconds", type=click.FloatRange(min=0.1, max=600), default=2.0, show_default=True, help="How long.")
@circumstances
def bench(policies: tuple[str, ...], resources: tuple[str, ...], seconds: float, **given: Any) -> None:
    """Measure the CPU time that reviews of these jobs take under these policies, and under none."""
    found, reading = read_policies(policies), read_some(resources)
    around = around_of(reading, **given)
    jobs = [job for job in reading.jobs if job.kind]
    if not jobs:
        raise click.UsageError("-r: must hold a job")
    for title, set_ in (("without policies", PolicySet()), (f"with {len(found.all)} policies", found)):
        times = sorted(_timed(set_, jobs, around, seconds / 2))
        p50, p99 = (1000 * times[int(len(times) * part)] for part in (0.5, 0.99))
        click.echo(f"{title}: {len(times)} reviews, median {p50:.3f} ms, 99th percentile {p99:.3f} ms of CPU")


def _timed(policies: PolicySet, jobs: list[Manifest], around: Circumstances, seconds: float) -> Iterator[float]:
    values = [(job.kind, job.value) for job in jobs if job.kind]
    for kind, value in values:  # the first review of a kind compiles its schema
        verdict_of(policies, kind, value, around)
    end = time.perf_counter() + seconds
    while time.perf_counter() < end:
        for kind, value in values:
            start = time.thread_time()
            verdict_of(policies, kind, value, around)
            yield time.thread_time() - start


@policy.command("what-if")
@click.option("-f", "--filename", "policies", help="Policies; may be repeated.", **SOURCES)
@click.option("--since", default="30d", show_default=True, help="Submissions then or later: 30d, 2026-11-30.")
@click.option(
    "--history-url",
    envvar="SIGNALBOX_HISTORY_URL",
    default=history_options.local_history,
    help="SQLAlchemy URL of the history  [default: the local cluster's]",
)
@click.option(
    "--namespace-label",
    "labels",
    multiple=True,
    metavar="[NS:]KEY=VALUE",
    help="A label of all namespaces, or of one; without any, policies that ask for labels are left out.",
)
@click.option("-o", "--output", type=click.Choice(["table", "json"]), default="table", show_default=True)
def what_if(policies: tuple[str, ...], since: str, history_url: str, labels: tuple[str, ...], output: str) -> None:
    """Say what would have come of past submissions, had these policies been there.

    Exits with 0 when none would have been refused, 1 when one would, 2 when a policy is invalid or the history cannot
    be read.
    """
    from signalbox import policy_whatif

    found = read_policies(policies)
    known: dict[str, dict[str, str]] = {}
    for namespace, key, value in label_pairs(labels):
        known.setdefault(namespace, {})[key] = value
    refused = policy_whatif.run(found, since, history_url, known, output)
    sys.exit(FAULTS if refused else 0)
