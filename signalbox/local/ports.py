"""Free loopback ports, chosen once per state directory and remembered there."""

import json
import random
import socket
from collections.abc import Iterable
from pathlib import Path

LOOPBACK = "127.0.0.1"
RANGE = range(20000, 32000)
"""Below where the kernel takes the ports of outgoing connections, which could claim one before its server does."""


def is_free(port: int) -> bool:
    """Whether a server could listen on ``port`` of the loopback address now."""
    with socket.socket() as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind((LOOPBACK, port))
        except OSError:
            return False
    return True


def choose(names: Iterable[str]) -> dict[str, int]:
    """A different free port for each name. Raises OSError when none is left."""
    order = iter(random.SystemRandom().sample(RANGE, len(RANGE)))
    chosen: dict[str, int] = {}
    for name in names:
        port = next((port for port in order if is_free(port)), None)
        if port is None:
            raise OSError(f"no free port on {LOOPBACK} between {RANGE.start} and {RANGE.stop}")
        chosen[name] = port
    return chosen


def assigned(file: Path, names: Iterable[str]) -> dict[str, int]:
    """The ports in ``file`` by name, completed with free ones for those of ``names`` that have none yet."""
    known = _read(file)
    fresh = choose(name for name in names if name not in known)
    if fresh:
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(json.dumps({"ports": known | fresh}, indent=1) + "\n")
    return known | fresh


def _read(file: Path) -> dict[str, int]:
    try:
        ports: dict[str, int] = json.loads(file.read_text())["ports"]
    except (FileNotFoundError, ValueError, KeyError):
        return {}
    return ports
