"""Calls to the API server, and what becomes of them when it misbehaves."""

import threading
import time
from dataclasses import replace

import pytest

from kube import errors
from kube.raw import RawKube, WatchEvent, error_of

PATH = "/api/v1/namespaces/ns/configmaps"
ADDED = {"type": "ADDED", "object": {"metadata": {"name": "a", "resourceVersion": "11"}}}
BOOKMARK = {"type": "BOOKMARK", "object": {"metadata": {"resourceVersion": "12"}}}
EXPIRED = {"type": "ERROR", "object": {"kind": "Status", "code": 410, "reason": "Expired", "message": "too old"}}


def watch(kube, seconds=5, **more):
    return kube.watch(PATH, resource_version="10", timeout_seconds=seconds, **more)


@pytest.mark.parametrize(
    ("status", "reason", "kind"),
    [
        (400, "BadRequest", errors.Invalid),
        (401, "Unauthorized", errors.ServerError),
        (403, "Forbidden", errors.Forbidden),
        (404, "NotFound", errors.NotFound),
        (409, "AlreadyExists", errors.AlreadyExists),
        (409, "Conflict", errors.Conflict),
        (410, "Expired", errors.Gone),
        (422, "Invalid", errors.Invalid),
        (429, "TooManyRequests", errors.TooManyRequests),
        (500, "InternalError", errors.ServerError),
        (504, "Timeout", errors.ServerError),
        (302, "", errors.ServerError),
    ],
)
def test_refusals(server, kube, status, reason, kind):
    server.answers.append(server.refuse(status, reason, location="http://127.0.0.1:1/"))
    with pytest.raises(errors.KubeError, match=f"{reason} it is") as caught:
        kube.create(PATH, {})
    assert (type(caught.value), caught.value.status, caught.value.reason) == (kind, status, reason)


def test_refusal_that_is_not_a_status(server, kube):
    server.answers.append(server.reply("404 page not found\n", status=404))
    with pytest.raises(errors.NotFound, match=r"^404 page not found$"):
        kube.get("/nowhere")


@pytest.mark.parametrize(
    ("details", "header", "seconds"),
    [
        (None, "7", 7),
        ({"retryAfterSeconds": 3}, "7", 3),
        (None, "Wed, 21 Oct 2026 07:28:00 GMT", None),
        (None, "", None),
    ],
)
def test_retry_after(server, kube, details, header, seconds):
    server.answers.append(server.reply({"code": 429, "details": details}, status=429, retry_after=header))
    with pytest.raises(errors.TooManyRequests) as caught:
        kube.get(PATH)
    assert caught.value.retry_after == seconds


def test_status_without_a_message():
    assert error_of(503, {}).message == "HTTP 503"


@pytest.mark.parametrize(
    ("call", "method", "query", "content_type", "body"),
    [
        (lambda kube: kube.get(PATH, dryRun="All"), "GET", {"dryRun": "All"}, None, None),
        (lambda kube: kube.create(PATH, {"a": [1]}), "POST", {}, "application/json", {"a": [1]}),
        (lambda kube: kube.replace(PATH, {"a": 2**60}), "PUT", {}, "application/json", {"a": 2**60}),
        (
            lambda kube: kube.patch(PATH, {"metadata": {"labels": {"a": None}}}, kind="merge"),
            "PATCH",
            {"fieldManager": "signalbox"},
            "application/merge-patch+json",
            {"metadata": {"labels": {"a": None}}},
        ),
        (
            lambda kube: kube.patch(PATH, [{"op": "remove", "path": "/a"}], kind="json"),
            "PATCH",
            {"fieldManager": "signalbox"},
            "application/json-patch+json",
            [{"op": "remove", "path": "/a"}],
        ),
        (
            lambda kube: kube.patch(PATH, {"a": 1}, kind="apply", field_manager="me", force=True),
            "PATCH",
            {"fieldManager": "me", "force": "true"},
            "application/apply-patch+yaml",
            {"a": 1},
        ),
        (lambda kube: kube.delete(PATH), "DELETE", {}, "application/json", {"propagationPolicy": "Background"}),
        (
            lambda kube: kube.delete(PATH, uid="u", resource_version="3", propagation="Foreground", grace_seconds=0),
            "DELETE",
            {},
            "application/json",
            {
                "propagationPolicy": "Foreground",
                "gracePeriodSeconds": 0,
                "preconditions": {"uid": "u", "resourceVersion": "3"},
            },
        ),
    ],
)
def test_requests(server, kube, call, method, query, content_type, body):
    server.answers.append(server.reply({"ok": True}))
    call(kube)
    seen = server.seen[0]
    headers = {name.lower(): value for name, value in seen.headers.items()}
    assert (seen.method, seen.path, seen.query, seen.body) == (method, PATH, query, body)
    assert headers.get("content-type") == content_type
    assert (headers["authorization"], headers["user-agent"]) == ("Bearer secret", "signalbox")


