"""What an MPIJob has besides its pods: how mpirun on the launcher finds the workers and starts processes there. Pure.

There is no ssh: the launcher runs ``kubectl exec`` with a ServiceAccount that may do just that, in these workers alone.
"""

from collections.abc import Collection, Mapping
from typing import Any

from controller import owned
from schemas import names
from schemas.env import mpi as places
from schemas.job import Job, Replica, integer, mapping, sequence, text

JSON = dict[str, Any]

RBAC = "rbac.authorization.k8s.io"
CONFIG_VOLUME = "mpi-job-config"
KUBECTL_VOLUME = "mpi-job-kubectl"
KUBECTL_DIRECTORY = "/opt/kube"
CONFIG_DIRECTORY = places.HOSTFILE.rpartition("/")[0]
DELIVERY = "kubectl-delivery"
EXECUTABLE, READABLE = 0o555, 0o444

# Options of a remote shell may come first, as Intel MPI passes them. /opt/kube/hosts is what the init container found
# out about the workers' addresses; a worker that may not change its /etc/hosts goes without.
KUBEXEC = """\
#!/bin/sh
# Runs a command in a worker: mpirun calls this as it would call ssh.
set -eu
while [ "${1#-}" != "$1" ]; do shift; done
worker=$1
shift
in_worker() { /opt/kube/kubectl exec "$@"; }
if [ -s /opt/kube/hosts ]; then
  in_worker -i "$worker"@CONTAINER@ -- /bin/sh -c '
    mark="# MPI workers"
    [ ! -w /etc/hosts ] || grep -q "^$mark" /etc/hosts || { echo "$mark"; cat; } >> /etc/hosts
  ' < /opt/kube/hosts
fi
in_worker "$worker"@CONTAINER@ -- /bin/sh -c "$*"
"""


def children(job: Job, running: Collection[str]) -> list[JSON]:
    """ConfigMap, ServiceAccount, Role and RoleBinding, in this order; ``running`` are the names of running pods."""
    return [_config(job, running), _object(job, "v1", "ServiceAccount"), _role(job), _role_binding(job)]


def equipped(pod: JSON, job: Job, entry: Replica, image: str) -> JSON:
    """The pod with what it needs: kubectl and the host file on the launcher, the scripts and a long sleep on workers.

    What the user set under the same name or path is kept.
    """
    spec = dict(pod["spec"])
    if entry.type == job.leader_type:
        mounts = [_mount(KUBECTL_VOLUME, KUBECTL_DIRECTORY), _mount(CONFIG_VOLUME, CONFIG_DIRECTORY)]
        spec["volumes"] = _with(spec.get("volumes"), {"name": KUBECTL_VOLUME, "emptyDir": {}}, _volume(job, _FILES))
        spec["initContainers"] = _with(spec.get("initContainers"), _delivery(job, mounts, image))
        spec["serviceAccountName"] = _account(job)
    else:
        mounts = [_mount(CONFIG_VOLUME, CONFIG_DIRECTORY)]
        spec["volumes"] = _with(spec.get("volumes"), _volume(job, _FILES[:1]))
    spec["containers"] = [
        _reaching(item, mounts, waits=entry.type != job.leader_type) if at == entry.main_container else item
        for at, item in enumerate(sequence(spec.get("containers")))
    ]
    return {**pod, "spec": spec}


def _workers(job: Job) -> list[tuple[Replica, str]]:
    return [
        (entry, names.child(job.kind, job.name, entry.type, index))
        for entry in job.replicas
        if entry.type != job.leader_type
        for index in range(max(entry.count, 0))
    ]


def _config(job: Job, running: Collection[str]) -> JSON:
    slots = integer(job.spec.get("slotsPerWorker")) or 1
    workers = [name for _, name in _workers(job)]
    discovered = "".join(f"echo {name}:{slots}\n" for name in workers if name in running)
    data = {
        "hostfile": "".join(f"{name} slots={slots}\n" for name in workers),
        "kubexec.sh": KUBEXEC.replace("@CONTAINER@", _container_option(job)),
        "discover_hosts.sh": f"#!/bin/sh\n{discovered}",
    }
    return {**_object(job, "v1", "ConfigMap", f"{job.name}-config"), "data": data}


