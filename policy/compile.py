"""From a TrainingPolicy object to a compiled policy, or everything that is wrong with it, with paths.

Pure and total: any JSON gives one or the other. Never raises.
"""

from collections.abc import Iterator, Mapping
from typing import Any

from policy import checks, defaults, expressions, limits
from policy.expressions import BOOLEAN, STRING, Expression, Malformed
from policy.match import Matcher, matcher
from policy.model import APPLY, ENFORCE, FAIL, Exemption, Invalid, Policy, Rule
from schemas import faults, loader, unknown, validation
from schemas.faults import Fault
from schemas.job import integer, mapping, sequence, text
from schemas.times import parse

JSON = dict[str, Any]

API_VERSION = "signalbox.dev/v1"
KIND = "TrainingPolicy"


def is_policy(value: Any) -> bool:
    """Whether an object is a TrainingPolicy of the version that is served."""
    return mapping(value).get("kind") == KIND and mapping(value).get("apiVersion") == API_VERSION


def compiled(value: Any) -> Policy | Invalid:
    """The policy that ``value`` describes, or all its faults."""
    metadata = mapping(mapping(value).get("metadata"))
    name, generation = text(metadata.get("name")), integer(metadata.get("generation")) or 0
    found = check(value)
    return Invalid(name, generation, tuple(found)) if found else _policy(name, generation, mapping(value["spec"]))


def check(value: Any) -> list[Fault]:
    """All faults of a policy, sorted by path."""
    if not isinstance(value, dict):
        return [Fault("object", "must be an object", value, faults.TYPE_INVALID)]
    if mapping(value).get("spec") is None:
        return [Fault("spec", "must be set", reason=faults.REQUIRED)]
    found = list(validation.faults_by(loader.policy_validator(), value))
    found += unknown.unknown_in(unknown.policy_schema(), value)
    told = {fault.path for fault in found}
    found += [fault for fault in _beyond_schema(mapping(value["spec"])) if fault.path not in told]
    return faults.ordered(found or checks.own_refusals(value["spec"]))


def _beyond_schema(spec: Mapping[str, Any]) -> Iterator[Fault]:
    for rule in checks.CHECKS:
        yield from rule(spec)
    yield from _expression_faults(spec)


def _expression_faults(spec: Mapping[str, Any]) -> Iterator[Fault]:
    for index, rule in enumerate(map(mapping, sequence(spec.get("rules")))):
        for field, wanted in (("expression", BOOLEAN), ("messageExpression", STRING)):
            source = rule.get(field)
            if not isinstance(source, str):
                continue
            try:
                expressions.compiled(source, wanted)
            except Malformed as error:
                yield Fault(faults.path("spec", "rules", index, field), str(error), source)


def _policy(name: str, generation: int, spec: Mapping[str, Any]) -> Policy:
    wanted = mapping(spec.get("limits"))
    return Policy(
        name=name,
        generation=generation,
        priority=integer(spec.get("priority")) or 0,
        enforcement=text(spec.get("enforcement")) or ENFORCE,
        defaults_mode=text(spec.get("defaultsMode")) or APPLY,
        failure_policy=text(spec.get("failurePolicy")) or FAIL,
        matcher=matcher(spec.get("match")),
        excluded=_excluded(spec.get("exclude")),
        defaults=defaults.compiled(spec.get("defaults")),
        limits=limits.compiled(wanted),
        max_running_jobs=integer(wanted.get("maxRunningJobs")),
        params=mapping(spec.get("params")),
        rules=tuple(map(_rule, sequence(spec.get("rules")))),
        exemptions=tuple(_exemption(index, item) for index, item in enumerate(sequence(spec.get("exceptions")))),
    )


def _excluded(written: Any) -> Matcher | None:
    return matcher(written) if written is not None else None


def _rule(written: Mapping[str, Any]) -> Rule:
    return Rule(
        name=written["name"],
        expression=expressions.compiled(written["expression"], BOOLEAN),
        message=text(written.get("message")),
        message_expression=_optional(written.get("messageExpression")),
        path=text(written.get("fieldPath")).removeprefix(".") or "spec",
    )


def _optional(source: Any) -> Expression | None:
    return expressions.compiled(source, STRING) if source is not None else None


def _exemption(index: int, written: Mapping[str, Any]) -> Exemption:
    names = written.get("rules")
    return Exemption(
        index=index,
        matcher=matcher(written.get("match")),
        rules=None if names is None else frozenset(names),
        until=parse(written.get("until")),
        reason=written["reason"],
    )
