"""Carries a plan out: the only module that writes to the API server.

A name that is taken, a quota or a policy never fails a job: it comes back as an ``Obstacle``. What is only a
passing trouble of the API server is raised, and the caller tries again.
"""

import hashlib
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from controller import extras
from controller.plan import Action, Create, Delete, DeleteJob, Event, Obstacle, Update
from kube import errors
from kube.raw import RawKube
from kube.resources import EVENTS, PODS, SERVICES, TRAINING_POLICIES, Resource
from kube.store import owner_uid
from schemas import names, times
from schemas.job import Job, mapping, sequence

JSON = dict[str, Any]

RESOURCES: dict[str, Resource] = {
    "pods": PODS,
    "services": SERVICES,
    **{sort.key: Resource(sort.group, sort.version, sort.plural, sort.kind) for sort in extras.SORTS},
}
COMPONENT = "signalbox-controller"
LONGEST_MESSAGE = 1024
PASSING = (401, 408, 409, 429)
"""4xx that say nothing against the object itself; a 409 that is no taken name passes too."""
LEAVING = Obstacle("", "")
"""The name is taken by something on its way out: nothing to show, but to be waited for."""


class Stop(Exception):  # noqa: N818 - not an error: the job, or its namespace, is going away
    """Nothing more is to be done for this job."""


@dataclass(frozen=True, slots=True)
class Port:
    """What ``apply`` works on: the API server, and who gets to know at once what was written."""

    kube: RawKube
    saw_child: Callable[[str, JSON], None]
    """Takes the resource as actions call it, and the child as the server answered it: reads after it see the write."""
    saw_event: Callable[[Mapping[str, Any]], None]


def policy_status(kube: RawKube, stored: Mapping[str, Any], changed: JSON) -> JSON:
    """Changes fields of a policy's status; Conflict when it was changed meanwhile. The policy as it is then."""
    metadata = mapping(stored.get("metadata"))
    body = {"metadata": {"resourceVersion": metadata.get("resourceVersion")}, "status": changed}
    path = TRAINING_POLICIES.path(name=metadata.get("name"), subresource="status")
    return kube.patch(path, body, kind="merge")


def actions(port: Port, job: Job, resource: Resource, wanted: Iterable[Action]) -> Obstacle | None:
    """Sends the actions in order; after the first obstacle, which is returned, the deletes alone.

    Raises ``Stop`` when the job's namespace is going away, and ``KubeError`` for passing trouble: also for a name that
    belongs to another object by now, of which the watch will tell.
    """
    obstacle: Obstacle | None = None
    for action in wanted:
        if isinstance(action, Create):
            obstacle = obstacle or _create(port, job, action)
        elif isinstance(action, Update):
            obstacle = obstacle or _update(port, job, action)
        elif isinstance(action, Delete):
            path = RESOURCES[action.resource].path(job.namespace, action.name)
            _delete(port, path, action.uid, grace_seconds=0 if action.force else None)
        elif isinstance(action, DeleteJob):
            _delete(port, resource.path(job.namespace, job.name), job.uid)
    return obstacle


def status(port: Port, job: Mapping[str, Any], resource: Resource, wanted: JSON) -> JSON | None:
    """Writes the status of the job as stored and returns the answer; None when it has changed meanwhile.

    Raises ``Stop`` when the job is gone.
    """
    metadata = mapping(job.get("metadata"))
    path = resource.path(metadata["namespace"], metadata["name"], "status")
    try:
        return port.kube.replace(path, {**job, "status": wanted})
    except errors.Conflict:
        return None
    except errors.NotFound as error:
        raise Stop from error


def event(port: Port, job: Job, told: Event, now: datetime) -> None:
    """One Event object for each job, reason and subject, which counts its repetitions."""
    path = EVENTS.path(job.namespace)
    manifest = event_manifest(job, told, now)
    try:
        port.saw_event(port.kube.create(path, manifest))
    except errors.AlreadyExists:
        _count(port, EVENTS.path(job.namespace, manifest["metadata"]["name"]), manifest["message"], now)
    except (errors.Forbidden, errors.NotFound):  # the namespace is going away
        return


def notice(port: Port, job: Job, told: Event, now: datetime) -> None:
    """An Event of something that lasts: the one object is made once and counts nothing."""
    try:
        port.saw_event(port.kube.create(EVENTS.path(job.namespace), event_manifest(job, told, now)))
    except (errors.AlreadyExists, errors.Forbidden, errors.NotFound):
        return


