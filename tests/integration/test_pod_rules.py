"""What the API server says of a pod and what we say of the job that makes it, over thousands of pod templates.

Whatever it refuses, we must refuse, or the controller could never create the pod; whatever it takes, we must take.
"""

import importlib.util
import re
import uuid
from pathlib import Path

import pytest

from controller import build
from kube.config import connect
from kube.errors import Forbidden, Invalid
from kube.raw import RawKube
from kube.resources import NAMESPACES, PODS
from schemas import defaults, kinds, validation
from schemas.job import Job

pytestmark = pytest.mark.cluster

# tests are no package (import mode importlib), so the templates are loaded by their path
SPEC = importlib.util.spec_from_file_location("pod_templates", Path(__file__).with_name("pod_templates.py"))
templates = importlib.util.module_from_spec(SPEC)
SPEC.loader.exec_module(templates)

KIND = kinds.TRAINING_JOB

# Refused by us alone: what the message says, and why it stays so
OURS = {
    r"\(got null\)$": "a CRD refuses null in a list or a map, before or after us",
    r"(value|seconds|preference|lun|secretRef): must be set": "the API's own schema requires it, and so the CRD",
    r"must be a string or an integer \(got 1.5\)": "a CRD has integers and strings there, no fractions",
    r"must hold a container named main": "a rule of ours: the training container must be found",
    r"sources\[[45]\]": "clusterTrustBundle is off by default, and then dropped unseen",
}


@pytest.fixture(scope="module")
def kube(cluster):
    client = RawKube(connect(str(cluster.kubeconfig)))
    yield client
    client.close()


@pytest.fixture(scope="module")
def space(kube):
    name = f"rules-{uuid.uuid4().hex[:8]}"
    kube.create(NAMESPACES.path(), {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}})
    yield name
    kube.delete(NAMESPACES.path(None, name))


def job(template, space):
    worker = {"replicas": 1, "restartPolicy": "Never", "template": template}
    metadata = {"name": "job", "namespace": space, "uid": str(uuid.UUID(int=1))}
    return Job(KIND, defaults.default(KIND, {"metadata": metadata, "spec": {"replicaSpecs": {"Worker": worker}}}))


@pytest.fixture
def judge(kube, space):
    """``judge(template)``: what we say of a job with it, and what the API server says of its pod; "" is nothing."""

    def verdicts(template):
        made = job(template, space)
        ours = "; ".join(map(str, validation.check(made)))
        pod = build.pod(made, made.replicas[0], 0, attempt=0, round_=0)
        try:
            kube.create(f"{PODS.path(space)}?dryRun=All", pod)
        except (Invalid, Forbidden) as refused:
            return ours, refused.message
        return ours, ""

    return verdicts


@pytest.mark.parametrize(("at", "part"), [row[1:] for row in templates.PARTS], ids=[row[0] for row in templates.PARTS])
def test_a_part_and_all_its_damages_are_judged_alike(judge, at, part):
    assert judge(templates.with_part(at, part)) == ("", "")
    differ = []
    for note, broken in templates.damaged(part):
        ours, theirs = judge(templates.with_part(at, broken))
        if bool(ours) != bool(theirs) and not (ours and any(re.search(known, ours) for known in OURS)):
            differ.append(f"{note}: we say {ours or 'nothing'!r}, the API server {theirs or 'nothing'!r}")
    assert differ == []


def main(**fields):
    return {"spec": {"containers": [{"name": "main", "image": "i", **fields}]}}


def pod(**fields):
    return templates.with_part(("spec",), {**templates.base()["spec"], **fields})


EXEC = templates.EXEC
GPU = "nvidia.com/gpu"
LABELLED = {"topologyKey": "zone", "labelSelector": {"matchLabels": {"a": "b"}}}
TWICE_SELECTED = {"podAffinity": {templates.REQUIRED: [{**LABELLED, "matchLabelKeys": ["a"]}]}}

