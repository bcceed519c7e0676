"""Background processes that outlive the command which started them.

Each has two files in a state directory: ``<name>.log`` and ``<name>.pid``. The latter also holds the time the process
started, by the kernel's count, so that another process which got the same id later is never taken for it or killed.
"""

import contextlib
import json
import os
import signal
import time
from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass, field
from pathlib import Path

LOG_TAIL = 15


class StartError(Exception):
    """A process that ended, or was not ready in time. The message ends with the last lines of its log."""


@dataclass(frozen=True, slots=True)
class Program:
    """What to run: ``argv[0]`` is a path or a command on PATH, ``env`` is added to the environment."""

    name: str
    argv: tuple[str, ...]
    listens: tuple[str, ...] = ()
    env: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Record:
    """The content of a pid file. ``started`` is in clock ticks since boot, as in ``/proc/<pid>/stat``."""

    pid: int
    started: int
    argv: tuple[str, ...]
    listens: tuple[str, ...] = ()

    def is_alive(self) -> bool:
        """Whether this very process still runs."""
        return started_at(self.pid) == self.started

    def uptime(self) -> float:
        """Seconds since the process started."""
        return time.clock_gettime(time.CLOCK_BOOTTIME) - self.started / os.sysconf("SC_CLK_TCK")


def started_at(pid: int) -> int | None:
    """When process ``pid`` started, in clock ticks since boot; None when there is none, or only its corpse."""
    with contextlib.suppress(ChildProcessError):
        os.waitpid(pid, os.WNOHANG)
    try:
        stat = Path(f"/proc/{pid}/stat").read_text()
    except (FileNotFoundError, ProcessLookupError):
        return None
    fields = stat.rpartition(")")[2].split()
    return None if fields[0] in "ZX" else int(fields[19])


def read(state_dir: Path, name: str) -> Record | None:
    """The record in ``<name>.pid``; None when there is none or it is not readable."""
    try:
        stored = json.loads((state_dir / f"{name}.pid").read_text())
        return Record(stored["pid"], stored["started"], tuple(stored["argv"]), tuple(stored["listens"]))
    except (FileNotFoundError, ValueError, KeyError, TypeError):
        return None


def running(state_dir: Path, name: str) -> Record | None:
    """The record of process ``name`` if it is alive."""
    record = read(state_dir, name)
    return record if record and record.is_alive() else None


def launch(state_dir: Path, program: Program) -> Record:
    """Run ``program`` unless it already runs with the same arguments; one with other arguments is stopped first."""
    record = running(state_dir, program.name)
    if record and record.argv == program.argv:
        return record
    stop(state_dir, program.name)
    return _spawn(state_dir, program)


def start(state_dir: Path, program: Program, is_ready: Callable[[], bool], *, timeout: float = 30) -> Record:
    """``launch`` and wait until it is ready, at most ``timeout`` seconds.

    Raises StartError when the process ends or time is up; a process that is not ready in time is stopped.
    """
    record = launch(state_dir, program)
    await_ready(state_dir, program.name, is_ready, timeout=timeout)
    return record


def await_ready(state_dir: Path, name: str, is_ready: Callable[[], bool], *, timeout: float = 30) -> None:
    """Wait until ``is_ready()`` while process ``name`` lives. Raises StartError as ``start`` does."""
    deadline = time.monotonic() + timeout
    while not is_ready():
        if not running(state_dir, name):
            raise StartError(_failure(state_dir, name, "ended before it was ready"))
        if time.monotonic() > deadline:
            stop(state_dir, name)
            raise StartError(_failure(state_dir, name, f"was not ready within {timeout:g} s"))
        time.sleep(0.05)


def stop(state_dir: Path, name: str, *, grace: float = 10) -> bool:
    """End process ``name``: SIGTERM, after ``grace`` seconds SIGKILL. False when it did not run."""
    record = running(state_dir, name)
    if record:
        _signal(record, signal.SIGTERM)
        if not _gone(record, grace):
            _signal(record, signal.SIGKILL)
            _gone(record, grace)
    (state_dir / f"{name}.pid").unlink(missing_ok=True)
    return record is not None


def log_tail(state_dir: Path, name: str, lines: int = LOG_TAIL) -> str:
    """The last lines of ``<name>.log``; empty when there is none."""
    with contextlib.suppress(FileNotFoundError):
        return "\n".join((state_dir / f"{name}.log").read_text(errors="replace").splitlines()[-lines:])
    return ""


def names(state_dir: Path) -> list[str]:
    """Names of all processes with a pid file, sorted."""
    return sorted(path.stem for path in state_dir.glob("*.pid"))


def _spawn(state_dir: Path, program: Program) -> Record:
    state_dir.mkdir(parents=True, exist_ok=True)
    log = state_dir / f"{program.name}.log"
    pid = os.posix_spawnp(
        program.argv[0],
        program.argv,
        {**os.environ, **program.env},
        file_actions=[
            (os.POSIX_SPAWN_OPEN, 0, os.devnull, os.O_RDONLY, 0),
            (os.POSIX_SPAWN_OPEN, 1, str(log), os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_APPEND, 0o600),
            (os.POSIX_SPAWN_DUP2, 1, 2),
        ],
        setsid=True,  # Ctrl-C in the terminal is not meant for it
    )
    record = Record(pid, started_at(pid) or 0, program.argv, program.listens)
    _write(state_dir / f"{program.name}.pid", json.dumps(asdict(record)))
    return record


def _write(path: Path, text: str) -> None:
    draft = path.with_suffix(".tmp")
    draft.write_text(text + "\n")
    draft.replace(path)


def _failure(state_dir: Path, name: str, what: str) -> str:
    return f"{name} {what}; the end of {state_dir / name}.log:\n{log_tail(state_dir, name)}"


def _signal(record: Record, number: int) -> None:
    with contextlib.suppress(ProcessLookupError):
        os.kill(record.pid, number)


def _gone(record: Record, seconds: float) -> bool:
    deadline = time.monotonic() + seconds
    while record.is_alive():
        if time.monotonic() > deadline:
            return False
        time.sleep(0.02)
    return True
