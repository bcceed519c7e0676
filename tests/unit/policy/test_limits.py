"""Each limit: what it refuses, at which path, in which words."""

import pytest

GPU = "nvidia.com/gpu"
WORKER = "spec.replicaSpecs.Worker"
POD = f"{WORKER}.template.spec"


def gpus(number):
    return {"resources": {"limits": {GPU: number}}}


TABLE = [
    ({"replicas": {"max": 3}}, {"Worker": 4}, "spec.replicaSpecs", "must be at most 3 replicas in all"),
    ({"replicas": {"min": 3}}, {"Worker": 1, "PS": 1}, "spec.replicaSpecs", "must be at least 3 replicas in all"),
    (
        {"replicaTypes": {"*": {"max": 1}, "PS": {"max": 4}}},
        {"Worker": 2, "PS": 4},
        f"{WORKER}.replicas",
        "must be at most 1 replicas",
    ),
    (
        {"ttlSecondsAfterFinished": {"required": True, "max": 60}},
        {},
        "spec.runPolicy.ttlSecondsAfterFinished",
        "must be set, at most 60",
    ),
    (
        {"ttlSecondsAfterFinished": {"max": 60}},
        {"run_policy": {"ttlSecondsAfterFinished": 61}},
        "spec.runPolicy.ttlSecondsAfterFinished",
        "must be at most 60",
    ),
    (
        {"activeDeadlineSeconds": {"min": 60, "max": 90, "required": True}},
        {},
        "spec.runPolicy.activeDeadlineSeconds",
        "must be set, from 60 to 90",
    ),
    (
        {"backoffLimit": {"max": 3}},
        {"run_policy": {"backoffLimit": 4}},
        "spec.runPolicy.backoffLimit",
        "must be at most 3",
    ),
    ({"queues": ["team-*"]}, {}, "spec.runPolicy.schedulingPolicy.queue", "must be set to team-*"),
    (
        {"queues": ["team-*", "x"]},
        {"run_policy": {"schedulingPolicy": {"queue": "z"}}},
        "spec.runPolicy.schedulingPolicy.queue",
        "must be team-* or x",
    ),
    ({"priorityClasses": ["low"]}, {"pod": {"priorityClassName": "high"}}, f"{POD}.priorityClassName", "must be low"),
    (
        {"priorityClasses": ["low"]},
        {"run_policy": {"schedulingPolicy": {"priorityClass": "high"}}},
        "spec.runPolicy.schedulingPolicy.priorityClass",
        "must be low",
    ),
    ({"cleanPodPolicies": ["All"]}, {}, "spec.runPolicy.cleanPodPolicy", "must be All"),
    ({"restartPolicies": ["OnFailure"]}, {}, f"{WORKER}.restartPolicy", "must be OnFailure"),
    ({"schedulers": ["volcano"]}, {"pod": {"schedulerName": "mine"}}, f"{POD}.schedulerName", "must be volcano"),
    ({"images": ["registry.example/other"]}, {}, f"{POD}.containers[0].image", "must be registry.example/other"),
    (
        {"images": ["registry.example"]},
        {"container": {"image": "registry.example.evil/x"}},
        f"{POD}.containers[0].image",
        "must be registry.example",
    ),
    (
        {"images": ["registry.example"]},
        {"pod": {"initContainers": [{"image": "busybox"}]}},
        f"{POD}.initContainers[0].image",
        "must be",
    ),
    ({"requiredLabels": ["team"]}, {}, "metadata.labels.team", "must be set"),
    ({"requiredLabels": ["team=a*"]}, {"labels": {"team": "b"}}, "metadata.labels.team", "must be a*"),
    ({"requiredAnnotations": ["cost/center"]}, {}, "metadata.annotations[cost/center]", "must be set"),
    (
        {"podResources": {GPU: {"max": 4}}},
        {"container": gpus(5)},
        f"{POD}.containers",
        f"must ask for at most 4 {GPU} in one pod",
    ),
    (
        {"podResources": {"memory": {"max": "1Gi"}}},
        {"container": {"resources": {"requests": {"memory": 1073741825}}}},
        f"{POD}.containers",
        "at most 1Gi memory",
    ),
    ({"podResources": {"cpu": {"min": "100m"}}}, {}, f"{POD}.containers", "must ask for at least 100m cpu in one pod"),
    (
        {"jobResources": {GPU: {"max": 64}}},
        {"Worker": 65, "container": gpus("1")},
        "spec.replicaSpecs",
        f"must ask for at most 64 {GPU} in all pods together",
    ),
    ({"forbid": ["HostNetwork"]}, {"pod": {"hostNetwork": True}}, f"{POD}.hostNetwork", "must not be true"),
    (
        {"forbid": ["HostPath"]},
        {"pod": {"volumes": [{"name": "v", "hostPath": {"path": "/"}}]}},
        f"{POD}.volumes[0].hostPath",
        "must not be set",
    ),
    (
        {"forbid": ["Privileged"]},
        {"container": {"securityContext": {"privileged": True}}},
        f"{POD}.containers[0].securityContext.privileged",
        "must not be true",
    ),
    (
        {"forbid": ["HostPorts"]},
        {"container": {"ports": [{"hostPort": 80}]}},
        f"{POD}.containers[0].ports[0].hostPort",
        "must not be set",
    ),
]


@pytest.mark.parametrize(("limits", "parts", "path", "words"), TABLE)
def test_each_limit(broken, job, limits, parts, path, words):
    [(rule, at, must)] = broken({"limits": limits}, job(**parts))
    assert (rule, at) == (next(iter(limits)), path)
    assert words in must


KEPT = [
    ({"replicas": {"max": 3}}, {"Worker": 3}),
    ({"ttlSecondsAfterFinished": {"max": 60}}, {}),
    ({"priorityClasses": ["low"]}, {}),
    ({"schedulers": ["volcano"]}, {}),
    ({"images": ["registry.example"]}, {}),
    ({"images": ["registry.example/team/"]}, {}),
    ({"images": ["registry.example/*:1"]}, {}),
    ({"images": ["registry.example/team/train"]}, {}),
    ({"requiredLabels": ["team=*"]}, {"labels": {"team": "b"}}),
    ({"podResources": {"memory": {"max": "1Gi"}}}, {"container": {"resources": {"limits": {"memory": "1048576Ki"}}}}),
    ({"jobResources": {"cpu": {"max": "0.3"}}}, {"Worker": 3, "container": {"resources": {"limits": {"cpu": "100m"}}}}),
    (
        {"forbid": ["HostNetwork", "HostPath", "HostPorts", "Privileged"]},
        {"container": {"ports": [{"containerPort": 1}]}},
    ),
]


@pytest.mark.parametrize(("limits", "parts"), KEPT)
def test_what_keeps_to_a_limit(broken, job, limits, parts):
    assert broken({"limits": limits}, job(**parts)) == []


def test_init_containers_and_sidecars_count_as_the_scheduler_counts_them(broken, job):
    """A sidecar runs beside the others, an init container before them: kubernetes/enhancements 753."""

    def asks(cpu, **more):
        return {"resources": {"requests": {"cpu": cpu}}, **more}

    pod = {"initContainers": [asks("2", restartPolicy="Always"), asks("4"), asks("1")]}
    [(_, _, must)] = broken({"limits": {"podResources": {"cpu": {"max": 5}}}}, job(pod=pod, container=asks("3")))
    assert "at most 5 cpu" in must
    assert broken({"limits": {"podResources": {"cpu": {"max": 6}}}}, job(pod=pod, container=asks("3"))) == []