def test_of_metadata_no_more_is_asked_for(server, kube):
    server.answers += [server.reply({"metadata": {"name": "a"}, "spec": {}}), server.reply({})]
    assert kube.metadata(PATH) == {"name": "a"}
    kube.get(PATH)
    assert [value for seen in server.seen for name, value in seen.headers.items() if name.lower() == "accept"] == [
        "application/json;as=PartialObjectMetadata;g=meta.k8s.io;v=v1",
        "application/json",
    ]


def test_list_follows_the_pages_and_completes_the_items(server, kube):
    server.answers += [server.page({"metadata": {"name": "a"}}, more="next"), server.page({"kind": "Own"}, more="")]
    listing = kube.list(PATH, label_selector="job in (a,b)", limit=1)
    assert listing.items == [
        {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "a"}},
        {"apiVersion": "v1", "kind": "Own"},
    ]
    assert listing.resource_version == "10"
    first = {"limit": "1", "labelSelector": "job in (a,b)"}
    assert [seen.query for seen in server.seen] == [first, first | {"continue": "next"}]


def test_list_with_null_items(server, kube):
    server.answers.append(server.reply({"kind": "ConfigMapList", "metadata": {"resourceVersion": "1"}, "items": None}))
    assert kube.list(PATH).items == []


def test_list_whose_version_expires_between_pages(server, kube):
    server.answers += [server.page(more="next"), server.refuse(410, "Expired")]
    with pytest.raises(errors.Gone):
        kube.list(PATH)


def test_text(server, kube):
    server.answers.append(server.reply("ok"))
    assert kube.text("/readyz") == "ok"


def test_server_with_a_path_of_its_own(server):
    server.answers.append(server.reply())
    kube = RawKube(replace(server.connection, server=server.connection.server + "/k8s/clusters/c-1"))
    kube.get("/version")
    assert server.seen[0].path == "/k8s/clusters/c-1/version"


def test_reads_are_repeated_once_on_a_broken_connection(server, kube):
    server.answers += [server.reply(), server.hang_up(), server.reply({"a": 1}), server.hang_up(), server.hang_up()]
    kube.get(PATH)
    assert kube.get(PATH) == {"a": 1}
    with pytest.raises(errors.Unreachable):
        kube.get(PATH)
    assert len(server.seen) == 5


def test_writes_are_not_repeated(server, kube):
    server.answers += [server.hang_up(), server.reply()]
    with pytest.raises(errors.Unreachable):
        kube.create(PATH, {})
    assert len(server.seen) == 1


def test_slow_body_ends_with_the_timeout_and_is_not_repeated(server):
    server.answers += [server.slow(), server.reply()]
    kube = RawKube(server.connection, timeout=0.2)
    with pytest.raises(errors.Unreachable) as caught:
        kube.get(PATH)
    assert caught.value.reason == "Timeout"
    assert len(server.seen) == 1


@pytest.mark.parametrize("body", ["[]", "<html>", ""])
def test_answers_that_are_no_objects(server, kube, body):
    server.answers.append(server.reply(body))
    with pytest.raises(errors.Unreachable):
        kube.get(PATH)


def test_every_call_is_told(server):
    calls = []
    kube = RawKube(server.connection, on_call=lambda *call: calls.append(call))
    server.answers += [server.reply(), server.refuse(409, "Conflict"), server.hang_up()]
    server.watches.append(server.stream(then="end"))
    kube.get(PATH)
    for expected in (errors.Conflict, errors.Unreachable):
        with pytest.raises(expected):
            kube.replace(PATH, {})
    list(watch(kube))
    assert [call[:2] for call in calls] == [("get", 200), ("update", 409), ("update", 0), ("watch", 200)]
    assert all(0 <= seconds < 60 for _, _, seconds in calls)


