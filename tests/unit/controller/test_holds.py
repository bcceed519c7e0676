"""How long creates wait after obstacles in a row."""

from datetime import UTC, datetime, timedelta

import pytest

from controller.apply import LEAVING
from controller.clock import Clock
from controller.holds import FIRST_LOOK, FIRST_RETRY, LONGEST_RETRY, Holds
from controller.keys import Key
from controller.plan import Obstacle
from schemas import kinds

KEY = Key(kinds.TRAINING_JOB, "ns", "job")
QUOTA = Obstacle("QuotaExceeded", "exceeded quota")
START = datetime(2026, 1, 1, tzinfo=UTC)


class Time:
    def __init__(self):
        self.seconds = 0.0

    def clock(self):
        return Clock(lambda: START + timedelta(seconds=self.seconds), lambda: self.seconds)


def blocked(since):
    row = {"type": "Blocked", "status": "True", "lastTransitionTime": since}
    return {"status": {"conditions": [{"type": "Running", "status": "True"}, row]}}


def test_each_obstacle_waits_twice_as_long_up_to_a_minute():
    holds = Holds(Time().clock())
    waits = [holds.met(KEY, {}, QUOTA) for _ in range(6)]
    assert waits == [FIRST_RETRY, 2 * FIRST_RETRY, 4 * FIRST_RETRY, 8 * FIRST_RETRY, LONGEST_RETRY, LONGEST_RETRY]
    holds.forget(KEY)
    assert (holds.left(KEY), holds.met(KEY, {}, QUOTA)) == (0.0, FIRST_RETRY)


def test_the_wait_passes():
    holds = Holds((time := Time()).clock())
    holds.met(KEY, {}, QUOTA)
    time.seconds = FIRST_RETRY - 1
    assert holds.left(KEY) == 1.0
    time.seconds = FIRST_RETRY + 1
    assert holds.left(KEY) == 0.0


def test_a_name_on_its_way_out_is_looked_at_soon():
    assert Holds(Time().clock()).met(KEY, {}, LEAVING) == FIRST_LOOK


@pytest.mark.parametrize(
    ("since", "wait"),
    [
        ("2025-12-31T23:59:30Z", 30.0),
        ("2025-12-31T00:00:00Z", LONGEST_RETRY),
        ("soon", FIRST_RETRY),
        (None, FIRST_RETRY),
    ],
)
def test_a_job_that_has_long_been_blocked_waits_long_at_once(since, wait):
    assert Holds(Time().clock()).met(KEY, blocked(since), QUOTA) == wait
