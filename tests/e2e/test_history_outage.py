"""The database is killed and comes back while jobs run (argoproj/argo-workflows#14112, #3880)."""

import importlib.util
import json
import sys
from pathlib import Path

import pytest

from history.queries import Wanted
from history.reader import Reader

pytestmark = [pytest.mark.cluster, pytest.mark.site]

JOBS = 50


@pytest.fixture
def postgres():
    """A real PostgreSQL, as the tests of the backends start it."""
    path = Path(__file__).parents[1] / "integration" / "test_history_backends.py"
    spec = importlib.util.spec_from_file_location("history_backends", path)
    backends = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = backends
    spec.loader.exec_module(backends)
    server = backends.PostgreSQL()
    try:
        server.start()
        yield server
    finally:
        server.stop(server.crash)  # in order it would wait for the controller to leave
        server.remove()


def test_no_training_stops_and_no_row_is_lost(signalbox, postgres, kubectl, namespace, until, job_manifest):
    url = postgres.fresh()
    signalbox.control_with(f"--history-url={url}")
    jobs = [json.loads(job_manifest(f"job-{n}", replicas={"Worker": 1}, run_seconds="15")) for n in range(JOBS)]
    kubectl("apply", "-n", namespace, "-f", "-", stdin=json.dumps({"apiVersion": "v1", "kind": "List", "items": jobs}))

    def states():
        return [job.get("status", {}).get("phase") for job in signalbox.list("trainingjobs", namespace)]

    until(lambda: states().count("Running") >= 5, 90)
    postgres.stop(postgres.crash)
    until(lambda: states() == ["Succeeded"] * JOBS, 180)

    postgres.start()
    reader = Reader(url)
    ours = Wanted(namespace=namespace, limit=10 * JOBS)  # what other tests left behind is told to a new database too
    until(lambda: [row["status"] for row in reader.jobs(ours)] == ["Succeeded"] * JOBS, 90)
    assert len({row["job_id"] for row in reader.jobs(ours)}) == JOBS
    pods = [len(reader.pods(row["job_id"])) for row in reader.jobs(ours)]
    assert pods == [1] * JOBS
    assert postgres.execute(postgres.connections) <= 10  # the writer's pool and the reader's
    reader.close()
