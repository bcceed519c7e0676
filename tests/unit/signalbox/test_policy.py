"""``signalbox policy``: the webhook's verdicts without a cluster."""

import json
from datetime import UTC, datetime

import pytest
import yaml
from click.testing import CliRunner

from policy.model import PolicySet
from schemas import kinds
from signalbox.local.paths import deploy_dir
from signalbox.policy_cases import Circumstances, as_json, verdict_of
from signalbox.policy_files import read_policies
from signalbox.run_policy import policy
from webhook.app import create_app
from webhook.policies import Bound

EXAMPLES = deploy_dir() / "examples"
POLICIES = EXAMPLES / "policies"
JOBS = sorted([*EXAMPLES.glob("*.yaml"), *(EXAMPLES / "policy-tests" / "jobs").glob("*.yaml")])
VISION = ("-n", "vision", "--namespace-label", "signalbox.example/team=vision")
NOW = ("--now", "2027-01-01T00:00:00Z")


def run(*arguments):
    return CliRunner().invoke(policy, list(map(str, arguments)))


def test_check_tells_who_refuses_what_and_where():
    done = run("check", "-f", POLICIES, "-r", EXAMPLES / "policy-tests" / "jobs" / "72-gpus.yaml", *VISION, *NOW)
    assert done.exit_code == 1
    [line] = [line for line in done.output.splitlines() if line.startswith("  refused")]
    assert "72-gpus.yaml:6: spec.replicaSpecs: must ask for at most 64 nvidia.com/gpu in all pods together" in line
    assert "  default  spec.runPolicy.backoffLimit is 3 (policy team-defaults)" in done.output
    assert "  default  spec.runPolicy.activeDeadlineSeconds would be 86400 (policy audit-only)" in done.output
    assert "  audited  metadata.labels.team: must be set, says limit requiredLabels of policy audit-only" in done.output
    assert done.output.endswith("1 job of 1 refused under 6 policies\n")


def test_check_as_json_without_a_refusal():
    done = run("check", "-f", POLICIES, "-r", EXAMPLES / "trainingjob-minimal.yaml", "-o", "json")
    [found] = json.loads(done.output)
    assert (done.exit_code, found["verdict"], found["policies"], found["name"]) == (0, "allowed", [], "minimal")


@pytest.mark.parametrize(
    ("spec", "words"),
    [
        ({"limits": {"replicas": {"min": 2, "max": 1}}}, "p.yaml:1:"),
        (
            {"rules": [{"name": "r", "expression": "1 +"}]},
            "spec.rules[0].expression: must be valid CEL: line 1, column 4",
        ),
    ],
)
def test_an_invalid_policy_is_named_with_its_line(tmp_path, spec, words):
    file = tmp_path / "p.yaml"
    head = {"apiVersion": "signalbox.dev/v1", "kind": "TrainingPolicy", "metadata": {"name": "p"}}
    file.write_text(json.dumps({**head, "spec": spec}))
    done = run("check", "-f", file, "-r", EXAMPLES / "trainingjob-minimal.yaml")
    assert done.exit_code == 2
    assert words in done.output


def test_test_files_pass_and_fail(tmp_path):
    file = EXAMPLES / "policy-tests" / "gpu-cap.yaml"
    good = run("test", file)
    assert (good.exit_code, good.output.splitlines()[-1]) == (0, "3 cases, 0 failed")
    document = yaml.safe_load(file.read_text())
    document["given"]["policies"] = [str(POLICIES)]
    document["cases"] = [
        {**case, "resource": str((file.parent / case["resource"]).resolve())} for case in document["cases"]
    ]
    document["cases"][0]["expect"] = {"verdict": "allowed", "violations": [], "defaults": {"spec.x": 1}}
    changed = tmp_path / "t.yaml"
    changed.write_text(yaml.safe_dump(document))
    bad = run("test", changed, "-o", "json")
    assert bad.exit_code == 1
    differences = json.loads(bad.output)[0]["differences"]
    assert [text.partition(":")[0] for text in differences] == ["verdict", "violations", "defaults"]


def test_a_test_file_with_a_typing_error(tmp_path):
    file = tmp_path / "t.yaml"
    file.write_text("given: {policies: [x]}\ncases: [{name: a, resource: b, expect: {verdcit: refused}}]\n")
    done = run("test", file)
    assert done.exit_code == 2
    assert "cases[0].expect.verdcit: must be a known field: did you mean verdict?" in done.output


def test_bench_measures_with_and_without():
    done = run("bench", "-f", POLICIES, "-r", EXAMPLES / "trainingjob-minimal.yaml", "--seconds", "0.2")
    assert done.exit_code == 0
    assert [line.partition(":")[0] for line in done.output.splitlines()] == ["without policies", "with 6 policies"]


def answers(policies, kind, job, around):
    """What the webhook answers over HTTP on both paths, and what it filled in."""
    labels = around.namespace_labels[around.namespace]
    book = Bound(policies, lambda: around.now, labels)
    client = create_app(book=book).test_client()
    version = {"group": kind.group, "version": kind.version, "kind": kind.kind}
    request = {"uid": "u", "operation": "CREATE", "kind": version, "object": job, "namespace": around.namespace}
    review = {"apiVersion": "admission.k8s.io/v1", "kind": "AdmissionReview", "request": request}
    return [client.post(path, json=review).json["response"] for path in ("/mutate", "/validate")]


@pytest.mark.parametrize("path", JOBS, ids=lambda path: path.name)
def test_offline_and_webhook_say_the_same(path):
    policies = read_policies([str(POLICIES)])
    labels = {"signalbox.example/team": "vision", "signalbox.example/queue": "vision"}
    around = Circumstances(datetime(2027, 1, 1, tzinfo=UTC), "vision", {"vision": labels})
    for job in filter(None, yaml.safe_load_all(path.read_text())):
        job.get("metadata", {}).pop("namespace", None)
        kind = kinds.find(job["kind"], job["apiVersion"].rpartition("/")[0])
        if kind is None:
            continue
        offline = as_json(verdict_of(policies, kind, job, around))
        mutate, _ = answers(policies, kind, job, around)
        assert mutate["allowed"] is (offline["verdict"] != "refused")
        causes = mutate.get("status", {}).get("details", {}).get("causes", [])
        assert [cause["field"] for cause in causes] == [error["path"] for error in offline["errors"]]
        assert mutate.get("warnings", []) == offline["warnings"]
        told = json.loads(mutate["auditAnnotations"].get("policy-violations", "[]"))
        assert told == offline["violations"]
        assert offline["policies"]


def test_no_policies_say_nothing():
    around = Circumstances(datetime.now(UTC))
    job = yaml.safe_load((EXAMPLES / "trainingjob-minimal.yaml").read_text())
    assert as_json(verdict_of(PolicySet(), kinds.TRAINING_JOB, job, around))["policies"] == []
