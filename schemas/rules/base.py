"""What a rule is, and how rules about one pod template or one container become rules about a job."""

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, NamedTuple

from schemas.faults import INVALID, NOTHING, REQUIRED, Fault
from schemas.job import Job, Replica

Segments = tuple[str | int, ...]


class Flaw(NamedTuple):
    """A fault at a path below the object that a rule looks at."""

    at: Segments
    must: str
    got: Any = NOTHING
    reason: str = INVALID


Flaws = Iterator[Flaw]
PodCheck = Callable[[Replica], Flaws]
ContainerCheck = Callable[[Mapping[str, Any], Replica], Flaws]


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


def pod_rule(source: str, of: tuple[str, ...] = ()) -> Callable[[PodCheck], Rule]:
    """Makes a rule of a function that looks at one pod template; its paths are below the template.

    ``of``: the fields of the pod's spec without which there is nothing to look at; the function is not called then.
    """

    def made(check: PodCheck) -> Rule:
        def faults(job: Job) -> Iterator[Fault]:
            for entry in job.replicas:
                if not of or has_any(entry.pod_spec, of):
                    for flaw in check(entry):
                        yield _fault(job, entry, flaw)

        return Rule(*_labels(check), source, faults)

    return made


def container_rule(source: str, of: tuple[str, ...]) -> Callable[[ContainerCheck], Rule]:
    """Makes a rule of a function that looks at one container, init or not; its paths are below the container.

    ``of``: the fields of the container without which the function is not called.
    """

    def made(check: ContainerCheck) -> Rule:
        def faults(job: Job) -> Iterator[Fault]:
            for entry in job.replicas:
                for at, container in entry.all_containers:
                    if has_any(container, of):
                        for flaw in check(container, entry):
                            yield _fault(job, entry, flaw, at)

        return Rule(*_labels(check), source, faults)

    return made


def has_any(value: Mapping[str, Any], names: tuple[str, ...]) -> bool:
    return any(map(value.__contains__, names))


def _fault(job: Job, entry: Replica, flaw: Flaw, at: Segments = ()) -> Fault:
    return Fault(job.replica_path(entry, "template", *at, *flaw.at), flaw.must, flaw.got, flaw.reason)


def one_of(value: Mapping[str, Any], names: Iterable[str], at: Segments = ()) -> Flaws:
    """A flaw unless exactly one of the fields ``names`` of ``value`` is set."""
    found = [name for name in names if value.get(name) is not None]
    if not found:
        yield Flaw(at, f"must have one of {', '.join(names)}", NOTHING, REQUIRED)
    yield from (Flaw((*at, name), f"must not be set beside {found[0]}", value[name]) for name in found[1:])


def distinct(items: Iterable[tuple[Segments, Any]], what: str) -> Flaws:
    """A flaw at each path whose value, when there is one, stood at an earlier path."""
    seen: set[Any] = set()
    for at, item in items:
        if item in seen:
            yield Flaw(at, f"must differ from every other {what}", item)
        elif item not in (None, ""):
            seen.add(item)


def _labels(check: Callable[..., Any]) -> tuple[str, str]:
    return check.__name__.replace("_", " "), " ".join((check.__doc__ or "").split())
