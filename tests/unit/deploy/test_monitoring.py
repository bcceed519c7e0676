"""Alert rules and the dashboard, held against the metrics that the code has, with their labels."""

import ast
import json
import re
import subprocess
from functools import cache
from pathlib import Path

import pytest
import yaml

from signalbox.local.paths import deploy_dir

ROOT = Path(__file__).parents[3]
PACKAGES = ("certs", "webhook", "controller", "history", "kube", "signalbox")
NOT_OURS = {"up": {"job", "instance", "pod"}}
EVERYWHERE = {"le", "pod", "job", "instance", "namespace"}
FUNCTIONS = {
    "absent", "histogram_quantile", "increase", "max", "min", "min_over_time", "rate", "sum", "time", "vector",
    "by", "for", "or", "and",
}  # fmt: skip


@cache
def metrics():
    """name → labels, of every metric that is made anywhere, read from the source: some are made in workers only."""
    found = {name: set(labels) for name, labels in NOT_OURS.items()}
    for package in PACKAGES:
        for file in (ROOT / package).rglob("*.py"):
            for node in ast.walk(ast.parse(file.read_text())):
                if is_metric(node):
                    found |= series(node)
    return found


def is_metric(node):
    """A call like Counter("name", ...); collections.Counter takes no text."""
    if not isinstance(node, ast.Call) or getattr(node.func, "id", "") not in {"Counter", "Gauge", "Histogram"}:
        return False
    return bool(node.args) and isinstance(node.args[0], ast.Constant)


def series(call):
    kind, name = call.func.id, ast.literal_eval(call.args[0])
    listed = [argument for argument in call.args[2:] if isinstance(argument, ast.List)]
    labels = {label for argument in listed for label in ast.literal_eval(argument)}
    endings = {
        "Counter": (name.removesuffix("_total") + "_total",),
        "Gauge": (name,),
        "Histogram": (f"{name}_bucket", f"{name}_sum", f"{name}_count"),
    }
    return dict.fromkeys(endings[kind], labels)


def rules():
    document = yaml.safe_load((deploy_dir() / "overlays" / "monitoring" / "rules.yaml").read_text())
    return [rule for group in document["spec"]["groups"] for rule in group["rules"]]


def dashboard():
    return json.loads((deploy_dir() / "grafana" / "signalbox.json").read_text())


def expressions():
    yield from ((rule["alert"], rule["expr"]) for rule in rules())
    for panel in dashboard()["panels"]:
        yield from ((panel["title"], target["expr"]) for target in panel["targets"])


@pytest.mark.parametrize(("title", "expression"), list(expressions()))
def test_expressions_name_metrics_and_labels_that_exist(title, expression):
    known = metrics()
    bare = re.sub(r'"[^"]*"', "", expression)
    grouped = {label for labels in re.findall(r"by \(([^)]*)\)", bare) for label in labels.split(", ")}
    matched = set(re.findall(r"(\w+)\s*(?:=~|!=|=)(?!=)", " ".join(re.findall(r"\{([^}]*)\}", bare))))
    plain = re.sub(r"by \([^)]*\)|\{[^}]*\}|\[\w+\]", " ", bare)
    names = set(re.findall(r"\b[a-z_]+\b", plain)) - FUNCTIONS
    assert names, expression
    assert names <= known.keys()
    allowed = set.union(*(known[name] for name in names)) | EVERYWHERE
    assert grouped | matched <= allowed
    assert bare.count("(") == bare.count(")")


def test_the_check_would_notice_a_metric_that_is_gone():
    assert "signalbox_no_such_metric" not in metrics()
    assert metrics()["signalbox_reconciles_total"] == {"kind", "outcome"}


def test_every_alert_says_how_bad_it_is_and_what_it_means():
    for rule in rules():
        assert rule["labels"]["severity"] in {"critical", "warning", "info"}
        assert rule["annotations"]["summary"].endswith((".", "?"))
    assert len({rule["alert"] for rule in rules()}) == len(rules())


def test_what_is_told_of_certificates_is_watched_and_drawn():
    """An expired certificate stops every job of a cluster."""
    alerts = " ".join(rule["expr"] for rule in rules())
    certificates = {name for name in metrics() if "certificate" in name or "ca_bundle" in name}
    assert {name for name in certificates if name not in alerts} == {"signalbox_ca_bundle_repairs_total"}
    drawn = " ".join(target["expr"] for panel in dashboard()["panels"] for target in panel["targets"])
    assert "certificate_expiry_timestamp_seconds" in drawn


def test_panels_do_not_overlap():
    places = [tuple(panel["gridPos"][side] for side in "xy") for panel in dashboard()["panels"]]
    assert len(set(places)) == len(places)


def test_the_monitor_selects_ports_that_exist():
    rendered = subprocess.check_output(["kubectl", "kustomize", str(deploy_dir() / "overlays/monitoring")], text=True)
    [monitor] = [each for each in yaml.safe_load_all(rendered) if each["kind"] == "ServiceMonitor"]
    base = subprocess.check_output(["kubectl", "kustomize", str(deploy_dir() / "base")], text=True)
    services = [each for each in yaml.safe_load_all(base) if each["kind"] == "Service"]
    wanted = monitor["spec"]["selector"]["matchLabels"].items()
    ports = [
        port["name"]
        for each in services
        if wanted <= each["metadata"]["labels"].items()
        for port in each["spec"]["ports"]
    ]
    assert {endpoint["port"] for endpoint in monitor["spec"]["endpoints"]} <= set(ports)
    assert monitor["metadata"]["namespace"] == services[0]["metadata"]["namespace"]
