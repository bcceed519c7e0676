"""The recorder of the controller: takes objects without waiting, writes them in a thread of its own.

A database that is down, slow or silent costs the controller nothing (argoproj/argo-workflows#14112): rows wait here,
one per object, and are written when it is back (argoproj/argo-workflows#3880).
"""

import threading
import time
from collections import OrderedDict
from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import Any

import structlog
from sqlalchemy.exc import DataError

from history import details, records
from history.backlog import Backlog, Build, Details, Entry, Key
from history.fields import UID, Object, at, text, utcnow, version
from history.store import Gone, Record, Refused, Sink, Store
from schemas.records import Admission, Live

BATCH = 500
FIRST_RETRY, LAST_RETRY = 1.0, 30.0
"""Seconds between attempts while the database fails, doubling from the first to the last."""

log = structlog.get_logger("history")


class Writer:
    """A ``schemas.records.Recorder`` that writes to ``sink``, or the database at that URL, until ``close``.

    Raises ValueError for a URL that can never work; a database that is merely down is waited for. The database and
    its tables are created when missing. ``interval`` is how long rows are gathered, in seconds; beyond ``max_keys``
    waiting rows the oldest unfinished ones are dropped and counted. ``region`` is written as deploy_region.
    """

    keeps = True

    def __init__(
        self, sink: Sink | str, *, region: str | None = None, interval: float = 1.0, max_keys: int = 100_000
    ) -> None:
        self.written = 0
        """Objects and answers written."""
        self.refused = 0
        """Rows that the database would not take at any time."""
        self.failures = 0
        """Attempts to write that failed."""
        self._sink = Store(sink) if isinstance(sink, str) else sink
        self._region = region
        self._interval = interval
        self._max_keys = max_keys
        self._backlog = Backlog(max_keys)
        self._saved: OrderedDict[str, int] = OrderedDict()
        self._live: dict[tuple[str, str, str], Live] = {}
        self._told: dict[str, frozenset[Key]] = {}
        self._migrated = False
        self._delay = self._retry_at = 0.0
        self._dropping = False
        self._some, self._full, self._stop = threading.Event(), threading.Event(), threading.Event()
        self._deadline = float("inf")
        self._thread = threading.Thread(target=self._run, name="history", daemon=True)
        self._thread.start()

    @property
    def dropped(self) -> int:
        """Rows given up because too many were waiting, or because the database refused them."""
        return self._backlog.dropped + self.refused

    @property
    def waiting(self) -> int:
        """Rows not written yet."""
        return len(self._backlog)

    def lag_seconds(self) -> float:
        """How long the oldest row has been waiting to be written."""
        return self._backlog.age()

    def saw_job(self, job: Mapping[str, Any]) -> None:
        """A job as stored by the API server."""
        self._job(job, gone=False)

    def saw_pod(self, pod: Mapping[str, Any], job_uid: str, replica_type: str) -> None:
        """A pod of a job."""
        self._pod(pod, job_uid, replica_type, gone=False)

    def saw_event(self, event: Mapping[str, Any]) -> None:
        """A core/v1 Event about a job or pod of ours."""
        uid, name = at(event, "involvedObject", "uid"), at(event, "metadata", "name")
        build = partial(records.event_record, event, self._region)
        self._put(("event", f"{uid}/{name}"), Entry(build, version=_number(event), ended=False))

    def lost_job(self, job: Mapping[str, Any]) -> None:
        """A job whose object is gone: it ends as Stopped, now, unless it had ended."""
        self._job(job, gone=True)

    def lost_pod(self, pod: Mapping[str, Any], job_uid: str, replica_type: str) -> None:
        """A pod whose object is gone: it ends as Stopped, now, unless it had ended."""
        self._pod(pod, job_uid, replica_type, gone=True)

    def saw_restarts(self, job: Mapping[str, Any], lines: Sequence[Mapping[str, Any]]) -> None:
        """Restarts just counted; those that the status lists as well are the same rows."""
        uid = text(at(job, "metadata", "uid"), UID)
        for record in details.restarts_of(uid, lines):
            self._put(("restart", f"{uid}/{record.restart_id}"), Entry(record, version=0, ended=True))

    def live(self, found: Live) -> None:
        """What existed in one list: open rows of others in its bounds are closed."""
        self._live[(found.what, found.kind, found.namespace)] = replace(found, region=text(self._region, UID))
        self._some.set()

    def admission(self, record: Admission) -> None:
        """An answer of the webhook, and what was submitted."""
        submitted = partial(details.submitted, record)
        key = ("snapshot", record.review)
        if record.verdict:
            kept = {key: submitted} if record.object else {}
            answer = partial(details.admission, record)
            self._put(("answer", record.review), Entry(answer, version=0, ended=False, details=kept, size=record.size))
        elif record.object:
            self._put(key, Entry(submitted, version=0, ended=False, size=record.size))

    def saved(self, job_uid: str, resource_version: str) -> bool:
        """Whether the terminal state of this job, at this version or a newer one, is committed."""
        known = self._saved.get(job_uid)
        return known is not None and resource_version.isdecimal() and known >= int(resource_version)

    def close(self, timeout: float = 10.0) -> bool:
        """Write what can be written within ``timeout`` seconds and stop; whether everything was."""
        self._deadline = time.monotonic() + timeout
        for signal in (self._stop, self._some, self._full):
            signal.set()
        self._thread.join(timeout)
        if self.waiting:
            log.warning("history closed with rows unwritten", rows=self.waiting)
        return self.waiting == 0

    def _job(self, job: Object, *, gone: bool) -> None:
        uid = str(at(job, "metadata", "uid"))
        self._put(
            ("job", uid),
            Entry(
                partial(records.job_record, job, self._region),
                version=_number(job),
                ended=records.job_status(job) in records.COMPLETED,
                began=records.job_began(job),
                gone_at=utcnow() if gone else None,
                details=self._details(uid, job),
            ),
        )
        if gone:
            self._told.pop(uid, None)

    def _pod(self, pod: Object, job_uid: str, replica_type: str, *, gone: bool) -> None:
        uid = str(at(pod, "metadata", "uid"))
        self._put(
            ("pod", uid),
            Entry(
                partial(records.pod_record, pod, job_uid, replica_type, self._region),
                version=_number(pod),
                ended=at(pod, "status", "phase") in ("Succeeded", "Failed"),
                began=records.pod_began(pod),
                gone_at=utcnow() if gone else None,
            ),
        )

    def _details(self, uid: str, job: Object) -> Details:
        """What the job tells beside its row and has not told before."""
        found: dict[Key, Build | Record] = {
            ("snapshot", f"{at(job, 'metadata', 'generation')}"): partial(details.stored, job)
        }
        for condition in details.conditions(job):
            found[("condition", f"{condition.type} {condition.gmt_changed} {condition.status}")] = condition
        for restart in details.restarts(job):
            found[("restart", restart.restart_id)] = restart
        told = self._told.get(uid, frozenset())
        if len(self._told) >= self._max_keys:
            self._told.clear()
        self._told[uid] = frozenset(found)
        return {key: detail for key, detail in found.items() if key not in told}

    def _put(self, key: Key, entry: Entry) -> None:
        """The callers' side ends here: no database, no conversion, no waiting."""
        complete = self._backlog.put(key, entry)
        if not complete and not self._dropping:
            self._dropping = True
            log.error("history drops rows", limit=self._max_keys)
        if not self._some.is_set():
            self._some.set()
        if len(self._backlog) >= BATCH:
            self._full.set()

    def _run(self) -> None:
        while not self._stop.is_set():
            self._gather()
            self._backlog.build()
            if time.monotonic() >= self._retry_at:
                self._attempt()
        self._backlog.build()
        self._attempt()
        self._sink.close()

    def _gather(self) -> None:
        """Wait until there is something, then for more of it; while the database fails, only for the time to pass."""
        if self._delay:
            self._stop.wait(self._interval)
            return
        self._some.wait()
        self._full.wait(self._interval)
        self._some.clear()
        self._full.clear()

    def _attempt(self) -> None:
        try:
            self._drain()
        except Exception as error:  # noqa: BLE001 (the thread outlives whatever a driver raises)
            self._failed(error)
        else:
            self._succeeded()

    def _drain(self) -> None:
        """Write everything that waits; the entries stay until their transaction is committed."""
        if not self._migrated:
            self._sink.upgrade()
            self._migrated = True
        for bounds, live in tuple(self._live.items()):
            self._close_missing(live)
            if self._live[bounds] is live:  # a newer one may have come meanwhile
                del self._live[bounds]
        while (entries := self._backlog.oldest(BATCH)) and time.monotonic() < self._deadline:
            self._write(entries)

    def _close_missing(self, live: Live) -> None:
        """A list that is refused is given up: it must not hold up the rows behind it."""
        try:
            closed = self._sink.close_missing(live)
        except Refused as error:
            log.error("history refuses a list", what=live.what, kind=live.kind, error=_said(error))
            return
        if closed:
            log.info("history closed what is gone", what=live.what, kind=live.kind, rows=closed)

    def _write(self, entries: list[tuple[Key, Entry]]) -> None:
        """One transaction; a row that the database can never take is found by halving, and given up."""
        try:
            rows = [record for _, entry in entries for record in entry.records()]
            gone = [Gone(what, uid, entry.gone_at) for (what, uid), entry in entries if entry.gone_at]
            self._sink.save(rows, gone)
        except (DataError, Refused) as error:
            if len(entries) > 1:
                self._write(entries[: len(entries) // 2])
                self._write(entries[len(entries) // 2 :])
                return
            self.refused += 1
            log.exception("history row refused", what=entries[0][0][0], uid=entries[0][0][1], error=_said(error))
        else:
            self.written += len(entries)
            self._remember(entries)
        self._backlog.remove(entries)

    def _remember(self, entries: list[tuple[Key, Entry]]) -> None:
        for (what, uid), entry in entries:
            if what == "job" and entry.ended:
                self._saved[uid] = max(entry.version, self._saved.pop(uid, 0))
        while len(self._saved) > self._max_keys:
            self._saved.popitem(last=False)

    def _failed(self, error: Exception) -> None:
        self.failures += 1
        if not self._delay:
            log.error("history unreachable", error=_said(error), rows=self.waiting)
        self._delay = min(self._delay * 2 or FIRST_RETRY, LAST_RETRY)
        self._retry_at = time.monotonic() + self._delay

    def _succeeded(self) -> None:
        if self._delay:
            log.info("history reachable again", failures=self.failures, dropped=self.dropped)
        self._delay = 0.0
        self._dropping = False


def _number(obj: Object) -> int:
    return int(version(obj) or 0)


def _said(error: Exception) -> str:
    """The first line of what the driver said; never a statement or its parameters."""
    lines = str(getattr(error, "orig", None) or error).strip().splitlines()
    return f"{type(error).__name__}: {lines[0] if lines else ''}"
