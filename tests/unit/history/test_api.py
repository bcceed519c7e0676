"""The REST interface: what it answers, and to whom."""

import base64

import pytest
import schemathesis
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from schemathesis import GenerationMode
from schemathesis.specs.openapi.checks import positive_data_acceptance

from history import details
from history.api.app import LOOPBACK_HOSTS, create_app
from history.api.auth import Access
from history.records import event_record

TOKEN = "t0ken"


@pytest.fixture
def full(store, job, pod, make_job, make_event):
    store.save([job(uid, 5, ("Running", 10), created=at) for at, uid in enumerate("abcde")])
    made = make_job("a", 6, ("Failed", 60), generation=1)
    made["status"]["restartHistory"] = [{"time": "2026-11-30T12:00:40Z", "uid": "p", "exitCode": 137, "reason": "OOM"}]
    store.save([job("a", 6, ("Failed", 60)), *details.conditions(made), *details.restarts(made), details.stored(made)])
    store.save([pod("p", 3, "Failed", code=137), event_record(make_event())])
    return store


@pytest.fixture
def client(full):
    return create_app(full).test_client()


def test_pages_follow_each_other(client):
    found, path = [], "/api/v1/jobs?limit=2"
    while path:
        page = client.get(path).json
        found += [job["job_id"] for job in page["items"]]
        path = page["next"] and f"/api/v1/jobs?limit=2&after={page['next']}"
    assert found == list("edcba")


@pytest.mark.parametrize(
    ("query", "uids"),
    [
        ("status=Failed", "a"),
        ("status=Running&sort=created", "bcde"),
        ("sort=finished", "a"),
        ("from=2026-11-30T12:00:02Z&to=2026-11-30T12:00:04Z", "dc"),
        ("from=2026-12-01", ""),
        ("deleted=true", ""),
        ("deleted=false&limit=1", "e"),
        ("name=RAI&sort=name", "abcde"),
        ("tenant=none", ""),
    ],
)
def test_filters(client, query, uids):
    assert "".join(job["job_id"] for job in client.get(f"/api/v1/jobs?{query}").json["items"]) == uids


def test_a_whole_job(client):
    found = client.get("/api/v1/jobs/a").json

    assert (found["job"]["status"], found["job"]["gmt_finished"]) == ("Failed", "2026-11-30T12:01:00Z")
    assert "deploy_region" not in found["job"], "what is unknown is left out"
    assert (found["pods"][0]["is_del"], found["restarts"][0]["exit_code"]) == (0, 137)
    assert [row["type"] for row in found["conditions"]] == ["Created", "Failed"]
    assert found["object"]["metadata"]["uid"] == "a"
    assert client.get("/api/v1/jobs/a/events").json["items"] == found["events"]


def test_timeline(client):
    (bar,) = client.get("/api/v1/jobs/a/timeline").json["pods"]

    assert (bar["started"], bar["finished"]) == ("2026-11-30T12:00:05Z", "2026-11-30T12:00:50Z")
    assert (bar["restart"]["reason"], bar["restart"]["exit_code"]) == ("OOM", 137)


def test_statistics(client):
    (row,) = client.get("/api/v1/statistics?by=kind").json["items"]

    assert (row["value"], row["jobs"], row["outcomes"]) == ("TrainingJob", 5, {"Failed": 1, "Running": 4})


@pytest.mark.parametrize(
    ("path", "status", "said"),
    [
        ("/api/v1/jobs/none", 404, "no job"),
        ("/api/v1/nothing", 404, "not found"),
        ("/api/v1/jobs?limit=0", 400, "limit: must be a whole number from 1 to 500"),
        ("/api/v1/jobs?limit=1&limit=2", 400, "limit: must be given once"),
        ("/api/v1/jobs?page=2", 400, "page: is not known here"),
        ("/api/v1/jobs?status=Done", 400, "status: must be one of Created"),
        ("/api/v1/jobs?from=soon", 400, "from: must be a time"),
        ("/api/v1/jobs?deleted=1", 400, "deleted: must be true or false"),
        ("/api/v1/jobs?after=xyz", 400, "after: must be the `next`"),
        ("/api/v1/ingest", 404, "takes no records"),
    ],
)
def test_problems(client, path, status, said):
    answer = client.get(path)

    assert (answer.status_code, answer.content_type) == (status, "application/problem+json")
    assert said in " ".join([answer.json["detail"], *answer.json.get("errors", ())])


