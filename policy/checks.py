"""What is wrong with a policy beyond its schema: each check is one function, ``CHECKS`` lists them.

A check passes over what it cannot read: the schema says what is wrong with that.
"""

import re
from collections.abc import Callable, Iterator, Mapping
from typing import Any

from policy import amounts, defaults, limits
from policy.defaults import EVERY_TYPE, Applied
from policy.limits import LIMITS, Breach
from policy.match import BY_USER, Matcher, matcher
from policy.patterns import patterns
from schemas import faults, kinds, names
from schemas.faults import NOTHING, REQUIRED, Fault
from schemas.job import Job, mapping, sequence, text
from schemas.times import parse

JSON = dict[str, Any]
Spec = Mapping[str, Any]
Segments = tuple[str | int, ...]

LISTS = ("kinds", "namespaces", *BY_USER)
NO_QUESTION = Matcher()
FIELD_PATH = re.compile(r"\.?[A-Za-z][A-Za-z0-9_-]*(\.[A-Za-z][A-Za-z0-9_-]*|\[[^\[\]]+\])*")
LABEL_KEY = re.compile(r"([a-z0-9.-]{1,253}/)?[A-Za-z0-9]([A-Za-z0-9._-]{0,61}[A-Za-z0-9])?", re.ASCII)
ACCOUNT = re.compile(r"[^/]+/[^/]+|\*")
MAX_RUNNING = "maxRunningJobs"


def _matches(spec: Spec) -> Iterator[tuple[Segments, Mapping[str, Any]]]:
    """Every ``match`` of a policy with its place."""
    for name in ("match", "exclude"):
        if spec.get(name) is not None:
            yield ("spec", name), mapping(spec[name])
    for index, item in enumerate(sequence(spec.get("exceptions"))):
        if isinstance(item, Mapping):
            yield ("spec", "exceptions", index, "match"), mapping(item.get("match"))


def ranges_run_upward(spec: Spec) -> Iterator[Fault]:
    """A minimum above its maximum refuses every job."""
    wanted = mapping(spec.get("limits"))
    for name in ("replicas", "ttlSecondsAfterFinished", "activeDeadlineSeconds", "backoffLimit"):
        yield from _upward(("spec", "limits", name), mapping(wanted.get(name)))
    for key, item in mapping(wanted.get("replicaTypes")).items():
        yield from _upward(("spec", "limits", "replicaTypes", key), mapping(item))
    for name in ("podResources", "jobResources"):
        for key, item in mapping(wanted.get(name)).items():
            yield from _upward(("spec", "limits", name, key), mapping(item))


def _upward(at: Segments, limit: Mapping[str, Any]) -> Iterator[Fault]:
    low, high = amounts.exact(limit.get("min")), amounts.exact(limit.get("max"))
    if low is not None and high is not None and low > high:
        yield Fault(faults.path(*at, "min"), f"must be at most max, {limit['max']}", limit["min"])


def quantities_are_readable(spec: Spec) -> Iterator[Fault]:
    """A bound that is beyond what a quantity can be, or negative, means nothing."""
    wanted = mapping(spec.get("limits"))
    for name in ("podResources", "jobResources"):
        for key, item in mapping(wanted.get(name)).items():
            for side in ("min", "max"):
                value = mapping(item).get(side)
                size = amounts.exact(value)
                if value is not None and (size is None or size < 0):
                    yield Fault(faults.path("spec", "limits", name, key, side), "must be a quantity ≥ 0", value)


def lists_say_something(spec: Spec) -> Iterator[Fault]:
    """An empty list of allowed values could mean all or none: it is left out, or has an entry."""
    wanted = mapping(spec.get("limits"))
    for name, value in wanted.items():
        if value in ([], {}):
            yield Fault(faults.path("spec", "limits", name), "must have an entry, or be left out", value)
    for at, parts in _matches(spec):
        for name in LISTS:
            if parts.get(name) == []:
                yield Fault(faults.path(*at, name), "must have an entry, or be left out", [])


def exclusions_say_something(spec: Spec) -> Iterator[Fault]:
    """An exclusion or exception that is about everything switches the policy off: delete the policy instead."""
    for at, parts in _matches(spec):
        if at != ("spec", "match") and matcher(parts) == NO_QUESTION:
            yield Fault(faults.path(*at), "must say which jobs", dict(parts), REQUIRED)


def kinds_are_served(spec: Spec) -> Iterator[Fault]:
    """A kind that is not served is never matched."""
    served = [row.kind for row in kinds.KINDS]
    for at, parts in _matches(spec):
        for index, name in enumerate(sequence(parts.get("kinds"))):
            if not any(patterns([text(name)]).has(kind) for kind in served):
                yield Fault(faults.path(*at, "kinds", index), f"must match one of {', '.join(served)}", name)


def accounts_have_namespaces(spec: Spec) -> Iterator[Fault]:
    """A service account is named with its namespace."""
    for at, parts in _matches(spec):
        for index, name in enumerate(sequence(parts.get("serviceAccounts"))):
            if not ACCOUNT.fullmatch(text(name)):
                yield Fault(faults.path(*at, "serviceAccounts", index), "must be namespace/name", name)


