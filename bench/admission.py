"""What a review costs: CPU in-process for a job of four types, and many generated reviews over HTTP in-process.

    python bench/admission.py [--reviews 100000]

Prints the CPU per step for one good job of about 9 KB, then how many of the generated reviews were allowed, refused,
or answered with anything but HTTP 200 (which must be none).
"""

import argparse
import collections
import random
import statistics
import time
from collections.abc import Callable
from typing import Any

import orjson

from schemas import defaults, kinds, patch, validation
from schemas.job import Job
from webhook import review as reviews
from webhook.app import create_app
from webhook.mutate import mutate

JSON = dict[str, Any]
KIND = kinds.TF_JOB
WORDS: tuple[Any, ...] = (None, 0, 1, -1, 2**31, 1.5, True, "", "x", "Never", [], [None], {}, {"a": 1}, "1Gi")


def container(name: str) -> JSON:
    return {
        "name": name,
        "image": f"registry.example/team/{name}:1.2.3",
        "command": ["python", "/opt/train.py"],
        "args": [f"--flag-{n}=value-{n}" for n in range(12)],
        "env": [{"name": f"VARIABLE_{n}", "value": f"value-{n}"} for n in range(12)],
        "resources": {"limits": {"cpu": "4", "memory": "16Gi", "nvidia.com/gpu": 1}},
        "volumeMounts": [{"name": "data", "mountPath": "/data"}],
    }


def job() -> JSON:
    """A TFJob of four types with two containers each, about 9 KB."""
    pod = {
        "metadata": {"labels": {"team": "vision"}, "annotations": {"note": "keep"}},
        "spec": {
            "containers": [container("tensorflow"), container("log-shipper")],
            "volumes": [{"name": "data", "persistentVolumeClaim": {"claimName": "data"}}],
            "tolerations": [{"key": "gpu", "operator": "Exists", "effect": "NoSchedule"}],
        },
    }
    types = {"Chief": 1, "PS": 2, "Worker": 4, "Evaluator": 1}
    return {
        "apiVersion": "kubeflow.org/v1",
        "kind": "TFJob",
        "metadata": {"name": "bench", "namespace": "team-a"},
        "spec": {"tfReplicaSpecs": {name: {"replicas": count, "template": pod} for name, count in types.items()}},
    }


def body(obj: Any, operation: str = "CREATE", old: Any = None) -> bytes:
    kind = {"group": KIND.group, "version": KIND.version, "kind": KIND.kind}
    request = {"uid": "u", "kind": kind, "operation": operation, "object": obj, "oldObject": old}
    return orjson.dumps({"apiVersion": reviews.API_VERSION, "kind": "AdmissionReview", "request": request})


def cpu(call: Callable[[], Any], times: int = 300, rounds: int = 7) -> float:
    """Median CPU milliseconds of one call."""
    taken = []
    for _ in range(rounds):
        start = time.process_time()
        for _ in range(times):
            call()
        taken.append((time.process_time() - start) / times * 1000)
    return statistics.median(taken)


def damaged(node: Any, chance: random.Random) -> Any:
    """``node`` with one value somewhere in it replaced, or a key removed."""
    copy = orjson.loads(orjson.dumps(node))
    at = copy
    while isinstance(at, dict | list) and at:
        key = chance.choice(list(at) if isinstance(at, dict) else range(len(at)))
        if not isinstance(at[key], dict | list) or not at[key] or chance.random() < 0.2:
            at[key] = chance.choice(WORDS)
            return copy
        at = at[key]
    return copy


def measure() -> None:
    good = job()
    raw = body(good)
    filled = defaults.default(KIND, good)
    print(f"one TFJob of four types, {len(orjson.dumps(good))} bytes; CPU in milliseconds, median of 7 rounds")
    rows: dict[str, Callable[[], Any]] = {
        "read the review": lambda: reviews.read(raw),
        "fill defaults": lambda: defaults.default(KIND, good),
        "validate": lambda: validation.check(Job(KIND, filled)),
        "warn": lambda: validation.warn(Job(KIND, filled)),
        "make the patch": lambda: patch.diff(good, filled),
        "mutate, bytes to bytes": lambda: answered(raw),
    }
    for name, call in rows.items():
        print(f"  {name:24} {cpu(call):7.3f}")


def answered(raw: bytes) -> bytes:
    review = reviews.read(raw)
    return reviews.answer(review, mutate(review))


def storm(count: int) -> None:
    client = create_app().test_client()
    chance = random.Random(1)
    good = job()
    tally: collections.Counter[str] = collections.Counter()
    start = time.monotonic()
    for number in range(count):
        obj = good if number % 10 == 0 else damaged(good, chance)
        update = chance.random() < 0.3
        raw = body(obj, "UPDATE" if update else "CREATE", damaged(good, chance) if update else None)
        answer = client.post(chance.choice(["/mutate", "/validate"]), data=raw)
        word = f"HTTP {answer.status_code}"
        if answer.status_code == 200:
            word = "allowed" if orjson.loads(answer.data)["response"]["allowed"] else "refused"
        tally[word] += 1
    print(f"{count} generated reviews in {time.monotonic() - start:.0f} s: {dict(sorted(tally.items()))}")


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--reviews", type=int, default=100_000)
    arguments = parser.parse_args()
    import logging

    import structlog

    structlog.configure(wrapper_class=structlog.make_filtering_bound_logger(logging.ERROR))
    measure()
    storm(arguments.reviews)
