"""Forgetting what is old, on every database (see test_store.py)."""

from datetime import timedelta

import pytest

from history import details, retention
from history.records import event_record
from history.retention import Keep, prune
from history.store import Gone

DAY = timedelta(days=1)


@pytest.fixture
def old(store, job, pod, make_job, make_event, moment, monkeypatch):
    """Ended and gone: a, b. Ended and still there: c. Running: d. Each with a pod, an event, conditions, a snapshot."""
    monkeypatch.setattr(retention, "BATCH", 1)
    for uid in "abcd":
        state = ("Running", 10) if uid == "d" else ("Succeeded", 60)
        made = make_job(uid, 2, state, generation=1)
        store.save([job(uid, 2, state), pod(f"p{uid}", job_uid=uid), *details.conditions(made), details.stored(made)])
        store.save([event_record(make_event(uid)), event_record(make_event(f"p{uid}", "e2"))])
    store.save([], [Gone(what, uid, moment(90)) for uid in "ab" for what, uid in (("job", uid), ("pod", f"p{uid}"))])
    return store


def left(store):
    uids = "abcd"
    return {
        "jobs": "".join(sorted(row["job_id"] for row in store.jobs())),
        "pods": "".join(uid for uid in uids if store.pods(uid)),
        "events": "".join(uid for uid in uids if store.events(uid)),
        "conditions": "".join(uid for uid in uids if store.conditions(uid)),
        "snapshots": "".join(uid for uid in uids if store.snapshot(uid)),
    }


@pytest.mark.parametrize(
    ("keep", "days", "jobs", "events", "snapshots"),
    [
        (Keep(), 999, "abcd", "abcd", "abcd"),
        (Keep(jobs=30 * DAY), 29, "abcd", "abcd", "abcd"),
        (Keep(jobs=30 * DAY), 31, "cd", "", "cd"),
        (Keep(snapshots=DAY), 31, "abcd", "abcd", "cd"),
        (Keep(jobs=60 * DAY, snapshots=DAY), 31, "abcd", "abcd", "cd"),
    ],
)
def test_what_is_forgotten(old, moment, keep, days, jobs, events, snapshots):
    removed = list(prune(old, keep, moment(0) + days * DAY))

    assert left(old) == {
        "jobs": jobs,
        "pods": jobs,
        "events": events,
        "conditions": jobs,
        "snapshots": snapshots,
    }
    assert all(number == 1 for number in removed), "in batches"
    assert list(prune(old, keep, moment(0) + days * DAY)) == []
