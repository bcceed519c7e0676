"""Which requests a policy is about. Three answers: yes, no, and unknown (the namespace's labels could not be had)."""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from policy.patterns import Patterns, literal_prefix, patterns
from policy.request import Request
from schemas.job import mapping, sequence, text

JSON = dict[str, Any]
Handle = tuple[str, ...]
"""Something a request has that a matcher asks for: the key of the index."""

BY_USER = ("users", "groups", "serviceAccounts")
EVERY: Handle = ("every",)


@dataclass(frozen=True, slots=True)
class Selector:
    """A label selector."""

    labels: tuple[tuple[str, str], ...]
    requirements: tuple[tuple[str, str, frozenset[str]], ...]

    def holds(self, labels: Mapping[str, Any]) -> bool:
        return all(labels.get(key) == value for key, value in self.labels) and all(
            OPERATORS[operator](labels, key, values) for key, operator, values in self.requirements
        )


OPERATORS: dict[str, Callable[[Mapping[str, Any], str, frozenset[str]], bool]] = {
    "In": lambda labels, key, values: labels.get(key) in values,
    "NotIn": lambda labels, key, values: labels.get(key) not in values,
    "Exists": lambda labels, key, _: key in labels,
    "DoesNotExist": lambda labels, key, _: key not in labels,
}


@dataclass(frozen=True, slots=True)
class Matcher:
    """A compiled ``match``; a part that is None does not ask."""

    kinds: Patterns | None = None
    namespaces: Patterns | None = None
    namespace_selector: Selector | None = None
    object_selector: Selector | None = None
    users: Patterns | None = None
    groups: Patterns | None = None
    service_accounts: Patterns | None = None

    @property
    def asks_for_user(self) -> bool:
        return any(part is not None for part in (self.users, self.groups, self.service_accounts))

    @property
    def asks_for_namespace_labels(self) -> bool:
        return self.namespace_selector is not None

    def holds(self, request: Request) -> bool | None:
        """None when only the unknown labels of the namespace could tell."""
        if not all(part(self, request) for part in PARTS):
            return False
        if self.namespace_selector is None:
            return True
        if request.namespace_labels is None:
            return None
        return self.namespace_selector.holds(request.namespace_labels)

    def handles(self) -> Iterator[Handle]:
        """Handles, at least one of which every request has that this matcher is about: the fewest there are."""
        for part in HANDLES:
            if found := list(part(self)):
                yield from found
                return
        yield EVERY


PARTS: tuple[Callable[[Matcher, Request], bool], ...] = (
    lambda m, r: m.kinds is None or m.kinds.has(r.kind.kind),
    lambda m, r: m.namespaces is None or m.namespaces.has(r.namespace),
    lambda m, r: m.object_selector is None or m.object_selector.holds(r.labels),
    lambda m, r: m.users is None or m.users.has(r.user or ""),
    lambda m, r: m.groups is None or any(map(m.groups.has, r.groups)),
    lambda m, r: m.service_accounts is None or m.service_accounts.has(r.service_account),
)

HANDLES: tuple[Callable[[Matcher], Iterator[Handle]], ...] = (
    lambda m: _prefixes("namespace", m.namespaces),
    lambda m: _labels("namespace-label", m.namespace_selector),
    lambda m: _labels("label", m.object_selector),
    lambda m: _prefixes("user", m.users),
    lambda m: _prefixes("service-account", m.service_accounts),
    lambda m: _prefixes("kind", m.kinds),
)


def handles_of(request: Request) -> Iterator[Handle]:
    """All handles that a request has; of unknown namespace labels every one, as ``None`` for the value."""
    yield EVERY
    yield from _all_prefixes("namespace", request.namespace)
    yield from _all_prefixes("user", request.user or "")
    yield from _all_prefixes("service-account", request.service_account)
    yield from _all_prefixes("kind", request.kind.kind)
    for name, labels in (("label", request.labels), ("namespace-label", request.namespace_labels or {})):
        yield from ((name, key, value) for key, value in labels.items() if isinstance(value, str))


def matcher(written: Any) -> Matcher:
    """A compiled ``match``; null and empty parts do not ask, nor does what the schema refuses."""
    parts = mapping(written)
    return Matcher(
        kinds=_patterns(parts, "kinds"),
        namespaces=_patterns(parts, "namespaces"),
        namespace_selector=_selector(parts, "namespaceSelector"),
        object_selector=_selector(parts, "objectSelector"),
        users=_patterns(parts, "users"),
        groups=_patterns(parts, "groups"),
        service_accounts=_patterns(parts, "serviceAccounts"),
    )


def _patterns(parts: Mapping[str, Any], name: str) -> Patterns | None:
    written = [item for item in sequence(parts.get(name)) if isinstance(item, str)]
    return patterns(written) if written else None


def _selector(parts: Mapping[str, Any], name: str) -> Selector | None:
    written = mapping(parts.get(name))
    labels = tuple(mapping(written.get("matchLabels")).items())
    requirements = tuple(
        (text(item.get("key")), text(item.get("operator")), frozenset(map(text, sequence(item.get("values")))))
        for item in map(mapping, sequence(written.get("matchExpressions")))
    )
    return Selector(labels, requirements) if labels or requirements else None


def _prefixes(name: str, asked: Patterns | None) -> Iterator[Handle]:
    """What the texts begin with; nothing when one of them may begin with anything."""
    found = [literal_prefix(text) for text in asked.written] if asked else []
    return iter([(name, prefix) for prefix in found] if all(found) else [])


def _all_prefixes(name: str, text: str) -> Iterator[Handle]:
    return ((name, text[:length]) for length in range(1, len(text) + 1))


def _labels(name: str, asked: Selector | None) -> Iterator[Handle]:
    return ((name, key, value) for key, value in (asked.labels[:1] if asked else ()))
