"""The reference pages: every field of a kind with type, default and limits, and every rule. Generated, committed."""

from collections.abc import Iterator
from typing import Any

from schemas import loader
from schemas.defaults import DEFAULT_MARK
from schemas.kinds import JobKind
from schemas.rules import RULES, UPDATE_RULES, WARNINGS
from schemas.rules.base import Rule, UpdateRule
from schemas.rules.updates import ALWAYS_MUTABLE, MANAGER

JSON = dict[str, Any]

MOVED = "x-signalbox-moved-to"
POD_TEMPLATE = "template"
CORE_FIELDS = ("tolerations", "imagePullSecrets", "env")
MUTABLE = {".".join(path) for path in ALWAYS_MUTABLE}
NEVER_CHANGES = ".".join(MANAGER)


def kind_page(kind: JobKind) -> str:
    """The page of one kind, Markdown."""
    spec = loader.job_schema(kind)["properties"]["spec"]
    status = loader.job_schema(kind)["properties"]["status"]
    return "\n".join(
        [
            f"# {kind.kind}",
            "",
            f"`{kind.api_version}`, `kubectl get {kind.plural}` ({', '.join(kind.short_names)})",
            "",
            *_facts(kind),
            "",
            "## spec",
            "",
            "| field | type | default | allowed | changes | meaning |",
            "|---|---|---|---|---|---|",
            *(_row(kind, path, schema) for path, schema in _fields(kind, spec)),
            "",
            "## status",
            "",
            "| field | type | meaning |",
            "|---|---|---|",
            *(f"| `{path}` | {_type(schema)} | {_meaning(schema)} |" for path, schema in _fields(kind, status)),
            "",
        ]
    )


def policy_page() -> str:
    """The page of TrainingPolicy, Markdown."""
    parts = loader.resolved(loader.POLICY_FILE)["properties"]
    return "\n".join(
        [
            "# TrainingPolicy",
            "",
            "`signalbox.dev/v1`, cluster-scoped, `kubectl get trainingpolicies` (tpol).",
            "How to use it: [policies](../policies.md).",
            "",
            "## spec",
            "",
            "| field | type | allowed | meaning |",
            "|---|---|---|---|",
            *(f"| `{at}` | {_type(one)} | {_allowed(one)} | {_meaning(one)} |" for at, one in _every(parts["spec"])),
            "",
            "## status",
            "",
            "| field | type | meaning |",
            "|---|---|---|",
            *(f"| `{at}` | {_type(one)} | {_meaning(one)} |" for at, one in _every(parts["status"])),
            "",
        ]
    )


def _every(schema: JSON, at: str = "") -> Iterator[tuple[str, JSON]]:
    """Every field below ``schema``; Kubernetes' own types are not opened."""
    for name, inner in schema.get("properties", {}).items():
        path = f"{at}.{name}" if at else name
        yield path, inner
        if name not in CORE_FIELDS:
            yield from _every(inner, path)
            yield from _every(inner.get("items", {}), f"{path}[]")
        if isinstance(inner.get("additionalProperties"), dict):
            yield from _every(inner["additionalProperties"], f"{path}.<key>")


def rules_page() -> str:
    """The page of all rules, in the order in which they are applied, Markdown."""
    return "\n".join(
        [
            "# Rules",
            "",
            "What the schemas cannot say. Every broken rule is told in one answer, with its path.",
            "",
            *_rule_table(RULES),
            "",
            "## On an update",
            "",
            *_rule_table(UPDATE_RULES),
            "",
            "## Warnings",
            "",
            "Shown by kubectl, never a refusal.",
            "",
            *_rule_table(WARNINGS),
            "",
        ]
    )


def _facts(kind: JobKind) -> Iterator[str]:
    types = ", ".join(row.name for row in kind.types) or "any DNS label"
    leaders = ", ".join(kind.leaders) or "none"
    port = f"`{kind.port_name}` {kind.port}" if kind.port else "none"
    yield from (
        "| | |",
        "|---|---|",
        f"| replica types | {types} |",
        f"| leads by its name | {leaders} |",
        f"| main container | `{kind.container}`, or the only one |",
        f"| port | {port} |",
        f"| restartPolicy when absent | {kind.restart_policy_default} |",
    )


def _fields(kind: JobKind, schema: JSON, at: str = "") -> Iterator[tuple[str, JSON]]:
    """Every field below ``schema`` but those of the pod template, which is Kubernetes' own."""
    for name, inner in schema.get("properties", {}).items():
        path = f"{at}.{name}" if at else name
        if MOVED in inner:
            continue
        yield path, inner
        if name != POD_TEMPLATE:
            yield from _below(kind, inner, path)


def _below(kind: JobKind, schema: JSON, path: str) -> Iterator[tuple[str, JSON]]:
    yield from _fields(kind, schema, path)
    if "items" in schema:
        yield from _fields(kind, schema["items"], f"{path}[]")
    if isinstance(schema.get("additionalProperties"), dict):
        yield from _fields(kind, schema["additionalProperties"], f"{path}.<type>")


def _row(kind: JobKind, path: str, schema: JSON) -> str:
    cells = (
        f"`{path}`",
        _type(schema),
        _default(kind, path, schema),
        _allowed(schema),
        _changes(path),
        _meaning(schema),
    )
    return f"| {' | '.join(cells)} |"


def _type(schema: JSON) -> str:
    if schema.get("x-kubernetes-int-or-string"):
        return "integer or string"
    if schema.get("type") == "array":
        return f"list of {_type(schema.get('items', {}))}"
    return str(schema.get("format") if schema.get("type") == "integer" else schema.get("type", "object"))


def _default(kind: JobKind, path: str, schema: JSON) -> str:
    if DEFAULT_MARK in schema:
        return f"`{schema[DEFAULT_MARK]}`"
    if path.endswith("<type>.replicas"):
        others = [f"{row.name} {row.replicas_default}" for row in kind.types if row.replicas_default != 1]
        return ", ".join(["1", *others])
    return kind.restart_policy_default if path.endswith("<type>.restartPolicy") else ""


def _allowed(schema: JSON) -> str:
    if "enum" in schema:
        return ", ".join(value for value in schema["enum"] if value)
    low, high = schema.get("minimum"), schema.get("maximum")
    if low is None and high is None:
        return ""
    return f"{low} to {high}"


def _changes(path: str) -> str:
    """When a field may change; a path below one that may change is like it."""
    if path == NEVER_CHANGES:
        return "never"
    free = path in MUTABLE or path.endswith("<type>.replicas")
    return "always" if free else "while suspended"


def _meaning(schema: JSON) -> str:
    return str(schema.get("description", "")).replace("|", "\\|")


def _rule_table(rules: tuple[Rule, ...] | tuple[UpdateRule, ...]) -> Iterator[str]:
    yield from ("| rule | meaning | source |", "|---|---|---|")
    for rule in rules:
        yield f"| {rule.name} | {rule.doc.replace('|', chr(92) + '|')} | {rule.source} |"
