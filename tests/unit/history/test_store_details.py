"""Our own tables, on every database (see test_store.py)."""

from dataclasses import replace
from datetime import UTC, datetime, timedelta

import pytest

from history import details, queries
from history.records import job_record
from schemas.records import Admission

WHEN = datetime(2026, 11, 30, 12, 0, 1, tzinfo=UTC)


@pytest.fixture
def answer(make_job):
    def build(review="r1", uid="a", operation="CREATE", verdict="allowed", user="ann", **fields):
        return Admission(
            time=WHEN,
            review=review,
            uid=uid,
            user=user,
            groups=("devs",),
            namespace="team",
            name="train",
            kind="TrainingJob",
            operation=operation,
            verdict=verdict,
            object=make_job(uid or "none", generation=1),
            **fields,
        )

    return build


def test_a_restart_is_told_often_and_is_one_row(store, make_job):
    job = make_job("a")
    line = {"time": "2026-11-30T12:00:05Z", "uid": "p1", "replicaType": "Worker", "index": 0, "exitCode": 137}
    job["status"]["restartHistory"] = [line]
    for _ in range(2):
        store.save([*details.restarts(job)])
    job["status"]["restartHistory"].append(line | {"uid": "p2", "time": "2026-11-30T12:00:09Z", "message": "\0é"})
    store.save([*details.restarts(job)])

    assert [(row["restart_id"], row["exit_code"], row["message"]) for row in store.restarts("a")] == [
        ("p1", 137, None),
        ("p2", 137, "é"),
    ]


def test_conditions_keep_every_transition(store, make_job):
    for at in (10, 30):
        store.save([*details.conditions(make_job("a", 1, ("Running", at)))])

    assert [(row["type"], row["gmt_changed"].second) for row in store.conditions("a")] == [
        ("Created", 0),
        ("Running", 10),
        ("Running", 30),
    ]


@pytest.mark.parametrize("job_first", [True, False])
def test_a_job_that_names_no_owner_is_its_submitters(store, job, answer, job_first):
    rows = [job("a", 5), details.admission(answer())]
    for row in rows if job_first else reversed(rows):
        store.save([row])
    assert store.job("a")[0]["owner"] == "ann"

    store.save([job("a", 9, ("Running", 10)), details.admission(answer("r2", operation="UPDATE", user="bob"))])
    assert (store.job("a")[0]["owner"], store.job("a")[0]["status"]) == ("ann", "Running")


@pytest.mark.parametrize(
    ("annotations", "owner", "tenant"),
    [
        ({"signalbox.dev/owner": "carl"}, "carl", None),
        ({"kubedl.io/tenancy": '{"user": "dora", "tenant": "t"}', "signalbox.dev/owner": "carl"}, "dora", "t"),
        ({"kubedl.io/tenancy": "no JSON"}, "ann", None),
    ],
)
def test_an_annotation_names_the_owner_first(store, make_job, answer, annotations, owner, tenant):
    store.save([details.admission(answer())])
    store.save([job_record(make_job("a", annotations=annotations))])

    row = store.job("a")[0]
    assert (row["owner"], row["tenant"]) == (owner, tenant)


def test_answers_of_a_job_with_those_from_before_it_had_a_uid(store, job, answer):
    early, late = answer("r0", uid="", verdict="defaulted"), answer("r1")
    other = replace(answer("r2", uid="b"), name="other")
    refused = replace(answer("r3", uid="", verdict="refused"), name="none")
    early = replace(early, time=early.time - timedelta(seconds=1))  # the API server gives the creation's time later
    same_second = replace(late, review="r9", uid="", verdict="defaulted")
    store.save([details.admission(one) for one in (early, late, other, refused, same_second)] + [job("a", 5)])

    assert [row["review_uid"] for row in store.admissions(store.job("a")[0])] == ["r0", "r9", "r1"]
    assert [row["review_uid"] for row in store.rows(queries.answers(verdict="refused"))] == ["r3"]


def test_the_newest_snapshot_and_who_submitted_it(store, make_job, answer):
    store.save([details.submitted(answer())])
    store.save([details.stored(make_job("a", generation=1)), details.stored(make_job("b", generation=1))])
    store.save([details.stored(make_job("a", generation=2))])

    assert store.snapshot("a")["generation"] == 2
    assert store.snapshot("none") is None
    when = datetime(2026, 1, 1, tzinfo=UTC).replace(tzinfo=None)
    assert [(row["uid"], row["generation"], row["username"]) for row in store.submissions(when)] == [("r1", 0, "ann")]


def test_pods_that_went_while_nobody_looked(store, job, pod, live):
    """A pod of a live job may be gone as well."""
    store.save([job("a", 1, ("Running", 10)), pod("p"), pod("q"), pod("r", 2, "Succeeded", code=0)])

    assert store.close_missing(live("q", what="pod")) == 2
    assert {row["pod_id"]: (row["status"], row["is_in_etcd"]) for row in store.pods("a")} == {
        "p": ("Stopped", 0),
        "q": ("Running", 1),
        "r": ("Succeeded", 0),
    }
    assert store.job("a")[0]["status"] == "Running"
