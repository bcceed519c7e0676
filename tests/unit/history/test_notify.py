"""Telling of ends: once each, signed, again while nobody listens."""

import hashlib
import hmac
import json
import threading
from datetime import timedelta
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import pytest

from history.notify import GIVE_UP, Notifier
from history.store import Gone, Store


@pytest.fixture
def listener():
    """A server that answers with ``status`` and keeps what it got as (headers, body)."""

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self):
            server.got.append((dict(self.headers), self.rfile.read(int(self.headers["Content-Length"]))))
            self.send_response(server.status)
            self.end_headers()

        def log_message(self, *args):
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    server.got, server.status = [], 204
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    yield server
    server.shutdown()
    thread.join()
    server.server_close()


@pytest.fixture
def telling(database, clock, moment):
    clock[:] = [moment(100)]
    store = Store(database, notify=True, clock=lambda: clock[-1])
    store.upgrade()
    yield store
    store.close()


@pytest.fixture
def notifier(telling, listener, tmp_path):
    (tmp_path / "secret").write_text("key\n")
    return Notifier(telling, f"http://127.0.0.1:{listener.server_port}/hook", tmp_path / "secret")


def test_each_end_is_told_once_and_signed(telling, notifier, listener, job, moment):
    for _ in range(2):
        telling.save([job("a", 5, ("Succeeded", 60)), job("b", 5, ("Running", 10))])
        telling.save([job("c", 5, ("Running", 10))], [Gone("job", "c", moment(90))])
        notifier.run(moment(100))

    bodies = {json.loads(body)["job"]["job_id"]: json.loads(body) for _, body in listener.got}
    assert len(listener.got) == 2
    assert {uid: body["job"]["status"] for uid, body in bodies.items()} == {"a": "Succeeded", "c": "Stopped"}
    assert (bodies["a"]["event"], bodies["a"]["job"]["gmt_finished"]) == ("job.finished", "2026-11-30T12:01:00Z")
    headers, body = listener.got[0]
    assert headers["X-Signalbox-Signature"] == f"sha256={hmac.new(b'key', body, hashlib.sha256).hexdigest()}"
    assert headers["X-Signalbox-Delivery"] in bodies


def test_it_is_told_again_until_somebody_takes_it(telling, notifier, listener, job, moment):
    listener.status = 500
    telling.save([job("a", 5, ("Failed", 60))])
    assert [notifier.run(moment(at)) for at in (100, 101, 105, 106)] == [0, 0, 0, 0]
    assert len(listener.got) == 2, "waits between attempts"

    listener.status = 200
    assert notifier.run(moment(200)) == 1
    assert notifier.run(moment(9_999)) == 0


def test_it_gives_up_after_a_day(telling, notifier, listener, job, moment):
    listener.status = 500
    telling.save([job("a", 5, ("Failed", 60))])
    for _ in range(2):
        notifier.run(moment(101) + GIVE_UP)

    assert len(listener.got) == 1


def test_what_ended_long_ago_is_no_news(telling, notifier, listener, job, clock, moment):
    clock.append(moment(0) + timedelta(days=3))
    telling.save([job("a", 5, ("Failed", 60))])

    assert notifier.run(clock[-1]) == 0


@pytest.mark.parametrize("url", ["ftp://x/y", "nonsense", "http://"])
def test_an_impossible_url_is_told_at_once(telling, url):
    with pytest.raises(ValueError, match="must be an http or https URL"):
        Notifier(telling, url)
