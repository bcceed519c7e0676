"""Sums over jobs, on every database (see test_store.py)."""

import pytest

from history import details, statistics
from history.queries import Wanted
from history.records import job_record, pod_record


@pytest.fixture
def many(store, make_job, make_pod, moment):
    """Four jobs of two owners; ann's first has a pod of 1 GPU that ran 45 s, bob's a failed one and one that runs."""
    annotations = {"signalbox.dev/owner": "ann"}
    jobs = [make_job(uid, 2, ("Running", 10 * at), annotations=annotations) for at, uid in enumerate("abc")]
    store.save([job_record(one) for one in jobs])
    store.save([job_record(make_job(uid, 3, ("Succeeded", 100), annotations=annotations)) for uid in "ab"])
    failed = make_job("d", 3, ("Failed", 60), annotations={"signalbox.dev/owner": "bob"})
    failed["status"]["restartHistory"] = [
        {"time": "2026-11-30T12:00:05Z", "uid": uid, "reason": "OOMKilled", "exitCode": 137} for uid in ("x", "y")
    ]
    store.save([job_record(failed), *details.conditions(failed), *details.restarts(failed)])
    store.save([pod_record(make_pod("p", 1, "Succeeded", code=0), "a", "Worker")])
    store.save([pod_record(make_pod("q", 1, "Failed", code=1, ended=15), "d", "Worker")])
    store.save([pod_record(make_pod("r", 1, "Running"), "d", "Worker")])
    return store


def test_by_owner(many, moment):
    ann, bob = statistics.by(many, "owner", Wanted(), moment(3605))

    assert (ann["value"], ann["jobs"], ann["outcomes"]) == ("ann", 3, {"Running": 1, "Succeeded": 2})
    assert ann["gpu_hours"] == pytest.approx(45 / 3600, abs=0.001)
    assert bob["gpu_hours"] == pytest.approx((10 + 3600) / 3600, abs=0.001), "a pod that runs counts until now"
    assert ann["queue_seconds"] == statistics.Times(10, 20, 20)
    assert ann["run_seconds"] == statistics.Times(90, 100, 100)
    assert (bob["queue_seconds"], bob["run_seconds"]) == (None, None)


@pytest.mark.parametrize("group", statistics.GROUPS)
def test_by_anything(many, moment, group):
    assert sum(row["jobs"] for row in statistics.by(many, group, Wanted(), moment(0))) == 4
    assert statistics.by(many, group, Wanted(namespace="none"), moment(0)) == []


def test_days_and_reasons(many, moment):
    assert statistics.per_day(many, moment(0)) == [
        {"day": "2026-11-30", "status": "Failed", "jobs": 1},
        {"day": "2026-11-30", "status": "Succeeded", "jobs": 2},
    ]
    assert statistics.failures(many, moment(0)) == [{"reason": "JobFailed", "count": 1}]
    assert statistics.restarts(many, moment(0)) == [{"reason": "OOMKilled", "exit_code": 137, "count": 2}]
    assert statistics.restarts(many, moment(60)) == []


@pytest.mark.parametrize(
    ("resources", "gpus"),
    [
        ('{"requests":{"nvidia.com/gpu":"2","cpu":4}}', 2),
        ('{"limits":{"amd.com/gpu":1,"nvidia.com/mig-1g.5gb":1}}', 2),
        ('{"requests":{"nvidia.com/gpu":"many"}}', 0),
        ("{}", 0),
        ("[]", 0),
        ('{"requests":[1]}', 0),
        ("no JSON", 0),
    ],
)
def test_gpus(resources, gpus):
    assert statistics.gpus(resources) == gpus
