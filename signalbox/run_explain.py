"""``signalbox explain``: what a manifest amounts to, field by field, and where each value comes from."""

import sys
from collections.abc import Callable, Iterator, Mapping
from dataclasses import asdict, dataclass, replace
from typing import Any

import click
import orjson

from controller.success import decision
from policy.defaults import Applied
from policy.evaluate import Filled
from schemas import faults, validation
from schemas.job import Job, Replica, mapping, sequence
from signalbox.findings import Manifest, Reading, defaulted, plain, read_some, warned
from signalbox.policy_cases import review_of
from signalbox.policy_files import read_policies
from signalbox.run_check import manifest_files
from signalbox.run_default import exit_code, good_jobs
from signalbox.run_policy import around_of, circumstances
from webhook import governed

JSON = dict[str, Any]

YOU, BUILT_IN = "you", "built in"
PIPE_WIDTH = 100_000  # characters: a line is never cut or folded when a program reads it
MOST_DECIDERS = 3

RUN_POLICY = {
    "suspend": "false",
    "managedBy": "Signalbox",
    "cleanPodPolicy": "",
    "ttlSecondsAfterFinished": "never",
    "activeDeadlineSeconds": "no limit",
    "backoffLimit": "no limit",
    "exitCodeRules": "none",
}
SCHEDULING = {
    "minAvailable": "all pods",
    "queue": "the scheduler's own",
    "priorityClass": "none",
    "minResources": "what the first minAvailable pods ask for",
    "scheduleTimeoutSeconds": "the scheduler's own",
}
"""The fields that are explained, with what their absence means."""


@dataclass(frozen=True, slots=True)
class Effect:
    """One effective value: ``shown`` says it in words, ``source`` is who set it, ``note`` what else there is to say."""

    path: str
    value: Any
    shown: str
    source: str
    note: str = ""


@click.command()
@manifest_files
@click.option("-o", "--output", type=click.Choice(["table", "json"]), default="table", show_default=True)
@click.option("--policy", "policies", multiple=True, metavar="FILE|DIR", help="TrainingPolicies; may be repeated.")
@circumstances
def explain(paths: tuple[str, ...], output: str, policies: tuple[str, ...], **given: Any) -> None:
    """Show every effective field of the jobs, its value, and where it comes from.

    An invalid job is not explained: its faults go to standard error, and the exit code is 1 (2 for a file that is
    no manifest).
    """
    reading = read_some(paths)
    fill = _filler(policies, given)
    good = good_jobs(reading, "is invalid and was not explained")
    if output == "json":
        explained = [{**job.identity, "fields": list(map(asdict, effects(job, fill(job))))} for job in good]
        click.echo(orjson.dumps(explained, option=orjson.OPT_INDENT_2).decode())
    else:
        for job in good:
            _print_table(job, effects(job, fill(job)))
    sys.exit(exit_code(reading, good))


def effects(manifest: Manifest, policed: Filled | None = None) -> list[Effect]:
    """The effective fields of a good job, those of the run policy first; a warning is the note of its field.

    ``policed`` is the job after the defaults of policies; what they filled in is theirs.
    """
    assert manifest.kind is not None
    given = policed or Filled(manifest.value)
    written, job = Job(manifest.kind, manifest.value), Job(manifest.kind, defaulted(manifest.kind, given.object))
    found = [*_run_policy(written, job), *_success(job), *_elastic(written, job)]
    for entry in job.replicas:
        found += _replica(job, entry, written.replica(entry.type))
    return _policed(_noted(found, job), given.applied)


def _policed(found: list[Effect], applied: tuple[Applied, ...]) -> list[Effect]:
    """``found`` with the fields that policies filled in as theirs; of what they only would fill in a note."""
    by_path = {item.path.lower(): item for item in found}
    for one in applied:
        key, owner = one.path.lower(), f"policy {one.policy}"
        if one.audit:
            known = by_path.get(key, Effect(one.path, None, "not set", BUILT_IN))
            note = f"{owner} would set {_shown(one.value)}"
            by_path[key] = replace(known, note="; ".join(filter(None, (known.note, note))))
        else:
            known = by_path.get(key, Effect(one.path, one.value, _shown(one.value), owner))
            by_path[key] = replace(known, source=owner)
    return list(by_path.values())


def _filler(paths: tuple[str, ...], given: dict[str, Any]) -> Callable[[Manifest], Filled | None]:
    """Fills a job in by the policies of files; by nothing when there are none."""
    if not paths:
        return lambda _: None
    policies = read_policies(paths)

    def fill(job: Manifest) -> Filled:
        assert job.kind is not None
        around = around_of(Reading(), **given)
        review = review_of(job.kind, job.value, around)
        return governed.filled(review, job.kind, around.ground(policies, review.namespace))

    return fill


def source(written: Any) -> str:
    """Who set a field that reads ``written`` in the manifest, policies aside."""
    return BUILT_IN if written in (None, "") else YOU


