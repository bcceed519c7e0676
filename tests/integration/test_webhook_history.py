"""The real webhook process with a history that hangs, fails, comes back, or is one file for many writers."""

import json
import os
import signal
import socket
import subprocess
import sys
import threading
import time
import urllib.request
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime

import pytest
from werkzeug.serving import make_server

from history.api.app import create_app
from history.api.auth import Access
from history.queries import Wanted
from history.records import job_record
from history.store import Store

LONG_AGO = datetime(2026, 1, 1, tzinfo=UTC).replace(tzinfo=None)
MADE = "2026-11-30T12:00:00Z"
SMALL_QUEUE = "import signalbox.run_webhook as w; w.MOST_RECORDS = 3; w.webhook()"
"""The command with room for three records in each worker."""
DROPPED = "signalbox_webhook_history_dropped_records_total"


class Webhook:
    def __init__(self, directory, *arguments):
        sockets = [socket.create_server(("127.0.0.1", 0)) for _ in range(3)]
        self.bind, self.health, self.metrics = (f"127.0.0.1:{each.getsockname()[1]}" for each in sockets)
        for each in sockets:
            each.close()
        binds = [f"--bind={self.bind}", f"--health-bind={self.health}", f"--metrics-bind={self.metrics}"]
        environment = {key: value for key, value in os.environ.items() if key != "PROMETHEUS_MULTIPROC_DIR"}
        with (directory / "log").open("wb") as log:
            argv = [sys.executable, "-c", SMALL_QUEUE, "--no-tls", *binds, *arguments]
            self.process = subprocess.Popen(argv, stderr=log, env=environment)

    def ask(self, number, name="train"):
        pod = {"spec": {"containers": [{"name": "main", "image": "i"}]}}
        spec = {"replicaSpecs": {"Worker": {"replicas": -1, "template": pod}}}
        request = {
            "uid": f"r{number}",
            "kind": {"group": "signalbox.dev", "version": "v1", "kind": "TrainingJob"},
            "operation": "CREATE",
            "namespace": "ns",
            "object": {"metadata": {"name": name, "namespace": "ns"}, "spec": spec},
            "userInfo": {"username": "ann", "groups": []},
        }
        body = json.dumps({"apiVersion": "admission.k8s.io/v1", "kind": "AdmissionReview", "request": request})
        with urllib.request.urlopen(f"http://{self.bind}/mutate", body.encode(), timeout=60) as answer:
            return json.load(answer)["response"]

    def metric(self, name):
        with urllib.request.urlopen(f"http://{self.metrics}/metrics", timeout=30) as answer:
            lines = answer.read().decode().splitlines()
        return sum(float(line.split()[1]) for line in lines if line.startswith(name))

    def is_ready(self):
        try:
            with urllib.request.urlopen(f"http://{self.health}/readyz", timeout=30):
                return True
        except OSError:
            return False

    def end(self):
        self.process.send_signal(signal.SIGTERM)
        return self.process.wait(60)


def until(condition, seconds=90):
    deadline = time.monotonic() + seconds
    while not (found := condition()):
        assert time.monotonic() < deadline, f"not within {seconds} s"
        time.sleep(0.2)
    return found


@pytest.fixture
def webhook(tmp_path):
    """``webhook(url, ...)``: a webhook that serves, killed afterwards if it still does."""
    started = []

    def start(url, *arguments):
        started.append(Webhook(tmp_path, f"--history-url={url}", *arguments))
        until(started[-1].is_ready)
        return started[-1]

    yield start
    for each in started:
        each.process.kill()
        each.process.wait()


@pytest.fixture
def silent():
    """An address that takes connections and never says a word."""
    with socket.create_server(("127.0.0.1", 0)) as listener:
        yield listener


def test_a_history_that_hangs_delays_no_answer_and_no_end(webhook, silent):
    """The process ends in order although its last records cannot be written."""
    running = webhook(f"http://127.0.0.1:{silent.getsockname()[1]}")
    refusals = [running.ask(number) for number in range(30)]
    assert not any(answer["allowed"] for answer in refusals)
    assert len({json.dumps({**answer, "uid": ""}) for answer in refusals}) == 1
    assert running.metric(DROPPED) >= 30 - 2 * 3 - 2  # two queues of three; the last drop is told by the next review
    assert running.end() == 0


def test_a_history_that_comes_back_gets_what_waited(webhook, tmp_path):
    store = Store(f"sqlite:///{tmp_path}/history.db")
    store.upgrade()
    token = tmp_path / "token"
    token.write_text("s3cret")
    with socket.create_server(("127.0.0.1", 0)) as probe:
        port = probe.getsockname()[1]
    running = webhook(f"http://127.0.0.1:{port}", f"--history-token-file={token}", "--workers=1")
    running.ask(1)
    running.ask(2)
    server = make_server("127.0.0.1", port, create_app(store, Access(ingest_token_file=token), store), threaded=True)
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    try:
        until(lambda: [row["uid"] for row in store.submissions(LONG_AGO)] == ["r1", "r2"])
        running.ask(3)
        until(lambda: len(list(store.submissions(LONG_AGO))) == 3)
        assert running.end() == 0
    finally:
        server.shutdown()
        thread.join()
        server.server_close()
        store.close()


def test_many_processes_write_one_file(webhook, tmp_path, monkeypatch):
    """Two workers, and a third writer in the controller's place: nothing is lost, and no write waits itself out."""
    url = f"sqlite:///{tmp_path}/history.db"
    monkeypatch.setattr(sys.modules[__name__], "SMALL_QUEUE", SMALL_QUEUE.replace("w.MOST_RECORDS = 3; ", ""))
    running = webhook(url, "--workers=2")
    store = Store(url)
    store.upgrade()
    over = threading.Event()

    def write():
        for number in range(10_000):
            if over.is_set():
                return number
            meta = {
                "uid": f"u{number}",
                "name": "j",
                "namespace": "ns",
                "resourceVersion": "1",
                "creationTimestamp": MADE,
            }
            store.save([job_record({"kind": "TrainingJob", "metadata": meta})])
        return 10_000

    with ThreadPoolExecutor(5) as pool:
        written = pool.submit(write)
        list(pool.map(running.ask, range(200)))
        assert running.end() == 0
        over.set()
    assert len(list(store.submissions(LONG_AGO))) == 200
    assert written.result() > 0
    assert len(store.jobs(Wanted(limit=20_000))) == written.result()
    store.close()
    log = (tmp_path / "log").read_text()
    assert "history unreachable" not in log
    assert "unwritten" not in log
