import json

import pytest
from click.testing import CliRunner

from signalbox.local.paths import deploy_dir
from signalbox.run_explain import explain

JOB = """\
apiVersion: kubeflow.org/v1
kind: PyTorchJob
metadata: {name: job}
spec:
  runPolicy: {ttlSecondsAfterFinished: 60, cleanPodPolicy: ""}
  backoffLimit: 3
  pytorchReplicaSpecs:
    master:
      template: {spec: {restartPolicy: Always, containers: [{name: pytorch, image: img}]}}
    Worker:
      replicas: 2
      restartPolicy: ExitCode
      template:
        spec:
          containers:
            - name: own
              image: img
              ports: [{name: x, containerPort: 1}, {name: pytorchjob-port, containerPort: 7}]
"""


@pytest.fixture
def run():
    def invoke(text, *arguments):
        result = CliRunner().invoke(explain, ["-f", "-", *arguments], input=text)
        assert result.exception is None or isinstance(result.exception, SystemExit), result.exception
        return result.exit_code, result.stdout, result.stderr

    return invoke


@pytest.fixture
def fields(run):
    (job,) = json.loads(run(JOB, "-o", "json")[1])
    return {item.pop("path"): item for item in job["fields"]}


MASTER, WORKER = "spec.pytorchReplicaSpecs.Master", "spec.pytorchReplicaSpecs.Worker"


@pytest.mark.parametrize(
    ("path", "value", "shown", "source", "note"),
    [
        ("spec.runPolicy.ttlSecondsAfterFinished", 60, "60", "you", ""),
        ("spec.runPolicy.cleanPodPolicy", "Running", "Running", "built in", ""),
        ("spec.runPolicy.activeDeadlineSeconds", None, "no limit", "built in", ""),
        ("spec.runPolicy.backoffLimit", None, "no limit", "built in", ""),
        ("spec.runPolicy.suspend", None, "false", "built in", ""),
        ("spec.runPolicy.managedBy", None, "Signalbox", "built in", ""),
        ("spec.runPolicy.schedulingPolicy.minAvailable", None, "all pods", "built in", "only with a gang scheduler"),
        ("spec.successPolicy", None, "decided by Master 0", "built in", ""),
        ("spec.backoffLimit", 3, "3", "you", "has no effect: use spec.runPolicy.backoffLimit"),
        (MASTER, "Master", "leads: its success is the job's", "built in", ""),
        (f"{MASTER}.replicas", 1, "1", "built in", ""),
        (f"{MASTER}.restartPolicy", "OnFailure", "OnFailure", "built in", ""),
        (
            f"{MASTER}.template.spec.restartPolicy",
            "Always",
            "Always",
            "you",
            "is not used: the replica's OnFailure wins",
        ),
        (f"{MASTER}.template.spec.containers[0].name", "pytorch", "pytorch", "you", "the main container"),
        (f"{MASTER}.template.spec.containers[0].ports[0]", 23456, "pytorchjob-port/23456", "built in", ""),
        (WORKER, "Worker", "follows: its success decides nothing", "built in", ""),
        (f"{WORKER}.replicas", 2, "2", "you", ""),
        (f"{WORKER}.restartPolicy", "ExitCode", "ExitCode", "you", ""),
        (f"{WORKER}.template.spec.containers[0].name", "own", "own", "you", "the main container, being the only one"),
        (f"{WORKER}.template.spec.containers[0].ports[1]", 7, "pytorchjob-port/7", "you", ""),
    ],
)
def test_each_value_comes_with_its_source(fields, path, value, shown, source, note):
    assert fields[path] == {"value": value, "shown": shown, "source": source, "note": note}


def test_the_table_says_the_same(run):
    code, out, err = run(JOB)
    assert out.startswith("PyTorchJob job (<stdin>)\nFIELD ")
    rows = {" ".join(line.split()) for line in out.splitlines()}
    assert {"runPolicy.ttlSecondsAfterFinished 60 you", "runPolicy.activeDeadlineSeconds no limit built in"} <= rows
    assert (code, err) == (0, "")


@pytest.mark.parametrize(
    ("change", "expected"),
    [
        (("runPolicy: {", "runPolicy: {managedBy: kueue.x-k8s.io/multikueue, "), "Signalbox leaves this job alone"),
        (("runPolicy: {", "runPolicy: {schedulingPolicy: {queue: q}, "), "only with a gang scheduler"),
        (("  backoffLimit: 3", "  elasticPolicy: {maxReplicas: 4}"), "elasticPolicy.minReplicas"),
    ],
)
def test_further_words(run, change, expected):
    assert expected in run(JOB.replace(*change))[1]


def test_all_workers_of_a_job_without_a_master_decide(run):
    text = JOB.replace("master:", "x:").replace("replicas: 2", "replicas: 5")
    start, end = text.index("    x:"), text.index("    Worker:")
    out = run(text[:start] + text[end:])[1]
    assert "decided by all of Worker 0, Worker 1, Worker 2 … Worker 4" in out


def test_an_invalid_job_is_not_explained(run):
    code, out, err = run(JOB.replace("replicas: 2", "replicas: -2"))
    assert (code, out) == (1, "")
    assert "must be an integer ≥ 0" in err
    assert err.endswith("<stdin>: PyTorchJob job is invalid and was not explained\n")


def test_what_policies_filled_in_is_theirs():
    examples = deploy_dir() / "examples"
    arguments = [
        "-f",
        str(examples / "trainingjob-minimal.yaml"),
        "--policy",
        str(examples / "policies"),
        "-n",
        "vision",
    ]
    done = CliRunner().invoke(explain, [*arguments, "--namespace-label", "signalbox.example/team=vision", "-o", "json"])
    [found] = json.loads(done.output)
    sources = {field["path"]: (field["value"], field["source"], field["note"]) for field in found["fields"]}
    assert sources["spec.runPolicy.backoffLimit"] == (3, "policy team-defaults", "")
    assert sources["spec.runPolicy.cleanPodPolicy"] == ("Running", "built in", "")
    assert sources["spec.runPolicy.activeDeadlineSeconds"] == (None, "built in", "policy audit-only would set 86400")
    assert sources["spec.replicaSpecs.Worker.template.metadata.labels.cost-center"][1] == "policy team-defaults"
