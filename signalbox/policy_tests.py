"""Test files for policies: what is given and what is expected, for the admins' own CI.

given:
  policies: [policies/]                     # files and directories, relative to the test file
  namespaces: {vision: {team: vision}}      # namespace to labels
  now: "2026-06-01T00:00:00Z"
cases:
  - name: nine GPUs are too many
    resource: jobs/nine.yaml
    user: ann                               # also: groups, namespace, old (a file: an update)
    expect:
      verdict: refused                      # refused, warned or allowed
      violations: [gpu-cap/podResources]    # exactly these, as policy/rule
      defaults: {spec.runPolicy.backoffLimit: 3}   # at least these
"""

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import click
import jsonschema_rs
import yaml

from policy.model import PolicySet
from policy.places import same
from schemas.times import parse
from schemas.unknown import unknown_in
from schemas.validation import faults_by
from signalbox.findings import Manifest, read_all
from signalbox.policy_cases import Circumstances, verdict_of, word
from signalbox.policy_files import read_policies
from webhook.review import Verdict

JSON = dict[str, Any]

TEXTS = {"type": "array", "items": {"type": "string"}}
LABELS = {"type": "object", "additionalProperties": {"type": "string"}}
EXPECT = {
    "verdict": {"type": "string", "enum": ["refused", "warned", "allowed"]},
    "violations": TEXTS,
    "defaults": {"type": "object"},
}
CASE = {
    "name": {"type": "string"},
    "resource": {"type": "string"},
    "old": {"type": "string"},
    "user": {"type": "string"},
    "groups": TEXTS,
    "namespace": {"type": "string"},
    "expect": {"type": "object", "properties": EXPECT},
}
GIVEN = {
    "policies": TEXTS,
    "namespaces": {"type": "object", "additionalProperties": LABELS},
    "now": {"type": "string"},
}
SCHEMA = {
    "type": "object",
    "required": ["given", "cases"],
    "properties": {
        "given": {"type": "object", "required": ["policies"], "properties": GIVEN},
        "cases": {
            "type": "array",
            "items": {"type": "object", "required": ["name", "resource", "expect"], "properties": CASE},
        },
    },
}


@dataclass(frozen=True, slots=True)
class Outcome:
    """One case, and what was not as expected."""

    file: str
    name: str
    differences: tuple[str, ...]

    @property
    def passed(self) -> bool:
        return not self.differences

    @property
    def lines(self) -> list[str]:
        return [f"{'ok  ' if self.passed else 'FAIL'} {self.name}", *(f"       {text}" for text in self.differences)]

    @property
    def as_json(self) -> JSON:
        return {"file": self.file, "case": self.name, "passed": self.passed, "differences": list(self.differences)}


def run(file: str) -> Iterator[Outcome]:
    """The outcome of each case of a test file; a usage error when it, or a file that it names, cannot be used."""
    document = _document(file)
    folder = Path(file).parent
    policies = read_policies([str(folder / name) for name in document["given"]["policies"]])
    for case in document["cases"]:
        yield Outcome(file, case["name"], tuple(_differences(folder, document["given"], case, policies)))


def _document(file: str) -> JSON:
    try:
        document = yaml.safe_load(Path(file).read_bytes())
    except (OSError, yaml.YAMLError) as error:
        raise click.UsageError(f"{file}: cannot be read: {error}") from error
    faults = [*faults_by(jsonschema_rs.Draft202012Validator(SCHEMA), document), *unknown_in(SCHEMA, document)]
    if faults:
        raise click.UsageError("\n".join(f"{file}: {fault}" for fault in faults))
    return dict(document)


def _differences(folder: Path, given: JSON, case: JSON, policies: PolicySet) -> Iterator[str]:
    job = _job(folder / case["resource"])
    old = _job(folder / case["old"]).value if "old" in case else None
    around = Circumstances(
        now=parse(given.get("now")) or datetime.now(UTC),
        namespace=case.get("namespace", "default"),
        namespace_labels=given.get("namespaces", {}),
        user=case.get("user", ""),
        groups=tuple(case.get("groups", ())),
    )
    assert job.kind is not None
    yield from compared(case["expect"], verdict_of(policies, job.kind, job.value, around, old))


def compared(expected: JSON, verdict: Verdict) -> Iterator[str]:
    """What a verdict has otherwise than expected; fields that are not named are not looked at."""
    if "verdict" in expected and expected["verdict"] != word(verdict):
        said = "; ".join([*map(str, verdict.faults), *verdict.warnings])
        yield f"verdict: expected {expected['verdict']}, got {word(verdict)}" + (f": {said}" if said else "")
    if "violations" in expected:
        found = sorted({f"{item.policy}/{item.rule}" for item in verdict.judgement.violations})
        if sorted(expected["violations"]) != found:
            yield f"violations: expected {sorted(expected['violations'])}, got {found}"
    applied = {item.path: item.value for item in verdict.applied if not item.audit}
    for path, value in expected.get("defaults", {}).items():
        if path not in applied or not same(applied[path], value):
            yield f"defaults: expected {path} {value!r}, got {applied.get(path, 'nothing')!r}"


def _job(path: Path) -> Manifest:
    reading = read_all([str(path)])
    if reading.unreadable:
        raise click.UsageError("\n".join(map(str, reading.unreadable)))
    if len(reading.jobs) != 1:
        raise click.UsageError(f"{path}: must hold exactly one job (got {len(reading.jobs)})")
    return reading.jobs[0]
