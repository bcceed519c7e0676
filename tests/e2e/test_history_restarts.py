"""Every restart of a job is a row of the history, once, also of those that its status no longer lists."""

import json

import pytest

from history.reader import Reader

pytestmark = [pytest.mark.cluster, pytest.mark.site]

WORKERS, LIMIT = 12, 25


def test_each_restart_is_a_row(signalbox, kubectl, namespace, until, job_manifest):
    """Twelve at once, twelve ten seconds later, and the last: the status has room for ten."""
    manifest = job_manifest(
        "job",
        replicas={"Worker": WORKERS},
        policy="ExitCode",
        run_policy={"backoffLimit": LIMIT},
        run_seconds="1",
        exit_code="137",
    )
    kubectl("apply", "-n", namespace, "-f", "-", stdin=manifest)

    def status():
        return signalbox.get("tj", "job", namespace).get("status", {})

    until(lambda: status().get("restarts", 0) >= WORKERS, 90)
    signalbox.stop("controller")
    signalbox.start()
    until(lambda: status().get("phase") == "Failed", 120)
    assert (status()["restarts"], len(status()["restartHistory"])) == (LIMIT, 10)

    reader = Reader(signalbox.history_url)
    uid = signalbox.get("tj", "job", namespace)["metadata"]["uid"]
    until(lambda: (reader.by_uid(uid) or {}).get("status") == "Failed", 30)
    rows = reader.restarts(uid)
    assert len(rows) == len({row["restart_id"] for row in rows}) == LIMIT, json.dumps(rows, default=str)
    assert {(row["exit_code"], row["counted"], row["replica_type"]) for row in rows} == {(137, 1, "Worker")}
    reader.close()
