"""Counts alone wait once, for the interval; anything else is written at once."""

from controller.counts import Counts
from controller.keys import Key
from schemas import kinds

KEY = Key(kinds.TRAINING_JOB, "ns", "job")


def status(phase="Running", active=1):
    return {"phase": phase, "replicaStatuses": {"Worker": {"active": active}}}


def test_counts_wait_once():
    now = [0.0]
    counts = Counts(1.0, lambda: now[0])
    assert counts.left(KEY, status(), status(active=2)) == 1.0
    now[0] = 0.75
    assert counts.left(KEY, status(), status(active=3)) == 0.25
    now[0] = 1.5
    assert counts.left(KEY, status(), status(active=4)) == 0.0
    assert counts.left(KEY, status(active=4), status()) == 1.0


def test_anything_else_is_written_at_once_and_ends_the_wait():
    counts = Counts(1.0, lambda: 0.0)
    counts.left(KEY, status(), status(active=2))
    assert counts.left(KEY, status(), status("Succeeded")) == 0.0
    assert counts.left(KEY, status(), status(active=2)) == 1.0


def test_without_an_interval_nothing_waits():
    assert Counts(0.0, lambda: 0.0).left(KEY, status(), status(active=2)) == 0.0
