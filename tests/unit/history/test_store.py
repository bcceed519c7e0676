"""What every database must do; tests/integration/test_history_backends.py runs the same on PostgreSQL and MariaDB."""

from concurrent.futures import ThreadPoolExecutor
from itertools import permutations

import pytest

from history.queries import Wanted
from history.records import event_record
from history.store import Gone, Store

SUCCEEDED, FAILED, RUNNING = ("Succeeded", 60), ("Failed", 60), ("Running", 10)


def only(rows):
    assert len(rows) == 1
    return rows[0]


def test_a_job_as_the_seed_has_it(store, job, clock, moment):
    store.save([job("a", 7, SUCCEEDED)])

    assert only(store.jobs()) == {
        "id": 1,
        "name": "train",
        "namespace": "team",
        "job_id": "a",
        "version": "7",
        "status": "Succeeded",
        "kind": "TrainingJob",
        "resources": '{"Worker":{"replicas":2,"resources":{"cpu":2,"memory":"10Gi"}}}',
        "deploy_region": None,
        "tenant": None,
        "owner": None,
        "deleted": 0,
        "is_in_etcd": 1,
        "remark": "JobSucceeded: said so",
        "gmt_created": moment(0),
        "gmt_modified": clock[-1],
        "gmt_job_running": None,
        "gmt_finished": moment(60),
    }


def test_a_pod_as_the_seed_has_it(store, pod, clock, moment):
    store.save([pod("p", 3, "Failed", code=137, reason="OOMKilled")])

    assert only(store.pods("a")) == {
        "id": 1,
        "name": "train-worker-0",
        "namespace": "team",
        "pod_id": "p",
        "version": "3",
        "status": "Failed",
        "image": "train:1",
        "job_id": "a",
        "replica_type": "Worker",
        "resources": '{"requests":{"nvidia.com/gpu":"1"},"limits":{"nvidia.com/gpu":"1"}}',
        "host_ip": None,
        "pod_ip": "10.0.0.1",
        "deploy_region": None,
        "deleted": 0,
        "is_in_etcd": 1,
        "remark": "OOMKilled, exit code 137",
        "gmt_created": moment(1),
        "gmt_modified": clock[-1],
        "gmt_started": moment(5),
        "gmt_finished": moment(50),
    }


def test_an_event_is_counted_up_and_never_down(store, make_event, moment):
    for count, last in ((2, 20), (5, 50), (3, 30)):
        store.save([event_record(make_event(count=count, last=last, message=f"message {count}"))])

    row = only(store.events("a"))
    assert (row["count"], row["last_timestamp"], row["message"]) == (5, moment(50), "message 5")
    assert (row["obj_namespace"], row["obj_name"], row["reason"]) == ("team", "train", "JobRunning")


# argoproj/argo-workflows#5567: versions are numbers, and what has ended stays ended
@pytest.mark.parametrize(
    ("first", "second", "status"),
    [
        ((9, RUNNING), (10, SUCCEEDED), "Succeeded"),
        ((10, RUNNING), (9, None), "Running"),
        ((999, None), (1000, RUNNING), "Running"),
        ((10, SUCCEEDED), (9, RUNNING), "Succeeded"),
        ((10, SUCCEEDED), (11, RUNNING), "Succeeded"),
        ((10, SUCCEEDED), (11, FAILED), "Failed"),
        ((2**64 + 1, None), (2**64 + 2, RUNNING), "Running"),
        (("x", None), (1, RUNNING), "Running"),
        ((1, RUNNING), ("x", None), "Running"),
    ],
)
def test_newer_wins(store, job, first, second, status):
    for version, state in (first, second):
        store.save([job("a", version, state)])

    assert only(store.jobs())["status"] == status


def test_newer_wins_within_a_batch(store, job, pod):
    states = [job("a", 2, RUNNING), job("a", 10, SUCCEEDED), job("a", 9, ("Running", 30)), job("a", 11, ("Pending", 5))]
    store.save([*states, pod("p", 2), pod("p", 10, "Succeeded", code=0), pod("p", 9)])

    assert only(store.jobs())["status"] == "Succeeded"
    assert only(store.pods("a"))["version"] == "10"


