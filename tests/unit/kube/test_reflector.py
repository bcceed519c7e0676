"""List, watch, and start over: nolar/kopf#698, kubernetes-client/python#801 and their kin."""

import threading
import time
from types import SimpleNamespace

import pytest
from structlog.testing import capture_logs

from kube.raw import RawKube
from kube.reflector import Reflector
from kube.store import Store

PATH = "/api/v1/namespaces/ns/configmaps"
GONE = {"type": "ERROR", "object": {"kind": "Status", "code": 410, "reason": "Expired"}}


def until(condition):
    for _ in range(500):
        if condition():
            return
        time.sleep(0.01)
    raise AssertionError("it did not happen within 5 s")


@pytest.fixture
def event(make_object):
    return lambda kind, *arguments, **more: {"type": kind, "object": make_object(*arguments, **more)}


@pytest.fixture
def follow(server):
    """Runs a reflector against the scripted server; its sleeps are recorded and take no time."""
    running = []

    def start(*, on_change=None, **options):
        run = SimpleNamespace(changes=[], sleeps=[], stop=threading.Event(), store=Store())
        run.kube = RawKube(server.connection, watch_margin=options.pop("margin", 15))

        def changed(kind, new, old):
            run.changes.append((kind, new["metadata"]["name"], old and int(old["metadata"]["resourceVersion"])))
            if on_change is not None:
                on_change()

        options = {"watch_seconds": (5, 5), "sleep": run.sleeps.append} | options
        run.reflector = Reflector(run.kube, PATH, run.store, on_change=changed, **options)
        run.thread = threading.Thread(target=run.reflector.run, args=(run.stop,), daemon=True)
        run.thread.start()
        running.append(run)
        return run

    yield start
    for run in running:
        run.stop.set()
        run.kube.close()
        run.thread.join(5)
        assert not run.thread.is_alive()


def watched_from(server):
    return [seen.query["resourceVersion"] for seen in server.seen if "watch" in seen.query]


def lists(server):
    return sum("watch" not in seen.query for seen in server.seen)


def test_lists_all_pages_then_watches(server, follow, event, make_object):
    server.answers += [
        server.page(make_object("a", 3), more="next"),
        server.page(make_object("b", 4, managedFields=[1]), version="10"),
    ]
    changed = event("MODIFIED", "a", 11)
    server.watches.append(server.stream(changed, event("DELETED", "b", 12), event("ADDED", "c", 13)))
    run = follow(label_selector="x=y")
    until(lambda: len(run.changes) == 5)
    assert run.reflector.synced.is_set()
    assert run.changes == [
        ("ADDED", "a", None),
        ("ADDED", "b", None),
        ("MODIFIED", "a", 3),
        ("DELETED", "b", 4),
        ("ADDED", "c", None),
    ]
    assert run.store.get("ns", "a") == make_object("a", 11)
    assert all(seen.query["labelSelector"] == "x=y" for seen in server.seen)
    assert watched_from(server) == ["10"]


def test_ended_watch_goes_on_from_the_last_version(server, follow, event):
    server.answers.append(server.page(version="10"))
    bookmark = {"type": "BOOKMARK", "object": {"metadata": {"resourceVersion": "20"}}}
    server.watches += [server.stream(event("ADDED", "a", 11), then="end"), server.stream(bookmark, then="end")]
    run = follow()
    until(lambda: len(watched_from(server)) == 3)
    assert watched_from(server) == ["10", "11", "20"]
    assert lists(server) == 1
    assert run.sleeps == []
    assert run.changes == [("ADDED", "a", None)]


@pytest.mark.parametrize("how", ["on connect", "as an event"])
def test_expired_watch_lists_again_and_misses_nothing(server, follow, event, make_object, how):
    """nolar/kopf#698: a job created, a pod failed and a job deleted during the gap; each is told once, the Status
    never.
    """
    server.answers += [
        server.page(make_object("pod", 3), make_object("gone", 4), version="10"),
        server.page(make_object("pod", 25), make_object("new", 26), version="30"),
    ]
    server.watches.append(server.stream(event("MODIFIED", "pod", 11), then="end"))
    server.watches.append(server.refuse(410, "Expired") if how == "on connect" else server.stream(GONE))
    run = follow()
    until(lambda: len(watched_from(server)) == 3)
    assert run.changes[3:] == [("MODIFIED", "pod", 11), ("ADDED", "new", None), ("DELETED", "gone", 4)]
    assert watched_from(server) == ["10", "11", "30"]
    assert run.sleeps == []


def test_version_that_is_expired_straight_after_the_list_is_no_busy_loop(server, follow):
    server.answers += [server.page() for _ in range(4)]
    server.watches += [server.refuse(410, "Expired") for _ in range(3)]
    run = follow()
    until(lambda: len(watched_from(server)) == 4)
    assert len(run.sleeps) == 3


