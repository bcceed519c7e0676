"""The whole validation of a job: schema first, then the rules; on an update only what the update brings.

Pure and total: any JSON gives a list of faults. The words are ours whichever library found the fault.
"""

from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any

import jsonschema_rs

from schemas import conditions, faults, loader
from schemas.faults import Fault
from schemas.job import Job, mapping, sequence
from schemas.rules import RULES, UPDATE_RULES, WARNINGS
from schemas.rules.warnings import as_text

Segments = tuple[str | int, ...]


def check(job: Job, old: Job | None = None) -> list[Fault]:
    """All faults of ``job``, sorted by path. Both jobs carry their defaults; ``old`` is the stored one on an update.

    Ratcheting: a fault that the old object has at the same path with the same value is not reported, so that a rule
    of a newer version never blocks an unrelated change.
    """
    found = _faults(job)
    if old is None:
        return faults.ordered(found)
    known = {_identity(fault) for fault in _faults(old)} if found else set()
    fresh = [fault for fault in found if _identity(fault) not in known]
    changed = [fault for rule in UPDATE_RULES for fault in rule(old, job)]
    return faults.ordered([*fresh, *_not_below(changed, {fault.path for fault in fresh})])


def warn(job: Job, old: Job | None = None) -> list[str]:
    """What is allowed but probably not meant, each at most 120 characters; on an update only what is new."""
    found = _warnings(job)
    if old is None:
        return found
    if is_finished(old) and old.spec != job.spec:
        found.append("spec: the job has finished, a change of its spec has no effect")
    known = _warnings(old) if found else []
    return [text for text in found if text not in known]


def _warnings(job: Job) -> list[str]:
    return list(dict.fromkeys(as_text(fault) for rule in WARNINGS for fault in rule(job)))


def is_finished(job: Job) -> bool:
    """Whether the job has succeeded or failed."""
    rows = [mapping(item) for item in sequence(job.status.get("conditions"))]
    return any(conditions.is_true(rows, state) for state in conditions.TERMINAL)


def _faults(job: Job) -> list[Fault]:
    by_schema = _without_echoes(list(schema_faults(job)))
    by_rule = (fault for rule in RULES for fault in rule(job))
    return [*by_schema, *_not_below(by_rule, {fault.path for fault in by_schema})]


def _without_echoes(found: list[Fault]) -> list[Fault]:
    """One fault for each path: what has the wrong type is no member of an enum either, the type says it all."""
    first: dict[str, Fault] = {}
    for fault in sorted(found, key=lambda fault: fault.reason != faults.TYPE_INVALID):
        first.setdefault(fault.path, fault)
    return list(first.values())


def _not_below(found: Iterable[Fault], reported: set[str]) -> Iterator[Fault]:
    """Without those whose path, or one above it, is reported already: one field, one fault."""
    for fault in found:
        if not any(fault.path == path or fault.path.startswith((path + ".", path + "[")) for path in reported):
            yield fault


def _identity(fault: Fault) -> tuple[str, str, str]:
    return fault.path, fault.must, faults.shown(fault.got)


def schema_faults(job: Job) -> Iterator[Fault]:
    """What the kind's JSON Schema finds, in our words."""
    return faults_by(loader.validator(job.kind), job.raw)


def faults_by(validator: jsonschema_rs.Draft202012Validator, raw: Any) -> Iterator[Fault]:
    """What a compiled schema finds in an object, in our words."""
    try:
        errors = [] if validator.is_valid(raw) else list(validator.iter_errors(raw))
    except ValueError:  # the library's limit is 255 levels: no pod template comes near
        yield Fault("spec", "must be nested less deeply")
        return
    for error in errors:
        yield from worded(tuple(error.instance_path), error.kind.name, error.kind.value, error.instance)


def worded(at: Segments, keyword: str, limit: Any, got: Any) -> Iterator[Fault]:
    """The fault for one failed schema keyword: the same words whether jsonschema-rs or jsonschema found it."""
    if keyword == "required":
        for name in [limit] if isinstance(limit, str) else [name for name in limit if name not in got]:
            yield Fault(faults.path(*at, name), "must be set", reason=faults.REQUIRED)
        return
    reason, must = WORDS[keyword]
    yield Fault(faults.path(*at), must(limit), got, reason)


def _type_words(types: Any) -> str:
    wanted = [types] if isinstance(types, str) else types
    return "must be " + " or ".join(TYPE_WORDS[name] for name in TYPE_WORDS if name in wanted)


def _enum_words(values: Sequence[Any]) -> str:
    words = [str(value) for value in values if value not in (None, "")]
    return ("must be one of " if len(words) > 1 else "must be ") + ", ".join(words)


def _pattern_words(pattern: str) -> str:
    return PATTERN_WORDS.get(pattern, f"must match {pattern}")


def _worded_patterns(node: Any) -> Iterator[tuple[str, str]]:
    """Every pattern below ``node`` that has words beside it, with them."""
    if isinstance(node, dict):
        if PATTERN_MARK in node:
            yield node["pattern"], node[PATTERN_MARK]
        for value in node.values():
            yield from _worded_patterns(value)
    elif isinstance(node, list):
        for value in node:
            yield from _worded_patterns(value)


PATTERN_MARK = "x-signalbox-words"
PATTERN_WORDS = {
    pattern: words
    for name in ("common.json", "podlimits.json")
    for pattern, words in _worded_patterns(loader.document(name))
}
TYPE_WORDS = {
    "object": "an object",
    "array": "a list",
    "string": "a string",
    "boolean": "true or false",
    "integer": "an integer",
    "number": "a number",
}
WORDS: dict[str, tuple[str, Callable[[Any], str]]] = {
    "type": (faults.TYPE_INVALID, _type_words),
    "enum": (faults.NOT_SUPPORTED, _enum_words),
    "minimum": (faults.INVALID, lambda limit: f"must be an integer ≥ {limit}"),
    "maximum": (faults.INVALID, lambda limit: f"must be an integer ≤ {limit}"),
    "pattern": (faults.INVALID, _pattern_words),
    "minLength": (faults.REQUIRED, lambda _: "must not be empty"),
    "maxLength": (faults.INVALID, lambda limit: f"must be at most {limit} characters"),
    "minItems": (faults.REQUIRED, lambda limit: f"must hold at least {limit} item"),
    "maxItems": (faults.INVALID, lambda limit: f"must hold at most {limit} items"),
}
