"""The floor: the writes our controller makes for one job, recorded once and replayed for others without any logic."""

import threading
import time
from collections import deque
from dataclasses import dataclass
from typing import Any

import orjson

from controller.loop import Loop
from controller.run import Run
from controller.settings import Settings
from kube.config import connect
from kube.errors import KubeError
from kube.raw import RawKube
from schemas.kinds import PYTORCH_JOB
from schemas.records import NoRecorder

JSON = dict[str, Any]
RECORDED = "recorded"


@dataclass(frozen=True)
class Write:
    """One call: the method of RawKube, the path, and the body as text with the recorded job's own words in it."""

    verb: str
    path: str
    body: str


class Recording(RawKube):
    """A client that notes every write of the controller."""

    def __init__(self, *arguments: Any, **options: Any) -> None:
        super().__init__(*arguments, **options)
        self.written: list[Write] = []

    def create(self, path: str, body: Any) -> JSON:
        self.written.append(Write("create", path, orjson.dumps(body, default=dict).decode()))
        return super().create(path, body)

    def replace(self, path: str, body: Any) -> JSON:
        self.written.append(Write("replace", path, orjson.dumps(body, default=dict).decode()))
        return super().replace(path, body)

    def delete(self, path: str, **options: Any) -> Any:
        self.written.append(Write("delete", path, "{}"))
        return super().delete(path, **options)


@dataclass(frozen=True)
class Script:
    """The writes of one job, and the words in them that belong to that job alone."""

    writes: tuple[Write, ...]
    namespace: str
    uid: str

    def __len__(self) -> int:
        return len(self.writes)

    def play(self, kube: RawKube, job: JSON) -> None:
        """All writes in their order for ``job``; a status carries the resourceVersion that the last answer had."""
        metadata = job["metadata"]
        words = ((RECORDED, metadata["name"]), (self.namespace, metadata["namespace"]), (self.uid, metadata["uid"]))
        for write in self.writes:
            path, text = write.path, write.body
            for word, own in words:
                path, text = path.replace(word, own), text.replace(word, own)
            job = _sent(kube, write.verb, path, orjson.loads(text), job)


def _sent(kube: RawKube, verb: str, path: str, body: JSON, job: JSON) -> JSON:
    if verb == "replace":
        return kube.replace(path, {**job, "status": body["status"]})
    if verb == "create":
        kube.create(path, body)
    else:
        kube.delete(path)
    return job


def record(at: Any, manifest: JSON) -> Script:
    """What our controller writes for one job in a namespace of its own, until nothing more comes."""
    namespace = at.namespace(f"floor-{time.time_ns() // 1_000_000}")
    kube = Recording(connect(str(at.site.cluster.kubeconfig)))
    run = Run(Loop(kube, (PYTORCH_JOB,), NoRecorder(), Settings(namespace=namespace)))
    run.start()
    run.lead()
    path = f"/apis/kubeflow.org/v1/namespaces/{namespace}/pytorchjobs"
    manifest = {**manifest, "metadata": {"name": RECORDED}}
    job = at.kube.create(path, manifest)
    while at.kube.get(f"{path}/{RECORDED}").get("status", {}).get("phase") != "Succeeded":
        time.sleep(0.2)
    time.sleep(3.0)  # the clean-up follows
    run.stop()
    kube.close()
    return Script(tuple(kube.written), namespace, job["metadata"]["uid"])


class Queue:
    """Threads that play a script for each job put in."""

    def __init__(self, script: Script, kube: RawKube, workers: int) -> None:
        self.done = 0
        self.failed: KubeError | None = None
        self._script, self._kube = script, kube
        self._jobs: deque[JSON] = deque()
        self._some = threading.Semaphore(0)
        self._lock = threading.Lock()
        for _ in range(workers):
            threading.Thread(target=self._work, daemon=True).start()

    def put(self, job: JSON) -> None:
        self._jobs.append(job)
        self._some.release()

    def _work(self) -> None:
        while True:
            self._some.acquire()
            try:
                self._script.play(self._kube, self._jobs.popleft())
            except KubeError as error:
                self.failed = error
            with self._lock:
                self.done += 1