def test_a_cursor_of_another_list_is_refused(client):
    cursor = client.get("/api/v1/jobs?limit=1").json["next"]

    assert client.get(f"/api/v1/jobs?limit=1&sort=name&after={cursor}").status_code == 400


def test_a_database_that_is_down_is_503(tmp_path):
    from history.reader import Reader

    reader = Reader(f"sqlite:///{tmp_path}/none.db")
    client = create_app(reader).test_client()

    assert client.get("/api/v1/jobs").status_code == 503
    assert client.get("/readyz").status_code == 503
    assert client.get("/healthz").status_code == 200
    reader.close()


BASIC = base64.b64encode(f"any:{TOKEN}".encode()).decode()


@pytest.mark.parametrize(
    ("headers", "status"),
    [
        ({}, 401),
        ({"Authorization": "Bearer wrong"}, 401),
        ({"Authorization": "Basic !"}, 401),
        ({"Authorization": f"Digest {TOKEN}"}, 401),
        ({"Authorization": f"Bearer {TOKEN}"}, 200),
        ({"Authorization": f"Basic {BASIC}"}, 200),
    ],
)
def test_a_token_is_asked_for(full, tmp_path, headers, status):
    (tmp_path / "token").write_text(f"{TOKEN}\n")
    client = create_app(full, Access(token_file=tmp_path / "token")).test_client()

    for path in ("/", "/api/v1/jobs", "/static/page.css"):
        assert client.get(path, headers=headers).status_code == status
    assert client.get("/healthz").status_code == 200


def test_an_empty_token_lets_nobody_in(full, tmp_path):
    (tmp_path / "token").write_text("\n")
    client = create_app(full, Access(token_file=tmp_path / "token")).test_client()

    assert client.get("/", headers={"Authorization": "Bearer "}).status_code == 401


def test_a_proxy_names_the_user(full):
    client = create_app(full, Access(user_header="X-Forwarded-User")).test_client()

    assert client.get("/").status_code == 401
    assert client.get("/", headers={"X-Forwarded-User": "ann"}).status_code == 200


def test_a_browser_is_told_to_run_nothing_foreign(client):
    headers = client.get("/").headers

    assert "default-src 'none'; script-src 'self'; style-src 'self'" in headers["Content-Security-Policy"]
    assert (headers["X-Content-Type-Options"], headers["Cache-Control"]) == ("nosniff", "no-store")


def test_another_name_for_this_machine_is_refused(full):
    """DNS rebinding: a page elsewhere that gets its own name to point here."""
    client = create_app(full, hosts=LOOPBACK_HOSTS).test_client()

    assert client.get("/api/v1/jobs", headers={"Host": "evil.example.org"}).status_code == 400
    assert client.get("/api/v1/jobs", headers={"Host": "localhost:8090"}).status_code == 200


@pytest.mark.parametrize("method", ["post", "put", "patch", "delete"])
def test_it_is_read_only(client, method):
    assert getattr(client, method)("/api/v1/jobs").status_code == 405


def test_it_does_what_its_document_says(full):
    """schemathesis: whatever is sent, each answer is one that the document describes."""
    described = schemathesis.openapi.from_wsgi("/api/v1/openapi.json", create_app(full))
    operations = [found.ok() for found in described.get_all_operations()]

    for operation in operations:
        strategy = st.one_of(*(operation.as_strategy(generation_mode=mode) for mode in GenerationMode))

        @given(case=strategy)
        @settings(max_examples=15, deadline=None, database=None, suppress_health_check=list(HealthCheck))
        def holds(case):
            case.call_and_validate(excluded_checks=[positive_data_acceptance])  # no schema tells a cursor or a date

        holds()
    assert len(operations) == 11, "all but the document itself"
