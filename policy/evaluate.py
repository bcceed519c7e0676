"""What policies do to one request: defaults first, by priority, then every limit and rule. Pure and total.

Offline commands, the webhook and the controller's scan all come here, so they cannot differ.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Any

from policy import defaults, expressions
from policy.defaults import Applied
from policy.expressions import Failed
from policy.limits import Breach
from policy.model import APPLY, FAIL, Policy, PolicySet, Rule
from policy.places import at, segments
from policy.request import Request
from policy.verdicts import LIMIT, RULE, Judgement, Violation
from schemas.faults import NOTHING
from schemas.job import Job

JSON = dict[str, Any]
IsLate = Callable[[], bool]
"""Whether the review's time is up; rules that were not evaluated by then have failed."""


def in_time() -> bool:
    """For callers without a time limit: never late."""
    return False


@dataclass(frozen=True, slots=True)
class Filled:
    """A job after the defaults of policies, and which were applied (or, marked ``audit``, would have been)."""

    object: JSON
    applied: tuple[Applied, ...] = ()


def filled(policies: PolicySet, request: Request) -> Filled:
    """The request's object with the defaults of every policy that is about it; higher priorities come first."""
    value, job = request.object, request.job
    applied: tuple[Applied, ...] = ()
    old = Job(request.kind, request.old) if request.old is not None else None
    for policy in policies.candidates(request) if isinstance(value.get("spec"), dict) else ():
        if not policy.defaults or policy.holds(request) is not True:
            continue
        found, new = defaults.fill(job, old, policy.defaults, policy.name)
        if policy.defaults_mode == APPLY and new:
            value, job = found, Job(request.kind, found)
        elif new:
            new = tuple(replace(item, audit=True) for item in new)
        applied += new
    return Filled(value, applied)


def judged(policies: PolicySet, request: Request, now: datetime, is_late: IsLate = in_time) -> Judgement:
    """Every violation of the request's object, which carries its defaults; those it had before are marked."""
    about = [(policy, policy.holds(request)) for policy in policies.candidates(request)]
    matched = [policy for policy, holds in about if holds]
    unknown = [_unknown(policy) for policy, holds in about if holds is None and policy.failure_policy == FAIL]
    values = _Values(request)
    found = [violation for policy in matched for violation in _violations(policy, values, now, is_late)]
    before = request.as_it_was()
    if found and before is not None:
        values = _Values(before)
        was = [old for policy in matched for old in _violations(policy, values, now, is_late)]
        found = [item.known() if any(map(item.is_no_worse_than, was)) else item for item in found]
    return Judgement(
        matched=tuple(policy.name for policy in matched),
        violations=(*unknown, *found),
        expired=tuple(_expired(matched, request, now)),
    )


def _unknown(policy: Policy) -> Violation:
    """Whether the policy is about the job hangs on labels that could not be had."""
    must = "must be in a namespace whose labels can be read"
    return Violation(policy.name, policy.enforcement, LIMIT, "match", "metadata.namespace", must, failed=True)


class _Values:
    """What the expressions of all policies read of one request: shared, since the library converts it as they look."""

    def __init__(self, request: Request) -> None:
        self.request = request
        self._without_params: Any = None

    def of(self, policy: Policy) -> Any:
        if policy.params:
            return expressions.activation(_values(policy, self.request))
        if self._without_params is None:
            self._without_params = expressions.activation(_values(policy, self.request))
        return self._without_params


def _violations(policy: Policy, shared: _Values, now: datetime, is_late: IsLate) -> Iterator[Violation]:
    request = shared.request
    exempt = _exempt(policy, request, now)
    for name, check in policy.limits:
        if not exempt(name):
            for breach in check(request.job):
                yield _of_breach(policy, name, breach)
    rules = [rule for rule in policy.rules if not exempt(rule.name)]
    if not rules:
        return
    values = shared.of(policy)
    for rule in rules:
        yield from _of_rule(policy, rule, request, values, is_late)


def _exempt(policy: Policy, request: Request, now: datetime) -> Callable[[str], bool]:
    """Whether a rule or limit does not count for this request."""
    live = [item for item in policy.exemptions if not item.has_expired(now) and item.matcher.holds(request)]
    return lambda name: any(item.rules is None or name in item.rules for item in live)


def _expired(policies: list[Policy], request: Request, now: datetime) -> Iterator[str]:
    for policy in policies:
        for item in policy.expired(now):
            if item.matcher.holds(request):
                yield f"{policy.name}/{item.shown}"


def _of_breach(policy: Policy, name: str, breach: Breach) -> Violation:
    return Violation(
        policy=policy.name,
        enforcement=policy.enforcement,
        sort=LIMIT,
        rule=name,
        path=breach.path,
        must=breach.must,
        limit=breach.limit,
        found=breach.found,
        beyond=breach.beyond,
    )


def _values(policy: Policy, request: Request) -> JSON:
    return {
        "object": request.object,
        "oldObject": request.old,
        "request": request.as_cel,
        "namespaceObject": request.namespace_as_cel,
        "params": policy.params,
    }


def _of_rule(policy: Policy, rule: Rule, request: Request, values: Any, is_late: IsLate) -> Iterator[Violation]:
    try:
        if is_late():
            raise Failed("the review's time is up")
        holds = rule.expression.value(values)
        if not isinstance(holds, bool):
            raise Failed("it gave neither true nor false")
    except Failed as error:
        if policy.failure_policy == FAIL:
            must = f"must be evaluated: {error}"
            yield Violation(policy.name, policy.enforcement, RULE, rule.name, rule.path, must, failed=True)
        return
    if not holds:
        yield Violation(
            policy=policy.name,
            enforcement=policy.enforcement,
            sort=RULE,
            rule=rule.name,
            path=rule.path,
            must=_message(rule, values),
            limit=rule.expression.source,
            found=_found(request.object, rule.path),
        )


def _message(rule: Rule, values: Any) -> str:
    """messageExpression, else message, else the expression itself."""
    if rule.message_expression is not None:
        try:
            said = rule.message_expression.value(values)
        except Failed:
            said = None
        if isinstance(said, str) and said.strip():
            return " ".join(said.split())
    return " ".join(rule.message.split()) or f"must satisfy {rule.expression.source}"


def _found(value: JSON, path: str) -> Any:
    """The value at a rule's fieldPath; nothing for the whole spec, which would say too little in too many words."""
    if path == "spec":
        return NOTHING
    found = at(value, segments(path))
    return NOTHING if found is None else found
