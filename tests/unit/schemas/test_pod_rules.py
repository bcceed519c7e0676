"""What Kubernetes refuses of a pod is refused of a job: each rule about pod templates, by what breaks it.

``tests/integration/test_pod_rules.py`` compares with a real API server; here are the paths and the words.
"""

import pytest

from schemas import loader

WORKER = "spec.pytorchReplicaSpecs.Worker"
TEMPLATE = f"{WORKER}.template"
MAIN = "spec.containers.0"
EXEC = {"exec": {"command": ["true"]}}
TWICE = [{"name": "v", "emptyDir": {}}, {"name": "v", "emptyDir": {}}]
SELECTING = {"topologyKey": "zone", "labelSelector": {"matchLabels": {"a": "b"}}}
SPREAD = {"maxSkew": 1, "topologyKey": "zone", "whenUnsatisfiable": "ScheduleAnyway"}


def required_nodes(*terms):
    return {"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": list(terms)}}}


def required_pods(**term):
    return {"podAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [{**SELECTING, **term}]}}


# place below the template, value, path of the fault below the template, part of the message
BROKEN = [
    ("metadata.labels", {"a b": "c"}, "metadata.labels", "label keys"),
    ("metadata.labels", {"a": "b c"}, "metadata.labels.a", "label value"),
    ("metadata.annotations", {"a b": "c"}, "metadata.annotations", "annotation keys"),
    ("metadata.annotations", {"a": "x" * 2**18}, "metadata.annotations", "at most 262144 bytes"),
    ("metadata.finalizers", ["keep"], "metadata.finalizers[0]", "example.com/keep"),
    ("spec.nodeSelector", {"a": "-"}, "spec.nodeSelector.a", "label value"),
    (f"{MAIN}.name", "Main", "spec.containers[0].name", "DNS label"),
    (f"{MAIN}.image", " img", "spec.containers[0].image", "white space"),
    (f"{MAIN}.imagePullPolicy", "always", "spec.containers[0].imagePullPolicy", "Always, IfNotPresent, Never"),
    (f"{MAIN}.ports", [{"containerPort": 0}], "spec.containers[0].ports[0].containerPort", "≥ 1"),
    (f"{MAIN}.ports", [{"containerPort": 1, "name": "12"}], "spec.containers[0].ports[0].name", "port name"),
    (
        f"{MAIN}.ports",
        [{"containerPort": 1, "name": "a"}, {"containerPort": 2, "name": "a"}],
        "spec.containers[0].ports[1].name",
        "differ",
    ),
    (
        f"{MAIN}.ports",
        [{"containerPort": 1, "hostPort": 9}, {"containerPort": 2, "hostPort": 9}],
        "spec.containers[0].ports[1].hostPort",
        "host port",
    ),
    (f"{MAIN}.env", [{"name": "a=b", "value": "1"}], "spec.containers[0].env[0].name", "other than '='"),
    (f"{MAIN}.env", [{"name": "A", "valueFrom": {}}], "spec.containers[0].env[0].valueFrom", "one of fieldRef"),
    (
        f"{MAIN}.env",
        [{"name": "A", "value": "1", "valueFrom": {"fieldRef": {"fieldPath": "metadata.name"}}}],
        "spec.containers[0].env[0].valueFrom",
        "absent beside value",
    ),
    (
        f"{MAIN}.env",
        [{"name": "A", "valueFrom": {"fieldRef": {"fieldPath": "spec.x"}}}],
        "spec.containers[0].env[0].valueFrom.fieldRef.fieldPath",
        "metadata.name",
    ),
    (
        f"{MAIN}.env",
        [{"name": "A", "valueFrom": {"resourceFieldRef": {"resource": "limits.memory", "divisor": "1024"}}}],
        "spec.containers[0].env[0].valueFrom.resourceFieldRef.divisor",
        "one unit",
    ),
    (
        f"{MAIN}.env",
        [{"name": "A", "valueFrom": {"secretKeyRef": {"name": "s", "key": ".."}}}],
        "spec.containers[0].env[0].valueFrom.secretKeyRef.key",
        "must be a key",
    ),
    (f"{MAIN}.envFrom", [{}], "spec.containers[0].envFrom[0]", "configMapRef, secretRef"),
    (f"{MAIN}.livenessProbe", {}, "spec.containers[0].livenessProbe", "must have one of exec"),
    (
        f"{MAIN}.readinessProbe",
        {**EXEC, "terminationGracePeriodSeconds": 3},
        "spec.containers[0].readinessProbe.terminationGracePeriodSeconds",
        "ends nothing",
    ),
    (f"{MAIN}.lifecycle", {"preStop": {**EXEC, "sleep": {"seconds": 1}}}, None, "beside exec"),
    (
        f"{MAIN}.lifecycle",
        {"preStop": {"sleep": {"seconds": 31}}},
        "spec.containers[0].lifecycle.preStop.sleep.seconds",
        "0 to 30",
    ),
    (
        "spec.initContainers",
        [{"name": "i", "image": "i", "livenessProbe": EXEC}],
        "spec.initContainers[0].livenessProbe",
        "restartPolicy is Always",
    ),
    (
        f"{MAIN}.restartPolicyRules",
        [{"action": "Restart", "exitCodes": {"operator": "In", "values": [3]}}],
        "spec.containers[0].restartPolicy",
        "must be set",
    ),
    ("spec.volumes", TWICE, "spec.volumes[1].name", "differ"),
    (
        "spec.volumes",
        [{"name": "v", "emptyDir": {}, "hostPath": {"path": "/x"}}],
        "spec.volumes[0].hostPath",
        "beside emptyDir",
    ),
    ("spec.volumes", [{"name": "v", "emptyDir": {"sizeLimit": -1}}], "spec.volumes[0].emptyDir.sizeLimit", "negative"),
    ("spec.volumes", [{"name": "v", "secret": {}}], "spec.volumes[0].secret.secretName", "must be set"),
    ("spec.volumes", [{"name": "v", "hostPath": {"path": "/a/../b"}}], "spec.volumes[0].hostPath.path", "without '..'"),
    (
        f"{MAIN}.volumeDevices",
        [{"name": "v", "devicePath": "/dev/x"}],
        "spec.containers[0].volumeDevices[0].name",
        "persistentVolumeClaim",
    ),
    (f"{MAIN}.resources", {"limits": {"gpu": 1}}, "spec.containers[0].resources.limits", "nvidia.com/gpu"),
    (f"{MAIN}.resources", {"limits": {"cpu": -1}}, "spec.containers[0].resources.limits.cpu", "negative"),
    (
        f"{MAIN}.resources",
        {"limits": {"nvidia.com/gpu": "500m"}},
        "spec.containers[0].resources.limits[nvidia.com/gpu]",
        "whole number",
    ),
    (
        f"{MAIN}.resources",
        {"limits": {"nvidia.com/gpu": 2}, "requests": {"nvidia.com/gpu": 1}},
        "spec.containers[0].resources.requests[nvidia.com/gpu]",
        "equal its limit",
    ),
    (
        f"{MAIN}.resources",
        {"limits": {"memory": "1Gi"}, "requests": {"memory": "2G"}},
        "spec.containers[0].resources.requests.memory",
        "at most its limit",
    ),
    (f"{MAIN}.resources", {"limits": {"hugepages-2Mi": "2Mi"}}, "spec.containers[0].resources", "cpu or memory"),
    (f"{MAIN}.resources", {"claims": [{"name": "x"}]}, "spec.containers[0].resources.claims[0].name", "resourceClaims"),
    ("spec.resourceClaims", [{"name": "x"}], "spec.resourceClaims[0]", "resourceClaimName"),
    ("spec.resources", {"limits": {"nvidia.com/gpu": 1}}, "spec.resources.limits", "cpu, memory"),
    (
        f"{MAIN}.resizePolicy",
        [{"resourceName": "cpu", "restartPolicy": "NotRequired"}] * 2,
        "spec.containers[0].resizePolicy[1].resourceName",
        "differ",
    ),
    ("spec.tolerations", [{"operator": "Equal"}], "spec.tolerations[0].operator", "Exists where there is no key"),
    (
        "spec.tolerations",
        [{"key": "a", "operator": "Exists", "value": "x"}],
        "spec.tolerations[0].value",
        "operator is Exists",
    ),
    ("spec.tolerations", [{"key": "a", "tolerationSeconds": 3}], "spec.tolerations[0].effect", "NoExecute"),
    (
        "spec.affinity",
        required_nodes({"matchExpressions": [{"key": "a", "operator": "In"}]}),
        None,
        "must hold a value",
    ),
    ("spec.affinity", required_nodes(), None, "at least 1 item"),
    ("spec.topologySpreadConstraints", [SPREAD, SPREAD], "spec.topologySpreadConstraints[1]", "differ"),
    (
        "spec.topologySpreadConstraints",
        [{**SPREAD, "minDomains": 1}],
        "spec.topologySpreadConstraints[0].minDomains",
        "DoNotSchedule",
    ),
    ("spec.schedulingGates", [{"name": "a/b"}] * 2, "spec.schedulingGates[1].name", "differ"),
    ("spec.ephemeralContainers", [{"name": "x", "image": "i"}], "spec.ephemeralContainers", "absent from a template"),
    ("spec.dnsPolicy", "None", "spec.dnsConfig.nameservers", "dnsPolicy is None"),
    ("spec.dnsConfig", {"nameservers": ["x"]}, "spec.dnsConfig.nameservers[0]", "IP address"),
    ("spec.hostAliases", [{"ip": "x", "hostnames": ["a"]}], "spec.hostAliases[0].ip", "IP address"),
    ("spec.hostname", "a.b", "spec.hostname", "DNS label"),
    ("spec.activeDeadlineSeconds", 0, "spec.activeDeadlineSeconds", "≥ 1"),
    ("spec.securityContext", {"sysctls": [{"name": "a.b", "value": "1"}] * 2}, None, "differ"),
    (
        "spec.securityContext",
        {"seccompProfile": {"type": "Localhost"}},
        "spec.securityContext.seccompProfile.localhostProfile",
        "must be set",
    ),
    (
        f"{MAIN}.securityContext",
        {"privileged": True, "allowPrivilegeEscalation": False},
        "spec.containers[0].securityContext.allowPrivilegeEscalation",
        "privileged",
    ),
    (
        f"{MAIN}.securityContext",
        {"procMount": "Unmasked"},
        "spec.containers[0].securityContext.procMount",
        "hostUsers is false",
    ),
]


@pytest.mark.parametrize(("at", "value", "path", "words"), BROKEN, ids=[f"{row[0]}={row[1]!r:.50}" for row in BROKEN])
def test_what_no_pod_can_have_is_refused_once(make_job, changed, faults_of, at, value, path, words):
    found = faults_of(changed(make_job(Worker=2), f"{TEMPLATE}.{at}", value))
    assert len(found) == 1
    [(where, message)] = found.items()
    assert words in message
    assert path is None or where == f"{TEMPLATE}.{path}"


def test_mounts(make_job, changed, faults_of):
    job = changed(make_job(Worker=1), f"{TEMPLATE}.spec.volumes", TWICE[:1])
    mounts = [
        {"name": "v", "mountPath": "/a", "subPath": "../x"},
        {"name": "v", "mountPath": "/a", "mountPropagation": "Bidirectional"},
        {"name": "v", "mountPath": "/c", "subPath": "x", "subPathExpr": "y"},
        {"name": "v", "mountPath": "/d", "recursiveReadOnly": "Enabled"},
    ]
    found = faults_of(changed(job, f"{TEMPLATE}.{MAIN}.volumeMounts", mounts))
    assert [path.partition("volumeMounts")[2] for path in found] == [
        "[0].subPath",
        "[1].mountPath",
        "[1].mountPropagation",
        "[2].subPathExpr",
        "[3].recursiveReadOnly",
    ]


def test_a_key_is_selected_once(make_job, changed, faults_of):
    job = changed(make_job(Worker=1), f"{TEMPLATE}.spec.affinity", required_pods(matchLabelKeys=["a"]))
    assert faults_of(job) == {}
    [message] = faults_of(changed(job, f"{TEMPLATE}.metadata.labels", {"a": "b"})).values()
    assert "must not be selected by labelSelector too" in message


def test_host_network_and_namespaces(make_job, changed, faults_of):
    job = changed(make_job(Worker=1), f"{TEMPLATE}.spec.hostNetwork", True)
    job = changed(job, f"{TEMPLATE}.spec.hostUsers", False)
    job = changed(job, f"{TEMPLATE}.spec.hostPID", True)
    found = faults_of(changed(job, f"{TEMPLATE}.{MAIN}.ports", [{"containerPort": 80, "hostPort": 81}]))
    assert [path.removeprefix(TEMPLATE) for path in found] == [
        ".spec.containers[0].ports[0].hostPort",
        ".spec.hostPID",
    ]


def test_the_pods_own_resources_hold_its_containers(make_job, changed, faults_of):
    wanted = {"requests": {"cpu": 2}, "limits": {"cpu": 4}}
    job = changed(make_job(Worker=1), f"{TEMPLATE}.{MAIN}.resources", wanted)
    found = faults_of(changed(job, f"{TEMPLATE}.spec.resources", {"requests": {"cpu": 1}, "limits": {"cpu": 3}}))
    assert [path.removeprefix(f"{TEMPLATE}.spec.") for path in found] == [
        "containers[0].resources.limits.cpu",
        "resources.requests.cpu",
    ]


@pytest.mark.parametrize("at", ["metadata.labels", "spec.nodeSelector"])
def test_a_fault_in_the_stored_template_blocks_no_scaling(make_job, changed, faults_of, at):
    old = changed(make_job(Worker=2), f"{TEMPLATE}.{at}", {"a": "b c"})
    assert faults_of(changed(old, f"{WORKER}.replicas", 3), old=old) == {}


def test_the_limits_are_laid_over_fields_that_exist():
    def unknown(base, over, at):
        for name, inner in over.get("properties", {}).items():
            known = base.get("properties", {})
            yield from [f"{at}.{name}"] if name not in known else unknown(known[name], inner, f"{at}.{name}")
        if "items" in over:
            yield from unknown(base["items"], over["items"], f"{at}[]")

    assert list(unknown(loader.resolved("podtemplate.json"), loader.resolved("podlimits.json"), "")) == []