def _run_policy(written: Job, job: Job) -> Iterator[Effect]:
    for name, absent in RUN_POLICY.items():
        note = "" if name != "managedBy" or job.managed_by_us else "Signalbox leaves this job alone"
        path = job.path("runPolicy", name)
        yield _field(path, written.run_policy.get(name), job.run_policy.get(name), absent, note)
    ours, theirs = (mapping(policy.get("schedulingPolicy")) for policy in (job.run_policy, written.run_policy))
    for name, absent in SCHEDULING.items():
        path = job.path("runPolicy", "schedulingPolicy", name)
        yield _field(path, theirs.get(name), ours.get(name), absent, "only with a gang scheduler")


def _field(path: str, written: Any, value: Any, absent: str = "", note: str = "") -> Effect:
    return Effect(path, value, absent if value is None else _shown(value), source(written), note)


def _shown(value: Any) -> str:
    return value if isinstance(value, str) else orjson.dumps(value).decode()


def _success(job: Job) -> Iterator[Effect]:
    """Which replicas' success is the job's."""
    decides = decision(job)
    names = [f"{name} {index}" for name, index in decides.replicas]
    more = f" … {names[-1]}" if len(names) > MOST_DECIDERS else ""
    some = ", ".join(names[:MOST_DECIDERS]) + more or "no replica"
    scope = "" if len(names) == 1 else "any of " if decides.any_one else "all of "
    policy = job.spec.get("successPolicy")
    yield Effect(job.path("successPolicy"), policy, f"decided by {scope}{some}", source(policy))


def _elastic(written: Job, job: Job) -> Iterator[Effect]:
    theirs: Mapping[str, Any] = written.elastic_policy or {}
    for name in ("minReplicas", "maxReplicas") if job.elastic_policy is not None else ():
        yield _field(job.path("elasticPolicy", name), theirs.get(name), (job.elastic_policy or {}).get(name))


def _replica(job: Job, entry: Replica, written: Replica | None) -> Iterator[Effect]:
    theirs = written.spec if written else {}
    for name in ("replicas", "restartPolicy"):
        yield _field(job.replica_path(entry, name), theirs.get(name), entry.spec.get(name))
    yield Effect(job.replica_path(entry), entry.type, _role(job, entry), BUILT_IN)
    index = entry.main_container
    if index is None:
        return
    at = ("template", "spec", "containers", index)
    name = entry.containers[index].get("name")
    note = "the main container" if name == job.kind.container else "the main container, being the only one"
    yield Effect(job.replica_path(entry, *at, "name"), name, _shown(name), YOU, note)
    if job.kind.port:
        yield _port(job, entry, written, at)


def _role(job: Job, entry: Replica) -> str:
    if entry.type == job.leader_type:
        return "leads: its success is the job's"
    if any(name == entry.type for name, _ in decision(job).replicas):
        return "decides the job's success"
    return "follows: its success decides nothing"


def _port(job: Job, entry: Replica, written: Replica | None, at: tuple[str | int, ...]) -> Effect:
    """The port by which the others find this replica."""
    place, port = _named_port(job, entry)
    theirs = _named_port(job, written)[1] if written else {}
    number, path = port.get("containerPort"), job.replica_path(entry, *at, "ports", place)
    return Effect(path, number, f"{job.kind.port_name}/{number}", source(theirs.get("name")))


def _named_port(job: Job, entry: Replica) -> tuple[int, Mapping[str, Any]]:
    index = entry.main_container
    ports = sequence(mapping(entry.containers[index]).get("ports")) if index is not None else []
    named = ((at, mapping(port)) for at, port in enumerate(ports) if mapping(port).get("name") == job.kind.port_name)
    return next(named, (0, {}))


def _noted(found: list[Effect], job: Job) -> list[Effect]:
    """``found`` with the warnings about the job: each beside its field, or as a field of its own."""
    by_path = {item.path: item for item in found}
    for fault in warned(job, validation.warn(job)):
        value = None if fault.got is faults.NOTHING else fault.got
        known = by_path.get(fault.path, Effect(fault.path, value, "" if value is None else _shown(value), YOU))
        by_path[fault.path] = replace(known, note="; ".join(filter(None, (known.note, fault.must))))
    return list(by_path.values())


def _print_table(manifest: Manifest, found: list[Effect]) -> None:
    from rich import box
    from rich.console import Console
    from rich.table import Table
    from rich.text import Text

    console = Console(width=None if sys.stdout.isatty() else PIPE_WIDTH, highlight=False)
    table = Table(box=box.SIMPLE_HEAD if console.is_terminal else None, pad_edge=False)
    for title in ("FIELD", "VALUE", "FROM", "NOTE"):
        table.add_column(title, overflow="fold")
    for item in found:
        cells = (item.path.removeprefix("spec."), item.shown, item.source, item.note)
        table.add_row(*(Text(plain(cell)) for cell in cells))
    console.print(Text(plain(f"{manifest.title} ({manifest.source.file})"), style="bold"))
    console.print(table)
    console.print()
