"""Carries a plan out: the only module that writes to the API server.

A name that is taken, a quota or a policy never fails a job: it comes back as an ``Obstacle``. What is only a
passing trouble of the API server is raised, and the caller tries again.
"""

import hashlib
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from controller.plan import Action, Create, Delete, DeleteJob, Event, Obstacle
from kube import errors
from kube.raw import RawKube
from kube.resources import EVENTS, PODS, SERVICES, Resource
from kube.store import owner_uid
from schemas import names, times
from schemas.job import Job, mapping, sequence

JSON = dict[str, Any]

RESOURCES: dict[str, Resource] = {"pods": PODS, "services": SERVICES}
COMPONENT = "signalbox-controller"
LONGEST_MESSAGE = 1024


class Stop(Exception):  # noqa: N818 - not an error: the job, or its namespace, is going away
    """Nothing more is to be done for this job."""


@dataclass(frozen=True, slots=True)
class Port:
    """What ``apply`` works on: the API server, and who gets to know at once what was written."""

    kube: RawKube
    saw_child: Callable[[str, JSON], None]
    """Takes the plural and the child as the server answered it: reads after it see the write."""
    saw_event: Callable[[Mapping[str, Any]], None]


def actions(port: Port, job: Job, resource: Resource, wanted: Iterable[Action]) -> Obstacle | None:
    """Sends the actions in order, stops at the first obstacle and returns it.

    Raises ``Stop`` when the job's namespace is going away, and ``KubeError`` for passing trouble.
    """
    for action in wanted:
        if isinstance(action, Create):
            if obstacle := _create(port, job, action):
                return obstacle
        elif isinstance(action, Delete):
            _delete(port, RESOURCES[action.resource].path(job.namespace, action.name), action.uid)
        elif isinstance(action, DeleteJob):
            _delete(port, resource.path(job.namespace, job.name), job.uid)
    return None


def status(port: Port, job: Mapping[str, Any], resource: Resource, wanted: JSON) -> JSON | None:
    """Writes the status of the job as stored and returns the answer; None when it has changed meanwhile or is gone."""
    metadata = mapping(job.get("metadata"))
    path = resource.path(metadata["namespace"], metadata["name"], "status")
    try:
        return port.kube.replace(path, {**job, "status": wanted})
    except (errors.Conflict, errors.NotFound):
        return None


def event(port: Port, job: Job, told: Event, now: datetime) -> None:
    """One Event object for each job, reason and message; an aggregate one counts its repetitions."""
    path = EVENTS.path(job.namespace)
    manifest = event_manifest(job, told, now)
    try:
        port.saw_event(port.kube.create(path, manifest))
    except errors.AlreadyExists:
        if told.aggregate:
            _count(port, EVENTS.path(job.namespace, manifest["metadata"]["name"]), now)
    except (errors.Forbidden, errors.NotFound):  # the namespace is going away
        return


def event_manifest(job: Job, told: Event, now: datetime) -> JSON:
    """A core/v1 Event whose name follows from what it says, so that telling it twice makes one object."""
    message = told.message[:LONGEST_MESSAGE]
    digest = hashlib.sha256(f"{job.uid}/{told.reason}/{message}".encode()).hexdigest()[:16]
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


def _count(port: Port, path: str, now: datetime) -> None:
    try:
        count = int(port.kube.get(path).get("count") or 1) + 1
        change = {"count": count, "lastTimestamp": times.written(now)}
        port.saw_event(port.kube.patch(path, change, kind="merge"))
    except errors.NotFound:  # Events expire
        return


def _create(port: Port, job: Job, action: Create) -> Obstacle | None:
    resource = RESOURCES[action.resource]
    try:
        port.saw_child(action.resource, port.kube.create(resource.path(job.namespace), action.manifest))
    except errors.AlreadyExists:
        return _taken(port, job, action)
    except errors.Forbidden as error:
        if "being terminated" in error.message:
            raise Stop from error
        reason = "QuotaExceeded" if "exceeded quota" in error.message else "CreateRefused"
        return Obstacle(reason, error.message)
    except errors.Invalid as error:
        return Obstacle("CreateRefused", error.message)
    except errors.NotFound as error:
        raise Stop from error
    return None


def _taken(port: Port, job: Job, action: Create) -> Obstacle | None:
    """The name exists: ours (adopt it), on its way out (wait quietly), or a stranger's (kubernetes-sigs/jobset#18)."""
    resource = RESOURCES[action.resource]
    name = action.manifest["metadata"]["name"]
    path = resource.path(job.namespace, name)
    try:
        found = port.kube.get(path)
    except errors.NotFound:
        return None
    metadata = mapping(found.get("metadata"))
    if owner_uid(found) == job.uid:
        port.saw_child(action.resource, _labelled(port, path, action, found))
        return None
    if metadata.get("deletionTimestamp") is not None:
        return None
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


def _delete(port: Port, path: str, uid: str) -> None:
    try:
        port.kube.delete(path, uid=uid)
    except (errors.NotFound, errors.Conflict):  # gone, or another object has the name
        return


def controller_of(child: Mapping[str, Any]) -> Mapping[str, Any] | None:
    """The controlling owner reference of an object."""
    references = sequence(mapping(child.get("metadata")).get("ownerReferences"))
    return next((mapping(item) for item in references if mapping(item).get("controller") is True), None)
