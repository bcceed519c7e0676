"""Every restart is told to the history when it is counted: the status lists the last few only."""

import pytest
from controller_apiserver import Cluster

from history.reader import Reader
from history.writer import Writer
from schemas import kinds

RESTARTS = 25


@pytest.fixture
def url(tmp_path):
    return f"sqlite:///{tmp_path}/history.db"


class Recorded:
    """A cluster of one job whose controllers write to a real history, one after the other."""

    def __init__(self, url, workers):
        container = {"name": "main", "image": "i"}
        entry = {"replicas": workers, "restartPolicy": "OnFailure", "template": {"spec": {"containers": [container]}}}
        spec = {"replicaSpecs": {"Worker": entry}, "runPolicy": {"backoffLimit": 1000}}
        self.url = url
        self.cluster = Cluster(kinds.TRAINING_JOB, spec)
        self._record()

    def _record(self):
        self.writer = Writer(self.url, interval=0.02)
        self.cluster.loop.recorder = self.writer
        self.cluster.loop.act()

    def another_controller(self):
        self.writer.close()
        self.cluster.start()
        self._record()

    def fail_all(self):
        """Every pod fails, and is seen to before any is replaced."""
        for name in [*self.cluster.server.pods]:
            self.cluster.server.set_status(name, phase="Failed")
        self.settle()

    def settle(self):
        self.cluster.settle()
        self.cluster.server.move_clock(600)
        self.cluster.settle()

    def rows(self):
        self.writer.close()
        reader = Reader(self.url)
        found = [(row["pod_name"], row["restart_id"]) for row in reader.restarts("job-uid")]
        reader.close()
        return found


@pytest.mark.parametrize("after", [None, 1, 12, 24])
def test_one_after_the_other(url, after):
    """Also when another controller takes over in the middle."""
    made = Recorded(url, 1)
    made.settle()
    for number in range(1, RESTARTS + 1):
        made.fail_all()
        if number == after:
            made.another_controller()
    assert made.cluster.job["status"]["restarts"] == RESTARTS
    assert len(set(made.rows())) == RESTARTS


@pytest.mark.parametrize("restarted", [False, True])
def test_more_at_once_than_the_status_lists(url, restarted):
    made = Recorded(url, RESTARTS)
    made.settle()
    made.fail_all()
    if restarted:
        made.another_controller()
        made.settle()
    assert len(made.cluster.job["status"]["restartHistory"]) == 10
    rows = made.rows()
    assert len(rows) == RESTARTS
    assert {name for name, _ in rows} == {f"job-worker-{n}" for n in range(RESTARTS)}