def event_manifest(job: Job, told: Event, now: datetime) -> JSON:
    """A core/v1 Event whose name follows from its subject, so that telling it twice makes one object."""
    message = told.message[:LONGEST_MESSAGE]
    subject = message if told.subject is None else told.subject
    digest = hashlib.sha256(f"{job.uid}/{told.reason}/{subject}".encode()).hexdigest()[:16]
    stamp = times.written(now)
    return {
        "apiVersion": "v1",
        "kind": "Event",
        "metadata": {"name": f"{job.name}.{digest}", "namespace": job.namespace},
        "involvedObject": {
            "apiVersion": job.kind.api_version,
            "kind": job.kind.kind,
            "name": job.name,
            "namespace": job.namespace,
            "uid": job.uid,
        },
        "type": told.type,
        "reason": told.reason,
        "message": message,
        "count": 1,
        "firstTimestamp": stamp,
        "lastTimestamp": stamp,
        "source": {"component": COMPONENT},
        "reportingComponent": COMPONENT,
    }


def _count(port: Port, path: str, message: str, now: datetime) -> None:
    try:
        count = int(port.kube.get(path).get("count") or 1) + 1
        change = {"count": count, "lastTimestamp": times.written(now), "message": message}
        port.saw_event(port.kube.patch(path, change, kind="merge"))
    except errors.NotFound:  # Events expire
        return


def _create(port: Port, job: Job, action: Create) -> Obstacle | None:
    resource = RESOURCES[action.resource]
    try:
        port.saw_child(action.resource, port.kube.create(resource.path(job.namespace), action.manifest))
    except errors.AlreadyExists:
        return _taken(port, job, action)
    except errors.NotFound as error:
        if not error.reason:  # no Status: the resource itself is not known
            return _not_installed(resource)
        raise Stop from error
    except errors.KubeError as error:
        return _refused(error, "CreateRefused")
    return None


def _update(port: Port, job: Job, action: Update) -> Obstacle | None:
    """A child that is gone, or another one by now, is decided about again when the watch tells."""
    path = RESOURCES[action.resource].path(job.namespace, action.name)
    try:
        port.saw_child(action.resource, port.kube.patch(path, _for(action), kind="merge"))
    except (errors.Conflict, errors.NotFound):
        return None
    except errors.KubeError as error:
        return _refused(error, "UpdateRefused")
    return None


def _for(action: Update) -> JSON:
    return {"metadata": {"uid": action.uid}, **action.change}


def _refused(error: errors.KubeError, reason: str) -> Obstacle:
    """What the server, a quota or anybody's admission policy says against a child; passing trouble is raised again."""
    if "being terminated" in error.message:
        raise Stop from error
    lasting = 400 <= error.status < 500 and error.status not in PASSING
    if not (lasting or isinstance(error, errors.Forbidden | errors.Invalid)) and "webhook" not in error.message:
        raise error
    return Obstacle("QuotaExceeded" if "exceeded quota" in error.message else reason, error.message)


def _not_installed(resource: Resource) -> Obstacle:
    """The API server does not know the resource: its CRD is missing (kubeflow/trainer#1630)."""
    name = f"{resource.plural}.{resource.group}"
    return Obstacle(
        f"{resource.kind}NotInstalled",
        f"The API server does not serve {resource.kind} ({name}, {resource.version}): its CRD is not installed.",
    )


def _taken(port: Port, job: Job, action: Create) -> Obstacle | None:
    """The name exists: ours (adopt it), on its way out (wait quietly), or a stranger's (kubernetes-sigs/jobset#18).

    No watch tells when a stranger's object is gone.
    """
    resource = RESOURCES[action.resource]
    name = action.manifest["metadata"]["name"]
    path = resource.path(job.namespace, name)
    try:
        found = port.kube.get(path)
    except errors.NotFound:
        return LEAVING
    metadata = mapping(found.get("metadata"))
    if owner_uid(found) == job.uid:
        port.saw_child(action.resource, _labelled(port, path, action, found))
        return None
    if metadata.get("deletionTimestamp") is not None:
        return LEAVING
    owner = mapping(controller_of(found))
    whose = f"{owner['kind']} {owner.get('name')}" if owner.get("kind") else "nobody we know"
    return Obstacle("NameConflict", f"{resource.kind} {name} exists and belongs to {whose}.")


def _labelled(port: Port, path: str, action: Create, found: JSON) -> JSON:
    """Our child with our labels, so that the watch sees it."""
    labels = action.manifest["metadata"]["labels"]
    have = mapping(mapping(found.get("metadata")).get("labels"))
    if have.get(names.JOB_UID) == labels[names.JOB_UID]:
        return found
    return port.kube.patch(path, {"metadata": {"labels": labels}}, kind="merge")


def _delete(port: Port, path: str, uid: str, *, grace_seconds: int | None = None) -> None:
    try:
        port.kube.delete(path, uid=uid, grace_seconds=grace_seconds)
    except errors.NotFound:
        return


def controller_of(child: Mapping[str, Any]) -> Mapping[str, Any] | None:
    """The controlling owner reference of an object."""
    references = sequence(mapping(child.get("metadata")).get("ownerReferences"))
    return next((mapping(item) for item in references if mapping(item).get("controller") is True), None)
