"""RawKube: every call to the API server. Dicts in, dicts out, a deadline on every call, errors as exceptions.

Nothing is typed, so what the user wrote is what is sent: integer quantities, unknown fields and null in a merge patch
survive, all of which the official client's models refuse.
"""

import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import ExitStack
from dataclasses import dataclass
from datetime import timedelta
from typing import Any, Literal, NamedTuple, Protocol, TypeAlias, TypeVar
from urllib.parse import urlencode

import orjson
from pyreqwest.bytes import Bytes
from pyreqwest.exceptions import NetworkError
from pyreqwest.request import SyncRequestBuilder

from kube.config import Connection
from kube.errors import (
    AlreadyExists,
    Conflict,
    Forbidden,
    Gone,
    Invalid,
    KubeError,
    NotFound,
    NotLeading,
    ServerError,
    TooManyRequests,
    Unreachable,
)
from kube.streams import Streams
from kube.transport import Answering, http_client

WATCH_MARGIN = 15.0
"""Seconds a watch may outlive the timeout it asked the server for before its connection is taken for dead."""
LIST_FACTOR = 3
"""A page of a list may take this many times as long as other calls."""

JSON = "application/json"
METADATA = "application/json;as=PartialObjectMetadata;g=meta.k8s.io;v=v1"

PATCH_TYPES = {
    "merge": "application/merge-patch+json",
    "json": "application/json-patch+json",
    "apply": "application/apply-patch+yaml",  # JSON is YAML
}
BY_CODE: dict[int, type[KubeError]] = {
    400: Invalid,
    403: Forbidden,
    404: NotFound,
    409: Conflict,
    410: Gone,
    422: Invalid,
    429: TooManyRequests,
}

Object: TypeAlias = dict[str, Any]
Body: TypeAlias = Mapping[str, Any] | list[Any]
Query: TypeAlias = Mapping[str, str]
OnCall: TypeAlias = Callable[[str, int, float], None]


class _Answer(Protocol):
    @property
    def status(self) -> int: ...


R = TypeVar("R", bound=_Answer)


class WatchEvent(NamedTuple):
    """ADDED, MODIFIED, DELETED or BOOKMARK (whose object has nothing but a resourceVersion)."""

    type: str
    object: Object


@dataclass(frozen=True, slots=True)
class Listing:
    """A collection and the resourceVersion to watch it from."""

    items: list[Object]
    resource_version: str


