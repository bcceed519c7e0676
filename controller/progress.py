"""What one status write says about a job's progress, for the metrics. Pure."""

import re
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from schemas import conditions, times
from schemas.job import mapping, sequence, text

JSON = Mapping[str, Any]
REASON = re.compile(r"[A-Za-z]{1,40}")
LAUNCHING = ("", conditions.PENDING, conditions.SUSPENDED)


@dataclass(frozen=True, slots=True)
class Progress:
    """What is new in a status. Seconds count from startTime; None: the write does not show that moment."""

    transition: tuple[str, str] | None = None
    """The true states before (empty for a new job) and after, when they differ."""
    restarts: tuple[str, ...] = ()
    """The reason of each restart that the write counts."""
    first_pod: float | None = None
    all_pods: float | None = None


def progress(before: JSON, after: JSON, now: datetime) -> Progress:
    """Compares the stored status with the one that replaces it."""
    was, state = state_of(before), state_of(after)
    seconds = _since_start(before, after, now)
    launching = seconds is not None and was in LAUNCHING and not _has_run(before)
    return Progress(
        transition=(was, state) if state and was != state else None,
        restarts=tuple(_new_restarts(before, after)),
        first_pod=seconds if launching and _begun(after) and not _begun(before) else None,
        all_pods=seconds if launching and state == conditions.RUNNING else None,
    )


def state_of(status: JSON) -> str:
    """The type of the condition that holds; empty before the first."""
    return text(mapping(conditions.true_state(_rows(status))).get("type"))


def _rows(status: JSON) -> list[JSON]:
    return [row for row in sequence(status.get("conditions")) if isinstance(row, dict)]


def _new_restarts(before: JSON, after: JSON) -> list[str]:
    """A runtime may give any text as a reason; what is no single word is counted as Other."""
    known = sequence(before.get("restartHistory"))
    new = [mapping(line) for line in sequence(after.get("restartHistory")) if line not in known]
    return [reason if REASON.fullmatch(reason := text(line.get("reason"))) else "Other" for line in new]


def _since_start(before: JSON, after: JSON, now: datetime) -> float | None:
    """Seconds since this start; none for the write that begins it."""
    start = times.parse(after.get("startTime"))
    if start is None or before.get("startTime") != after.get("startTime"):
        return None
    return max((now - start).total_seconds(), 0.0)


def _has_run(before: JSON) -> bool:
    """Whether all pods have run at once since the start: what comes now is no launch."""
    ran = mapping(conditions.find(_rows(before), conditions.RUNNING))
    since, start = times.parse(ran.get("lastTransitionTime")), times.parse(before.get("startTime"))
    return since is not None and start is not None and since > start


def _begun(status: JSON) -> bool:
    """Whether a pod has started."""
    entries = [mapping(entry) for entry in mapping(status.get("replicaStatuses")).values()]
    return any(entry.get("active") or entry.get("succeeded") or entry.get("failed") for entry in entries)