def test_any_order_ends_in_the_same_row(store, job, moment):
    states = [(1, None), (5, RUNNING), (10, ("Running", 40)), (12, FAILED)]
    for number, order in enumerate(permutations(states)):
        for state in order:
            store.save([job(f"uid-{number}", *state)])

    rows = store.jobs()
    assert len(rows) == 24
    assert {(row["version"], row["status"], row["gmt_finished"]) for row in rows} == {("12", "Failed", moment(60))}
    assert {row["gmt_job_running"] for row in rows} == {moment(10)}, "a restart must not move when it first ran"


def test_every_column_follows_a_newer_version(store, job):
    store.save([job("a", 1)])
    changed = {"annotations": {"kubedl.io/tenancy": '{"tenant": "t", "user": "u", "region": "r"}'}}
    store.save([job("a", 2, RUNNING, **changed)])

    row = only(store.jobs())
    assert (row["tenant"], row["owner"], row["deploy_region"]) == ("t", "u", "r")


def test_modified_is_set_by_every_change_and_by_nothing_else(store, job, clock):
    created = clock[-1]
    store.save([job("a", 5)])
    clock.append(created.replace(minute=10))
    store.save([job("a", 5), job("a", 4)])
    assert only(store.jobs())["gmt_modified"] == created

    store.save([job("a", 6)])
    assert only(store.jobs())["gmt_modified"] == clock[-1]

    clock.append(created.replace(minute=20))
    store.save([], [Gone("job", "a", clock[-1])])
    assert only(store.jobs())["gmt_modified"] == clock[-1]


def test_the_same_state_from_many_writers_is_one_row(store, database, job, pod):
    """argoproj/argo-workflows#5567: no duplicate, no error, and the connection works afterwards."""
    others = [Store(database) for _ in range(2)]
    batch = [*(job(uid, 9, SUCCEEDED) for uid in "abcdefgh"), *(pod(uid) for uid in "pqrstuvw")]
    with ThreadPoolExecutor(6) as threads:
        for one in [threads.submit(writer.save, batch[:: 1 - 2 * (n % 2)]) for n in range(10) for writer in others]:
            one.result()
    for one in others:
        one.close()

    assert len(store.jobs()) == 8
    store.save(batch)
    assert len(store.pods("a")) == 8


def test_the_same_name_again_is_another_row(store, job):
    """argoproj/argo-workflows#5567."""
    store.save([job("A", 5, SUCCEEDED)], [])
    store.save([], [Gone("job", "A", job("A").gmt_created)])
    store.save([job("B", 9, FAILED, created=100)])

    assert [(row["job_id"], row["status"], row["deleted"]) for row in store.jobs()] == [
        ("B", "Failed", 0),
        ("A", "Succeeded", 1),
    ]


# kubedl-io/kubedl: StopJob: state, whether it finished, and what a deletion makes of it
@pytest.mark.parametrize(
    ("state", "status", "finished"),
    [(None, "Stopped", 90), (RUNNING, "Stopped", 90), (("Suspended", 5), "Stopped", 90), (SUCCEEDED, "Succeeded", 60)],
)
def test_deleted(store, job, moment, state, status, finished):
    store.save([job("a", 5, state)])
    store.save([job("a", 5, state)], [Gone("job", "a", moment(90))])
    store.save([job("a", 5, state), job("a", 4)], [Gone("job", "a", moment(200)), Gone("job", "unknown", moment(1))])

    row = only(store.jobs())
    assert (row["status"], row["gmt_finished"]) == (status, moment(finished))
    assert (row["deleted"], row["is_in_etcd"]) == (1, 0)


