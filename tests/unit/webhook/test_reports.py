"""Faults that users of other operators have reported, answered over HTTP at both endpoints with their paths."""

import orjson
import pytest

from webhook.app import create_app

CLIENT = create_app().test_client()
RP, RS = "spec.runPolicy", "spec.tfReplicaSpecs"
POD = f"{RS}.Worker.template.spec"


def container(**fields):
    return {"name": "tensorflow", "image": "registry.example/train:1", **fields}


def worker(replicas=1, containers=None, metadata=None, **fields):
    template = {"spec": {"containers": [container()] if containers is None else containers}}
    return {"replicas": replicas, "template": template | ({"metadata": metadata} if metadata else {}), **fields}


def job(name="job", run_policy=None, **types):
    spec = {"tfReplicaSpecs": types} | ({"runPolicy": run_policy} if run_policy else {})
    return {
        "apiVersion": "kubeflow.org/v1",
        "kind": "TFJob",
        "metadata": {"name": name, "namespace": "ns"},
        "spec": spec,
    }


def hollow(value):
    return job() | {"spec": value}


def ask(path, obj, old=None):
    request = {
        "uid": "u",
        "kind": {"group": "kubeflow.org", "version": "v1", "kind": "TFJob"},
        "operation": "UPDATE" if old else "CREATE",
        "object": obj,
        "oldObject": old,
    }
    body = {"apiVersion": "admission.k8s.io/v1", "kind": "AdmissionReview", "request": request}
    answer = CLIENT.post(path, data=orjson.dumps(body))
    assert answer.status_code == 200
    return orjson.loads(answer.data)["response"]


REFUSED = [
    # kubeflow/trainer#1745: a name that no Service may have
    ("kubeflow/trainer#1745", job("7b-finetune", Worker=worker()), ["metadata.name"], "DNS-1035"),
    ("kubeflow/trainer#1745", job("llm-v0.1", Worker=worker()), ["metadata.name"], "DNS-1035"),
    # kubeflow/trainer#1135: an empty YAML key is null
    ("kubeflow/trainer#1135", job(Worker=None), [f"{RS}.Worker", f"{POD}.containers"], ""),
    ("kubeflow/trainer#1135", job(Worker={}), [f"{RS}.Worker.template", f"{POD}.containers"], ""),
    ("kubeflow/arena#291", job(Worker={"replicas": 1, "spec": {"containers": [container()]}}),
     [f"{RS}.Worker.template", f"{POD}.containers"], ""),
    ("kubeflow/common#81", job(Worker=worker(containers=[])), [f"{POD}.containers"], ""),
    ("kubeflow/common#81", job(), [RS], ""),
    ("kubeflow/common#81", hollow(None), ["spec", RS], ""),
    ("kubeflow/common#81", job(Worker=worker(containers=[None])), [f"{POD}.containers[0]"], ""),
    # kubeflow/trainer#561: numbers and maps where strings belong
    ("kubeflow/trainer#561", job(Worker=worker(containers=[container(args=["--epochs", 10])])),
     [f"{POD}.containers[0].args[1]"], "got 10"),
    ("kubeflow/trainer#964", job(Worker=worker(containers=[container(env=[{"name": "SEED", "value": 42}])])),
     [f"{POD}.containers[0].env[0].value"], "got 42"),
    ("kubeflow/trainer#964", job(Worker=worker(metadata={"labels": "tf:yes"})),
     [f"{RS}.Worker.template.metadata.labels"], 'got "tf:yes"'),
    # volcano-sh/volcano: a gang that can never start
    ("volcano minAvailable", job(run_policy={"schedulingPolicy": {"minAvailable": 5}}, Worker=worker(2), PS=worker(2)),
     [f"{RP}.schedulingPolicy.minAvailable"], "at most 4"),
    # kubeflow/common#182: an enum in another case
    ("kubeflow/common#182", job(run_policy={"cleanPodPolicy": "running"}, Worker=worker()),
     [f"{RP}.cleanPodPolicy"], "All, Running, None"),
    ("kubeflow/common#182", job(run_policy={"cleanPodPolicy": "Completed"}, Worker=worker()),
     [f"{RP}.cleanPodPolicy"], "All, Running, None"),
    ("kubeflow/common#182", job(Worker=worker(restartPolicy="onfailure")),
     [f"{RS}.Worker.restartPolicy"], "ExitCode"),
]  # fmt: skip


@pytest.mark.parametrize("path", ["/mutate", "/validate"])
@pytest.mark.parametrize(
    ("report", "obj", "fields", "text"), REFUSED, ids=lambda value: value if isinstance(value, str) else ""
)
def test_it_is_refused_with_its_path(path, report, obj, fields, text):
    response = ask(path, obj)
    assert not response["allowed"]
    found = {cause["field"]: cause["message"] for cause in response["status"]["details"]["causes"]}
    assert set(found) & set(fields), found
    assert text in response["status"]["message"]
    assert ask(path, job(Worker=worker()))["allowed"]


def test_a_gang_may_be_all_replicas_and_never_more():
    policy = {"schedulingPolicy": {"minAvailable": 4}}
    full = job(run_policy=policy, Worker=worker(2), PS=worker(2))
    assert ask("/validate", full)["allowed"]
    response = ask("/validate", job(run_policy=policy, Worker=worker(1), PS=worker(2)), old=full)
    assert [cause["field"] for cause in response["status"]["details"]["causes"]] == [
        f"{RP}.schedulingPolicy.minAvailable"
    ]


@pytest.mark.parametrize("policy", ["ExitCode", None])
def test_a_restart_policy_in_the_template_is_overridden_and_said(policy):
    """kubeflow/trainer#2200"""
    entry = worker(**({"restartPolicy": policy} if policy else {}))
    entry["template"]["spec"]["restartPolicy"] = "OnFailure"
    response = ask("/validate", job(Worker=entry))
    assert response["allowed"]
    assert any(f"{POD}.restartPolicy" in warning for warning in response["warnings"])