def _container_option(job: Job) -> str:
    """In which container processes are started; a name with anything but its letters never reaches the script."""
    name = text(job.spec.get("mainContainer")) or _main_container(job)
    return f" -c {name}" if names.is_dns_1123_label(name) else ""


def _main_container(job: Job) -> str:
    entry = next((entry for entry, _ in _workers(job)), None)
    at = entry.main_container if entry else None
    return text(entry.containers[at].get("name")) if entry and at is not None else ""


def _role(job: Job) -> JSON:
    reading = {"apiGroups": [""], "resources": ["pods"], "verbs": ["get", "list", "watch"]}
    workers = [name for _, name in _workers(job)]
    # without a name this would be every pod of the namespace
    running = [{"apiGroups": [""], "resources": ["pods/exec"], "resourceNames": workers, "verbs": ["create"]}]
    return {**_object(job, f"{RBAC}/v1", "Role"), "rules": [reading, *(running if workers else ())]}


def _role_binding(job: Job) -> JSON:
    return {
        **_object(job, f"{RBAC}/v1", "RoleBinding"),
        "roleRef": {"apiGroup": RBAC, "kind": "Role", "name": _launcher(job)},
        "subjects": [{"kind": "ServiceAccount", "name": _account(job), "namespace": job.namespace}],
    }


def _object(job: Job, api_version: str, kind: str, name: str = "") -> JSON:
    metadata = owned.metadata(job, name or _launcher(job), owned.job_labels(job))
    return {"apiVersion": api_version, "kind": kind, "metadata": metadata}


def _launcher(job: Job) -> str:
    return f"{job.name}-launcher"


def _account(job: Job) -> str:
    """The ServiceAccount of the launcher: the user's, or else ours."""
    entry = job.replica(job.leader_type or "")
    return text(entry.pod_spec.get("serviceAccountName") if entry else "") or _launcher(job)


_FILES = (("kubexec.sh", EXECUTABLE), ("hostfile", READABLE), ("discover_hosts.sh", EXECUTABLE))


def _volume(job: Job, files: Collection[tuple[str, int]]) -> JSON:
    items = [{"key": name, "path": name, "mode": mode} for name, mode in files]
    return {"name": CONFIG_VOLUME, "configMap": {"name": f"{job.name}-config", "items": items}}


def _mount(volume: str, path: str) -> JSON:
    return {"name": volume, "mountPath": path}


def _delivery(job: Job, mounts: list[JSON], image: str) -> JSON:
    """Brings kubectl along, and waits until the workers of the host file are ready."""
    amounts = {"cpu": "100m", "memory": "512Mi", "ephemeral-storage": "5Gi"}
    return {
        "name": DELIVERY,
        "image": image,
        "env": [{"name": "TARGET_DIR", "value": KUBECTL_DIRECTORY}, {"name": "NAMESPACE", "value": job.namespace}],
        "resources": {"limits": amounts, "requests": amounts},
        "securityContext": {"allowPrivilegeEscalation": False, "capabilities": {"drop": ["ALL"]}},
        "volumeMounts": mounts,
    }


def _reaching(container: Any, mounts: list[JSON], *, waits: bool) -> Any:
    """The main container with our mounts; a worker that is told nothing waits to be called."""
    if not isinstance(container, Mapping):
        return container
    theirs = sequence(container.get("volumeMounts"))
    taken = {text(mapping(item).get("mountPath")) for item in theirs}
    idle = waits and not container.get("command") and not container.get("args")
    return {
        **container,
        **({"command": ["sleep"], "args": ["365d"]} if idle else {}),
        "volumeMounts": [*theirs, *(mount for mount in mounts if mount["mountPath"] not in taken)],
    }


def _with(theirs: Any, *ours: JSON) -> list[Any]:
    """The user's list and ours after it; a name the user has set is not added again."""
    listed = sequence(theirs)
    taken = {text(mapping(item).get("name")) for item in listed}
    return [*listed, *(item for item in ours if item["name"] not in taken)]
