"""The page of the metrics, and the labels that all processes use."""

from certs import metrics as certificates
from controller import metrics
from history import metrics as history
from signalbox.measures import found, labels, metrics_page
from webhook import app

BOUNDED = {
    "kind", "state", "outcome", "verb", "code", "from", "to", "reason", "resource", "path", "verdict", "configuration",
    "certificate", "group", "policy", "route", "status", "table",
}  # fmt: skip


def test_every_label_has_few_values():
    used = {
        label
        for module in (metrics, certificates, app, history)
        for metric in found(module)
        for label in labels(metric)
    }
    assert used == BOUNDED


def test_the_page_tells_every_metric_under_its_sample_name():
    page = metrics_page()
    assert "| `signalbox_job_first_pod_seconds` | histogram | `kind` |" in page
    assert "| `signalbox_job_transitions_total` | counter | `kind`, `from`, `to` |" in page
    assert "| `signalbox_history_requests_total` | counter | `route`, `status` |" in page
    assert "| `signalbox_review_seconds` | histogram | `path` |" in page
