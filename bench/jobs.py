"""What jobs cost: N PyTorchJobs of one master and three workers, from create to Succeeded, on a cluster of their own.

    python bench/jobs.py 1000 [1000 …] [--floor] [--no-history] [--clean None|Running|All]

Prints jobs per second, CPU of the controller per job and its peak memory, and the API server's writes per job. The
floor is a loop without logic that replays the very writes our controller makes for one job, through the same webhooks,
while the controller is stopped: what no controller in Python could beat on this machine. Only figures of one run and
about the same number of stored objects compare.
"""

import argparse
import time
from collections import Counter
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import floor
from ground import Ground, cpu_seconds, ground, memory

JSON = dict[str, Any]
JOBS = "/apis/kubeflow.org/v1/namespaces/{}/pytorchjobs"
SUBMITTERS = 8
PATIENCE = 900.0
NO_HISTORY = ("--history-url=",)


def manifest(name: str, clean: str) -> JSON:
    """A job whose pods run for a second and end well."""
    pod = {
        "metadata": {"annotations": {"fate.signalbox.dev/run-seconds": "1"}},
        "spec": {"containers": [{"name": "pytorch", "image": "registry.example/train:1", "command": ["train"]}]},
    }
    replicas = {"Master": 1, "Worker": 3}
    specs = {key: {"replicas": n, "restartPolicy": "Never", "template": pod} for key, n in replicas.items()}
    return {
        "apiVersion": "kubeflow.org/v1",
        "kind": "PyTorchJob",
        "metadata": {"name": name},
        "spec": {"pytorchReplicaSpecs": specs, "runPolicy": {"cleanPodPolicy": clean}},
    }


def submit(at: Ground, namespace: str, count: int, clean: str, each: Callable[[JSON], None] = lambda _: None) -> None:
    """Creates all jobs, and hands each one on as the API server stored it."""

    def create(number: int) -> None:
        each(at.kube.create(JOBS.format(namespace), manifest(f"job-{number}", clean)))

    with ThreadPoolExecutor(SUBMITTERS) as pool:
        list(pool.map(create, range(count)))


def finished(at: Ground, namespace: str) -> int:
    """Jobs that have succeeded; asked of the API server's cache, so that the asking costs little."""
    jobs = at.kube.get(JOBS.format(namespace), resourceVersion="0")["items"]
    return sum(job.get("status", {}).get("phase") == "Succeeded" for job in jobs)


def wait(done: Callable[[], int], count: int) -> None:
    deadline = time.monotonic() + PATIENCE
    while (seen := done()) < count:
        if time.monotonic() > deadline:
            raise SystemExit(f"only {seen} of {count} within {PATIENCE:.0f} s")
        time.sleep(0.5)


def measured(at: Ground, namespace: str, count: int, clean: str) -> float:
    """One round with our controller; its jobs per second."""
    at.namespace(namespace)
    pids = {name: at.pid(name) for name in ("controller", "kube-apiserver")}
    idle = memory(pids["controller"]).now
    cpu, before = {name: cpu_seconds(pid) for name, pid in pids.items()}, at.writes()
    started = time.monotonic()
    submit(at, namespace, count, clean)
    wait(lambda: finished(at, namespace), count)
    taken = time.monotonic() - started
    time.sleep(2.0)  # the clean-up after the last end belongs to the cost
    spent = {name: (cpu_seconds(pid) - cpu[name]) / count * 1000 for name, pid in pids.items()}
    held = memory(pids["controller"])
    print(
        f"controller {count} jobs, {clean}: {count / taken:.1f} jobs/s, {spent['controller']:.1f} ms CPU per job "
        f"(API server {spent['kube-apiserver']:.0f}); {idle:.0f} MB before, {held.now:.0f} after, peak {held.peak:.0f}"
    )
    tell(at.writes() - before, count)
    return count / taken


def tell(writes: Counter[tuple[str, str]], count: int) -> None:
    for (verb, where), number in sorted(writes.items(), key=lambda item: -item[1]):
        if number >= 0.05 * count:
            print(f"    {number / count:6.2f} per job  {verb} {where}")


def replayed(at: Ground, namespace: str, count: int, clean: str, workers: int) -> float:
    """The same writes without a controller; jobs per second."""
    at.namespace(namespace)
    script = floor.record(at, manifest("recorded", clean))
    pods = f"/api/v1/namespaces/{namespace}/pods"

    def ended() -> int:
        items = at.kube.get(pods, resourceVersion="0")["items"]
        return sum(pod["status"].get("phase") == "Succeeded" for pod in items)

    cpu, started = time.process_time(), time.monotonic()
    queue = floor.Queue(script, at.kube, workers)
    submit(at, namespace, count, clean, queue.put)
    wait(lambda: queue.done, count)
    if queue.failed:
        raise SystemExit(f"floor: {queue.failed}")
    wait(ended, 4 * count)
    taken = time.monotonic() - started
    print(
        f"floor      {count} jobs, {clean}: {count / taken:.1f} jobs/s, {len(script)} writes per job, "
        f"{(time.process_time() - cpu) / count * 1000:.1f} ms CPU per job with the submitting"
    )
    return count / taken


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("jobs", type=int, nargs="+", help="jobs per round; several numbers are several rounds")
    parser.add_argument("--clean", default="Running", choices=["None", "Running", "All"])
    parser.add_argument("--no-history", action="store_true", help="a controller that keeps no history")
    parser.add_argument("--floor", action="store_true", help="a floor of the same size before each round")
    parser.add_argument("--pause", action="store_true", help="wait for Enter before the first round, for a profiler")
    options = parser.parse_args()
    with ground(*NO_HISTORY if options.no_history else ()) as at:
        if options.pause:
            input(f"the controller is process {at.pid('controller')}; Enter starts ")
        for number, count in enumerate(options.jobs):
            base = None
            if options.floor:
                at.stop()
                base = replayed(at, f"floor-{number}", count, options.clean, workers=4)
                at.start()
                time.sleep(2.0)  # what its start costs is not the jobs'
            rate = measured(at, f"jobs-{number}", count, options.clean)
            if base:
                print(f"ratio      {rate / base:.2f} of the floor")


if __name__ == "__main__":
    main()
