"""Policies, jobs and requests as fixtures: builders that give plain values."""

from collections.abc import Callable
from datetime import UTC, datetime
from typing import Any

import pytest

from policy.compile import compiled
from policy.evaluate import filled, judged
from policy.model import Policy, PolicySet
from policy.request import Request
from schemas import kinds

NOW = datetime(2026, 6, 1, tzinfo=UTC)


def policy_object(name="p", **spec):
    metadata = {"name": name, "generation": 1}
    return {"apiVersion": "signalbox.dev/v1", "kind": "TrainingPolicy", "metadata": metadata, "spec": spec}


def job_object(kind=kinds.TRAINING_JOB, *, run_policy=None, labels=None, container=None, pod=None, **types):
    """``Worker=2`` gives two Workers; ``container`` and ``pod`` are merged into each of them."""
    containers = [{"name": kind.container, "image": "registry.example/team/train:1", **(container or {})}]
    template = {"spec": {"containers": containers, **(pod or {})}}
    entries = {
        name: {**({} if count is None else {"replicas": count}), "template": template}
        for name, count in (types or {"Worker": 1}).items()
    }
    metadata = {"name": "job", "namespace": "team-a", **({"labels": labels} if labels else {})}
    spec = {kind.spec_key: entries, **({} if run_policy is None else {"runPolicy": run_policy})}
    return {"apiVersion": kind.api_version, "kind": kind.kind, "metadata": metadata, "spec": spec}


def request_for(job, kind=kinds.TRAINING_JOB, **fields):
    given = {"namespace": "team-a", "namespace_labels": {"team": "a"}, "user": "ann", "groups": ("devs",), **fields}
    return Request(kind, job, operation="UPDATE" if given.get("old") else "CREATE", **given)


def good_policy(name="p", **spec):
    policy = compiled(policy_object(name, **spec))
    assert isinstance(policy, Policy), [str(fault) for fault in policy.faults]
    return policy


@pytest.fixture
def now() -> datetime:
    return NOW


@pytest.fixture
def written() -> Callable[..., Any]:
    """``written("name", priority=1)``: a TrainingPolicy object."""
    return policy_object


@pytest.fixture
def good() -> Callable[..., Policy]:
    """``good("name", priority=1)``: a compiled policy; fails when it has faults."""
    return good_policy


@pytest.fixture
def job() -> Callable[..., Any]:
    return job_object


@pytest.fixture
def request_of() -> Callable[..., Request]:
    return request_for


@pytest.fixture
def broken() -> Callable[..., list[tuple[str, str, str]]]:
    """``broken(spec, job)``: what one policy of this spec says of a job, as (rule, path, must) in order."""

    def say(spec, job, **fields):
        verdict = judged(PolicySet([good_policy(**spec)]), request_for(job, **fields), NOW)
        return [(item.rule, item.path, item.must) for item in verdict.violations]

    return say


@pytest.fixture
def fill() -> Callable[..., Any]:
    """``fill(job, policy, ...)``: the job after the policies' defaults, and what was applied by path."""

    def do(job, *policies, **fields):
        found = filled(PolicySet(policies), request_for(job, **fields))
        return found.object, {item.path: item.value for item in found.applied if not item.audit}

    return do