def test_an_end_seen_after_the_deletion_is_the_real_one(store, job, moment):
    store.save([job("a", 5, RUNNING)], [Gone("job", "a", moment(90))])
    store.save([job("a", 8, SUCCEEDED)])

    row = only(store.jobs())
    assert (row["status"], row["gmt_finished"], row["deleted"]) == ("Succeeded", moment(60), 1)


def test_closing_what_went_while_nobody_looked(store, job, pod, live, clock):
    """kubedl-io/kubedl: StopJob, the controller being down."""
    store.save([job("live", 1, RUNNING), job("gone", 2, RUNNING), job("done", 3, SUCCEEDED)])
    store.save([pod("p", job_uid="gone"), pod("q", job_uid="live"), pod("r", 2, "Succeeded", code=0, job_uid="done")])
    clock.append(clock[-1].replace(minute=30))

    assert store.close_missing(live("live")) == 2
    assert store.close_missing(live("live")) == 0
    assert store.close_missing(live("q", what="pod")) == 2
    rows = {row["job_id"]: row for row in store.jobs()}
    states = {uid: (row["status"], row["deleted"], row["is_in_etcd"]) for uid, row in rows.items()}
    assert states == {"live": ("Running", 0, 1), "gone": ("Stopped", 1, 0), "done": ("Succeeded", 1, 0)}
    assert rows["gone"]["gmt_finished"] == clock[-1]
    assert [only(store.pods(uid))["status"] for uid in ("gone", "live", "done")] == ["Stopped", "Running", "Succeeded"]


def test_text_of_any_kind_is_stored(store, job):
    name = "n\0ul \ud800 \N{PILE OF POO}é'\"\\%s :x" * 20
    store.save([job("a", 1, name=name), job("A", 1, name=name)])

    stored = store.jobs()
    assert {row["job_id"] for row in stored} == {"a", "A"}, "keys are compared exactly"
    assert stored[0]["name"] == name.replace("\0", "").replace("\ud800", "?")[:128]


@pytest.mark.parametrize(
    ("wanted", "uids"),
    [
        ({}, "dcba"),
        ({"limit": 2}, "dc"),
        ({"namespace": "team"}, "dca"),
        ({"namespace": "tea"}, ""),
        ({"name": "RES"}, "ba"),
        ({"name": "Sn-1_0"}, ""),
        ({"name": "esN"}, "ba"),
        ({"name": "_"}, "d"),
        ({"name": "%"}, ""),
        ({"status": "Running"}, "c"),
        ({"kind": "TrainingJob", "status": "Succeeded", "namespace": "team"}, "a"),
        ({"kind": "PyTorchJob"}, ""),
    ],
)
def test_finding_jobs(store, job, wanted, uids):
    store.save(
        [job("a", 1, SUCCEEDED, name="resnet"), job("b", 1, FAILED, name="resnet", namespace="other", created=1)]
    )
    store.save([job("c", 1, RUNNING, name="bert", created=2), job("d", 1, name="a_b", created=3)])

    assert "".join(row["job_id"] for row in store.jobs(Wanted(**wanted))) == uids


@pytest.mark.parametrize(
    ("reference", "uid", "older"),
    [("a", "a", 0), ("train", "c", 2), ("team/train", "b", 1), ("none", None, 0), ("none/train", None, 0)],
)
def test_naming_a_job(store, job, reference, uid, older):
    store.save([job("a", 1), job("b", 1, created=1), job("c", 1, namespace="other", created=2)])

    row, others = store.job(reference)
    assert (row and row["job_id"], others) == (uid, older)


def test_pods_by_index_and_events_with_those_of_the_pods(store, pod, make_event):
    store.save([pod(f"p{index}", name=f"train-worker-{index}") for index in (10, 9, 0)])
    told = [event_record(make_event(uid, f"e.{uid}", last=last)) for uid, last in (("a", 9), ("p9", 3), ("other", 1))]
    store.save(told)

    assert [row["pod_id"] for row in store.pods("a")] == ["p0", "p9", "p10"]
    assert [row["name"] for row in store.events("a")] == ["e.p9", "e.a"]