# What mechanical damage does not reach
MORE = [
    (main(securityContext={"privileged": True, "allowPrivilegeEscalation": False}), False),
    (main(securityContext={"allowPrivilegeEscalation": False, "capabilities": {"add": ["CAP_SYS_ADMIN"]}}), False),
    (main(securityContext={"procMount": "Unmasked"}), False),
    (main(ports=[{"containerPort": 1, "hostPort": 9}, {"containerPort": 2, "hostPort": 9}]), False),
    (main(ports=[{"containerPort": 1, "hostPort": 9}, {"containerPort": 2, "hostPort": 9, "protocol": "UDP"}]), True),
    (main(ports=[{"containerPort": 1, "name": "x" * 16}]), False),
    (main(resources={"limits": {GPU: 2}, "requests": {GPU: 1}}), False),
    (main(resources={"requests": {GPU: 1}}), False),
    (main(resources={"limits": {"requests.example.com/x": 1}}), False),
    (main(resources={"limits": {"gpu": 1}}), False),
    (main(resources={"limits": {"example.kubernetes.io/x": "500m"}}), True),
    (main(resources={"limits": {"hugepages-2Mi": "2Mi"}}), False),
    (main(resources={"limits": {"hugepages-2Mi": "3Mi", "cpu": 1}}), False),
    (main(resources={"limits": {"cpu": "1"}, "requests": {"cpu": "1001m"}}), False),
    (main(resources={"limits": {"cpu": "1000m"}, "requests": {"cpu": 1}}), True),
    (main(env=[{"name": "A", "value": "1"}, {"name": "A", "value": "2"}]), True),
    (main(env=[{"name": "A", "value": "x", "valueFrom": {"fieldRef": {"fieldPath": "metadata.name"}}}]), False),
    (main(lifecycle={"preStop": {"sleep": {"seconds": 31}}}), False),
    (main(readinessProbe={**EXEC, "terminationGracePeriodSeconds": 5}), False),
    (main(livenessProbe={**EXEC, "successThreshold": 2}), False),
    (main(volumeMounts=[{"name": "x", "mountPath": "/x"}]), False),
    (pod(volumes=[{"name": "v"}]), True),
    (pod(volumes=[{"name": "v", "emptyDir": {}, "configMap": {"name": "c"}}]), False),
    (pod(ephemeralContainers=[{"name": "x", "image": "i"}]), False),
    (pod(ephemeralContainers=[]), True),
    (pod(nodeName="n", schedulingGates=[{"name": "a/b"}]), False),
    (pod(shareProcessNamespace=True, hostPID=True), False),
    (pod(hostUsers=False, hostPID=True), False),
    (pod(hostnameOverride="a", setHostnameAsFQDN=True), False),
    (pod(dnsPolicy="None"), False),
    (pod(dnsPolicy="None", dnsConfig={"nameservers": ["1.2.3.4"]}), True),
    (pod(terminationGracePeriodSeconds=-1), True),
    (pod(terminationGracePeriodSeconds=0), True),
    (pod(initContainers=[{"name": "main", "image": "i"}]), False),
    (pod(initContainers=[{"name": "i", "image": "i", "lifecycle": {"preStop": EXEC}}]), False),
    (pod(tolerations=[{"operator": "Equal", "value": "x"}]), False),
    (pod(tolerations=[{"key": "a", "operator": "Exists", "tolerationSeconds": 3}]), False),
    (pod(resources={"requests": {"cpu": 1}, "limits": {GPU: 1}}), False),
    (pod(affinity=TWICE_SELECTED), True),
    ({"metadata": {"labels": {"a": "b"}}, **pod(affinity=TWICE_SELECTED)}, False),
    (pod(affinity={"podAffinity": {templates.REQUIRED: [{"topologyKey": "z", "matchLabelKeys": ["a"]}]}}), False),
    ({"metadata": {"annotations": {"a": "x" * 2**18}}, **templates.base()}, False),
    ({"metadata": {"labels": {"a/b/c": "x"}}, **templates.base()}, False),
]


@pytest.mark.parametrize(("template", "good"), MORE, ids=[f"{row[0]['spec']!r:.90}" for row in MORE])
def test_fields_that_do_not_go_together(judge, template, good):
    ours, theirs = judge(template)
    assert (ours == "", theirs == "") == (good, good), (ours, theirs)
