"""What the history counts of requests, batches and rows."""

import pytest
from prometheus_client import REGISTRY
from sqlalchemy.exc import OperationalError

from history import wire
from history.api.app import create_app
from history.api.auth import Access
from history.retention import Keep, prune
from history.store import Gone

ALLOWED = {"Authorization": "Bearer t"}


def samples():
    found = (sample for family in REGISTRY.collect() for sample in family.samples)
    return {(sample.name, *sorted(sample.labels.items())): sample.value for sample in found}


@pytest.fixture
def counted():
    """How much a sample has grown since the test began."""
    before = samples()

    def grown(name, **labels):
        key = f"signalbox_history_{name}", *sorted(labels.items())
        return samples().get(key, 0) - before.get(key, 0)

    return grown


@pytest.fixture
def client(store, tmp_path):
    token = tmp_path / "token"
    token.write_text("t")
    return create_app(store, Access(token, ingest_token_file=token), store).test_client()


@pytest.mark.parametrize(
    ("path", "headers", "route", "status"),
    [
        ("/api/v1/jobs?limit=1", ALLOWED, "/api/v1/jobs", "200"),
        ("/api/v1/jobs?limit=x", ALLOWED, "/api/v1/jobs", "400"),
        ("/api/v1/jobs/some-uid", ALLOWED, "/api/v1/jobs/<uid>", "404"),
        ("/api/v1/jobs", {}, "/api/v1/jobs", "401"),
        ("/made-up/by-a-stranger", ALLOWED, "other", "404"),
        ("/", ALLOWED, "/", "200"),
    ],
)
def test_requests_by_route_and_status(client, counted, path, headers, route, status):
    """Never by the path that was asked for: it may hold the name of a job, or anything."""
    client.get(path, headers=headers)

    assert counted("requests_total", route=route, status=status) == 1
    assert counted("request_seconds_count", route=route, status=status) == 1
    assert counted("open_requests") == 0


@pytest.mark.parametrize(
    ("is_batch", "fault", "outcome", "rows", "failures"),
    [
        (True, None, "accepted", 2, 0),
        (False, None, "refused", 0, 0),
        (True, OperationalError("", {}, Exception("down")), "failed", 0, 1),
    ],
)
def test_batches_and_their_rows(client, store, job, counted, monkeypatch, is_batch, fault, outcome, rows, failures):
    def breaks(*_arguments):
        raise fault

    if fault:
        monkeypatch.setattr(store, "_save", breaks)
    client.post(
        "/api/v1/ingest", data=wire.batch([job("a", 1), job("b", 1)], []) if is_batch else b"{}", headers=ALLOWED
    )

    assert counted("ingest_batches_total", outcome=outcome) == 1
    assert counted("written_rows_total", table="job_info") == rows
    assert counted("write_failures_total") == failures


def test_what_retention_deletes(store, job, pod, moment, counted):
    store.save([job("a", 1, ("Succeeded", 10)), pod("p"), pod("q")], [Gone("job", "a", moment(20))])
    assert list(prune(store, Keep(jobs=moment(10) - moment(0)), moment(10**6))) == [1]

    assert counted("deleted_rows_total", table="job_info") == 1
    assert counted("deleted_rows_total", table="replica_info") == 2
