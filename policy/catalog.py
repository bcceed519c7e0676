"""The policies of a cluster as they are stored, compiled once for each version of their spec."""

from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any

from policy.compile import compiled
from policy.model import Invalid, Policy, PolicySet
from schemas.job import mapping, text

JSON = dict[str, Any]


@dataclass(frozen=True)
class Contents:
    """What a catalog holds; one that is invalid blocks no other."""

    policies: PolicySet = field(default_factory=PolicySet)
    invalid: tuple[Invalid, ...] = ()


class Catalog:
    """Remembers what each spec was compiled to; for one thread at a time."""

    def __init__(self) -> None:
        self._known: dict[str, tuple[Any, Policy | Invalid]] = {}

    def read(self, objects: Iterable[JSON]) -> Contents:
        """The contents of all stored policies; what is gone is forgotten."""
        self._known = {name: self._read(name, value) for name, value in map(_named, objects)}
        found = [policy for _, policy in self._known.values()]
        return Contents(
            PolicySet(policy for policy in found if isinstance(policy, Policy)),
            tuple(policy for policy in found if isinstance(policy, Invalid)),
        )

    def _read(self, name: str, value: JSON) -> tuple[Any, Policy | Invalid]:
        spec = value.get("spec")
        known = self._known.get(name)
        return known if known is not None and known[0] == spec else (spec, compiled(value))


def _named(value: JSON) -> tuple[str, JSON]:
    return text(mapping(value.get("metadata")).get("name")), value
