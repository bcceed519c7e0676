"""What is counted, and that no label grows with the jobs."""

from prometheus_client import REGISTRY, generate_latest

from controller import metrics
from controller.progress import Progress
from schemas import kinds

KIND = kinds.PADDLE_JOB


def value(name, **labels):
    return REGISTRY.get_sample_value(name, labels) or 0.0


def running(name):
    return {"metadata": {"name": name}, "status": {"conditions": [{"type": "Running", "status": "True"}]}}


def test_jobs_are_counted_by_state_and_not_by_name():
    metrics.count_jobs([(KIND, [running("very-own-name"), running("b"), {"metadata": {"name": "c"}}])])
    assert value("signalbox_jobs", kind="PaddleJob", state="Running") == 2
    assert value("signalbox_jobs", kind="PaddleJob", state="New") == 1
    assert b"very-own-name" not in generate_latest()
    metrics.count_jobs([(KIND, [])])
    assert REGISTRY.get_sample_value("signalbox_jobs", {"kind": "PaddleJob", "state": "Running"}) is None


def test_progress_is_counted():
    metrics.on_progress(KIND, Progress(("Pending", "Running"), ("OOMKilled", "OOMKilled"), 1.5, 3.0))
    assert value("signalbox_job_transitions_total", kind="PaddleJob", **{"from": "Pending", "to": "Running"}) == 1
    assert value("signalbox_job_restarts_total", kind="PaddleJob", reason="OOMKilled") == 2
    assert value("signalbox_job_first_pod_seconds_sum", kind="PaddleJob") == 1.5
    assert value("signalbox_job_all_pods_seconds_bucket", kind="PaddleJob", le="2.0") == 0
    assert value("signalbox_job_all_pods_seconds_bucket", kind="PaddleJob", le="5.0") == 1
