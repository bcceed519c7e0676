import json

import jsonpatch
import pytest
import yaml
from click.testing import CliRunner

from signalbox.run_default import default

CONFIG_MAP = "apiVersion: v1\nkind: ConfigMap # kept\nmetadata: {name: x}\ndata: {a: 'on'}\n"
JOB = """\
# not kept
apiVersion: signalbox.dev/v1
kind: TrainingJob
metadata: {name: job, namespace: ns}
spec:
  replicaSpecs:
    Worker:
      template:
        spec:
          containers:
            - {name: main, image: img, args: ["on", "1e3", "y", "0o17", "2020-01-01"]}
"""
BAD = JOB.replace("name: job", "name: Job")


@pytest.fixture
def run():
    def invoke(text, output="yaml"):
        result = CliRunner().invoke(default, ["-f", "-", "-o", output], input=text)
        assert result.exception is None or isinstance(result.exception, SystemExit), result.exception
        return result.exit_code, result.stdout, result.stderr

    return invoke


def test_a_job_gets_its_defaults_in_place(run):
    code, out, err = run(JOB)
    (job,) = yaml.safe_load_all(out)
    assert list(job) == ["apiVersion", "kind", "metadata", "spec"]
    worker = job["spec"]["replicaSpecs"]["Worker"]
    assert list(worker) == ["template", "replicas", "restartPolicy"]
    assert (worker["replicas"], worker["restartPolicy"]) == (1, "Never")
    assert job["spec"]["runPolicy"] == {"cleanPodPolicy": "Running"}
    shown = [line.strip("- ") for line in out.splitlines()]
    assert {"'on'", "'1e3'", "'y'", "'0o17'", "'2020-01-01'"} <= set(shown)
    assert (code, err) == (0, "")


def test_defaulting_twice_changes_nothing(run):
    once = run(f"{CONFIG_MAP}---\n{JOB}---\n{CONFIG_MAP}")[1]
    assert run(once)[1] == once


def test_other_documents_pass_through(run):
    code, out, _ = run(f"# first\n{CONFIG_MAP}--- # second\n{JOB}---\n# third\n{CONFIG_MAP}")
    assert out.startswith(f"# first\n{CONFIG_MAP}---\napiVersion: signalbox.dev/v1\n")
    assert out.endswith(f"---\n# third\n{CONFIG_MAP}")
    assert code == 0


def test_an_invalid_job_is_not_printed(run):
    code, out, err = run(f"{BAD}---\n{CONFIG_MAP}")
    assert out == f"---\n{CONFIG_MAP}"
    first, last = err.splitlines()
    assert first.startswith("<stdin>:4:12: error: metadata.name: must be a DNS-1035 label")
    assert last == "<stdin>: TrainingJob ns/Job is invalid and was not printed"
    assert code == 1


def test_a_list_keeps_its_good_items(run):
    items = [yaml.safe_load(text) for text in (CONFIG_MAP, JOB, BAD)]
    code, out, _ = run(json.dumps({"apiVersion": "v1", "kind": "List", "items": items}))
    (found,) = yaml.safe_load_all(out)
    assert [item["metadata"]["name"] for item in found["items"]] == ["x", "job"]
    assert found["items"][1]["spec"]["runPolicy"]
    assert code == 1
    assert run(json.dumps({"kind": "List", "items": items[2:]}))[1] == ""


def test_json_output_is_one_object_or_a_list(run):
    assert json.loads(run(JOB, "json")[1])["kind"] == "TrainingJob"
    found = json.loads(run(f"{JOB}---\n{CONFIG_MAP}", "json")[1])
    assert [found["kind"], *(item["kind"] for item in found["items"])] == ["List", "TrainingJob", "ConfigMap"]
    assert run(BAD, "json")[:2] == (1, "")


def test_patches_apply(run):
    (found,) = json.loads(run(f"{CONFIG_MAP}---\n{JOB}---\n{BAD}", "patch")[1])
    operations = found.pop("patch")
    assert found == {"file": "<stdin>", "document": 2, "kind": "TrainingJob", "namespace": "ns", "name": "job"}
    job = jsonpatch.apply_patch(yaml.safe_load(JOB), operations)
    assert job == json.loads(run(JOB, "json")[1])


def test_what_is_no_yaml_is_exit_code_2(run):
    code, out, err = run("a: ]")
    assert err.startswith("<stdin>:1:4: error: must be YAML")
    assert (code, out) == (2, "")
    assert run("")[0] == 2
