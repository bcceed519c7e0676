"""What policies cost: a review under one that matches, under three, and under 1,000 of which three match.

    .venv/bin/python bench/policies.py [--json]

The index is worth its keep while the last costs less than twice the first.
"""

import argparse
import statistics
import time
from datetime import UTC, datetime

import orjson

from policy.compile import compiled
from policy.evaluate import filled, judged
from policy.model import PolicySet
from policy.request import Request
from schemas import defaults, kinds

ROUNDS, CALLS = 9, 200
NOW = datetime(2026, 6, 1, tzinfo=UTC)
SPEC = {
    "defaults": {"runPolicy": {"backoffLimit": 3}, "replicas": {"*": {"template": {"labels": {"team": "a"}}}}},
    "limits": {
        "ttlSecondsAfterFinished": {"max": 86400},
        "images": ["registry.example"],
        "jobResources": {"nvidia.com/gpu": {"max": 64}},
    },
    "rules": [{"name": "small", "expression": "object.spec.replicaSpecs.all(name, name.size() < 20)"}],
}
MATCHES = (
    lambda n: {"namespaces": [f"team-{n}"]},
    lambda n: {"namespaces": [f"team-{n}-*"]},
    lambda n: {"namespaceSelector": {"matchLabels": {"team": f"t{n}"}}},
    lambda n: {"objectSelector": {"matchLabels": {"team": f"t{n}"}}},
    lambda n: {"users": [f"user-{n}"]},
)


def policy(name, match):
    return compiled({"metadata": {"name": name}, "spec": {**SPEC, "match": match}})


def job():
    pod = {"spec": {"containers": [{"name": "main", "image": "registry.example/train:1"}]}}
    metadata = {"name": "job", "namespace": "vision"}
    return {"metadata": metadata, "spec": {"replicaSpecs": {"Worker": {"replicas": 4, "template": pod}}}}


def review(policies):
    request = Request(kinds.TRAINING_JOB, job(), namespace="vision", namespace_labels={"team": "vision"}, user="ann")
    value = defaults.default(kinds.TRAINING_JOB, filled(policies, request).object)
    return judged(policies, request.about(value), NOW)


def milliseconds(policies):
    start = time.process_time()
    for _ in range(CALLS):
        review(policies)
    return 1000 * (time.process_time() - start) / CALLS


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--json", action="store_true")
    three = [policy(f"vision-{n}", {"namespaces": ["vision"]}) for n in range(3)]
    others = [policy(f"other-{n}", MATCHES[n % len(MATCHES)](n)) for n in range(997)]
    sets = {"one policy": three[:1], "three policies": three, "1,000 of which three match": [*three, *others]}
    prepared = {name: PolicySet(each) for name, each in sets.items()}
    assert [len(review(each).matched) for each in prepared.values()] == [1, 3, 3]
    rounds = [{name: milliseconds(each) for name, each in prepared.items()} for _ in range(ROUNDS)]
    found = {name: statistics.median(one[name] for one in rounds) for name in prepared}
    if parser.parse_args().json:
        print(orjson.dumps(found).decode())
    else:
        base = found["one policy"]
        for name, value in found.items():
            print(f"{name:28} {value:.3f} ms CPU per review, {value / base:.2f} of one policy")


if __name__ == "__main__":
    main()
