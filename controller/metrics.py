"""What the controller counts. No label holds the name of a job."""

from collections import Counter as Tally
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from functools import cache
from typing import Any

from prometheus_client import Counter, Gauge, Histogram

from controller.progress import Progress, state_of
from schemas.job import mapping
from schemas.kinds import JobKind

DELAYS = (0.5, 1, 2, 5, 10, 30, 60, 120, 300, 600, 1800, 3600)

RECONCILES = Counter("signalbox_reconciles_total", "Reconciles by kind and outcome", ["kind", "outcome"])
SECONDS = Histogram("signalbox_reconcile_seconds", "Duration of a reconcile", ["kind"])
CALLS = Counter("signalbox_api_calls_total", "Calls to the API server by verb and status code", ["verb", "code"])
JOBS = Gauge("signalbox_jobs", "Jobs there are, by kind and by the condition that holds", ["kind", "state"])
TRANSITIONS = Counter(
    "signalbox_job_transitions_total",
    "Changes of the condition that holds; from is empty for a new job",
    ["kind", "from", "to"],
)
RESTARTS = Counter("signalbox_job_restarts_total", "Pods replaced, by why they failed or went", ["kind", "reason"])
FIRST_POD = Histogram(
    "signalbox_job_first_pod_seconds",
    "From the job's startTime (its last start) to its first pod running, as the controller saw it",
    ["kind"],
    buckets=DELAYS,
)
ALL_PODS = Histogram(
    "signalbox_job_all_pods_seconds",
    "From the job's startTime (its last start) to all its pods running, as the controller saw it",
    ["kind"],
    buckets=DELAYS,
)
UNSAVED = Counter("signalbox_history_unsaved_total", "Jobs deleted by TTL before their history was saved")
HISTORY_WAITING = Gauge("signalbox_history_waiting_rows", "Rows that wait to be written to the history")
HISTORY_LAG = Gauge("signalbox_history_lag_seconds", "How long the oldest row has waited to be written to the history")
HISTORY_DROPPED = Gauge("signalbox_history_dropped_rows", "Rows that the history has given up since the start")
VIOLATING = Gauge("signalbox_policy_violating_jobs", "Stored jobs that break a policy", ["policy"])
DEPTH = Gauge("signalbox_queue_depth", "Jobs waiting for a reconcile")
LEADER = Gauge("signalbox_is_leader", "1 while this controller acts, 0 while it stands by")
SERVED = Gauge(
    "signalbox_kind_served",
    "1 for a kind that is served, 0 for one left to another or not installed",
    ["kind", "group"],
)
PROGRESS = Gauge("signalbox_watch_idle_seconds", "Seconds since a watch last moved", ["resource"])


class Outcome:
    """The word under which one reconcile is counted."""

    def __init__(self) -> None:
        self.word = "done"

    def set(self, word: str) -> None:
        self.word = word


@contextmanager
def timed(kind: JobKind, monotonic: Callable[[], float]) -> Iterator[Outcome]:
    """Times one reconcile and counts it by its outcome."""
    outcome = Outcome()
    start = monotonic()
    try:
        yield outcome
    finally:
        SECONDS.labels(kind.kind).observe(monotonic() - start)
        RECONCILES.labels(kind.kind, outcome.word).inc()


def on_call(verb: str, code: int, _seconds: float) -> None:
    """Counts one call of the API server."""
    _calls(verb, code).inc()


@cache
def _calls(verb: str, code: int) -> Counter:
    return CALLS.labels(verb, str(code))


def on_progress(kind: JobKind, seen: Progress) -> None:
    """Counts what one status write has shown."""
    if seen.transition is not None:
        TRANSITIONS.labels(kind.kind, *seen.transition).inc()
    for reason in seen.restarts:
        RESTARTS.labels(kind.kind, reason).inc()
    for histogram, delay in ((FIRST_POD, seen.first_pod), (ALL_PODS, seen.all_pods)):
        if delay is not None:
            histogram.labels(kind.kind).observe(delay)


def count_jobs(jobs: Iterable[tuple[JobKind, Iterable[Mapping[str, Any]]]]) -> None:
    """Sets the gauge of jobs; a state without jobs any more is no longer told."""
    JOBS.clear()
    for kind, stored in jobs:
        states = Tally(state_of(mapping(job.get("status"))) for job in stored)
        for state, number in states.items():
            JOBS.labels(kind.kind, state or "New").set(number)
