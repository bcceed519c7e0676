import pytest

from certs.repairs import LONGEST_PAUSE, MEMORY, is_contested, pause

NOW = 100_000.0


@pytest.mark.parametrize(
    ("ages", "seconds"),
    [
        ([], 0),
        ([0], 0),
        ([1, 0], 0),
        ([2, 1, 0], 5),
        ([2, 1, 3], 2),
        ([9, 8, 7], 0),
        ([3, 2, 1, 0], 10),
        ([0] * 9, LONGEST_PAUSE),
        ([0] * 5000, LONGEST_PAUSE),
        ([MEMORY, MEMORY, 1, 0], 0),
    ],
)
def test_pause(ages, seconds):
    """Nothing to wait for until the third; a fight gets ever slower."""
    assert pause([NOW - age for age in ages], NOW) == seconds


@pytest.mark.parametrize(
    ("ages", "contested"), [([], False), ([5, 1], False), ([5, 1, 0], True), ([MEMORY, 1, 0], False)]
)
def test_contested(ages, contested):
    assert is_contested([NOW - age for age in ages], NOW) is contested


def test_an_opponent_who_always_answers_costs_few_writes():
    times, now = [], 0.0
    while now < 24 * 3600:
        now += pause(times, now)
        times.append(now)
        now += 0.1
    assert len(times) < 24 * 3600 / LONGEST_PAUSE + 20
