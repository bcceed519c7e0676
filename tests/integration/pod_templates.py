"""Pod templates and what can be wrong with them: good parts of many sorts, and damage to each node of them."""

from collections.abc import Iterator
from copy import deepcopy
from typing import Any

JSON = dict[str, Any]
Segments = tuple[str | int, ...]

REQUIRED = "requiredDuringSchedulingIgnoredDuringExecution"
CONTAINER: Segments = ("spec", "containers", 0)
EXEC = {"exec": {"command": ["true"]}}
SELECTOR = {"matchLabels": {"app": "x"}, "matchExpressions": [{"key": "tier", "operator": "In", "values": ["a", "b"]}]}
AFFINITY_TERM = {
    "topologyKey": "kubernetes.io/hostname",
    "labelSelector": SELECTOR,
    "namespaces": ["team-a"],
    "namespaceSelector": {"matchLabels": {"a": "b"}},
    "matchLabelKeys": ["release"],
    "mismatchLabelKeys": ["other"],
}
ITEM = {"key": "k", "path": "dir/file", "mode": 256}
FIELD = {"path": "labels", "fieldRef": {"fieldPath": "metadata.labels"}, "mode": 256}
AMOUNT = {"path": "cpu", "resourceFieldRef": {"containerName": "main", "resource": "limits.cpu", "divisor": "1m"}}
CLAIM = {
    "metadata": {"labels": {"a": "b"}, "annotations": {"c": "d"}},
    "spec": {
        "accessModes": ["ReadWriteOnce"],
        "resources": {"requests": {"storage": "1Gi"}, "limits": {"storage": "2Gi"}},
        "storageClassName": "fast",
        "volumeMode": "Filesystem",
        "selector": SELECTOR,
        "dataSource": {"kind": "PersistentVolumeClaim", "name": "x"},
        "volumeName": "pv",
    },
}

VOLUMES: dict[str, JSON] = {
    "emptyDir": {"medium": "Memory", "sizeLimit": "1Gi"},
    "hostPath": {"path": "/data", "type": "Directory"},
    "secret": {"secretName": "s", "defaultMode": 256, "items": [ITEM], "optional": True},
    "configMap": {"name": "c", "defaultMode": 256, "items": [ITEM], "optional": True},
    "persistentVolumeClaim": {"claimName": "data", "readOnly": True},
    "nfs": {"server": "host", "path": "/export", "readOnly": True},
    "csi": {"driver": "csi.example.com", "fsType": "ext4", "nodePublishSecretRef": {"name": "s"}},
    "downwardAPI": {"defaultMode": 256, "items": [FIELD, AMOUNT]},
    "projected": {
        "defaultMode": 256,
        "sources": [
            {"secret": {"name": "s", "items": [ITEM]}},
            {"configMap": {"name": "c", "items": [{**ITEM, "path": "other"}]}},
            {"downwardAPI": {"items": [FIELD, AMOUNT]}},
            {"serviceAccountToken": {"path": "token", "audience": "x", "expirationSeconds": 3600}},
            {"clusterTrustBundle": {"name": "b", "path": "ca.pem", "optional": True}},
            {"clusterTrustBundle": {"signerName": "example.com/s", "labelSelector": SELECTOR, "path": "ca2.pem"}},
        ],
    },
    "ephemeral": {"volumeClaimTemplate": CLAIM},
    "image": {"reference": "registry.example/weights:1", "pullPolicy": "Always"},
    "iscsi": {"targetPortal": "10.0.0.1:3260", "iqn": "iqn.2026-01.com.example:storage", "lun": 1, "fsType": "ext4"},
    "fc": {"targetWWNs": ["500a0982991b8dc5"], "lun": 2, "fsType": "ext4"},
    "cephfs": {"monitors": ["10.0.0.1:6789"], "path": "/", "user": "u", "secretRef": {"name": "s"}},
    "rbd": {"monitors": ["10.0.0.1:6789"], "image": "i", "pool": "p"},
    "glusterfs": {"endpoints": "e", "path": "p"},
    "cinder": {"volumeID": "v", "fsType": "ext4"},
    "flexVolume": {"driver": "example.com/d", "fsType": "ext4", "options": {"a": "b"}},
    "flocker": {"datasetName": "d"},
    "gitRepo": {"repository": "https://git.example/x.git", "directory": "x"},
    "quobyte": {"registry": "h:1,i:2", "volume": "v", "tenant": "t"},
    "azureFile": {"secretName": "s", "shareName": "x"},
    "azureDisk": {"diskName": "d", "diskURI": "/subscriptions/x", "kind": "Managed", "cachingMode": "None"},
    "awsElasticBlockStore": {"volumeID": "v", "partition": 1},
    "gcePersistentDisk": {"pdName": "d", "partition": 1},
    "vsphereVolume": {"volumePath": "[x] y"},
    "photonPersistentDisk": {"pdID": "x"},
    "portworxVolume": {"volumeID": "v"},
    "scaleIO": {"gateway": "https://h", "system": "s", "volumeName": "v", "secretRef": {"name": "s"}},
    "storageos": {"volumeName": "v", "volumeNamespace": "n"},
}

