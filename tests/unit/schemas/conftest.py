"""Jobs as fixtures: the least good one of a kind, changed at a path."""

from collections.abc import Callable
from copy import deepcopy
from typing import Any

import pytest

from schemas import defaults, kinds, validation
from schemas.job import Job
from schemas.kinds import JobKind

JSON = dict[str, Any]


def container(kind: JobKind) -> JSON:
    return {"name": kind.container, "image": "img:1"}


def replica(kind: JobKind, replicas: int | None = None) -> JSON:
    count = {} if replicas is None else {"replicas": replicas}
    return {**count, "template": {"spec": {"containers": [container(kind)]}}}


def put(document: JSON, path: str, value: Any) -> JSON:
    """A copy of ``document`` with ``value`` at a dotted path; missing objects on the way are made."""
    copy = deepcopy(document)
    at: Any = copy
    *parents, last = path.split(".")
    for key in parents:
        at = at[int(key)] if isinstance(at, list) else at.setdefault(key, {})
    if isinstance(at, list):
        at[int(last)] = value
    else:
        at[last] = value
    return copy


@pytest.fixture
def make_job() -> Callable[..., JSON]:
    """``make_job(kind, Master=1, Worker=2)``: a good job of a kind with these replicas."""

    def make(kind: JobKind = kinds.PYTORCH_JOB, **types: int | None) -> JSON:
        entries = {name: replica(kind, count) for name, count in (types or {"Worker": 2}).items()}
        return {
            "apiVersion": kind.api_version,
            "kind": kind.kind,
            "metadata": {"name": "job", "namespace": "ns"},
            "spec": {kind.spec_key: entries},
        }

    return make


@pytest.fixture
def faults_of() -> Callable[..., dict[str, str]]:
    """The faults of a job with its defaults, by path; fails when a path has two."""

    def check(job: JSON, kind: JobKind = kinds.PYTORCH_JOB, old: JSON | None = None) -> dict[str, str]:
        old_job = Job(kind, defaults.default(kind, old)) if old is not None else None
        found = validation.check(Job(kind, defaults.default(kind, job, old)), old_job)
        assert len({fault.path for fault in found}) == len(found), found
        return {fault.path: fault.message for fault in found}

    return check


@pytest.fixture
def changed() -> Callable[[JSON, str, Any], JSON]:
    """``changed(job, "spec.runPolicy.suspend", True)``: a changed copy."""
    return put
