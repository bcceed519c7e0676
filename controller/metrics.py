"""What the controller counts. No label holds the name of a job."""

import time
from collections.abc import Iterator
from contextlib import contextmanager

from prometheus_client import Counter, Gauge, Histogram

from schemas.kinds import JobKind

RECONCILES = Counter("signalbox_reconciles_total", "Reconciles by kind and outcome", ["kind", "outcome"])
SECONDS = Histogram("signalbox_reconcile_seconds", "Duration of a reconcile", ["kind"])
CALLS = Counter("signalbox_api_calls_total", "Calls to the API server by verb and status code", ["verb", "code"])
UNSAVED = Counter("signalbox_history_unsaved_total", "Jobs deleted by TTL before their history was saved")
SERVED = Gauge("signalbox_kind_served", "Whether the installed CRD lets the kind be served", ["kind", "group"])
DEPTH = Gauge("signalbox_queue_depth", "Jobs waiting for a reconcile")
LEADER = Gauge("signalbox_is_leader", "1 while this controller acts, 0 while it stands by")
PROGRESS = Gauge("signalbox_watch_idle_seconds", "Seconds since a watch last moved", ["resource"])


class Outcome:
    """The word under which one reconcile is counted."""

    def __init__(self) -> None:
        self.word = "done"

    def set(self, word: str) -> None:
        self.word = word


@contextmanager
def timed(kind: JobKind) -> Iterator[Outcome]:
    """Times one reconcile and counts it by its outcome."""
    outcome = Outcome()
    start = time.monotonic()
    try:
        yield outcome
    finally:
        SECONDS.labels(kind.kind).observe(time.monotonic() - start)
        RECONCILES.labels(kind.kind, outcome.word).inc()


def on_call(verb: str, code: int, _seconds: float) -> None:
    """Counts one call of the API server."""
    CALLS.labels(verb, str(code)).inc()
