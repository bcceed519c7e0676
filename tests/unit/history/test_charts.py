"""Geometry of the drawings."""

from datetime import date, timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from history import timeline
from history.web import charts


def pod(uid="p", status="Running", created=None, started=None, finished=None):
    times = {"gmt_created": created, "gmt_started": started, "gmt_finished": finished}
    return {"pod_id": uid, "name": f"train-{uid}", "status": status, "replica_type": "Worker", **times}


@pytest.mark.parametrize(
    ("seconds", "said"), [(0, "0s"), (59, "59s"), (61, "1m 1s"), (3600, "1h"), (90_061, "1d 1h"), (-5, "0s")]
)
def test_span(seconds, said):
    assert charts.span(timedelta(seconds=seconds)) == said


def test_a_pod_waits_then_runs_until_it_is_replaced(moment):
    restart = {"restart_id": "p", "gmt_restarted": moment(50), "reason": "OOMKilled", "exit_code": 137}
    bars = timeline.bars([pod(created=moment(0), started=moment(10))], [restart])
    (strip,) = charts.timeline(bars, moment(0), moment(100)).strips

    assert (strip.x, strip.mark) == (charts.LABELS, "OOMKilled 137")
    assert (strip.start - strip.x) / (strip.end - strip.x) == pytest.approx(0.2, abs=0.01)
    assert "ran 40s, replaced: OOMKilled 137" in strip.title


def test_a_page_draws_only_so_many(moment):
    bars = timeline.bars([pod(str(n), created=moment(0)) for n in range(charts.MOST_BARS + 7)], [])
    drawn = charts.timeline(bars, moment(0), moment(60))

    assert (len(drawn.strips), drawn.left_out) == (charts.MOST_BARS, 7)


times = st.none() | st.integers(-(10**6), 10**6)


@given(rows=st.lists(st.tuples(times, times, times), max_size=5))
def test_any_times_are_drawn_inside(rows):
    """Clocks of nodes differ: a pod may end before it starts."""
    from datetime import datetime

    start = datetime(2026, 11, 30)  # noqa: DTZ001 (the history's times are naive UTC)

    def at(seconds):
        return None if seconds is None else start + timedelta(seconds=seconds)

    job = {"gmt_created": start, "gmt_finished": None}
    bars = timeline.bars([pod(str(n), "Failed", *map(at, row)) for n, row in enumerate(rows)], [])
    first, last = timeline.span(job, bars, start + timedelta(seconds=60))
    for strip in charts.timeline(bars, first, last).strips:
        assert charts.LABELS - 0.1 <= strip.x <= strip.start
        assert strip.end <= charts.WIDTH - charts.RIGHT + 0.1
    for bar in bars:
        assert len(timeline.drawn(bar, first, last, 40)) == 40


def test_days_are_stacked_to_the_height():
    rows = [
        {"day": "2026-11-30", "status": "Failed", "jobs": 1},
        {"day": "2026-11-30", "status": "Succeeded", "jobs": 3},
    ]
    columns = charts.outcomes(rows, date(2026, 11, 29), 2)
    quiet, busy = columns.columns

    assert (quiet.blocks, quiet.title) == ((), "2026-11-29: nothing ended")
    assert sum(block.height for block in busy.blocks) == pytest.approx(charts.CHART_HEIGHT - 10, abs=0.2)
    assert (busy.title, columns.most) == ("2026-11-30: 3 succeeded, 1 failed", 4)