class RawKube:
    """One API server, for any number of threads; every method raises KubeError.

    ``timeout`` is the whole of a call, in seconds. ``on_call`` hears of every call: the verb as RBAC spells it, the
    status code (0: no answer) and seconds; of a watch once it is connected. There is no rate limit on this side: the
    server's priority and fairness answers 429, which is raised with its ``retry_after``. ``fence`` is asked before
    every write and answers for how many seconds it may be under way; at 0 it is NotLeading.
    """

    def __init__(
        self,
        connection: Connection,
        *,
        timeout: float = 10.0,
        user_agent: str = "signalbox",
        on_call: OnCall | None = None,
        watch_margin: float = WATCH_MARGIN,
        fence: Callable[[], float] | None = None,
    ) -> None:
        self._fence = fence
        self._server = connection.server
        self._token = connection.token
        self._timeout = timeout
        self._watch_margin = watch_margin
        self._on_call = on_call
        self._client = http_client(connection, user_agent=user_agent, connect_timeout=timeout)
        self._streams = Streams(connection, user_agent=user_agent, timeout=timeout)

    def get(self, path: str, **query: str) -> Object:
        """The object at ``path``."""
        return _decoded(self._read("get", path, query))

    def metadata(self, path: str) -> Object:
        """The metadata of the object at ``path``; of a large object the rest is not even sent."""
        found: Object = _decoded(self._read("get", path, {}, accept=METADATA))["metadata"]
        return found

    def text(self, path: str) -> str:
        """The body of ``path`` (``/metrics``, ``/readyz``) as it is."""
        return bytes(self._read("get", path, {})).decode(errors="replace")

    def list(self, path: str, *, label_selector: str = "", field_selector: str = "", limit: int = 500) -> Listing:
        """The whole collection, fetched in pages of ``limit`` objects; Gone as for ``pages``."""
        pages = [*self.pages(path, label_selector=label_selector, field_selector=field_selector, limit=limit)]
        return Listing([item for page in pages for item in page.items], pages[-1].resource_version)

    def pages(
        self, path: str, *, label_selector: str = "", field_selector: str = "", limit: int = 500
    ) -> Iterator[Listing]:
        """The collection page by page, all as of one resourceVersion; items carry apiVersion and kind.

        Gone when the server has forgotten that version before the last page was read (after 5 minutes): start again.
        """
        query = {"limit": str(limit)} | _selected(label_selector, field_selector)
        more: str | None = ""
        while more is not None:
            page = _decoded(self._read("list", path, query | ({"continue": more} if more else {})))
            metadata = page.get("metadata") or {}
            yield Listing(_complete(page), metadata.get("resourceVersion", ""))
            more = metadata.get("continue") or None

    def create(self, path: str, body: Mapping[str, Any]) -> Object:
        """POST to a collection; the stored object. After Unreachable it may or may not exist."""
        return _decoded(self._write("create", "POST", path, body))

    def replace(self, path: str, body: Mapping[str, Any]) -> Object:
        """PUT; the stored object. Conflict when the body's resourceVersion is no longer the stored one."""
        return _decoded(self._write("update", "PUT", path, body))

    def patch(
        self,
        path: str,
        body: Body,
        *,
        kind: Literal["merge", "json", "apply"],
        field_manager: str = "signalbox",
        force: bool = False,
    ) -> Object:
        """Change an object; ``apply`` is server-side apply, where ``force`` takes fields over from other managers."""
        query = {"fieldManager": field_manager} | ({"force": "true"} if force and kind == "apply" else {})
        return _decoded(self._write("patch", "PATCH", path, body, query=query, content_type=PATCH_TYPES[kind]))

    def delete(
        self,
        path: str,
        *,
        uid: str | None = None,
        resource_version: str | None = None,
        propagation: str = "Background",
        grace_seconds: int | None = None,
    ) -> None:
        """Delete one object; Conflict when it is another one than ``uid``, or no longer in that version."""
        options = {"propagationPolicy": propagation} | _present(gracePeriodSeconds=grace_seconds)
        conditions = _present(uid=uid, resourceVersion=resource_version)
        self._write("delete", "DELETE", path, options | ({"preconditions": conditions} if conditions else {}))

    def watch(
        self,
        path: str,
        *,
        resource_version: str,
        label_selector: str = "",
        field_selector: str = "",
        timeout_seconds: int,
    ) -> Iterator[WatchEvent]:
        """Events after ``resource_version`` until the server ends the stream, as it does after ``timeout_seconds``.

        The first of a crowd comes at once, the others gathered (``streams.CROWD``).

        A Status is raised, never yielded (410: Gone). A connection that says nothing for 15 s longer than that is
        Unreachable: a half-open one would otherwise hang for ever (kubernetes-client/python#1402, #1148).
        """
        query = {
            "watch": "true",
            "allowWatchBookmarks": "true",
            "resourceVersion": resource_version,
            "timeoutSeconds": str(timeout_seconds),
        } | _selected(label_selector, field_selector)
        stream = self._streams.open(
            f"{path}?{urlencode(query)}", self._token(), silence=timeout_seconds + self._watch_margin
        )
        with ExitStack() as stack:
            opened = self._told("watch", lambda: stack.enter_context(stream))
            if opened.status != 200:
                raise _refusal(opened.status, opened.answer.read(), opened.answer.getheader("retry-after"))
            yield from _events(opened.chunks())

    def stop_watches(self) -> None:
        """End all watches at once (Unreachable) and refuse new ones while other calls go on: for a clean shutdown."""
        self._streams.close()

    def close(self) -> None:
        """End every call under way with Unreachable, and refuse new ones."""
        self.stop_watches()
        self._client.close()

    def _read(self, verb: str, path: str, query: Query, accept: str = JSON) -> Bytes:
        """GET, once more when the connection broke: a kept-alive one may have been closed meanwhile."""
        timeout = self._timeout * (LIST_FACTOR if verb == "list" else 1)
        try:
            return self._answer(verb, self._request("GET", path, query, timeout, accept))
        except Unreachable as error:
            if not isinstance(error.__cause__, NetworkError):
                raise
        return self._answer(verb, self._request("GET", path, query, timeout, accept))

    def _write(
        self,
        verb: str,
        method: str,
        path: str,
        body: Body,
        *,
        query: Query | None = None,
        content_type: str = JSON,
    ) -> Bytes:
        request = self._request(method, path, query or {}, self._write_seconds())
        request = request.header("content-type", content_type).body_bytes(orjson.dumps(body, default=dict))
        return self._answer(verb, request)

    def _write_seconds(self) -> float:
        allowed = self._timeout if self._fence is None else self._fence()
        if allowed <= 0:
            raise NotLeading("not sent: this process does not lead")
        return min(self._timeout, allowed)

    def _request(self, method: str, path: str, query: Query, timeout: float, accept: str = JSON) -> SyncRequestBuilder:
        with Answering():
            request = self._client.request(method, self._server + path).timeout(timedelta(seconds=timeout))
            request = request.header("accept", accept)
            if query:
                request = request.query(query)
            token = self._token()
            return request.bearer_auth(token) if token else request

    def _answer(self, verb: str, request: SyncRequestBuilder) -> Bytes:
        response = self._told(verb, request.build().send)
        with Answering():
            body = response.bytes()
        if not 200 <= response.status < 300:
            raise _refusal(response.status, bytes(body), response.get_header("retry-after"))
        return body

    def _told(self, verb: str, send: Callable[[], R]) -> R:
        started = time.monotonic()
        status = 0
        try:
            with Answering():
                response = send()
            status = response.status
            return response
        finally:
            if self._on_call is not None:
                self._on_call(verb, status, time.monotonic() - started)