def test_silent_watch_is_replaced_and_the_state_caught_up(server, follow, event):
    """kubernetes-client/python#801: the old connection stays open and silent while something happens."""
    server.answers.append(server.page(version="10"))
    server.watches += [server.stream(), server.stream(event("ADDED", "a", 11))]
    run = follow(watch_seconds=(1, 1), margin=-0.8)
    until(lambda: run.changes == [("ADDED", "a", None)])
    assert watched_from(server)[:2] == ["10", "10"]
    assert len(run.sleeps) >= 1


def test_connection_that_breaks_within_an_event_goes_on_from_the_event_before(server, follow, event):
    server.answers.append(server.page(version="10"))
    server.watches += [
        server.stream(event("ADDED", "a", 11), b'{"type":"ADDED","obj', then="cut"),
        server.stream(event("ADDED", "b", 12)),
    ]
    run = follow()
    until(lambda: len(run.changes) == 2)
    assert watched_from(server) == ["10", "11"]


def test_backoff_grows_within_its_bounds(server, follow):
    server.answers += [server.refuse(500) for _ in range(12)] + [server.page()]
    run = follow()
    until(run.reflector.synced.is_set)
    assert len(run.sleeps) == 12
    assert all(0.8 <= pause <= min(30, 0.8 * 2 ** (n + 1)) for n, pause in enumerate(run.sleeps))
    assert len(set(run.sleeps)) == 12


def test_server_that_asks_for_patience_gets_it(server, follow):
    server.answers += [server.refuse(429, "TooManyRequests", retry_after="45"), server.page()]
    run = follow()
    until(run.reflector.synced.is_set)
    assert run.sleeps == [45]


def test_watches_that_end_at_once_are_no_busy_loop(server, follow):
    server.answers.append(server.page())
    server.watches += [server.stream(then="end") for _ in range(3)]
    run = follow()
    until(lambda: len(watched_from(server)) == 4)
    assert len(run.sleeps) == 3


def test_missing_resource_is_waited_for_quietly(server, follow, make_object):
    server.answers += [server.refuse(404, "NotFound") for _ in range(3)] + [server.page(make_object())]
    with capture_logs() as logs:
        run = follow()
        until(run.reflector.synced.is_set)
    assert [(entry["log_level"], entry["event"]) for entry in logs] == [("warning", "resource is not available")]
    assert run.reflector.unavailable == ""
    assert run.changes == [("ADDED", "a", None)]


def test_callback_that_raises_is_logged_and_the_stream_goes_on(server, follow, event):
    server.answers.append(server.page())
    server.watches.append(server.stream(event("ADDED", "a", 11), event("ADDED", "b", 12)))

    def fail():
        raise RuntimeError("no")

    with capture_logs() as logs:
        run = follow(on_change=fail)
        until(lambda: len(logs) == 2)
    assert [entry["event"] for entry in logs] == ["change callback failed"] * 2
    assert len(run.store) == 2
    assert run.sleeps == []


def test_object_without_a_version_ends_no_thread(server, follow, event):
    server.answers += [server.page(), server.page(version="30")]
    server.watches += [server.stream({"type": "ADDED", "object": {}}), server.stream(event("ADDED", "a", 31))]
    with capture_logs() as logs:
        run = follow()
        until(lambda: run.changes == [("ADDED", "a", None)])
    assert [entry["event"] for entry in logs] == ["reflector failed"]


def test_change_that_its_writer_has_put_in_is_not_told_again(server, follow, event, make_object):
    server.answers.append(server.page())
    events, written = server.stream(event("ADDED", "a", 11), event("MODIFIED", "a", 12)), threading.Event()
    server.watches.append(lambda handler: written.wait(5) and events(handler))
    run = follow()
    until(run.reflector.synced.is_set)
    run.store.observe(make_object("a", 11))
    written.set()
    until(lambda: run.changes)
    assert run.changes == [("MODIFIED", "a", 11)]


def test_last_progress_follows_the_clock_with_every_sign_of_life(server, follow, event):
    server.answers.append(server.page())
    server.watches.append(server.stream(event("ADDED", "a", 11)))
    ticks = iter(range(100, 200))
    run = follow(monotonic=lambda: next(ticks))
    assert run.reflector.last_progress >= 100
    until(lambda: run.changes)
    until(lambda: run.reflector.last_progress >= 103)


def test_stop_ends_a_blocked_reflector_without_a_log(server, follow):
    server.answers.append(server.page())
    with capture_logs() as logs:
        run = follow()
        until(lambda: watched_from(server))
        run.stop.set()
        run.kube.stop_watches()
        run.thread.join(5)
    assert not run.thread.is_alive()
    assert logs == []
