"""``signalbox history serve`` as a process: it starts, answers, takes records, ends; and will not stand open."""

import json
import socket
import subprocess
import sys
import time
import urllib.error
import urllib.request

import pytest

from history.sink import recorder
from history.store import Store

COMMAND = (sys.executable, "-m", "signalbox", "history", "serve")


def free_port():
    with socket.create_server(("127.0.0.1", 0)) as found:
        return found.getsockname()[1]


def get(url, token=None):
    request = urllib.request.Request(url, headers={"Authorization": f"Bearer {token}"} if token else {})
    try:
        with urllib.request.urlopen(request, timeout=10) as answer:
            return answer.status, answer.read()
    except urllib.error.HTTPError as error:
        with error:
            return error.code, error.read()


@pytest.fixture
def serve(tmp_path):
    """Starts the process with options; gives its address."""
    started = []

    def start(*options):
        address = f"127.0.0.1:{free_port()}"
        url = f"sqlite:///{tmp_path}/history.db"
        process = subprocess.Popen([*COMMAND, f"--bind={address}", f"--history-url={url}", *options])
        started.append(process)
        end = time.monotonic() + 60
        while True:
            assert process.poll() is None, "it ended"
            assert time.monotonic() < end, "it does not answer"
            try:
                get(f"http://{address}/healthz")
            except OSError:
                time.sleep(0.1)
            else:
                return f"http://{address}", process

    yield start
    for process in started:
        process.terminate()
        process.wait(20)


@pytest.fixture
def files(tmp_path):
    for name in ("reader", "writer"):
        (tmp_path / name).write_text(f"{name}-token\n")
    return tmp_path


def job(uid):
    condition = {"type": "Succeeded", "status": "True", "lastTransitionTime": "2026-11-30T12:00:00Z"}
    meta = {"uid": uid, "name": uid, "resourceVersion": "5", "creationTimestamp": "2026-11-30T11:00:00Z"}
    return {"kind": "TrainingJob", "metadata": meta, "status": {"conditions": [condition]}}


def test_records_go_in_and_come_out(serve, files):
    address, process = serve(f"--token-file={files / 'reader'}", f"--ingest-token-file={files / 'writer'}")
    writer = recorder(address, files / "writer")
    writer.saw_job(job("a"))
    assert writer.close(30)

    assert get(f"{address}/api/v1/jobs")[0] == 401
    assert get(f"{address}/api/v1/jobs", "writer-token")[0] == 401
    status, body = get(f"{address}/api/v1/jobs", "reader-token")
    assert (status, json.loads(body)["items"][0]["job_id"]) == (200, "a")
    process.terminate()
    assert process.wait(20) == 0


def test_health_and_metrics_without_the_token(serve, files):
    """On ports of their own, beside the pages."""
    health, metrics = (f"127.0.0.1:{free_port()}" for _ in range(2))
    binds = (f"--health-bind={health}", f"--metrics-bind={metrics}")
    address, _ = serve(f"--token-file={files / 'reader'}", f"--ingest-token-file={files / 'writer'}", *binds)
    writer = recorder(address, files / "writer")
    writer.saw_job(job("secret-name"))
    assert writer.close(30)

    assert [get(f"http://{health}/{path}")[0] for path in ("healthz", "readyz")] == [200, 200]
    status, body = get(f"http://{metrics}/metrics")
    told = body.decode()
    assert status == 200
    assert 'signalbox_history_requests_total{route="/api/v1/ingest",status="204"} 1.0' in told
    assert 'signalbox_history_written_rows_total{table="job_info"} 1.0' in told
    assert "secret-name" not in told
    assert get(f"{address}/metrics")[0] == 401


def test_it_reads_beside_another_writer(serve, tmp_path):
    store = Store(f"sqlite:///{tmp_path}/history.db")
    store.upgrade()
    store.close()
    address, _ = serve()

    assert get(f"{address}/readyz") == (200, b"ok\n")
    assert b"No jobs match" in get(f"{address}/")[1]


@pytest.mark.parametrize(
    ("options", "said"),
    [
        (("--bind=0.0.0.0:8090",), "--auth: must be token or proxy-header where --bind is no loopback address"),
        (("--auth=token",), "--token-file: must be given with --auth token"),
        (("--token-file=/nonexistent",), "--token-file: must be an existing file that holds a token"),
        (("--history-url-file=/nonexistent",), "--history-url-file: must be an existing file that holds a URL"),
        (("--history-url-file=/f", "--history-url=sqlite:///f"), "must not be given together with --history-url"),
        (("--history-url=oracle://h/x",), "must be sqlite, postgresql or mysql"),
        (("--history-keep=soon",), "must be a whole number and s, m, h, d or w"),
        (("--metrics-bind=nowhere",), "--metrics-bind: must be HOST:PORT"),
        (("--bind=nowhere",), "--bind: must be HOST:PORT"),
    ],
)
def test_a_wrong_option_stops_the_start(options, said):
    done = subprocess.run([*COMMAND, *options], capture_output=True, text=True, timeout=60, check=False)

    assert done.returncode == 2
    assert said in done.stderr
