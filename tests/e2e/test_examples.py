"""Every manifest that people are shown is admitted without a warning, and runs to its end."""

from pathlib import Path

import pytest
import yaml

from signalbox.local.paths import deploy_dir

pytestmark = pytest.mark.cluster

EXAMPLES = sorted((deploy_dir() / "examples").glob("*.yaml"))
GOLDEN = sorted((Path(__file__).parents[1] / "golden" / "kubeflow").glob("*.yaml"))
JOBS = "trainingjobs,pytorchjobs,tfjobs,xgboostjobs,paddlejobs,jaxjobs,mpijobs"


def test_all_examples_succeed(signalbox, kubectl, namespace, until):
    for path in EXAMPLES:
        assert "Warning" not in kubectl("apply", "-n", namespace, "-f", str(path)).stderr, path

    def states():
        return {job["metadata"]["name"]: job.get("status", {}).get("phase") for job in signalbox.list(JOBS, namespace)}

    until(lambda: set(states().values()) == {"Succeeded"} or None, 90)
    assert len(states()) >= len(EXAMPLES)
    for claim in signalbox.list("pvc", namespace):  # nothing on the local cluster would take its finalizer off
        name = claim["metadata"]["name"]
        kubectl("patch", "pvc", name, "-n", namespace, "--type=merge", '-p={"metadata":{"finalizers":null}}')


@pytest.mark.parametrize("path", GOLDEN, ids=lambda path: path.stem)
def test_recorded_manifests_are_admitted(signalbox, kubectl, namespace, path):
    manifest = yaml.safe_load(path.read_text())["manifest"]
    manifest["metadata"].pop("namespace", None)
    kubectl("apply", "-n", namespace, "--dry-run=server", "-f", "-", stdin=yaml.safe_dump(manifest))


@pytest.mark.parametrize("plural", JOBS.split(","))
def test_every_kind_explains_itself(signalbox, kubectl, plural):
    assert "FIELDS:" in kubectl("explain", f"{plural}.spec").stdout
