"""The writer thread: it never makes a caller wait, and loses nothing that matters."""

import shutil
import signal
import socket
import subprocess
import sys
import time

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from history import writer as module
from history.engine import CONNECT_SECONDS
from history.reader import Reader
from history.store import Store
from history.writer import Writer

RUNNING, SUCCEEDED = ("Running", 10), ("Succeeded", 60)


@pytest.fixture
def writing(database):
    """Starts writers on the test's database (or another) and closes them."""
    started = []

    def start(url=database, **options):
        started.append(Writer(url, **{"interval": 0.02, **options}))
        return started[-1]

    yield start
    for writer in started:
        writer.close(5)


@pytest.fixture
def rows(database):
    """What the database holds, each job's status by UID."""

    def read(ask=lambda store: {row["job_id"]: row["status"] for row in store.jobs()}):
        store = Reader(database)
        try:
            return ask(store)
        finally:
            store.close()

    return read


@pytest.fixture
def quick_retry(monkeypatch):
    monkeypatch.setattr(module, "FIRST_RETRY", 0.05)
    monkeypatch.setattr(module, "LAST_RETRY", 0.1)


def eventually(condition, seconds=10):
    end = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < end, "did not happen in time"
        time.sleep(0.01)


def test_what_it_is_told_is_written(writing, rows, make_job, make_pod, make_event):
    writer = writing(region="west")
    writer.saw_job(make_job("a", 5, RUNNING))
    writer.saw_pod(make_pod(), "a", "Worker")
    writer.saw_event(make_event())

    assert writer.close()
    assert rows() == {"a": "Running"}
    pod, event = rows(lambda store: store.pods("a"))[0], rows(lambda store: store.events("a"))[0]
    assert (pod["replica_type"], pod["deploy_region"], event["reason"], event["region"]) == (
        "Worker",
        "west",
        "JobRunning",
        "west",
    )
    assert (writer.written, writer.dropped, writer.failures, writer.lag_seconds()) == (3, 0, 0, 0)


@pytest.mark.parametrize(
    ("state", "asked", "answer"), [(SUCCEEDED, "7", True), (SUCCEEDED, "8", False), (RUNNING, "7", False)]
)
def test_saved_means_the_end_is_committed(writing, rows, make_job, state, asked, answer):
    writer = writing()
    assert not writer.saved("a", "7")
    writer.saw_job(make_job("a", 7, state))
    eventually(lambda: writer.written == 1)

    assert writer.saved("a", asked) is answer
    assert writer.saved("a", "6") is (state is SUCCEEDED)


@pytest.mark.parametrize(
    ("state", "told_before", "status"),
    [(RUNNING, True, "Stopped"), (RUNNING, False, "Stopped"), (SUCCEEDED, True, "Succeeded")],
)
def test_lost(writing, rows, make_job, make_pod, state, told_before, status):
    """kubedl-io/kubedl: StopJob."""
    writer = writing()
    if told_before:
        writer.saw_job(make_job("a", 5, state))
        writer.saw_pod(make_pod("p", 5), "a", "Worker")
        eventually(lambda: writer.written == 2)
    writer.lost_pod(make_pod("p", 5), "a", "Worker")
    writer.lost_job(make_job("a", 5, state))

    assert writer.close()
    assert rows() == {"a": status}
    assert rows(lambda store: [(row["status"], row["is_in_etcd"]) for row in store.pods("a")]) == [("Stopped", 0)]


def test_jobs_that_went_while_it_was_down(writing, rows, make_job, live):
    """kubedl-io/kubedl: StopJob: closed at the start, but not a job that is newer than the list of live ones."""
    first = writing()
    for uid in ("gone", "live"):
        first.saw_job(make_job(uid, 5, RUNNING))
    assert first.close()

    second = writing()
    second.saw_job(make_job("new", 6, RUNNING))
    eventually(lambda: second.written == 1)
    second.live(live("live"))

    assert second.close()
    assert rows() == {"gone": "Stopped", "live": "Running", "new": "Running"}


