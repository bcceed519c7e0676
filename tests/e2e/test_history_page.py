"""The local site's page shows a live job, and the same job once it is gone."""

import json
import urllib.error
import urllib.request

import pytest

from signalbox.local import processes

pytestmark = pytest.mark.cluster


def test_a_live_job_and_a_deleted_one(signalbox, kubectl, namespace, until, job_manifest):
    record = processes.running(signalbox.state_dir, "history")
    address = record.listens[0].rstrip("/")

    def jobs(query=""):
        """None yet while the controller, which makes the database, has only just started."""
        try:
            with urllib.request.urlopen(f"{address}/api/v1/jobs?namespace={namespace}{query}") as answer:
                return json.load(answer)["items"]
        except urllib.error.HTTPError as error:
            return [{"status": error.code}]

    manifest = job_manifest("shown", replicas={"Worker": 2}, never_ends="true")
    kubectl("apply", "-n", namespace, "-f", "-", stdin=manifest)
    until(lambda: [job["status"] for job in jobs()] == ["Running"])
    uid = jobs()[0]["job_id"]
    with urllib.request.urlopen(f"{address}/jobs/{uid}") as answer:
        page = answer.read().decode()
    assert "shown-worker-1" in page
    assert "JobRunning" in page

    kubectl("delete", "-n", namespace, "trainingjob", "shown")
    until(lambda: [job["status"] for job in jobs("&deleted=true")] == ["Stopped"])

    def told():
        with urllib.request.urlopen(f"{address}/api/v1/jobs/{uid}") as answer:
            return json.load(answer)

    until(lambda: {pod["status"] for pod in told()["pods"]} == {"Stopped"})
    assert told()["object"]["metadata"]["name"] == "shown"
