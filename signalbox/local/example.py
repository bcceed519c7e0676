"""Apply an example job and follow it to its end."""

import json
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from rich.console import Console

from signalbox.local import site
from signalbox.local.cluster import Cluster

INTERVAL = 0.5
TIMEOUT = 180.0


class ExampleError(Exception):
    """The example did not end in Succeeded; the message says how it ended."""


def run(running: Cluster, manifest: Path, console: Console) -> None:
    """Apply the one job in ``manifest`` and show its state until it has Succeeded. Raises ExampleError."""
    site.kubectl(running, "apply", f"--filename={manifest}")
    last = ""
    with console.status(f"{manifest.name} applied") as status:
        for job in _seen(running, manifest):
            line = describe(job)
            if line != last and not console.is_terminal:
                console.print(line, highlight=False)
            status.update(line)
            last = line
            if state(job) in ("Succeeded", "Failed"):
                break
    if state(job) != "Succeeded":
        raise ExampleError(f"{last}: {message(job) or f'no end within {TIMEOUT:g} s'}")
    if console.is_terminal:
        console.print(f"[green]✓[/] {last}", highlight=False)


def state(job: dict[str, Any]) -> str:
    """The type of the last condition that is True; empty when there is none yet."""
    return next((condition["type"] for condition in reversed(_conditions(job)) if condition["status"] == "True"), "")


def message(job: dict[str, Any]) -> str:
    """The message of that condition."""
    return next(
        (condition.get("message", "") for condition in reversed(_conditions(job)) if condition["status"] == "True"), ""
    )


def describe(job: dict[str, Any]) -> str:
    """One line: ``PyTorchJob pytorch-mnist: Running (Master 1 active, Worker 2 active)``."""
    counts = (
        f"{name} {count} {what}"
        for name, status in job.get("status", {}).get("replicaStatuses", {}).items()
        for what in ("pending", "active", "succeeded", "failed")
        if (count := status.get(what))
    )
    shown = ", ".join(counts)
    return f"{job['kind']} {job['metadata']['name']}: {state(job) or 'accepted'}" + (f" ({shown})" if shown else "")


def _conditions(job: dict[str, Any]) -> list[dict[str, Any]]:
    conditions: list[dict[str, Any]] = job.get("status", {}).get("conditions", [])
    return conditions


def _seen(running: Cluster, manifest: Path) -> Iterator[dict[str, Any]]:
    deadline = time.monotonic() + TIMEOUT
    while time.monotonic() < deadline:
        yield json.loads(site.kubectl(running, "get", f"--filename={manifest}", "--output=json"))
        time.sleep(INTERVAL)