@given(data=st.data())
@settings(max_examples=25, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_any_order_of_a_jobs_states_ends_in_the_same_row(tmp_path, make_job, data):
    """Newer wins, however the states are ordered, repeated and cut into batches."""
    states = [(1, None), (3, RUNNING), (9, ("Restarting", 20)), (10, ("Running", 30)), (11, SUCCEEDED)]
    told = data.draw(st.permutations(states + data.draw(st.lists(st.sampled_from(states), max_size=3))))
    lost = data.draw(st.integers(0, len(told)))
    directory = tmp_path / "db"
    shutil.rmtree(directory, ignore_errors=True)
    url = f"sqlite:///{directory}/history.db"
    for batch in (told[:lost], told[lost:]):
        writer = Writer(url)
        for state in batch:
            writer.saw_job(make_job("a", *state))
        if batch == told[lost:]:
            writer.lost_job(make_job("a", *data.draw(st.sampled_from(states))))
        assert writer.close()
    store = Store(url)
    (row,) = store.jobs()
    store.close()

    kept = ("version", "status", "deleted", "is_in_etcd")
    assert [row[column] for column in kept] == ["11", "Succeeded", 1, 0]
    assert [f"{row[column]:%M:%S}" for column in ("gmt_job_running", "gmt_finished")] == ["00:10", "01:00"]


def test_database_down_at_the_start_and_back(writing, rows, tmp_path, make_job, quick_retry):
    """argoproj/argo-workflows#14112, argoproj/argo-workflows#3880: rows wait, repeated states take no room, and the end
    is written when the database is back.
    """
    (tmp_path / "place").write_text("a file where the directory must be")
    writer = writing(f"sqlite:///{tmp_path}/place/history.db")
    for version in range(1, 100):
        writer.saw_job(make_job("a", version, RUNNING))
    writer.saw_job(make_job("a", 100, SUCCEEDED))
    eventually(lambda: writer.failures > 1)
    assert (writer.waiting, writer.saved("a", "100")) == (1, False)
    assert writer.lag_seconds() > 0

    (tmp_path / "place").unlink()
    eventually(lambda: writer.saved("a", "100"))
    assert (writer.waiting, writer.lag_seconds(), writer.dropped) == (0, 0, 0)


def test_a_silent_database_makes_nobody_wait(writing, make_job):
    """argoproj/argo-workflows#14112: a server that accepts and never answers."""
    silent = socket.create_server(("127.0.0.1", 0))
    writer = writing(f"postgresql://u@127.0.0.1:{silent.getsockname()[1]}/x")
    before = time.perf_counter()
    for uid in range(100):
        writer.saw_job(make_job(f"job-{uid}", 1, RUNNING))
    took = time.perf_counter() - before
    eventually(lambda: writer.failures)
    silent.close()

    assert took < CONNECT_SECONDS, "no call waited for the server"
    assert writer.waiting == 100


def test_memory_is_bounded_and_ends_are_kept(writing, tmp_path, make_job):
    (tmp_path / "place").write_text("")
    writer = writing(f"sqlite:///{tmp_path}/place/history.db", max_keys=10)
    for uid in range(8):
        writer.saw_job(make_job(f"end-{uid}", 2, SUCCEEDED))
        writer.saw_job(make_job(f"run-{uid}", 1, RUNNING))
    assert (writer.waiting, writer.dropped) == (10, 6)

    (tmp_path / "place").unlink()
    assert writer.close()
    store = Store(f"sqlite:///{tmp_path}/place/history.db")
    kept = {row["job_id"] for row in store.jobs()}
    store.close()
    assert kept == {*(f"end-{uid}" for uid in range(8)), "run-6", "run-7"}


@pytest.mark.parametrize("thing", [{}, {"metadata": None}, {"metadata": {"uid": 5}}, {"metadata": {"uid": ""}}])
def test_objects_without_a_key_are_no_rows(writing, make_job, thing):
    writer = writing()
    writer.saw_job(thing)
    writer.lost_job(thing)
    writer.saw_pod(thing, "a", "Worker")
    writer.saw_event(thing)
    writer.saw_job(make_job("a", 1))

    assert writer.close()
    assert writer.written == 1


@pytest.mark.parametrize(
    ("url", "said"),
    [
        ("oracle://u:secret@h/x", "must be sqlite, postgresql or mysql"),
        ("nonsense", "must look like"),
        ("sqlite://", "must name a file"),
        ("postgresql+asyncpg://u:secret@h/x", "must be sqlite"),
    ],
)
def test_an_impossible_url_is_told_at_once(url, said):
    with pytest.raises(ValueError, match=said) as error:
        Writer(url)
    assert "secret" not in str(error.value)


KILLED = """
import sys
from history.writer import Writer
writer = Writer(sys.argv[1], interval=0.001)
for version in range(1, 1_000_000):
    for uid in range(50):
        state = [{"type": "Succeeded" if version > 5 else "Running", "status": "True"}]
        meta = {"uid": f"job-{uid}", "resourceVersion": str(version)}
        writer.saw_job({"metadata": meta, "status": {"conditions": state}})
    if version == 10:
        print("on", flush=True)
"""


def test_killed_while_writing(writing, rows, database, make_job):
    """Rows of whole batches are left; telling everything again ends in one row each."""
    process = subprocess.Popen([sys.executable, "-c", KILLED, database], stdout=subprocess.PIPE)
    process.stdout.readline()
    time.sleep(0.3)
    process.send_signal(signal.SIGKILL)
    process.wait()
    process.stdout.close()

    writer = writing()
    for uid in range(50):
        writer.saw_job(make_job(f"job-{uid}", 2_000_000, SUCCEEDED))
    assert writer.close()
    assert rows() == {f"job-{uid}": "Succeeded" for uid in range(50)}


def test_pods_that_went_while_it_was_down(writing, rows, make_pod, live):
    first = writing()
    for uid in ("gone", "live"):
        first.saw_pod(make_pod(uid, name=uid), "a", "Worker")
    assert first.close()

    second = writing()
    second.saw_pod(make_pod("new", 6, name="new"), "a", "Worker")
    second.live(live("live", what="pod"))

    assert second.close()
    states = rows(lambda store: {row["pod_id"]: row["status"] for row in store.pods("a")})
    assert states == {"gone": "Stopped", "live": "Running", "new": "Running"}


def test_what_a_job_tells_is_kept_when_its_states_are_merged(writing, rows, make_job):
    """Between two writes a job may pass several states: each transition and restart is a row."""
    writer = writing(interval=60)
    job = make_job("a", 5, RUNNING, generation=1)
    line = {"time": "2026-11-30T12:00:05Z", "uid": "p1", "replicaType": "Worker", "index": 0}
    writer.saw_job(job)
    writer.saw_job({**job, "status": {"restartHistory": [line]}})
    writer.saw_job(make_job("a", 7, SUCCEEDED, generation=1))

    assert writer.close()
    kinds = rows(lambda store: [row["type"] for row in store.conditions("a")])
    assert kinds == ["Created", "Running", "Succeeded"]
    assert rows(lambda store: [row["restart_id"] for row in store.restarts("a")]) == ["p1"]
    assert rows(lambda store: store.snapshot("a"))["generation"] == 1


def test_a_list_closes_rows_of_its_own_region_only(writing, rows, make_job, live):
    """Several clusters, one database."""
    for region in ("west", "east"):
        writer = writing(region=region)
        writer.saw_job(make_job(region, 1, RUNNING))
        assert writer.close()
    west = writing(region="west")
    west.live(live())

    assert west.close()
    assert rows() == {"west": "Stopped", "east": "Running"}


def test_lists_of_several_kinds_wait_together(writing, rows, make_job, live):
    """None replaces that of another kind, and of one kind the last counts."""
    first = writing()
    for uid, kind in (("a", "TrainingJob"), ("b", "TrainingJob"), ("m", "MPIJob")):
        first.saw_job({**make_job(uid, 1, RUNNING), "kind": kind})
    assert first.close()
    second = writing(interval=60)
    for found in (live("b"), live(kind="MPIJob"), live("a", "b")):
        second.live(found)

    assert second.close()
    assert rows() == {"a": "Running", "b": "Running", "m": "Stopped"}


def test_more_restarts_than_the_status_lists(writing, rows, make_job):
    """All that were counted at once are rows; those that the status tells again are the same ones."""
    job = make_job("a", 5, RUNNING)
    lines = [{"time": "2026-11-30T12:00:05Z", "uid": f"p{n}", "replicaType": "Worker", "index": n} for n in range(25)]
    job["status"]["restartHistory"] = lines[-10:]
    first = writing()
    first.saw_job(job)
    first.saw_restarts(job, lines)
    assert first.close()
    second = writing()
    second.saw_job(job)

    assert second.close()
    assert sorted(row["replica_index"] for row in rows(lambda store: store.restarts("a"))) == [*range(25)]
