"""Where a process of Signalbox writes its records: a database, or the history process that has one.

SQLite is one file that one process writes; in a cluster the webhook and the controller send to that process. With
PostgreSQL or MySQL each writes for itself. Whatever the sink, a recorder never waits for it.
"""

import http.client
import urllib.error
import urllib.request
from collections.abc import Sequence
from http import HTTPStatus
from pathlib import Path

import orjson

from history import address, wire
from history.store import Gone, Record, Refused, Sink, Store
from history.writer import Writer
from schemas.records import Live

INGEST = "/api/v1/ingest"
LIVE = f"{INGEST}/live"
SECONDS = 5.0
REFUSING = (HTTPStatus.BAD_REQUEST, HTTPStatus.REQUEST_ENTITY_TOO_LARGE, HTTPStatus.UNPROCESSABLE_ENTITY)


class Remote:
    """The history process at ``url``, as a ``Sink``; the token is read anew for each batch, so that it may rotate."""

    def __init__(self, url: str, token_file: Path | None) -> None:
        self._url = address.of_process(url)
        self._token_file = token_file

    def upgrade(self) -> None:
        """The tables are the other process's."""

    def close(self) -> None:
        """No connection is kept."""

    def save(self, records: Sequence[Record], gone: Sequence[Gone] = ()) -> None:
        """Send a batch. Raises Refused for one that can never be taken, OSError when it may be later."""
        self._post(INGEST, wire.batch(records, gone))

    def close_missing(self, live: Live) -> int:
        """As ``Store.close_missing``."""
        answer = orjson.loads(self._post(LIVE, wire.listed(live)))
        return int(answer["closed"])

    def _post(self, path: str, body: bytes) -> bytes:
        headers = {"Content-Type": "application/json"}
        if self._token_file:
            headers["Authorization"] = f"Bearer {self._token_file.read_text().strip()}"
        request = urllib.request.Request(f"{self._url}{path}", body, headers)  # noqa: S310 (open_sink takes http only)
        try:
            with urllib.request.urlopen(request, timeout=SECONDS) as answer:  # noqa: S310  # nosec B310
                found: bytes = answer.read()
                return found
        except urllib.error.HTTPError as error:
            with error:
                said = error.read(500).decode(errors="replace")
            if error.code in REFUSING:
                raise Refused(f"{error.code}: {said}") from None
            raise OSError(f"the history process answers {error.code}: {said}") from None
        except http.client.HTTPException as error:
            raise OSError(f"the history process answers no HTTP: {error!r}") from None


def open_sink(url: str, token_file: Path | None = None, *, notify: bool = False) -> Sink:
    """The sink at a SQLAlchemy URL or an http(s) URL. Raises ValueError for one that can never work."""
    if address.is_process(url):
        return Remote(url, token_file)
    return Store(url, notify=notify)


def recorder(url: str, token_file: Path | None = None, *, region: str | None = None, max_keys: int = 100_000) -> Writer:
    """A ``schemas.records.Recorder`` that writes there. Start it after a fork: it has a thread."""
    return Writer(open_sink(url, token_file), region=region, max_keys=max_keys)
