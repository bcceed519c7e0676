"""What a status write shows, for the metrics."""

from datetime import UTC, datetime

import pytest

from controller.progress import Progress, progress

NOW = datetime(2026, 1, 1, 0, 1, 30, tzinfo=UTC)
START = "2026-01-01T00:01:00Z"


def status(*types, active=0, start=START, since="2026-01-01T00:00:30Z", history=()):
    """A status whose last condition of ``types`` holds."""
    rows = [{"type": name, "status": "False", "lastTransitionTime": since} for name in types]
    if rows:
        rows[-1]["status"] = "True"
    return {
        "conditions": rows,
        "startTime": start,
        "replicaStatuses": {"Worker": {"active": active}},
        "restartHistory": [{"reason": reason} for reason in history],
    }


@pytest.mark.parametrize(
    ("before", "after", "expected"),
    [
        ({}, status("Pending"), Progress(("", "Pending"))),
        (status("Pending"), status("Pending"), Progress()),
        (status("Pending"), status("Pending", active=1), Progress(first_pod=30.0)),
        (status("Pending", active=1), status("Pending", active=2), Progress()),
        (status("Pending", active=1), status("Pending", "Running"), Progress(("Pending", "Running"), all_pods=30.0)),
        (
            status("Pending"),
            status("Pending", "Running", active=2),
            Progress(("Pending", "Running"), first_pod=30.0, all_pods=30.0),
        ),
        # all pods ran before this start: the job was resumed
        (
            status("Running", "Pending"),
            status("Pending", "Running", active=1),
            Progress(("Pending", "Running"), first_pod=30.0, all_pods=30.0),
        ),
        # all pods have run since this start: a node came back
        (
            status("Running", "Pending", since="2026-01-01T00:01:10Z"),
            status("Pending", "Running", active=1),
            Progress(("Pending", "Running")),
        ),
        (status("Restarting"), status("Running", active=1), Progress(("Restarting", "Running"))),
        (status("Pending", start=None), status("Running", active=1), Progress(("Pending", "Running"))),
        ({"conditions": [None, 1]}, {"conditions": "?", "restartHistory": 3}, Progress()),
    ],
)
def test_progress(before, after, expected):
    assert progress(before, after, NOW) == expected


def test_a_restart_counts_once_by_a_bounded_reason():
    before = status("Restarting", history=["OOMKilled"])
    after = status("Restarting", history=["OOMKilled", "Evicted", "because job-7 said so"])
    assert progress(before, after, NOW).restarts == ("Evicted", "Other")
    assert progress(after, after, NOW).restarts == ()
