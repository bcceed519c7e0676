"""A fence around writes: what may no longer act sends nothing, and what is under way ends in time."""

import time

import pytest

from kube import errors
from kube.raw import RawKube

PATH = "/api/v1/namespaces/ns/configmaps"


@pytest.mark.parametrize(
    "write",
    [
        lambda kube: kube.create(PATH, {}),
        lambda kube: kube.replace(f"{PATH}/a", {}),
        lambda kube: kube.patch(f"{PATH}/a", {}, kind="merge"),
        lambda kube: kube.delete(f"{PATH}/a", uid="u"),
    ],
    ids=["create", "replace", "patch", "delete"],
)
def test_a_closed_fence_lets_no_write_through(server, write):
    kube = RawKube(server.connection, fence=lambda: 0.0)
    with pytest.raises(errors.NotLeading):
        write(kube)
    assert server.seen == []


def test_reads_pass_a_closed_fence(server):
    server.answers.append(server.reply({"a": 1}))
    assert RawKube(server.connection, fence=lambda: 0.0).get(PATH) == {"a": 1}


def test_a_write_is_given_no_more_time_than_the_fence_allows(server):
    server.answers.append(server.slow())
    kube = RawKube(server.connection, timeout=30, fence=lambda: 0.3)
    begun = time.monotonic()
    with pytest.raises(errors.Unreachable):
        kube.create(PATH, {})
    assert time.monotonic() - begun < 20
