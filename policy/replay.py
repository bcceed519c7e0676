"""A submission of the past, judged by policies that were not there: what would have come of it. Pure and total."""

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from policy import evaluate
from policy.defaults import Applied
from policy.evaluate import IsLate
from policy.model import Policy, PolicySet
from policy.request import Request
from policy.verdicts import AUDITED, NO_JUDGEMENT, REFUSED, WARNED, Judgement, Violation
from schemas import defaults, validation

JSON = dict[str, Any]

INVALID, CHANGED, UNCHANGED = "invalid", "changed", "unchanged"
WORDS = (INVALID, REFUSED, WARNED, AUDITED, CHANGED, UNCHANGED)
"""What can come of a submission; ``invalid`` is refused by the built-in rules, whatever policies say."""


@dataclass(frozen=True, slots=True)
class Replayed:
    """What policies say of one submission."""

    word: str
    judgement: Judgement = NO_JUDGEMENT
    applied: tuple[Applied, ...] = ()

    @property
    def rules(self) -> frozenset[tuple[str, str, str]]:
        """(policy, rule, outcome) of all that was said, defaults by the field that they fill."""
        said = {(item.policy, item.rule, item.outcome) for item in self.judgement.violations}
        return frozenset(said | {(item.policy, item.path, _of_default(item)) for item in self.applied})

    @property
    def as_json(self) -> JSON:
        """Every field always there."""
        return {
            "verdict": self.word,
            "policies": list(self.judgement.matched),
            "violations": [item.as_json for item in self.judgement.violations],
            "defaults": [
                {"path": item.path, "value": item.value, "policy": item.policy, "audit": item.audit}
                for item in self.applied
            ],
        }


def replayed(policies: PolicySet, request: Request, now: datetime, is_late: IsLate = evaluate.in_time) -> Replayed:
    """What would have come of ``request``, an object without defaults, had it been made at ``now``."""
    policed = evaluate.filled(policies, request)
    asked = request.about(defaults.default(request.kind, policed.object))
    if validation.check(asked.job):
        return Replayed(INVALID)
    judgement = evaluate.judged(policies, asked, now, is_late)
    return Replayed(_word(judgement.violations, policed.applied), judgement, policed.applied)


def evaluable(policies: Iterable[Policy], *, labels_known: bool) -> tuple[PolicySet, tuple[str, ...]]:
    """The policies that can be tried, and the names of those that ask for labels of namespaces nobody knows."""
    listed = list(policies)
    left_out = [policy for policy in listed if policy.asks_for_namespace_labels and not labels_known]
    kept = PolicySet(policy for policy in listed if policy not in left_out)
    return kept, tuple(policy.name for policy in left_out)


def _word(violations: Iterable[Violation], applied: Iterable[Applied]) -> str:
    """The weightiest outcome."""
    found = {item.outcome for item in violations} | {_of_default(item) for item in applied}
    return next((word for word in WORDS if word in found), UNCHANGED)


def _of_default(item: Applied) -> str:
    return AUDITED if item.audit else CHANGED
