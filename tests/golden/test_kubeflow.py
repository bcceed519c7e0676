"""What we build for published manifests, held against what Kubeflow's training-operator 1.9 built for the same ones.

Each file in ``kubeflow/`` is a manifest and its children. A container's ``env`` is in order, ``NAME=value`` or ``NAME
from fieldPath``; a port is ``name number``, TCP, and on a Service also the target port; a Service is headless, and its
labels are its selector; a volume is its name and what it holds, a mount its volume and path; every child has the
file's ``owner``. Every difference to ours is a row of ``DIFFERENCES``.
"""

import re
from pathlib import Path

import pytest
import yaml

from controller import build, extras
from controller.settings import Settings
from schemas import defaults, kinds, validation
from schemas.job import Job

FILES = sorted((Path(__file__).parent / "kubeflow").glob("*.yaml"))
UID = "uid-of-the-job"

# what differs (a regular expression), in which files, why; - is Kubeflow's alone, + is ours alone
DIFFERENCES = [
    (
        r".*: labels \+signalbox\.dev/job-uid=uid-of-the-job",
        ".*",
        "our watches select by it on the server, and a job of the same name never sees an older one's children",
    ),
    (
        r"service .*: publishNotReadyAddresses \+True",
        ".*",
        "peers look each other up before any of them is ready",
    ),
    (
        r"pod .*-worker-\d+: initContainers -init-pytorch",
        "pt-.*",
        "an image pulled just to wait for a name: frameworks retry by themselves (kubeflow/trainer#1482, #1696)",
    ),
    (
        r"pod pt-userenv-master-0: env pytorch -(MASTER_PORT=23456|WORLD_SIZE=2)",
        "pt-userenv",
        "theirs comes last and so overrides what the user wrote; ours is not added (helm/helm#31529)",
    ),
    (
        r"pod mpi(-gpu)?-launcher: labels \+training\.kubeflow\.org/replica-index=0",
        "mpi.*",
        "every child of ours says which replica it is, also where its name does not",
    ),
]


def load(file):
    golden = yaml.safe_load(file.read_text())
    manifest = golden["manifest"]
    kind = kinds.find(manifest["kind"], manifest["apiVersion"].split("/")[0])
    manifest["metadata"]["uid"] = UID
    return golden, Job(kind, defaults.default(kind, manifest))


def pods(job):
    made = [build.pod(job, entry, index, attempt=0, round_=0) for entry in job.replicas for index in range(entry.count)]
    return {pod["metadata"]["name"]: pod for pod in made}


def others(job):
    made = (extra.manifest for extra in extras.wanted(job, Settings(), ()))
    return {f"{child['kind']}/{child['metadata']['name']}": child for child in made}


def services(job):
    return {service["metadata"]["name"]: service for service in build.services(job)}


def variable(item):
    if "valueFrom" in item:
        return f"{item['name']} from {item['valueFrom']['fieldRef']['fieldPath']}"
    return f"{item['name']}={item.get('value', '')}"


def volume(item):
    if "configMap" not in item:
        [holds] = item.keys() - {"name"}
        return f"{item['name']} {holds}"
    files = " ".join(f"{each['key']}={each['mode']:o}" for each in item["configMap"]["items"])
    return f"{item['name']} configMap {item['configMap']['name']}: {files}"


def compact_pod(pod):
    """A pod of ours in the notation of the files."""
    metadata, spec = pod["metadata"], pod["spec"]
    return {
        "labels": metadata["labels"],
        "annotations": metadata["annotations"],
        "restartPolicy": spec["restartPolicy"],
        "initContainers": [item["name"] for item in spec.get("initContainers", ())],
        "serviceAccountName": spec.get("serviceAccountName"),
        "volumes": [volume(item) for item in spec.get("volumes", ())],
        "hostname": spec.get("hostname"),
        "subdomain": spec.get("subdomain"),
        "containers": {
            item["name"]: {
                "env": [variable(each) for each in item["env"]],
                "ports": [f"{port['name']} {port['containerPort']}" for port in item.get("ports", ())],
                "mounts": [f"{mount['name']} {mount['mountPath']}" for mount in item.get("volumeMounts", ())],
            }
            for item in spec["containers"]
        },
    }


def compact_service(service):
    spec = service["spec"]
    assert spec["clusterIP"] == "None"
    assert spec["selector"].items() <= service["metadata"]["labels"].items()
    assert all(port["targetPort"] == port["port"] and port["protocol"] == "TCP" for port in spec["ports"])
    return {
        "labels": service["metadata"]["labels"],
        "selector": spec["selector"],
        "ports": [f"{port['name']} {port['port']}" for port in spec["ports"]],
        "publishNotReadyAddresses": spec.get("publishNotReadyAddresses"),
    }


