"""What has been counted so far: the part of a job's status that decisions rest on, parsed and written back. Pure.

Everything that must survive a crash or a change of leader is here and nowhere in memory.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta
from typing import Any

from schemas import indexes, times
from schemas.job import Job, integer, mapping, sequence, text

JSON = dict[str, Any]

LONGEST_HISTORY = 10
MOST_PENDING = 500
LONGEST_DELAY = timedelta(minutes=6)
"""No replacement of a failed pod is put off for longer."""


@dataclass(frozen=True, slots=True)
class Retry:
    """An index that has been replaced: ``attempt`` delayed replacements so far, none before ``not_before``."""

    attempt: int
    not_before: datetime | None = None

    def holds(self, now: datetime) -> bool:
        """Whether the delay still runs; one that is longer than any delay was stored before the clock was set back."""
        return self.not_before is not None and now < self.not_before <= now + LONGEST_DELAY


@dataclass(frozen=True, slots=True)
class Tally:
    """The counts of one replica type that outlive its pods."""

    initial: int | None = None
    failed: int = 0
    succeeded: frozenset[int] = frozenset()
    created: frozenset[int] = frozenset()
    retries: Mapping[int, Retry] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Ledger:
    """The counted past of one job."""

    start: datetime | None = None
    completion: datetime | None = None
    restarts: int = 0
    restarts_counted: int = 0
    history: tuple[JSON, ...] = ()
    pending: tuple[str, ...] = ()
    round: int = 0
    tallies: Mapping[str, Tally] = field(default_factory=dict)

    def tally(self, replica_type: str) -> Tally:
        return self.tallies.get(replica_type) or Tally()

    def with_tally(self, replica_type: str, tally: Tally) -> "Ledger":
        return replace(self, tallies={**self.tallies, replica_type: tally})

    def afresh(self) -> "Ledger":
        """The ledger of a job that starts again after a suspension: only ``round`` goes on."""
        return Ledger(round=self.round)

    def next_round(self) -> "Ledger":
        """The ledger once the whole job is restarted: pods of older rounds no longer count."""
        cleared = {
            name: replace(tally, succeeded=frozenset(), created=frozenset(), retries={})
            for name, tally in self.tallies.items()
        }
        return replace(self, round=self.round + 1, tallies=cleared, pending=())


def read(job: Job) -> Ledger:
    """The ledger in the stored status; what is unreadable there counts as absent."""
    status = job.status
    return Ledger(
        start=times.parse(status.get("startTime")),
        completion=times.parse(status.get("completionTime")),
        restarts=integer(status.get("restarts")) or 0,
        restarts_counted=integer(status.get("restartsCounted")) or 0,
        history=tuple(item for item in sequence(status.get("restartHistory")) if isinstance(item, dict)),
        pending=tuple(item for item in sequence(status.get("pendingRestarts")) if isinstance(item, str)),
        round=integer(status.get("round")) or 0,
        tallies={name: _tally(mapping(raw)) for name, raw in mapping(status.get("replicaStatuses")).items()},
    )


def _tally(raw: Mapping[str, Any]) -> Tally:
    return Tally(
        initial=integer(raw.get("initial")),
        failed=integer(raw.get("failed")) or 0,
        succeeded=indexes.parse(raw.get("succeededIndexes")),
        created=indexes.parse(raw.get("createdIndexes")),
        retries={
            index: Retry(integer(item.get("attempt")) or 0, times.parse(item.get("notBefore")))
            for item in map(mapping, sequence(raw.get("retries")))
            if (index := integer(item.get("index"))) is not None
        },
    )


def status_of(ledger: Ledger) -> JSON:
    """The job-wide fields of the status; but for restarts, zero and empty ones are left out."""
    fields: JSON = {
        "startTime": times.written(ledger.start) if ledger.start else None,
        "completionTime": times.written(ledger.completion) if ledger.completion else None,
        "restartsCounted": ledger.restarts_counted,
        "restartHistory": list(ledger.history[-LONGEST_HISTORY:]),
        "pendingRestarts": list(ledger.pending),
        "round": ledger.round,
    }
    return {key: value for key, value in fields.items() if value} | {"restarts": ledger.restarts}


def replica_status_of(tally: Tally) -> JSON:
    """The fields of one replica status that are counted, not observed."""
    fields: JSON = {
        "initial": tally.initial,
        "succeeded": len(tally.succeeded),
        "failed": tally.failed,
        "succeededIndexes": indexes.written(tally.succeeded),
        "createdIndexes": indexes.written(tally.created),
        "retries": [_retry(index, tally.retries[index]) for index in sorted(tally.retries)][:MOST_PENDING],
    }
    return {key: value for key, value in fields.items() if value}


def _retry(index: int, retry: Retry) -> JSON:
    later = {"notBefore": times.written(retry.not_before)} if retry.not_before else {}
    return {"index": index, "attempt": retry.attempt, **later}


def entry(kind: str, moment: datetime, **fields: Any) -> JSON:
    """One line of the restart history."""
    return {"time": times.written(moment), "reason": text(kind), **{k: v for k, v in fields.items() if v is not None}}
