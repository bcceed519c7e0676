"""Crowds: does one busy job starve others, and do pods that are not ours cost memory?

    python bench/crowds.py [--jobs 300] [--seconds 10] [--foreign 10000]

Foreign: finished pods without our label, while the controller runs (knative/serving#10098). Starvation: jobs of four
pods arrive evenly, and half-way all 30 pods of one running job are deleted at once (kubeflow/mpi-operator#674).
"""

import argparse
import time
from concurrent.futures import ThreadPoolExecutor
from datetime import datetime
from typing import Any

from ground import Ground, cpu_seconds, ground, memory
from jobs import JOBS, finished, manifest, wait

JSON = dict[str, Any]
MANY = 30


def foreign(at: Ground, count: int) -> None:
    """Pods of nobody that end at once; what they add to the controller."""
    path = f"/api/v1/namespaces/{at.namespace('foreign')}/pods"
    pid = at.pid("controller")
    before, cpu = memory(pid).now, cpu_seconds(pid)
    fate = {"fate.signalbox.dev/run-seconds": "0", "fate.signalbox.dev/start-seconds": "0"}
    spec = {"nodeName": "kwok-0", "restartPolicy": "Never", "containers": [{"name": "c", "image": "i"}]}

    def create(number: int) -> None:
        at.kube.create(path, {"metadata": {"name": f"p-{number}", "annotations": fate}, "spec": spec})

    with ThreadPoolExecutor(8) as pool:
        list(pool.map(create, range(count)))
    wait(lambda: sum(pod["status"].get("phase") == "Succeeded" for pod in pods(at, path)), count)
    print(
        f"{count} finished pods of others: {memory(pid).now - before:+.1f} MB and {cpu_seconds(pid) - cpu:.2f} s "
        f"of CPU in the controller, which holds {before:.0f} MB"
    )


def pods(at: Ground, path: str, selector: str = "") -> list[JSON]:
    found: list[JSON] = at.kube.get(path, resourceVersion="0", labelSelector=selector)["items"]
    return found


def starvation(at: Ground, count: int, seconds: float) -> None:
    namespace = at.namespace("crowd")
    path = f"/api/v1/namespaces/{namespace}/pods"
    mine = "training.kubeflow.org/job-name=large"

    gone: set[str] = set()

    def alive() -> int:
        left = (pod for pod in pods(at, path, mine) if pod["metadata"]["uid"] not in gone)
        return sum(pod["status"].get("phase") == "Running" for pod in left)

    at.kube.create(JOBS.format(namespace), large())
    wait(alive, MANY)
    started = time.monotonic()
    for number in range(count):
        at.kube.create(JOBS.format(namespace), manifest(f"job-{number}", "Running"))
        if number == count // 2:
            for pod in pods(at, path, mine):
                gone.add(pod["metadata"]["uid"])
                at.kube.delete(f"{path}/{pod['metadata']['name']}", uid=pod["metadata"]["uid"])
            deleted = time.monotonic()
        time.sleep(max(0.0, started + (number + 1) * seconds / count - time.monotonic()))
    arrived = time.monotonic() - started
    wait(alive, MANY)
    recovered = time.monotonic() - deleted
    wait(lambda: finished(at, namespace), count)
    taken = time.monotonic() - started
    wanted = f"longest wait for a first pod {slowest(at, namespace, path):.0f} s"
    print(f"{count} jobs within {arrived:.0f} s: all succeeded after {taken:.0f} s, {wanted}")
    print(f"the job whose {MANY} pods were deleted meanwhile ran again after {recovered:.0f} s")


def large() -> JSON:
    job = manifest("large", "Running")
    template = {
        "metadata": {"annotations": {"fate.signalbox.dev/never-ends": "true"}},
        "spec": {"containers": [{"name": "pytorch", "image": "registry.example/train:1"}]},
    }
    worker = {"replicas": MANY, "restartPolicy": "OnFailure", "template": template}
    return {**job, "spec": {"pytorchReplicaSpecs": {"Worker": worker}}}


def slowest(at: Ground, namespace: str, path: str) -> float:
    """Seconds between a job's creation and that of its first pod, the longest of all; whole seconds, as stored."""
    made: dict[str, datetime] = {}
    for pod in pods(at, path):
        name = pod["metadata"]["labels"]["training.kubeflow.org/job-name"]
        made[name] = min(stamp(pod), made.get(name, stamp(pod)))
    jobs = [job for job in pods(at, JOBS.format(namespace)) if job["metadata"]["name"] != "large"]
    return max((made[job["metadata"]["name"]] - stamp(job)).total_seconds() for job in jobs)


def stamp(item: JSON) -> datetime:
    return datetime.fromisoformat(item["metadata"]["creationTimestamp"])


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--jobs", type=int, default=300)
    parser.add_argument("--seconds", type=float, default=10.0)
    parser.add_argument("--foreign", type=int, default=10_000)
    options = parser.parse_args()
    with ground() as at:
        starvation(at, options.jobs, options.seconds)
        foreign(at, options.foreign)


if __name__ == "__main__":
    main()
