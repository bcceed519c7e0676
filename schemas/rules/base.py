"""What a rule is."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

from schemas.faults import Fault
from schemas.job import Job


@dataclass(frozen=True, slots=True)
class Rule:
    """A named check of one job; ``source`` cites the public report or convention it comes from."""

    name: str
    doc: str
    source: str
    check: Callable[[Job], Iterator[Fault]]

    def __call__(self, job: Job) -> Iterator[Fault]:
        return self.check(job)


@dataclass(frozen=True, slots=True)
class UpdateRule:
    """A named check of a change from one job to another, both with their defaults."""

    name: str
    doc: str
    source: str
    check: Callable[[Job, Job], Iterator[Fault]]

    def __call__(self, old: Job, new: Job) -> Iterator[Fault]:
        return self.check(old, new)


def rule(source: str) -> Callable[[Callable[[Job], Iterator[Fault]]], Rule]:
    """Makes a rule of a function; its name and docstring go to the reference page."""
    return lambda check: Rule(*_labels(check), source, check)


def update_rule(source: str) -> Callable[[Callable[[Job, Job], Iterator[Fault]]], UpdateRule]:
    """Makes a rule about a change of a function."""
    return lambda check: UpdateRule(*_labels(check), source, check)


def _labels(check: Callable[..., Any]) -> tuple[str, str]:
    return check.__name__.replace("_", " "), " ".join((check.__doc__ or "").split())
