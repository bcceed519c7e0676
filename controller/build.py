"""Manifests of a job's children. Pure: the same job gives the same manifests."""

from collections.abc import Callable, Set
from functools import partial
from typing import Any

from controller import extras, gang
from controller.owned import job_labels, metadata, owner
from controller.settings import Settings
from schemas import env, names
from schemas.job import Job, Replica, mapping, sequence
from schemas.kinds import JobKind

JSON = dict[str, Any]

LEADING_ROLE = "master"
PLAIN = Settings()


def pod(job: Job, entry: Replica, index: int, *, attempt: int, round_: int, settings: Settings = PLAIN) -> JSON:
    """The pod of one replica, with what its kind's rule adds, and as a member of the job's gang if there is one."""
    made = extras.equipped(_own(job, entry, index, attempt, round_), job, entry, settings)
    scheduler = gang.SCHEDULERS.get(settings.gang_scheduler)
    return gang.joined(made, job, entry, scheduler, settings.gang_scheduler_name) if scheduler else made


def _own(job: Job, entry: Replica, index: int, attempt: int, round_: int) -> JSON:
    """The user's template, our labels, and the variables that wire the job together."""
    theirs = mapping(entry.template.get("metadata"))
    spec = dict(entry.pod_spec)
    spec["containers"] = _containers(job, entry, index)
    spec["restartPolicy"] = "Never" if entry.restart_policy == "ExitCode" else entry.restart_policy
    name = names.child(job.kind, job.name, entry.type, index)
    if job.kind.services == "job":
        spec.setdefault("hostname", name)
        spec.setdefault("subdomain", job.name)
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {
            "name": name,
            "namespace": job.namespace,
            "labels": {**mapping(theirs.get("labels")), **_labels(job, entry, index)},
            "annotations": {**mapping(theirs.get("annotations")), **_annotations(attempt, round_)},
            "finalizers": sequence(theirs.get("finalizers")),
            "ownerReferences": [owner(job)],
        },
        "spec": spec,
    }


def services(job: Job) -> list[JSON]:
    """The headless Services: one per replica, one for the whole job, or none, by the kind's row."""
    return [make() for make in _services(job).values()]


def missing_services(job: Job, have: Set[str]) -> list[JSON]:
    """``services`` but for those whose names are there."""
    return [make() for name, make in _services(job).items() if name not in have]


def service_names(job: Job) -> Set[str]:
    return _services(job).keys()


def _services(job: Job) -> dict[str, Callable[[], JSON]]:
    """Each Service by its name, made only when it is wanted."""
    if job.kind.services == "none":
        return {}
    if job.kind.services == "job":
        return {job.name: partial(_job_service, job)}
    return {
        names.child(job.kind, job.name, entry.type, index): partial(_replica_service, job, entry, index)
        for entry in job.replicas
        for index in entry.indexes
    }


def _job_service(job: Job) -> JSON:
    return _service(job, job.name, job_labels(job), _port_list(job.kind, env.port(job, _first_type(job))))


def _replica_service(job: Job, entry: Replica, index: int) -> JSON:
    name = names.child(job.kind, job.name, entry.type, index)
    return _service(job, name, names.replica_labels(job.kind, job.name, entry.type, index), _ports(job, entry))


def leading(job: Job, entry: Replica, index: int) -> bool:
    """Whether this replica carries the role label: index 0 of the type that the kind's row marks."""
    return index == 0 and entry.type == _role_type(job)


def _role_type(job: Job) -> str:
    """The marked type; a kind that marks none marks its leader, or else its first type."""
    if job.kind.role_types:
        return next((name for name in job.kind.role_types if job.replica(name)), "")
    return job.leader_type or _first_type(job)


def _first_type(job: Job) -> str:
    return job.replicas[0].type if job.replicas else ""


def _labels(job: Job, entry: Replica, index: int) -> JSON:
    role = {names.role_label(job.kind): LEADING_ROLE} if leading(job, entry, index) else {}
    return {**names.replica_labels(job.kind, job.name, entry.type, index), **role, names.JOB_UID: job.uid}


def _annotations(attempt: int, round_: int) -> JSON:
    annotations = {names.ATTEMPT: str(attempt)} if attempt else {}
    return {**annotations, names.ROUND: str(round_)} if round_ else annotations


def _containers(job: Job, entry: Replica, index: int) -> list[Any]:
    ours = env.cluster_env(job, entry.type, index)
    reached = env.reached(entry)
    return [_with_env(item, ours) if at in reached else item for at, item in enumerate(entry.containers)]


def _with_env(container: Any, ours: env.Variables) -> Any:
    """Our variables after the user's; a name the user has set is not added again (helm/helm#31529)."""
    if not isinstance(container, dict):
        return container
    theirs = sequence(container.get("env"))
    taken = {mapping(item).get("name") for item in theirs}
    added = [_variable(name, value) for name, value in ours.items() if name not in taken]
    return {**container, "env": [*theirs, *added]}


def _variable(name: str, value: str | JSON) -> JSON:
    return {"name": name, "value": value} if isinstance(value, str) else {"name": name, "valueFrom": value}


def _ports(job: Job, entry: Replica) -> list[JSON]:
    """All ports of the main container: named as there, or by number, so that unnamed ones do not collide."""
    at = entry.main_container
    written = sequence(entry.containers[at].get("ports")) if at is not None else []
    ports: dict[str, JSON] = {}
    for item in map(mapping, written):
        number, protocol = item.get("containerPort"), item.get("protocol") or "TCP"
        name = item.get("name") or f"{str(protocol).lower()}-{number}"
        ports.setdefault(str(name), {"name": name, "port": number, "protocol": protocol, "targetPort": number})
    return list(ports.values()) or _port_list(job.kind, job.kind.port)


def _port_list(kind: JobKind, number: int) -> list[JSON]:
    return [{"name": kind.port_name, "port": number, "protocol": "TCP", "targetPort": number}]


def _service(job: Job, name: str, labels: JSON, ports: list[JSON]) -> JSON:
    return {
        "apiVersion": "v1",
        "kind": "Service",
        "metadata": metadata(job, name, labels),
        "spec": {
            "clusterIP": "None",
            "selector": labels,
            "ports": ports,
            # peers look each other up before any of them is ready
            "publishNotReadyAddresses": True,
        },
    }
