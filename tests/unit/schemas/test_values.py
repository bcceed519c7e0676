"""Small values on the wire: index sets, times, names."""

from datetime import UTC, datetime, timedelta, timezone

import pytest
from hypothesis import given
from hypothesis import strategies as st

from schemas import indexes, kinds, names, times


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("0-3,7", {0, 1, 2, 3, 7}),
        ("", set()),
        (None, set()),
        ("x,2", {2}),
        ("5-3", set()),
        ("0-99999999", set()),
        (3, set()),
    ],
)
def test_indexes_are_read_tolerantly(text, found):
    assert indexes.parse(text) == found


@given(st.sets(st.integers(0, 300)))
def test_indexes_are_read_as_written(found):
    assert indexes.parse(indexes.written(found)) == found


def test_indexes_do_not_grow_with_pods():
    assert indexes.written(range(2000)) == "0-1999"


@pytest.mark.parametrize(
    ("text", "moment"),
    [
        ("2026-01-01T12:00:00Z", datetime(2026, 1, 1, 12, tzinfo=UTC)),
        ("2026-01-01T12:00:00.5+01:00", datetime(2026, 1, 1, 12, 0, 0, 500000, timezone(timedelta(hours=1)))),
        ("nonsense", None),
        (None, None),
        (5, None),
    ],
)
def test_times(text, moment):
    assert times.parse(text) == moment


def test_times_are_written_in_whole_seconds_of_utc():
    moment = datetime(2026, 1, 1, 12, 0, 0, 999999, timezone(timedelta(hours=1)))
    assert times.written(moment) == "2026-01-01T11:00:00Z"


def test_labels_follow_the_kinds_scheme():
    assert names.replica_labels(kinds.PYTORCH_JOB, "j", "Worker", 1) == {
        "training.kubeflow.org/job-name": "j",
        "training.kubeflow.org/operator-name": "pytorchjob-controller",
        "training.kubeflow.org/replica-type": "worker",
        "training.kubeflow.org/replica-index": "1",
    }
    assert names.replica_labels(kinds.TRAINING_JOB, "j", "Worker", 1) == {
        "signalbox.dev/group-name": "signalbox.dev",
        "signalbox.dev/job-name": "j",
        "signalbox.dev/replica-type": "worker",
        "signalbox.dev/replica-index": "1",
    }
    assert names.role_label(kinds.PYTORCH_JOB) == "training.kubeflow.org/job-role"


@pytest.mark.parametrize(
    ("name", "service", "label"),
    [
        ("a", True, True),
        ("7b", False, True),
        ("a-", False, False),
        ("a\n", False, False),
        ("ä", False, False),
        ("a" * 64, False, False),
    ],
)
def test_dns_names(name, service, label):
    assert (names.is_dns_1035_label(name), names.is_dns_1123_label(name)) == (service, label)


@pytest.mark.parametrize(
    ("kind", "replica_type", "name"),
    [
        (kinds.MPI_JOB, "Launcher", "j-launcher"),
        (kinds.MPI_JOB, "launcher", "j-launcher"),
        (kinds.MPI_JOB, "Worker", "j-worker-3"),
        (kinds.TRAINING_JOB, "Launcher", "j-launcher-3"),
        (kinds.TF_JOB, "PS", "j-ps-3"),
    ],
)
def test_child_names(kind, replica_type, name):
    assert names.child(kind, "j", replica_type, 3) == name


def test_kinds_are_rows_with_names_of_their_own():
    assert len({(row.group, row.kind) for row in kinds.KINDS}) == len(kinds.KINDS)
    assert kinds.find("PyTorchJob", "kubeflow.org") is kinds.PYTORCH_JOB
    assert kinds.find("PyTorchJob", "example.com") is None
