"""What policies say about one request: values, made by ``evaluate`` and worded here for each reader."""

from collections.abc import Iterable
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Any

import orjson

from policy.defaults import Applied
from policy.model import AUDIT, ENFORCE
from schemas.faults import FORBIDDEN, NOTHING, Fault, shown
from schemas.rules.warnings import LONGEST_WARNING

JSON = dict[str, Any]

MOST = 50
"""Entries of one audit annotation."""
REFUSED, WARNED, AUDITED = "refused", "warned", "audited"
LIMIT, RULE = "limit", "rule"


@dataclass(frozen=True, slots=True)
class Violation:
    """One limit or rule of one policy that the job breaks at one field.

    ``was_there``: the stored object broke it already. ``failed``: it could not be evaluated.
    """

    policy: str
    enforcement: str
    sort: str
    rule: str
    path: str
    must: str
    limit: Any = None
    found: Any = NOTHING
    beyond: Fraction | None = None
    was_there: bool = False
    failed: bool = False

    @property
    def outcome(self) -> str:
        """What comes of it: refused, warned or audited."""
        if self.enforcement == AUDIT:
            return AUDITED
        return REFUSED if self.enforcement == ENFORCE and not self.was_there else WARNED

    @property
    def fault(self) -> Fault:
        """As a refusal says it: field, what is allowed, who says so, and the value found."""
        return Fault(
            self.path, f"{self.must}, says {self.sort} {self.rule} of policy {self.policy}", self.found, FORBIDDEN
        )

    @property
    def warning(self) -> str:
        """One line for kubectl, at most 120 characters; the field loses its middle first."""
        said = f"{self.must} (policy {self.policy}, {self.rule})"
        room = LONGEST_WARNING - len(said) - 2
        path = self.path
        if len(path) > room:
            half = max(room - 1, 8) // 2
            path = f"{path[:half]}…{path[-half:]}"
        line = f"{path}: {said}"
        return line if len(line) <= LONGEST_WARNING else line[: LONGEST_WARNING - 1] + "…"

    @property
    def as_json(self) -> JSON:
        """For audit annotations, records and tables; every field always there."""
        return {
            "policy": self.policy,
            "rule": self.rule,
            "field": self.path,
            "must": self.must,
            "limit": self.limit,
            "found": None if self.found is NOTHING else self.found,
            "outcome": self.outcome,
        }

    def is_no_worse_than(self, old: "Violation") -> bool:
        """Whether ``old`` is this violation of the stored object: the same value, or one at least as far beyond."""
        if (self.policy, self.rule, self.path) != (old.policy, old.rule, old.path):
            return False
        if self.beyond is not None and old.beyond is not None:
            return self.beyond <= old.beyond
        return shown(self.found) == shown(old.found)

    def known(self) -> "Violation":
        return replace(self, was_there=True)


@dataclass(frozen=True, slots=True)
class Judgement:
    """What all policies say about one request. ``matched`` names the policies it is about, in order."""

    matched: tuple[str, ...] = ()
    violations: tuple[Violation, ...] = ()
    expired: tuple[str, ...] = ()
    """Exceptions that would have helped, had they not ended: ``policy/exceptions[0]: reason``."""

    def of(self, outcome: str) -> list[Violation]:
        return [item for item in self.violations if item.outcome == outcome]

    @property
    def faults(self) -> list[Fault]:
        return [item.fault for item in self.of(REFUSED)]

    @property
    def warnings(self) -> list[str]:
        return list(dict.fromkeys(item.warning for item in self.of(WARNED)))


NO_JUDGEMENT = Judgement()
"""Where no policy was asked."""


def annotations(applied: Iterable[Applied], judgement: Judgement) -> dict[str, str]:
    """The audit annotations of an answer: JSON texts; the API server puts the webhook's name before the keys."""
    parts: dict[str, list[Any]] = {
        "policy-defaults": [_applied(item) for item in applied if not item.audit],
        "policy-defaults-audited": [_applied(item) for item in applied if item.audit],
        "policy-violations": [item.as_json for item in judgement.violations],
        "policy-exceptions-expired": list(judgement.expired),
    }
    return {key: orjson.dumps(items[:MOST], default=str).decode() for key, items in parts.items() if items}


def _applied(item: Applied) -> JSON:
    return {"path": item.path, "value": item.value, "policy": item.policy}