def selectors_fit_their_operators(spec: Spec) -> Iterator[Fault]:
    """In and NotIn need values, Exists and DoesNotExist have none."""
    for at, parts in _matches(spec):
        for name in ("namespaceSelector", "objectSelector"):
            for index, item in enumerate(sequence(mapping(parts.get(name)).get("matchExpressions"))):
                path = faults.path(*at, name, "matchExpressions", index, "values")
                values, operator = sequence(mapping(item).get("values")), mapping(item).get("operator")
                if operator in ("In", "NotIn") and not values:
                    yield Fault(path, f"must be set: the operator is {operator}", NOTHING, REQUIRED)
                if operator in ("Exists", "DoesNotExist") and values:
                    yield Fault(path, f"must not be set: the operator is {operator}", values)


def required_keys_are_keys(spec: Spec) -> Iterator[Fault]:
    """A label that no object can have would refuse every job."""
    for name in ("requiredLabels", "requiredAnnotations"):
        for index, item in enumerate(sequence(mapping(spec.get("limits")).get(name))):
            if not LABEL_KEY.fullmatch(text(item).partition("=")[0]):
                yield Fault(faults.path("spec", "limits", name, index), "must be a key, or key=value", item)


def running_jobs_have_no_user(spec: Spec) -> Iterator[Fault]:
    """The controller counts running jobs, and does not know who submitted them."""
    if mapping(spec.get("limits")).get(MAX_RUNNING) is None:
        return
    for at, parts in _matches(spec):
        for name in BY_USER:
            if sequence(parts.get(name)):
                must = f"must not be set together with limits.{MAX_RUNNING}: the controller does not know the user"
                yield Fault(faults.path(*at, name), must, parts[name])


def rules_have_names(spec: Spec) -> Iterator[Fault]:
    """Refusals and exceptions name rules, so a name is a DNS label, there once, and no limit's."""
    seen: set[str] = set()
    for index, rule in enumerate(sequence(spec.get("rules"))):
        path, name = faults.path("spec", "rules", index, "name"), text(mapping(rule).get("name"))
        if not names.is_dns_1123_label(name) or name in LIMITS:
            yield Fault(path, "must be a DNS label: lower-case letters, digits, '-', and no limit's field", name)
        if name in seen:
            yield Fault(path, "must be the only rule of this name", name)
        seen.add(name)


def rules_point_at_fields(spec: Spec) -> Iterator[Fault]:
    """fieldPath is a path as refusals show it."""
    for index, rule in enumerate(sequence(spec.get("rules"))):
        path = text(mapping(rule).get("fieldPath"))
        if path and not FIELD_PATH.fullmatch(path):
            yield Fault(faults.path("spec", "rules", index, "fieldPath"), "must be a path such as spec.runPolicy", path)


def exceptions_name_rules(spec: Spec) -> Iterator[Fault]:
    """An exception to a rule that is not there excepts nothing."""
    there = [*LIMITS, *(mapping(rule).get("name") for rule in sequence(spec.get("rules")))]
    for index, item in enumerate(map(mapping, sequence(spec.get("exceptions")))):
        for place, name in enumerate(sequence(item.get("rules"))):
            if name not in there:
                path = faults.path("spec", "exceptions", index, "rules", place)
                yield Fault(path, "must be the name of a rule of this policy, or the field of a limit", name)
        if item.get("rules") == []:
            yield Fault(faults.path("spec", "exceptions", index, "rules"), "must have an entry, or be left out", [])
        until = item.get("until")
        if until is not None and parse(until) is None:
            yield Fault(faults.path("spec", "exceptions", index, "until"), "must be a time of RFC 3339", until)


CHECKS: tuple[Callable[[Spec], Iterator[Fault]], ...] = (
    ranges_run_upward,
    quantities_are_readable,
    lists_say_something,
    exclusions_say_something,
    kinds_are_served,
    accounts_have_namespaces,
    selectors_fit_their_operators,
    required_keys_are_keys,
    running_jobs_have_no_user,
    rules_have_names,
    rules_point_at_fields,
    exceptions_name_rules,
)


def own_refusals(spec: Spec) -> list[Fault]:
    """Defaults that the policy's own limits refuse: nobody could submit what it fills in."""
    filled = defaults.compiled(spec.get("defaults"))
    types = sorted({item.type for item in filled if item.type not in (EVERY_TYPE, "")}) or ["Worker"]
    return [fault for name in types for fault in _refused_of(name, filled, mapping(spec.get("limits")))]


def _refused_of(name: str, filled: tuple[defaults.Default, ...], wanted: Mapping[str, Any]) -> Iterator[Fault]:
    pod = {"spec": {"containers": [{"name": kinds.TRAINING_JOB.container}]}}
    bare = {"metadata": {}, "spec": {kinds.TRAINING_JOB.spec_key: {name: {"template": pod}}}}
    value, applied = defaults.fill(Job(kinds.TRAINING_JOB, bare), None, filled, "")
    for field, check in limits.compiled(wanted):
        for breach in check(Job(kinds.TRAINING_JOB, value)):
            source = _source(field, breach, applied)
            if source is not None:
                yield Fault(source.source, f"{breach.must}: the policy's own limit {field}", source.value)


def _source(field: str, breach: Breach, applied: tuple[Applied, ...]) -> Applied | None:
    """The default that breaks the limit. What is too little of all may have more beside it in a real job."""
    if breach.low and field in ("replicas", "jobResources"):
        return None
    if breach.resource:
        suffix = (f".{breach.resource}", f"[{breach.resource}]")
        return next((item for item in applied if item.path.endswith(suffix) and ".resources." in item.path), None)
    if field == "replicas":
        return next((item for item in applied if item.path.endswith(".replicas")), None)
    return next((item for item in applied if item.path == breach.path), None)
