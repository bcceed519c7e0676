"""What deciding costs: whole lives of 1+3 jobs through the controller's loop, with a server in memory and no network.

    python bench/lives.py [--lives 200] [--held 1500] [--profile]

Prints CPU, reconciles and writes per job, first with few jobs in the stores and then with ``--held`` more of them.
Pods are bound, run and end in crowds, as they do on a cluster; other processes on the machine disturb little.
"""

import argparse
import cProfile
import pstats
import time
from typing import Any

from jobs import manifest

from controller.loop import Loop
from controller.settings import Settings
from kube.queue import WorkQueue
from kube.resources import PODS, SERVICES
from schemas import kinds
from schemas.records import NoRecorder

JSON = dict[str, Any]
KIND = kinds.PYTORCH_JOB
NOW = "2026-01-01T00:00:05Z"
CONDITIONS = [{"type": name, "status": "True", "lastTransitionTime": NOW} for name in ("PodScheduled", "Ready")]
CONTAINER = {"name": "pytorch", "image": "i", "ready": True, "restartCount": 0}
STATES = (
    {"phase": "Pending", "conditions": CONDITIONS},
    {"phase": "Running", "containerStatuses": [CONTAINER | {"state": {"running": {"startedAt": NOW}}}]},
    {"phase": "Succeeded", "containerStatuses": [CONTAINER | {"state": {"terminated": {"exitCode": 0}}}]},
)


class Server:
    """Answers every write as the API server would, and counts them."""

    def __init__(self) -> None:
        self.writes = 0
        self.version = 0

    def stored(self, body: JSON) -> JSON:
        self.version += 1
        metadata = {"uid": f"uid-{body['metadata']['name']}", **body["metadata"], "resourceVersion": str(self.version)}
        return {**body, "metadata": metadata}

    def create(self, _path: str, body: JSON) -> JSON:
        self.writes += 1
        return self.stored(body)

    replace = create

    def delete(self, _path: str, **_options: Any) -> None:
        self.writes += 1


class World:
    """A controller's loop whose time moves only here."""

    def __init__(self) -> None:
        self.server, self.seconds, self.reconciles, self.born = Server(), 0.0, 0, 0
        queue, settings = WorkQueue(monotonic=lambda: self.seconds), Settings(take_over=True)
        self.loop = Loop(self.server, (KIND,), NoRecorder(), settings, queue=queue)  # type: ignore[arg-type]
        self.loop.act()

    def settle(self) -> None:
        self.seconds += 1.0
        while (key := self.loop.queue.get(0)) is not None:
            self.loop.reconcile(key)
            self.loop.queue.done(key)
            self.reconciles += 1

    def live(self) -> None:
        """One job from its creation to its end and clean-up."""
        self.born += 1
        job = manifest(f"job-{self.born}", "Running")
        job["metadata"] |= {"namespace": "ns", "uid": f"job-{self.born}", "generation": 1}
        job = self.server.stored(job)
        self.loop.jobs[KIND].observe(job)
        self.loop.watched.on_job(KIND, "ADDED", job)
        self.settle()
        for state in STATES:
            for pod in self.loop.pods.owned_by(job["metadata"]["uid"]):
                changed = self.server.stored({**pod, "status": state})
                self.loop.pods.observe(changed)
                self.loop.watched.on_child("MODIFIED", changed, PODS, pod)
            self.settle()
        for service in self.loop.services.owned_by(job["metadata"]["uid"]):
            gone = self.server.stored(service)
            self.loop.services.forget(gone, resource_version=gone["metadata"]["resourceVersion"])
            self.loop.watched.on_child("DELETED", gone, SERVICES)
        self.settle()
        stored = self.loop.jobs[KIND].get("ns", f"job-{self.born}")
        assert stored is not None
        assert stored["status"]["phase"] == "Succeeded"

    def measure(self, lives: int) -> None:
        held, self.reconciles, self.server.writes = self.born, 0, 0
        started = time.process_time()
        for _ in range(lives):
            self.live()
        spent = (time.process_time() - started) / lives * 1000
        print(
            f"with {held:5} jobs held: {spent:5.1f} ms CPU, {self.reconciles / lives:.1f} reconciles and "
            f"{self.server.writes / lives:.1f} writes per job"
        )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--lives", type=int, default=200)
    parser.add_argument("--held", type=int, default=1500)
    parser.add_argument("--profile", action="store_true")
    options = parser.parse_args()
    world = World()
    for _ in range(20):
        world.live()
    profile = cProfile.Profile(time.process_time) if options.profile else None
    if profile:
        profile.runcall(world.measure, options.lives)
        pstats.Stats(profile).sort_stats("tottime").print_stats(30)
        return
    world.measure(options.lives)
    for _ in range(options.held):
        world.live()
    world.measure(options.lives)


if __name__ == "__main__":
    main()
