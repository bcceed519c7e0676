"""What a pod takes from a node, as the scheduler counts it."""

import pytest

from schemas.demand import effective

HOSTILE = {"cpu": "many", "x": True, "y": None, "z": 1e300, "w": 10**5000, "v": float("nan"), "u": [], "t": "1e99" * 9}


def container(requests=None, limits=None, **fields):
    return {"name": "c", "resources": {"requests": requests or {}, "limits": limits or {}}, **fields}


ONE = {"containers": [container({"cpu": 1})]}


@pytest.mark.parametrize(
    ("spec", "requests"),
    [
        ({"containers": [container({"cpu": 2, "memory": "10Gi"})]}, {"cpu": 2, "memory": "10Gi"}),
        ({"containers": [container({"cpu": "0.50"})]}, {"cpu": "0.50"}),
        ({"containers": [container({"cpu": 2}, {"gpu": 1, "cpu": 4})]}, {"gpu": 1, "cpu": 2}),
        ({"containers": [container({"cpu": 1}), container({"cpu": "500m"})]}, {"cpu": "1500m"}),
        ({"containers": [container({"memory": "1Gi"}), container({"memory": "512Mi"})]}, {"memory": "1536Mi"}),
        (ONE | {"initContainers": [container({"cpu": 4})]}, {"cpu": 4}),
        (ONE | {"initContainers": [container({"cpu": 4}, restartPolicy="Always")]}, {"cpu": "5"}),
        (ONE | {"resources": {"requests": {"cpu": 8}}}, {"cpu": 8}),
        ({"containers": [container(HOSTILE)]}, {}),
        ({"containers": "none"}, {}),
        (None, {}),
    ],
)
def test_what_a_replica_asks_for(spec, requests):
    assert effective(spec, "requests") == requests
