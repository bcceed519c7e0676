"""Where the benchmarks run: a local cluster of their own, ended with them, and what its processes cost."""

import os
import re
import tempfile
from collections import Counter
from collections.abc import Iterator
from contextlib import closing, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

from rich.console import Console

from kube.config import connect
from kube.raw import RawKube
from signalbox.local import cluster, processes, watchdog
from signalbox.local.site import STEPS, Site, start_controller

JSON = dict[str, Any]
TICK = os.sysconf("SC_CLK_TCK")
SAMPLE = re.compile(r"^(\w+)\{([^}]*)\} (\S+)$")
LABEL = re.compile(r'(\w+)="([^"]*)"')
WRITES = {"POST", "PUT", "PATCH", "APPLY", "DELETE"}


@dataclass(frozen=True)
class Ground:
    """A running cluster with Signalbox on it, and a client with the administrator's rights."""

    site: Site
    kube: RawKube
    flags: tuple[str, ...] = ()
    """More flags of the controller, for each of its starts."""

    @property
    def state_dir(self) -> Path:
        return self.site.cluster.state_dir

    def pid(self, name: str) -> int:
        record = processes.running(self.state_dir, name)
        assert record is not None, processes.log_tail(self.state_dir, name)
        return record.pid

    def start(self) -> None:
        start_controller(self.site, *self.flags)

    def stop(self) -> None:
        processes.stop(self.state_dir, "controller")

    def namespace(self, name: str) -> str:
        self.kube.create("/api/v1/namespaces", {"metadata": {"name": name}})
        return name

    def writes(self) -> Counter[tuple[str, str]]:
        """Writes the API server has answered so far, by verb and resource (``POST pods``)."""
        counted: Counter[tuple[str, str]] = Counter()
        for line in self.kube.text("/metrics").splitlines():
            found = SAMPLE.match(line)
            if found and found[1] == "apiserver_request_total":
                labels = dict(LABEL.findall(found[2]))
                if labels["verb"] in WRITES and labels["code"].startswith("2"):
                    where = "/".join(filter(None, (labels["resource"], labels["subresource"])))
                    counted[labels["verb"], where] += int(float(found[3]))
        return counted


@contextmanager
def ground(*flags: str) -> Iterator[Ground]:
    """A cluster in a directory of its own, its controller with ``flags``; a watchdog ends it when we are killed."""
    with tempfile.TemporaryDirectory(prefix="signalbox-bench-") as directory:
        state_dir = Path(directory)
        watchdog.launch(state_dir, os.getpid())
        try:
            running = cluster.start_control_plane(state_dir, console=Console(stderr=True))
            site = Site.on(running)
            for step in STEPS:
                step.run(site)
            with closing(RawKube(connect(str(running.kubeconfig)), timeout=60.0)) as kube:
                at = Ground(site, kube, flags)
                if flags:
                    at.stop()
                    at.start()
                yield at
        finally:
            cluster.stop(state_dir)
            watchdog.stop(state_dir)


class Memory(NamedTuple):
    """Resident, in MB."""

    now: float
    peak: float


def cpu_seconds(pid: int) -> float:
    """User and system time of a process with all its threads."""
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / TICK


def memory(pid: int) -> Memory:
    """The resident memory of a process."""
    status = Path(f"/proc/{pid}/status").read_text()
    now, peak = (int(re.search(rf"{name}:\s+(\d+)", status)[1]) / 1024 for name in ("VmRSS", "VmHWM"))  # type: ignore[index]
    return Memory(now, peak)
