"""A compiled policy, and a set of them in the order in which they count."""

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from policy.defaults import Default
from policy.expressions import Expression
from policy.limits import Check
from policy.match import Handle, Matcher, handles_of
from policy.request import Request
from schemas.faults import Fault

JSON = dict[str, Any]

ENFORCE, WARN, AUDIT = "Enforce", "Warn", "Audit"
APPLY = "Apply"
FAIL, IGNORE = "Fail", "Ignore"
NAMESPACE_LABEL = "namespace-label"


@dataclass(frozen=True, slots=True)
class Rule:
    """One expression that must be true."""

    name: str
    expression: Expression
    message: str
    message_expression: Expression | None
    path: str

    def reads(self, name: str) -> bool:
        """Whether one of its expressions may read the variable ``name``."""
        return any(name in each.source for each in (self.expression, self.message_expression) if each)


@dataclass(frozen=True, slots=True)
class Exemption:
    """Jobs for which ``rules`` (None: all rules and limits) do not count, until a time (None: for good)."""

    index: int
    matcher: Matcher
    rules: frozenset[str] | None
    until: datetime | None
    reason: str

    def has_expired(self, now: datetime) -> bool:
        return self.until is not None and self.until <= now

    @property
    def shown(self) -> str:
        return f"exceptions[{self.index}]: {self.reason}"


@dataclass(frozen=True)
class Policy:
    """One good policy."""

    name: str
    generation: int
    priority: int
    enforcement: str
    defaults_mode: str
    failure_policy: str
    matcher: Matcher
    excluded: Matcher | None
    defaults: tuple[Default, ...]
    limits: tuple[tuple[str, Check], ...]
    max_running_jobs: int | None
    params: Mapping[str, Any]
    rules: tuple[Rule, ...]
    exemptions: tuple[Exemption, ...]

    def holds(self, request: Request) -> bool | None:
        """Whether the policy is about this request; None when only unknown labels of the namespace could tell."""
        matched = self.matcher.holds(request)
        if matched is False or self.excluded is None:
            return matched
        excluded = self.excluded.holds(request)
        if excluded is True:
            return False
        return None if excluded is None else matched

    @property
    def asks_for_user(self) -> bool:
        return any(matcher.asks_for_user for matcher in self._matchers)

    @property
    def asks_for_namespace_labels(self) -> bool:
        return any(rule.reads("namespaceObject") for rule in self.rules) or any(
            matcher.asks_for_namespace_labels for matcher in self._matchers
        )

    @property
    def _matchers(self) -> Iterator[Matcher]:
        yield self.matcher
        yield from (item.matcher for item in self.exemptions)
        if self.excluded is not None:
            yield self.excluded

    def expired(self, now: datetime) -> list[Exemption]:
        return [item for item in self.exemptions if item.has_expired(now)]


@dataclass(frozen=True, slots=True)
class Invalid:
    """A policy that is not in force, and why."""

    name: str
    generation: int
    faults: tuple[Fault, ...]


class PolicySet:
    """Policies by priority, indexed by what their ``match`` asks for: those that cannot match cost nothing."""

    def __init__(self, policies: Iterable[Policy] = ()) -> None:
        self.all = tuple(sorted(policies, key=lambda policy: (-policy.priority, policy.name)))
        self._index: dict[Handle, list[int]] = defaultdict(list)
        self._on_namespace_labels: list[int] = []
        for place, policy in enumerate(self.all):
            handles = set(policy.matcher.handles())
            if any(handle[0] == NAMESPACE_LABEL for handle in handles):
                self._on_namespace_labels.append(place)
            for handle in handles:
                self._index[handle].append(place)
        self.asks_for_namespace_labels = any(policy.asks_for_namespace_labels for policy in self.all)

    def __bool__(self) -> bool:
        return bool(self.all)

    def candidates(self, request: Request) -> list[Policy]:
        """The policies that may be about a request, in order; ``Policy.holds`` decides."""
        index = self._index
        places = {place for handle in handles_of(request) if handle in index for place in index[handle]}
        if request.namespace_labels is None:
            places.update(self._on_namespace_labels)
        return [self.all[place] for place in sorted(places)]