def entries(value):
    """The comparable lines of a value: list items, ``key=value`` of a mapping, or the value itself."""
    if isinstance(value, dict):
        return [f"{key}={item}" for key, item in value.items()]
    if isinstance(value, list):
        return value
    return [] if value is None else [str(value)]


def compared(what, theirs, ours):
    """One line for each entry that only one side has; what both have must be in the same order."""
    left, right = list(entries(theirs)), list(entries(ours))
    common = [item for item in right if item in left]
    rest = list(left)
    for item in common:
        rest.remove(item)
    if isinstance(theirs, list):
        assert [item for item in left if item in right] == common, what
    yield from (f"{what} -{item}" for item in rest)
    yield from (f"{what} +{item}" for item in right if item not in left)


PARTS = (
    "labels",
    "annotations",
    "restartPolicy",
    "initContainers",
    "serviceAccountName",
    "volumes",
    "hostname",
    "subdomain",
)


def pod_differences(name, theirs, ours):
    for key in PARTS:
        yield from compared(f"pod {name}: {key}", theirs.get(key), ours[key])
    assert list(theirs["containers"]) == list(ours["containers"]), name
    for container, wanted in theirs["containers"].items():
        for key in ("env", "ports", "mounts"):
            yield from compared(
                f"pod {name}: {key} {container}", wanted.get(key, []), ours["containers"][container][key]
            )


def service_differences(name, theirs, ours):
    for key in ("selector", "ports", "publishNotReadyAddresses"):
        yield from compared(f"service {name}: {key}", theirs.get(key), ours[key])
    yield from compared(f"service {name}: labels", theirs["selector"], ours["labels"])


def differences(file):
    golden, job = load(file)
    made, made_services = pods(job), services(job)
    assert sorted(made) == sorted(golden["pods"])
    assert sorted(made_services) == sorted(golden["services"])
    for name, theirs in golden["pods"].items():
        yield from pod_differences(name, theirs, compact_pod(made[name]))
    for name, theirs in golden["services"].items():
        yield from service_differences(name, theirs, compact_service(made_services[name]))


@pytest.mark.parametrize("file", FILES, ids=lambda file: file.stem)
def test_every_difference_has_a_reason(file):
    rows = [row for row in DIFFERENCES if re.fullmatch(row[1], file.stem)]
    unexplained = [line for line in differences(file) if not any(re.fullmatch(row[0], line) for row in rows)]
    assert unexplained == []


def test_every_reason_is_needed():
    lines = {file.stem: list(differences(file)) for file in FILES}
    for pattern, stem, _ in DIFFERENCES:
        there = [line for name, found in lines.items() if re.fullmatch(stem, name) for line in found]
        assert any(re.fullmatch(pattern, line) for line in there), pattern


@pytest.mark.parametrize("file", FILES, ids=lambda file: file.stem)
def test_other_children_are_theirs(file):
    """The scripts are ours: tests/unit/controller/test_mpi.py runs them."""
    golden, job = load(file)
    made = others(job)
    assert sorted(made) == sorted(golden.get("children", {}))
    for name, theirs in golden.get("children", {}).items():
        fields = {key: value for key, value in made[name].items() if key not in ("apiVersion", "kind", "metadata")}
        if "data" in fields:
            assert fields["data"].pop("discover_hosts.sh") == "#!/bin/sh\n"
            assert fields["data"].pop("kubexec.sh").startswith("#!/bin/sh\n")
        assert fields == theirs


@pytest.mark.parametrize("file", FILES, ids=lambda file: file.stem)
def test_every_child_is_owned_as_theirs(file):
    golden, job = load(file)
    for child in [*pods(job).values(), *services(job).values(), *others(job).values()]:
        [owner] = child["metadata"]["ownerReferences"]
        assert owner == {**golden["owner"], "name": job.name, "uid": UID}
        assert child["metadata"]["namespace"] == job.namespace


@pytest.mark.parametrize("file", FILES, ids=lambda file: file.stem)
def test_the_manifest_is_good(file):
    _, job = load(file)
    assert validation.check(job) == []
    assert [text for text in validation.warn(job) if "sets " not in text] == []


def test_all_are_there():
    assert len(FILES) == 19
    assert {load(file)[1].kind for file in FILES} == {kind for kind in kinds.KINDS if kind.group == "kubeflow.org"}
