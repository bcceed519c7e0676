import json
import subprocess
import sys

import pytest
import yaml
from click.testing import CliRunner

from signalbox.findings import Finding
from signalbox.run_check import annotation, check
from signalbox.sources import Position

JOB = """\
apiVersion: kubeflow.org/v1
kind: PyTorchJob
metadata:
  name: {name}
spec:
  pytorchReplicaSpecs:
    worker:
      replicas: {replicas}
      template:
        spec:
          containers:
            - name: pytorch
              image: img:1
              env: [{{name: A, value: {env}}}]
"""
CONFIG_MAP = "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: x}\n"


def job(name="job", replicas="2", env='"1"'):
    return JOB.format(name=name, replicas=replicas, env=env)


@pytest.fixture
def run(tmp_path, monkeypatch):
    """``run(files, *arguments)``: writes the files, checks them; returns the exit code, output and errors."""
    monkeypatch.chdir(tmp_path)

    def invoke(files, *arguments, stdin=None):
        for name, content in files.items():
            (tmp_path / name).parent.mkdir(exist_ok=True)
            (tmp_path / name).write_text(content)
        result = CliRunner().invoke(check, list(arguments), input=stdin)
        assert result.exception is None or isinstance(result.exception, SystemExit), result.exception
        return result.exit_code, result.stdout, result.stderr

    return invoke


def test_a_good_job_is_good(run):
    assert run({"a.yaml": job()}, "-f", "a.yaml") == (0, "no errors in 1 job\n", "")


@pytest.mark.parametrize(
    ("old", "new", "line"),
    [
        ("replicas: 2", 'replicas: "2"', "8:7: error: spec.pytorchReplicaSpecs.Worker.replicas: must be an integer"),
        (
            "replicas: 2",
            "replica: 2",
            "8:7: error: spec.pytorchReplicaSpecs.Worker.replica: must be a known field: did",
        ),
        ('value: "1"', "value: on", "14:31: error: spec.pytorchReplicaSpecs.Worker.template.spec.containers[0].env[0]"),
        ('value: "1"', "value: .inf", "14:38: error: spec.pytorchReplicaSpecs.worker.template.spec.containers[0].env"),
        ("replicas: 2", "replicas: 2\n      replicas: 3", "9:7: error: spec.pytorchReplicaSpecs.worker.replicas: must"),
        ("name: job", "labels: {a: yes}\n  name: job", "4:12: error: metadata.labels.a: must be a string (got true)"),
        ("name: job", "labels: [a]\n  name: job", '4:3: error: metadata.labels: must be an object (got ["a"])'),
        ("name: job", "namespace: ns", "3:1: error: metadata.name: must be set (got nothing)"),
        ("name: job", "name: Job", "4:3: error: metadata.name: must be a DNS-1035 label"),
        ("    worker:", "    wroker:", "7:5: error: spec.pytorchReplicaSpecs.wroker: must be a known replica type"),
        (
            "image: img:1",
            "imagee: img:1",
            "12:15: error: spec.pytorchReplicaSpecs.Worker.template.spec.containers[0].im",
        ),
        (
            "spec:\n  py",
            "spec:\n  backoffLimit: 3\n  py",
            "6:3: warning: spec.backoffLimit: has no effect: use spec.run",
        ),
    ],
)
def test_each_fault_is_told_with_its_line(run, old, new, line):
    assert old in job()
    code, out, _ = run({"a.yaml": job().replace(old, new)}, "-f", "a.yaml")
    assert any(shown.startswith(f"a.yaml:{line}") for shown in out.splitlines()), out
    assert code == (0 if "warning" in line else 1)
    assert "\x1b" not in out


def test_many_documents_lists_and_directories(run):
    listed = yaml.dump({"apiVersion": "v1", "kind": "List", "items": [yaml.safe_load(job("7up")), {"kind": "Service"}]})
    files = {"d/a.yaml": f"{CONFIG_MAP}---\n# nothing\n---\n{job()}", "d/b.yml": listed, "d/c.txt": "a: b: c"}
    code, out, _ = run({**files, "d/e.json": json.dumps([1, "a job it is not"])}, "-f", "d")
    first, last = out.splitlines()
    assert first.startswith("d/b.yml:6:5: error: metadata.name: must be a DNS-1035 label")
    skipped = "skipped 3 documents of kinds that Signalbox does not serve (ConfigMap, Service, without kind)"
    assert last == f"1 error in 2 jobs; {skipped}"
    assert code == 1


def test_standard_input(run):
    code, out, _ = run({}, "-f", "-", stdin=job(replicas="-1"))
    assert out.startswith(
        "<stdin>:8:7: error: spec.pytorchReplicaSpecs.Worker.replicas: must be an integer ≥ 0 (got -1)\n"
    )
    assert code == 1


@pytest.mark.parametrize(
    ("files", "arguments", "said"),
    [
        ({}, (), "Missing option '-f'"),
        ({}, ("-f", "missing.yaml"), "missing.yaml: error: must be readable (No such file or directory)"),
        ({"a.yaml": "a: b: c"}, ("-f", "a.yaml"), "a.yaml:1:5: error: must be YAML"),
        ({"a.yaml": job() + "---\na:\n\tb"}, ("-f", "a.yaml"), "a.yaml:17:1: error: must be YAML (a tab cannot indent"),
        ({"a.yaml": "# nothing\n---\n"}, ("-f", "a.yaml"), "no documents in a.yaml"),
        ({"d/a.txt": ""}, ("-f", "d"), "no documents in d"),
        ({"a.yaml": job()}, ("-f", "a.yaml", "--old", "b.yaml"), "--old: b.yaml: error: must be readable"),
        (
            {"a.yaml": job(), "b.yaml": CONFIG_MAP},
            ("-f", "a.yaml", "--old", "b.yaml"),
            "exactly one job when an update",
        ),
        ({"a.yaml": CONFIG_MAP, "b.yaml": job()}, ("-f", "a.yaml", "--old", "b.yaml"), "-f: must hold exactly one job"),
        (
            {"a.yaml": job(), "b.yaml": job("b")},
            ("-f", "a.yaml", "--old", "b.yaml"),
            "same job, PyTorchJob job (got PyT",
        ),
    ],
)
def test_what_cannot_be_checked_is_a_usage_error(run, files, arguments, said):
    code, out, err = run(files, *arguments)
    assert said in out + err
    assert code == 2


