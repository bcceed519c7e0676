"""How many rows there are, on /metrics."""

from prometheus_client import REGISTRY

from history.api.counted import COUNT_EVERY, Counted
from history.metrics import STORED
from history.reader import Reader


def stored(table):
    return REGISTRY.get_sample_value("signalbox_history_stored_rows", {"table": table})


def test_rows_are_counted_from_time_to_time(store, job):
    now = [0.0]
    counted = Counted(store, lambda: now[0])
    store.save([job("a"), job("b")])
    counted.refresh()
    assert (stored("job_info"), stored("admission_info")) == (2, 0)
    store.save([job("c")])
    now[0] = COUNT_EVERY - 1
    counted.refresh()
    assert stored("job_info") == 2
    now[0] = COUNT_EVERY
    counted.refresh()
    assert stored("job_info") == 3


def test_a_database_that_is_down_leaves_them_as_they_were(tmp_path):
    STORED.labels("job_info").set(7)
    reader = Reader(f"sqlite:///{tmp_path}/none.db")
    Counted(reader).refresh()
    reader.close()
    assert stored("job_info") == 7
