"""Tells a webhook of the end of each job: at least once, in the order of ends, retried, signed."""

import hashlib
import hmac
import http.client
import urllib.error
import urllib.request
from dataclasses import dataclass
from datetime import datetime, timedelta
from pathlib import Path
from urllib.parse import urlsplit

import orjson
import structlog
from sqlalchemy import Select, func, select, update

from history import metrics
from history.models import job_info, notification_info
from history.queries import Row
from history.store import Store

SECONDS = 5.0
BATCH = 20
FIRST_RETRY, LAST_RETRY = timedelta(seconds=5), timedelta(hours=1)
GIVE_UP = timedelta(days=1)
SIGNATURE, DELIVERY = "X-Signalbox-Signature", "X-Signalbox-Delivery"
OPTIONS = orjson.OPT_NAIVE_UTC | orjson.OPT_UTC_Z

log = structlog.get_logger("history")


@dataclass(frozen=True, slots=True)
class Notifier:
    """Posts to ``url``; with a secret each body is signed with HMAC-SHA256 in the header X-Signalbox-Signature."""

    store: Store
    url: str
    secret_file: Path | None = None

    def __post_init__(self) -> None:
        parts = urlsplit(self.url)
        if parts.scheme not in ("http", "https") or not parts.hostname:
            raise ValueError(f'notify URL: must be an http or https URL (got "{self.url}")')

    def run(self, now: datetime) -> int:
        """Tell what is due, and note how that went; how many were told."""
        told = 0
        waiting = self.store.first(select(func.count().label("rows")).where(notification_info.c.state == "pending"))
        metrics.UNTOLD.set(waiting["rows"] if waiting else 0)
        for row in self.store.rows(_due(now)):
            said = self._post(row)
            told += said is None
            self._note(row, said, now)
        return told

    def _note(self, row: Row, said: str | None, now: datetime) -> None:
        c = notification_info.c
        attempts = row["attempts"] + 1
        wait = min(FIRST_RETRY * 2 ** min(attempts - 1, 20), LAST_RETRY)
        late = now - row["noted"] > GIVE_UP
        state = "sent" if said is None else "given up" if late else "pending"
        values = {"state": state, "attempts": attempts, "gmt_due": now + wait}
        with self.store.begin() as connection:
            connection.execute(update(notification_info).where(c.job_id == row["job_id"]).values(**values))
        if said is not None:
            log.warning("job's end not told", uid=row["job_id"], attempts=attempts, state=state, error=said)

    def _post(self, row: Row) -> str | None:
        """Send; what went wrong, or None."""
        job = {key: value for key, value in row.items() if key not in ("attempts", "noted") and value is not None}
        body = orjson.dumps({"event": "job.finished", "job": job}, option=OPTIONS)
        try:
            headers = {"Content-Type": "application/json", DELIVERY: row["job_id"], **self._signature(body)}
            request = urllib.request.Request(self.url, body, headers)  # noqa: S310 (http only: __post_init__)
            with urllib.request.urlopen(request, timeout=SECONDS) as answer:  # noqa: S310  # nosec B310
                answer.read(1)
        except (OSError, http.client.HTTPException) as error:
            if isinstance(error, urllib.error.HTTPError):
                error.close()
            return str(error) or type(error).__name__
        return None

    def _signature(self, body: bytes) -> dict[str, str]:
        if self.secret_file is None:
            return {}
        secret = self.secret_file.read_bytes().strip()
        return {SIGNATURE: f"sha256={hmac.new(secret, body, hashlib.sha256).hexdigest()}"}


def _due(now: datetime) -> Select[tuple[object, ...]]:
    c = notification_info.c
    together = notification_info.join(job_info, job_info.c.job_id == c.job_id)
    columns = (*job_info.c, c.attempts, c.gmt_created.label("noted"))
    due = (c.state == "pending", c.gmt_due <= now)
    return select(*columns).select_from(together).where(*due).order_by(c.gmt_due, c.job_id).limit(BATCH)