def test_the_rest_is_checked_when_a_file_cannot_be_read(run):
    code, out, _ = run({"a.yaml": "a: ]", "b.yaml": job(replicas="x")}, "-f", "a.yaml", "-f", "b.yaml")
    assert [line.split(":")[0] for line in out.splitlines()[:2]] == ["a.yaml", "b.yaml"]
    assert code == 2


@pytest.mark.parametrize(
    ("new", "code", "said"),
    [
        (job(replicas="3"), 0, "no errors"),
        (job(env='"2"'), 1, "a.yaml:14:31: error: spec.pytorchReplicaSpecs.Worker.template.spec.containers[0].env"),
        (job().replace("worker", "Worker").replace("name: job", "name: job\n  namespace: ns"), 0, "no errors"),
    ],
)
def test_an_update_is_compared_with_the_stored_job(run, new, code, said):
    found, out, err = run({"a.yaml": new, "old.yaml": job()}, "-f", "a.yaml", "--old", "old.yaml")
    assert said in out, out + err
    assert found == code


def test_faults_of_the_stored_job_do_not_count(run):
    code, _, _ = run({"a.yaml": job("7up", "3"), "old.yaml": job("7up")}, "-f", "a.yaml", "--old", "old.yaml")
    assert code == 0


@pytest.mark.parametrize(
    ("api_version", "kind", "path"),
    [
        ("kubeflow.org/v2beta9", "PyTorchJob", "1:1: warning: apiVersion"),
        ("kubeflow.org/v1", "PytorchJob", "2:1: warning: kind"),
    ],
)
def test_a_job_of_another_version_or_spelling_is_not_passed_over_in_silence(run, api_version, kind, path):
    text = job().replace("kubeflow.org/v1", api_version).replace("PyTorchJob", kind)
    code, out, _ = run({"a.yaml": text}, "-f", "a.yaml")
    assert out.startswith(f"a.yaml:{path}: is not checked: Signalbox serves kubeflow.org/v1 PyTorchJob")
    assert code == 0


def test_json_output(run):
    code, out, err = run({"a.yaml": f"---\n{CONFIG_MAP}---\n{job(replicas='-1')}"}, "-f", "a.yaml", "-o", "json")
    (found,) = json.loads(out)
    assert found == {
        "file": "a.yaml",
        "document": 2,
        "line": 13,
        "column": 7,
        "kind": "PyTorchJob",
        "namespace": "",
        "name": "job",
        "severity": "error",
        "path": "spec.pytorchReplicaSpecs.Worker.replicas",
        "message": "must be an integer ≥ 0 (got -1)",
    }
    assert (code, err) == (1, "")


def test_github_output(run):
    code, out, err = run({"a.yaml": job(replicas="-1")}, "-f", "a.yaml", "-o", "github")
    path = "spec.pytorchReplicaSpecs.Worker.replicas"
    assert out == f"::error file=a.yaml,line=8,col=7::{path}: must be an integer ≥ 0 (got -1)\n"
    assert (code, err) == (1, "1 error in 1 job\n")


@pytest.mark.parametrize(
    ("finding", "expected"),
    [
        (Finding("a,b:c%.yaml", "error", "x\r\n::y%"), "::error file=a%2Cb%3Ac%25.yaml::x%0D%0A::y%25"),
        (Finding("<stdin>", "warning", "m", "p", Position(1, 2)), "::warning line=1,col=2::p: m"),
        (Finding("<stdin>", "error", "m"), "::error::m"),
    ],
)
def test_annotations_are_escaped(finding, expected):
    assert annotation(finding) == expected


def test_nothing_steers_the_terminal(run):
    _, out, _ = run({"a.yaml": job().replace("spec:\n  py", 'spec:\n  "\\e[2J\\u202e": 1\n  py')}, "-f", "a.yaml")
    assert "\x1b" not in out
    assert "\u202e" not in out


def test_a_long_path_keeps_its_place(run):
    text = job().replace("worker:", "Worker:").replace("env:", "env: [{name: A}, {name: A}] #")
    _, out, _ = run({"a.yaml": text}, "-f", "a.yaml")
    assert "spec.pytorchReplicaSpecs.Worker.template.spec.containers[0].env: holds A more than once" in out
    assert out.startswith("a.yaml:14:15: warning: ")


def test_checking_starts_without_what_only_servers_need(tmp_path):
    (tmp_path / "a.yaml").write_text(job())
    code = (
        "import sys; from signalbox.__main__ import main\n"
        "try: main(['check', '-f', 'a.yaml'])\n"
        "except SystemExit as end: assert not end.code\n"
        "print(sorted({'kubernetes', 'sqlalchemy', 'flask', 'rich', 'pyreqwest', 'structlog'} & sys.modules.keys()))"
    )
    run = subprocess.run([sys.executable, "-c", code], cwd=tmp_path, capture_output=True, text=True, check=True)
    assert run.stdout == "no errors in 1 job\n[]\n"
