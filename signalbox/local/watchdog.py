"""Ends a control plane when the process it was started for is gone: ``python -m signalbox.local.watchdog DIR PID``.

For test runs, so that not even a killed one leaves anything behind. It ends itself together with the control plane.
"""

import sys
import time
from pathlib import Path

from signalbox.local import cluster, processes
from signalbox.local.processes import Program

NAME = "watchdog"
INTERVAL = 1.0
LIFETIME = 4 * 3600.0
"""Seconds after which the control plane is ended in any case."""


def launch(state_dir: Path, pid: int) -> None:
    """Watch over ``state_dir`` for the process ``pid``, once, however often it is called.

    Its own pid file is in a directory below, so that it is not taken for a part of the control plane.
    """
    program = Program(NAME, (sys.executable, "-m", __name__, str(state_dir), str(pid)))
    processes.launch(state_dir / NAME, program)


def stop(state_dir: Path) -> None:
    """End the watchdog over ``state_dir``, not what it watches over."""
    processes.stop(state_dir / NAME, NAME)


def watch(state_dir: Path, pid: int, started: int) -> None:
    """Return once process ``pid``, started at ``started`` (clock ticks since boot), is gone and all is stopped."""
    deadline = time.monotonic() + LIFETIME
    while processes.started_at(pid) == started and time.monotonic() < deadline:
        time.sleep(INTERVAL)
    if state_dir.exists():
        cluster.stop(state_dir)


if __name__ == "__main__":
    watched = int(sys.argv[2])
    watch(Path(sys.argv[1]), watched, processes.started_at(watched) or 0)