ENV: list[JSON] = [
    {"name": "PLAIN", "value": "1"},
    {"name": "FIELD", "valueFrom": {"fieldRef": {"fieldPath": "metadata.labels['app']"}}},
    {"name": "NAME", "valueFrom": {"fieldRef": {"apiVersion": "v1", "fieldPath": "metadata.name"}}},
    {"name": "CPU", "valueFrom": {"resourceFieldRef": {"resource": "limits.memory", "divisor": "1Mi"}}},
    {"name": "SECRET", "valueFrom": {"secretKeyRef": {"name": "s", "key": "k", "optional": True}}},
    {"name": "CONFIG", "valueFrom": {"configMapKeyRef": {"name": "c", "key": "k.txt"}}},
]
EVERY_PROBE_FIELD = {
    "initialDelaySeconds": 1,
    "periodSeconds": 2,
    "timeoutSeconds": 3,
    "successThreshold": 1,
    "failureThreshold": 4,
}

# name, where it is put, what; each is good by itself
PARTS: list[tuple[str, Segments, Any]] = [
    ("labels", ("metadata", "labels"), {"app.kubernetes.io/name": "x", "tier": "Back_end.1"}),
    ("annotations", ("metadata", "annotations"), {"Example.com/Note": "any text!"}),
    ("finalizers", ("metadata", "finalizers"), ["example.com/keep"]),
    ("container-name", (*CONTAINER, "name"), "main"),
    ("image", (*CONTAINER, "image"), "registry.example/x:1"),
    ("pull-policy", (*CONTAINER, "imagePullPolicy"), "Always"),
    ("working-dir", (*CONTAINER, "workingDir"), "/work"),
    ("termination", (*CONTAINER, "terminationMessagePolicy"), "File"),
    ("termination-path", (*CONTAINER, "terminationMessagePath"), "/dev/x"),
    (
        "ports",
        (*CONTAINER, "ports"),
        [
            {"name": "http", "containerPort": 80, "hostPort": 8080, "protocol": "TCP", "hostIP": "10.0.0.1"},
            {"containerPort": 80},
        ],
    ),
    ("env", (*CONTAINER, "env"), ENV),
    (
        "env-from",
        (*CONTAINER, "envFrom"),
        [{"prefix": "A_", "configMapRef": {"name": "c"}}, {"secretRef": {"name": "s", "optional": True}}],
    ),
    (
        "resources",
        (*CONTAINER, "resources"),
        {
            "limits": {"cpu": "1", "memory": "1Gi", "nvidia.com/gpu": 1, "ephemeral-storage": "2Gi"},
            "requests": {"cpu": "500m", "memory": "1Gi", "nvidia.com/gpu": 1},
        },
    ),
    ("huge-pages", (*CONTAINER, "resources"), {"limits": {"hugepages-2Mi": "4Mi", "cpu": 1}}),
    ("resize", (*CONTAINER, "resizePolicy"), [{"resourceName": "cpu", "restartPolicy": "NotRequired"}]),
    ("liveness", (*CONTAINER, "livenessProbe"), {**EXEC, **EVERY_PROBE_FIELD, "terminationGracePeriodSeconds": 5}),
    (
        "readiness",
        (*CONTAINER, "readinessProbe"),
        {
            "httpGet": {
                "path": "/x",
                "port": 80,
                "host": "h",
                "scheme": "HTTP",
                "httpHeaders": [{"name": "X-A", "value": "b"}],
            },
            "successThreshold": 2,
        },
    ),
    ("startup-tcp", (*CONTAINER, "startupProbe"), {"tcpSocket": {"port": "http", "host": "h"}}),
    ("startup-grpc", (*CONTAINER, "startupProbe"), {"grpc": {"port": 80, "service": "s"}}),
    (
        "lifecycle",
        (*CONTAINER, "lifecycle"),
        {"postStart": EXEC, "preStop": {"sleep": {"seconds": 5}}},
    ),
    (
        "security",
        (*CONTAINER, "securityContext"),
        {
            "privileged": False,
            "allowPrivilegeEscalation": False,
            "runAsUser": 1000,
            "runAsGroup": 1000,
            "runAsNonRoot": True,
            "procMount": "Default",
            "capabilities": {"add": ["SYS_PTRACE"], "drop": ["ALL"]},
            "seccompProfile": {"type": "Localhost", "localhostProfile": "profiles/x.json"},
            "appArmorProfile": {"type": "Localhost", "localhostProfile": "x"},
            "seLinuxOptions": {"level": "s0"},
        },
    ),
    ("privileged", (*CONTAINER, "securityContext"), {"privileged": True, "allowPrivilegeEscalation": True}),
    (
        "init",
        ("spec", "initContainers"),
        [
            {"name": "first", "image": "i", "env": [{"name": "A", "value": "b"}]},
            {"name": "side", "image": "i", "restartPolicy": "Always", "livenessProbe": EXEC},
        ],
    ),
    ("sidecar", ("spec", "containers"), [{"name": "main", "image": "i"}, {"name": "log-shipper", "image": "i"}]),
    (
        "restart-rules",
        CONTAINER,
        {
            "name": "main",
            "image": "i",
            "restartPolicy": "Never",
            "restartPolicyRules": [{"action": "Restart", "exitCodes": {"operator": "In", "values": [42]}}],
        },
    ),
    ("node-selector", ("spec", "nodeSelector"), {"example.com/pool": "gpu", "zone": "a_b"}),
    (
        "tolerations",
        ("spec", "tolerations"),
        [
            {"key": "gpu", "operator": "Exists", "effect": "NoSchedule"},
            {"key": "a/b", "operator": "Equal", "value": "x", "effect": "NoExecute", "tolerationSeconds": 60},
            {"operator": "Exists"},
        ],
    ),
    (
        "node-affinity",
        ("spec", "affinity"),
        {
            "nodeAffinity": {
                "requiredDuringSchedulingIgnoredDuringExecution": {
                    "nodeSelectorTerms": [
                        {
                            "matchExpressions": [
                                {"key": "zone", "operator": "In", "values": ["a", "b"]},
                                {"key": "gpu", "operator": "Exists"},
                                {"key": "cores", "operator": "Gt", "values": ["5"]},
                            ],
                            "matchFields": [{"key": "metadata.name", "operator": "In", "values": ["n"]}],
                        }
                    ]
                },
                "preferredDuringSchedulingIgnoredDuringExecution": [
                    {"weight": 5, "preference": {"matchExpressions": [{"key": "a", "operator": "DoesNotExist"}]}}
                ],
            }
        },
    ),
    (
        "pod-affinity",
        ("spec", "affinity"),
        {
            "podAffinity": {
                "requiredDuringSchedulingIgnoredDuringExecution": [AFFINITY_TERM],
                "preferredDuringSchedulingIgnoredDuringExecution": [{"weight": 5, "podAffinityTerm": AFFINITY_TERM}],
            },
        },
    ),
    (
        "pod-anti-affinity",
        ("spec", "affinity"),
        {"podAntiAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [{"topologyKey": "zone"}]}},
    ),
    (
        "spread",
        ("spec", "topologySpreadConstraints"),
        [
            {
                "maxSkew": 1,
                "topologyKey": "zone",
                "whenUnsatisfiable": "DoNotSchedule",
                "labelSelector": SELECTOR,
                "minDomains": 2,
                "matchLabelKeys": ["release"],
                "nodeAffinityPolicy": "Honor",
                "nodeTaintsPolicy": "Ignore",
            }
        ],
    ),
    ("dns-policy", ("spec", "dnsPolicy"), "Default"),
    (
        "dns",
        ("spec", "dnsConfig"),
        {
            "nameservers": ["1.2.3.4", "::1"],
            "searches": ["a.b", "_x.y"],
            "options": [{"name": "ndots", "value": "2"}],
        },
    ),
    ("host-aliases", ("spec", "hostAliases"), [{"ip": "127.0.0.1", "hostnames": ["foo.local", "bar"]}]),
    ("hostname", ("spec", "hostname"), "host"),
    ("subdomain", ("spec", "subdomain"), "sub"),
    ("hostname-override", ("spec", "hostnameOverride"), "a.b"),
    ("service-account", ("spec", "serviceAccountName"), "trainer"),
    ("scheduler", ("spec", "schedulerName"), "volcano"),
    ("preemption", ("spec", "preemptionPolicy"), "PreemptLowerPriority"),
    ("node-name", ("spec", "nodeName"), "node-1"),
    ("deadline", ("spec", "activeDeadlineSeconds"), 60),
    ("grace", ("spec", "terminationGracePeriodSeconds"), 60),
    ("pull-secrets", ("spec", "imagePullSecrets"), [{"name": "registry"}]),
    ("readiness-gates", ("spec", "readinessGates"), [{"conditionType": "example.com/ready"}]),
    ("scheduling-gates", ("spec", "schedulingGates"), [{"name": "example.com/gate"}]),
    ("os", ("spec", "os"), {"name": "linux"}),
    ("share", ("spec", "shareProcessNamespace"), True),
    ("host-users", ("spec", "hostUsers"), False),
    ("fqdn", ("spec", "setHostnameAsFQDN"), True),
    (
        "pod-security",
        ("spec", "securityContext"),
        {
            "fsGroup": 1000,
            "runAsUser": 1000,
            "runAsGroup": 1000,
            "supplementalGroups": [1, 2],
            "fsGroupChangePolicy": "OnRootMismatch",
            "supplementalGroupsPolicy": "Merge",
            "seLinuxChangePolicy": "Recursive",
            "sysctls": [{"name": "net.core.somaxconn", "value": "1"}],
            "seccompProfile": {"type": "RuntimeDefault"},
            "appArmorProfile": {"type": "RuntimeDefault"},
        },
    ),
    (
        "pod-resources",
        ("spec", "resources"),
        {"limits": {"cpu": "4", "memory": "4Gi"}, "requests": {"cpu": "2", "memory": "4Gi"}},
    ),
    (
        "claims",
        ("spec",),
        {
            "resourceClaims": [
                {"name": "gpu", "resourceClaimName": "c"},
                {"name": "t", "resourceClaimTemplateName": "d"},
            ],
            "containers": [
                {
                    "name": "main",
                    "image": "i",
                    "resources": {"claims": [{"name": "gpu", "request": "r"}, {"name": "t"}]},
                }
            ],
        },
    ),
    (
        "mounts",
        ("spec",),
        {
            "volumes": [{"name": "a", "emptyDir": {}}, {"name": "b", "emptyDir": {}}],
            "containers": [
                {
                    "name": "main",
                    "image": "i",
                    "volumeMounts": [
                        {"name": "a", "mountPath": "/a", "subPath": "x/y", "mountPropagation": "None"},
                        {"name": "a", "mountPath": "/b", "subPathExpr": "$(X)", "readOnly": True},
                        {"name": "b", "mountPath": "/c", "readOnly": True, "recursiveReadOnly": "Enabled"},
                    ],
                }
            ],
        },
    ),
    (
        "devices",
        ("spec",),
        {
            "volumes": [
                {"name": "disk", "persistentVolumeClaim": {"claimName": "c"}},
                {"name": "dir", "emptyDir": {}},
            ],
            "containers": [
                {
                    "name": "main",
                    "image": "i",
                    "volumeDevices": [{"name": "disk", "devicePath": "/dev/x"}],
                    "volumeMounts": [{"name": "dir", "mountPath": "/d"}],
                }
            ],
        },
    ),
    (
        "host-network",
        ("spec",),
        {
            "hostNetwork": True,
            "hostPID": True,
            "hostIPC": True,
            "containers": [
                {"name": "main", "image": "i", "ports": [{"containerPort": 80, "hostPort": 80, "name": "a"}]}
            ],
        },
    ),
    *((f"volume-{name}", ("spec", "volumes"), [{"name": "v", name: source}]) for name, source in VOLUMES.items()),
]

TEXTS = (None, "", "-x", "X_1", "a.b/c", "a/../b", "/abs", "..x", "x" * 64, "x" * 254, "0", "é", "a b", "a=b", 7)
NUMBERS = (None, -1, 0, 2, 101, 512, 65536, 2**31, "5", 1.5)


def base() -> JSON:
    """The least good template."""
    container = {"name": "main", "image": "registry.example/train:1"}
    return {"spec": {"serviceAccountName": "default", "containers": [container]}}


def with_part(at: Segments, part: Any) -> JSON:
    """The least template with one part."""
    return put(base(), at, part)


def put(document: Any, at: Segments, value: Any) -> Any:
    """A copy with ``value`` at ``at``; objects on the way are made."""
    if not at:
        return deepcopy(value)
    head, *rest = at
    if isinstance(head, int):
        return [put(item, tuple(rest), value) if index == head else item for index, item in enumerate(document)]
    return {**document, head: put(document.get(head, {}), tuple(rest), value)}


def damaged(node: Any) -> Iterator[tuple[str, Any]]:
    """``node`` with one place changed, each with a note of what was done."""
    if isinstance(node, dict):
        for key, value in node.items():
            yield f"-{key}", {name: item for name, item in node.items() if name != key}
            yield from ((f".{key}{note}", {**node, key: other}) for note, other in damaged(value))
    elif isinstance(node, list):
        if node:
            yield "+first", [*node, node[0]]
        for index, item in enumerate(node):
            yield from (
                (f"[{index}]{note}", [*node[:index], other, *node[index + 1 :]]) for note, other in damaged(item)
            )
    values: tuple[Any, ...] = (None, {}) if isinstance(node, dict) else (None, []) if isinstance(node, list) else ()
    if isinstance(node, bool):
        values = (None, not node)
    elif isinstance(node, int):
        values = NUMBERS
    elif isinstance(node, str):
        values = TEXTS
    yield from ((f"={value!r:.20}", value) for value in values)