def error_of(code: int, status: Mapping[str, Any], retry_after: str | None = None) -> KubeError:
    """The exception for a metav1.Status, or for HTTP ``code`` when there is none; the only place that decides."""
    reason = str(status.get("reason") or "")
    seconds = str((status.get("details") or {}).get("retryAfterSeconds") or retry_after)
    kind = AlreadyExists if reason == "AlreadyExists" else BY_CODE.get(code, ServerError)
    return kind(
        str(status.get("message") or reason or f"HTTP {code}"),
        status=code,
        reason=reason,
        retry_after=float(seconds) if seconds.isdecimal() else None,  # the header may also be a date
    )


def _refusal(code: int, body: bytes, retry_after: str | None) -> KubeError:
    try:
        status = orjson.loads(body)
    except orjson.JSONDecodeError:  # a proxy in between, or a path that the server does not know
        status = {"message": body[:500].decode(errors="replace").strip()}
    return error_of(code, status if isinstance(status, dict) else {}, retry_after)


def _decoded(body: Bytes | bytes) -> Object:
    try:
        decoded = orjson.loads(memoryview(body))
    except orjson.JSONDecodeError as error:
        raise Unreachable(f"the answer is not JSON: {error}") from error
    if not isinstance(decoded, dict):
        raise Unreachable("the answer is not a JSON object")
    return decoded


def _complete(page: Object) -> list[Object]:
    """The items with what lists of core resources leave out."""
    api_version, kind = page.get("apiVersion", ""), page.get("kind", "").removesuffix("List")
    return [{"apiVersion": api_version, "kind": kind} | item for item in page.get("items") or []]


def _events(chunks: Iterable[bytes]) -> Iterator[WatchEvent]:
    rest = b""
    for chunk in chunks:
        *lines, rest = (rest + chunk).split(b"\n")
        yield from (_event(line) for line in lines if line)
    if rest:
        raise Unreachable("the watch ended in the middle of an event")


def _event(line: bytes) -> WatchEvent:
    event = _decoded(line)
    kind, obj = event.get("type"), event.get("object")
    if not isinstance(kind, str) or not isinstance(obj, dict):
        raise Unreachable("the watch sent something that is not an event")
    if kind == "ERROR":
        raise error_of(int(obj.get("code") or 500), obj)
    return WatchEvent(kind, obj)


def _selected(label_selector: str, field_selector: str) -> dict[str, str]:
    selectors = {"labelSelector": label_selector, "fieldSelector": field_selector}
    return {name: selector for name, selector in selectors.items() if selector}


def _present(**fields: object) -> Object:
    return {name: value for name, value in fields.items() if value is not None}
