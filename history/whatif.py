"""Stored submissions judged by policies that were not there. Streams: one submission at a time, sums beside."""

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any

import orjson

from history.queries import Row
from policy.evaluate import IsLate, in_time
from policy.model import PolicySet
from policy.replay import WORDS, Replayed, replayed
from policy.request import Request
from schemas import kinds
from schemas.job import mapping, text

UNREADABLE = "unreadable"
"""Of a submission whose kind this version does not serve, or whose copy was cut."""
NAME_LABEL = "kubernetes.io/metadata.name"
Labels = Mapping[str, Mapping[str, str]]
"""Labels by namespace; under the empty name those of all namespaces."""


@dataclass(frozen=True, slots=True)
class Outcome:
    """One submission (a row of object_snapshot) and what would have come of it; None when it cannot be read."""

    row: Row
    found: Replayed | None
    operation: str = ""

    @property
    def word(self) -> str:
        return self.found.word if self.found else UNREADABLE

    @property
    def is_worth_telling(self) -> bool:
        return self.found is not None and bool(self.found.rules)

    @property
    def title(self) -> str:
        return f"{self.row['kind'] or ''} {self.row['namespace'] or ''}/{self.row['name'] or ''}"

    @property
    def as_json(self) -> dict[str, Any]:
        """Who submitted what when, and what would have come of it."""
        given = {
            "time": self.row["gmt_modified"],
            "user": self.row["username"],
            "operation": self.operation,
            **{key: self.row[key] for key in ("namespace", "name", "kind")},
        }
        return given | (self.found.as_json if self.found else {"verdict": UNREADABLE})


@dataclass(slots=True)
class Sums:
    """What came of all submissions together."""

    submissions: int = 0
    words: Counter[str] = field(default_factory=Counter)
    rules: Counter[tuple[str, str, str]] = field(default_factory=Counter)
    """Submissions by (policy, rule, outcome)."""
    refused_users: Counter[str] = field(default_factory=Counter)

    def add(self, outcome: Outcome) -> None:
        self.submissions += 1
        self.words[outcome.word] += 1
        if outcome.found:
            self.rules.update(outcome.found.rules)
        if outcome.word == "refused":
            self.refused_users[outcome.row["username"] or ""] += 1

    @property
    def counted(self) -> dict[str, int]:
        """How many submissions came to each word; unreadable ones where there are any."""
        unreadable = {UNREADABLE: self.words[UNREADABLE]} if self.words[UNREADABLE] else {}
        return {word: self.words[word] for word in WORDS} | unreadable

    @property
    def by_rule(self) -> list[dict[str, Any]]:
        """The weightiest first, then the most frequent."""
        order = {word: place for place, word in enumerate(WORDS)}
        listed = sorted(self.rules.items(), key=lambda one: (order[one[0][2]], -one[1], one[0]))
        return [
            {"policy": policy, "rule": rule, "outcome": outcome, "submissions": number}
            for (policy, rule, outcome), number in listed
        ]

    @property
    def as_json(self) -> dict[str, Any]:
        return {
            "submissions": self.submissions,
            "verdicts": self.counted,
            "rules": self.by_rule,
            "refusedUsers": dict(self.refused_users.most_common()),
        }


def outcomes(
    rows: Iterable[Row], policies: PolicySet, sums: Sums, labels: Labels | None = None, is_late: IsLate = in_time
) -> Iterator[Outcome]:
    """Each submission with what would have come of it, when it was made; ``sums`` grow with them.

    An update is judged as if the job were new: what it was before is not kept.
    """
    for row in rows:
        request = _request(row, labels or {})
        moment = row["gmt_modified"].replace(tzinfo=UTC) if row["gmt_modified"] else datetime.now(UTC)
        found = replayed(policies, request, moment, is_late) if request else None
        outcome = Outcome(row, found, request.operation if request else "")
        sums.add(outcome)
        yield outcome


def _request(row: Row, labels: Labels) -> Request | None:
    obj = mapping(_loaded(row["object"]))
    kind = kinds.find(text(obj.get("kind")), text(obj.get("apiVersion")).rpartition("/")[0])
    if kind is None:
        return None
    namespace = row["namespace"] or ""
    known = {NAME_LABEL: namespace, **labels.get("", {}), **labels.get(namespace, {})}
    groups = _loaded(row["user_groups"])
    return Request(
        kind=kind,
        object=dict(obj),
        operation="UPDATE" if mapping(obj.get("metadata")).get("resourceVersion") else "CREATE",
        namespace=namespace,
        namespace_labels=known,
        user=row["username"] or "",
        groups=tuple(map(text, groups)) if isinstance(groups, list) else (),
        uid=row["uid"],
    )


def _loaded(dumped: str | None) -> Any:
    """An object or a list; an empty object for what is neither."""
    try:
        found = orjson.loads(dumped or "{}")
    except orjson.JSONDecodeError:
        return {}
    return found if isinstance(found, dict | list) else {}