def test_environment_proxies_are_not_used_for_loopback(server, monkeypatch):
    for name in ("http_proxy", "HTTP_PROXY", "all_proxy"):
        monkeypatch.setenv(name, "http://127.0.0.1:1")
    server.answers.append(server.reply({"a": 1}))
    assert RawKube(server.connection).get(PATH) == {"a": 1}


def test_token_is_asked_for_on_every_call(server):
    tokens = iter("ab")
    kube = RawKube(replace(server.connection, token=lambda: next(tokens)))
    server.answers += [server.reply(), server.reply()]
    kube.get(PATH), kube.get(PATH)
    assert [seen.headers["Authorization"] for seen in server.seen] == ["Bearer a", "Bearer b"]


def test_watch_yields_events_as_they_come(server, kube):
    server.watches.append(server.stream(ADDED, BOOKMARK, then="silence"))
    events = watch(kube, label_selector="a=b", field_selector="metadata.name=c")
    assert next(events) == WatchEvent("ADDED", ADDED["object"])
    assert next(events) == WatchEvent("BOOKMARK", BOOKMARK["object"])
    events.close()
    query = {"watch": "true", "allowWatchBookmarks": "true", "resourceVersion": "10"}
    assert server.seen[0].query == query | {
        "timeoutSeconds": "5",
        "labelSelector": "a=b",
        "fieldSelector": "metadata.name=c",
    }


def test_watch_event_in_pieces(server, kube):
    server.watches.append(server.stream(b'{"type":"ADDED","ob', b'ject":{"a":"\xc3', b'\xa4"}}\n\n', then="end"))
    assert list(watch(kube)) == [WatchEvent("ADDED", {"a": "ä"})]


@pytest.mark.parametrize(
    ("script", "kind"),
    [
        (lambda server: server.refuse(410, "Expired"), errors.Gone),
        (lambda server: server.refuse(429, "TooManyRequests"), errors.TooManyRequests),
        (lambda server: server.refuse(500, "InternalError"), errors.ServerError),
        (lambda server: server.stream(EXPIRED), errors.Gone),
        (lambda server: server.stream({"type": "ERROR", "object": {}}), errors.ServerError),
        (lambda server: server.stream(b'{"type":"ADD', then="cut"), errors.Unreachable),
        (lambda server: server.stream(b'{"type":"ADD', then="end"), errors.Unreachable),
        (lambda server: server.stream(b"null\n"), errors.Unreachable),
        (lambda server: server.stream(b'{"type":"ADDED"}\n'), errors.Unreachable),
        (lambda server: server.stream(b"{]\n"), errors.Unreachable),
        (lambda server: server.hang_up(), errors.Unreachable),
    ],
)
def test_watches_that_fail_raise_and_yield_nothing(server, kube, script, kind):
    server.watches.append(script(server))
    with pytest.raises(kind):
        assert list(watch(kube)) == []


def test_silent_watch_is_given_up_after_its_own_timeout(server):
    """kubernetes-client/python#801: a half-open connection brings no event and no error."""
    kube = RawKube(server.connection, watch_margin=-0.7)
    server.watches.append(server.stream(ADDED))
    started = time.monotonic()
    with pytest.raises(errors.Unreachable) as caught:
        list(watch(kube, seconds=1))
    assert caught.value.reason == "Timeout"
    assert 0.2 < time.monotonic() - started < 30


def test_stopping_watches_ends_a_blocked_one_but_no_other_call(server, kube):
    events = watch(kube)
    timer = threading.Timer(0.1, kube.stop_watches)
    timer.start()
    started = time.monotonic()
    with pytest.raises(errors.Unreachable):
        next(events)
    assert time.monotonic() - started < 30
    timer.join()
    server.answers.append(server.reply({"a": 1}))
    assert kube.get(PATH) == {"a": 1}
    with pytest.raises(errors.Unreachable):
        next(watch(kube))


def test_closed_client_refuses_calls(kube):
    kube.close()
    with pytest.raises(errors.Unreachable):
        kube.get(PATH)
