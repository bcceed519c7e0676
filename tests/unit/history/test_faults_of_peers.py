"""What kubedl-io/kubedl's storage gets wrong, read from pkg/storage: each must not happen here."""

import pytest

from history.records import event_record, job_record, pod_record
from history.store import Gone


def test_a_pod_that_goes_is_stopped_and_no_longer_in_etcd(store, pod, moment):
    """StopPod swaps name and namespace, finds no row and is retried for ever."""
    store.save([pod("p", 3)], [Gone("pod", "p", moment(90))])
    [row] = store.pods("a")
    assert (row["status"], row["is_in_etcd"], row["gmt_finished"]) == ("Stopped", 0, moment(90))


def test_an_ended_pod_that_goes_keeps_its_end(store, pod, moment):
    """StopPod returns early for what has ended, whose is_in_etcd stays 1 for ever."""
    store.save([pod("p", 3, "Succeeded", code=0, ended=50)], [Gone("pod", "p", moment(90))])
    [row] = store.pods("a")
    assert (row["status"], row["is_in_etcd"], row["gmt_finished"]) == ("Succeeded", 0, moment(50))


@pytest.mark.parametrize("what", ["job", "pod"])
def test_the_end_of_what_was_never_stored_is_nothing(store, what, moment):
    """A row that is not found is an error there, retried for ever."""
    store.save([], [Gone(what, "unknown", moment(0))])
    assert store.jobs() == store.pods("a") == []


@pytest.mark.parametrize("state", [None, ("Pending", 1), ("Scaling", 2), ("Restarting", 3), ("Suspended", 4)])
def test_every_open_state_ends_as_stopped(store, job, state, moment):
    """StopJob misses Queuing, which stays Queuing."""
    store.save([job("a", 1, state)], [Gone("job", "a", moment(9))])
    row, _ = store.job("a")
    assert (row["status"], row["deleted"], row["gmt_finished"]) == ("Stopped", 1, moment(9))


def test_a_region_that_is_set_later_makes_no_second_row(store, make_job, make_pod):
    """The region is part of its lookup key."""
    for region, version in ((None, 1), ("west", 2)):
        store.save([job_record(make_job("a", version), region), pod_record(make_pod("p", version), "a", "", region)])
    [row], [pod] = store.jobs(), store.pods("a")
    assert (row["deploy_region"], pod["deploy_region"]) == ("west", "west")


def test_a_restart_does_not_move_when_a_job_began_to_run(store, job, moment):
    """Its running time is overwritten by each new Running condition."""
    store.save([job("a", 1, ("Running", 10))])
    store.save([job("a", 2, ("Restarting", 20))])
    store.save([job("a", 3, ("Running", 30))])
    assert store.job("a")[0]["gmt_job_running"] == moment(10)


def test_a_pod_that_no_node_has_is_pending(make_pod):
    """Without container statuses a pod is Unknown there."""
    raw = make_pod("p", 1, "Pending", started=None)
    del raw["status"]["containerStatuses"]
    assert pod_record(raw, "a", "Worker").status == "Pending"


def test_an_event_says_what_it_is_about(store, make_event):
    """The involved object's namespace, name and UID are not copied, and its count has the reason's column."""
    store.save([event_record(make_event("a", "e1", count=3)), event_record(make_event("a", "e2"))])
    rows = sorted(store.events("a"), key=lambda row: row["name"])
    about = [(row["obj_namespace"], row["obj_name"], row["obj_uid"], row["reason"], row["count"]) for row in rows]
    assert about == [("team", "train", "a", "JobRunning", 3), ("team", "train", "a", "JobRunning", 1)]
