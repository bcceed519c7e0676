"""Writing through the history process: the same rows, whatever happens to the connection in between."""

import threading
from datetime import UTC, datetime

import orjson
import pytest
from werkzeug.serving import make_server

from history import details, wire
from history.api.app import create_app
from history.api.auth import Access
from history.records import event_record
from history.sink import Remote, open_sink, recorder
from history.store import Gone, Refused, Store
from schemas.records import Admission

TOKEN = "s3cret"


@pytest.fixture
def token(tmp_path):
    file = tmp_path / "token"
    file.write_text(TOKEN + "\n")
    return file


@pytest.fixture
def served(store, token):
    """The history process's address."""
    app = create_app(store, Access(ingest_token_file=token), store)
    server = make_server("127.0.0.1", 0, app, threaded=True)
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    yield f"http://127.0.0.1:{server.server_port}"
    server.shutdown()
    thread.join()
    server.server_close()


@pytest.fixture
def records(job, pod, make_event, make_job):
    made = make_job("a", 5, ("Running", 10), generation=1)
    made["status"]["restartHistory"] = [{"time": "2026-11-30T12:00:05Z", "uid": "p1", "exitCode": 137}]
    answer = Admission(datetime.now(UTC), "r1", "a", "ann", (), "team", "train", "TrainingJob", "CREATE", "allowed")
    own = [*details.conditions(made), *details.restarts(made), details.stored(made), details.admission(answer)]
    return [job("a", 5, ("Running", 10)), pod(), event_record(make_event()), *own]


def test_a_batch_survives_the_wire(records, moment):
    gone = [Gone("job", "a", moment(90))]

    assert wire.read(wire.batch(records, gone)) == (records, gone)


def test_a_recorder_of_another_process(served, store, token, make_job, make_pod, live):
    writer = recorder(served, token, region="west")
    writer.saw_job(make_job("a", 5, ("Succeeded", 60), generation=1))
    writer.saw_pod(make_pod("p"), "a", "Worker")
    assert writer.close()
    again = recorder(served, token, region="west")
    again.live(live())
    again.live(live(what="pod"))
    assert again.close()

    assert (store.job("a")[0]["deploy_region"], store.job("a")[0]["deleted"]) == ("west", 1)
    assert store.pods("a")[0]["status"] == "Stopped"
    assert writer.saved("a", "5")


def test_all_kinds_of_rows(served, store, token, records):
    sink = open_sink(served, token)
    sink.save(records, [])

    assert store.job("a")[0]["owner"] == "ann"
    assert store.restarts("a")[0]["exit_code"] == 137
    assert (len(store.conditions("a")), len(store.events("a")), len(store.pods("a"))) == (2, 1, 1)


def test_the_token_is_needed(served, token, records):
    token_of_another = token.with_name("other")
    token_of_another.write_text("wrong")
    for file in (None, token_of_another):
        with pytest.raises(OSError, match="401"):
            Remote(served, file).save(records)


@pytest.mark.parametrize(
    ("body", "said"),
    [
        (b"{", "must be JSON"),
        (b"[]", "must be a JSON object"),
        (b"{}", "records: must be a list"),
        ({"records": [["x", {}]], "gone": []}, r"records\[0\]: must be a known table"),
        ({"records": [["job_info", {"job_id": "a"}]], "gone": []}, "job_info.name|records.0..name"),
        ({"records": [], "gone": [["job", "a", "yesterday"]]}, r"gone\[0\]"),
        ({"records": [], "gone": [["node", "a", "2026-11-30T12:00:00"]]}, r"gone\[0\]"),
    ],
)
def test_what_is_no_batch(body, said):
    with pytest.raises(wire.NotABatch, match=said):
        wire.read(body if isinstance(body, bytes) else orjson.dumps(body))


@pytest.mark.parametrize(
    ("column", "value"),
    [("name", "x" * 129), ("name", "\0"), ("deleted", 1), ("job_id", None), ("gmt_created", "2026-11-30T12:00:00Z")],
)
def test_rows_that_no_column_takes(records, column, value):
    document = orjson.loads(wire.batch(records[:1], []))
    document["records"][0][1][column] = value
    refused = column != "deleted"  # what the sender has no say in is ignored
    if refused:
        with pytest.raises(wire.NotABatch):
            wire.read(orjson.dumps(document))
    else:
        assert wire.read(orjson.dumps(document)) == (records[:1], [])


def test_a_refused_batch_is_given_up_alone(served, store, token, make_job, monkeypatch):
    """One row that the other side can never take does not hold up the others."""
    save = Store.save

    def picky(self, rows, gone=()):
        if any(getattr(row, "job_id", "") == "bad" for row in rows):
            raise wire.NotABatch("bad")
        save(self, rows, gone)

    monkeypatch.setattr(Store, "save", picky)
    writer = recorder(served, token)
    for uid in ("a", "bad", "b"):
        writer.saw_job(make_job(uid, 1))
    assert writer.close()

    assert {row["job_id"] for row in store.jobs()} == {"a", "b"}
    assert writer.refused == 1


@pytest.mark.parametrize("url", ["http://", "https://user@host/", "http://h/?q=1"])
def test_an_impossible_url_is_told_at_once(url):
    with pytest.raises(ValueError, match="must look like https://HOST:PORT"):
        open_sink(url)


def test_refused_is_not_an_error_of_the_network():
    assert not issubclass(Refused, OSError)


@pytest.mark.parametrize("bounds", [{}, {"what": "pod"}, {"namespace": "team", "region": "west"}])
def test_a_list_survives_the_wire(live, bounds):
    found = live("b", "a", **bounds)

    assert wire.live(wire.listed(found)) == found


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({"uids": None}, "uids: must be a list"),
        ({"uids": [5]}, "uids: must be a list of UIDs"),
        ({"what": "node"}, "what: must be job"),
        ({"kind": ""}, "what: must be job with a kind"),
        ({"version": 5}, "what: must be"),
        ({"region": 5}, "what: must be"),
    ],
)
def test_what_is_no_list(live, changes, said):
    document = {**orjson.loads(wire.listed(live("a"))), **changes}
    with pytest.raises(wire.NotABatch, match=said):
        wire.live(orjson.dumps(document))


def test_a_list_that_is_refused_holds_up_no_rows(served, store, token, make_job, live):
    """A history process of another version."""
    writer = recorder(served, token)
    writer.live(live("a", kind=""))
    writer.saw_job(make_job("a", 5))

    assert writer.close()
    assert [row["job_id"] for row in store.jobs()] == ["a"]
