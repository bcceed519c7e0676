"""Kubernetes objects to rows of the history, purely: raw dicts in, frozen values out.

An object may be hostile or half there: what cannot be read is None (NULL), and an object without the UID that keys
its row gives no record at all. ``deleted``, ``is_in_etcd`` and ``gmt_modified`` are the store's to set.
"""

from dataclasses import dataclass
from datetime import datetime
from typing import Any

import orjson

from history import resources
from history.fields import (
    IMAGE,
    NAME,
    UID,
    WHO,
    WORD,
    Object,
    at,
    each,
    earliest,
    long_text,
    moment,
    number,
    text,
    version,
)
from schemas.kinds import KINDS, JobKind, find

STATES = ("Succeeded", "Failed", "Suspended", "Pending", "Restarting", "Scaling", "Running")
"""Condition types that are a job's status, first True one wins."""
CREATED, STOPPED = "Created", "Stopped"
COMPLETED = frozenset({"Succeeded", "Failed"})
ENDED = COMPLETED | {STOPPED}
"""Statuses that no other status follows; Stopped is a job or pod deleted while it ran (seed)."""
STATUSES = (CREATED, *STATES, STOPPED)
TENANCY, OWNER = "kubedl.io/tenancy", "signalbox.dev/owner"
CONTAINERS = frozenset(kind.container for kind in KINDS)


@dataclass(frozen=True, slots=True)
class JobRecord:
    """A row of job_info (seed type Job, and ours: remark, gmt_job_running). Times are naive UTC."""

    job_id: str
    name: str | None
    namespace: str | None
    version: str | None
    status: str
    kind: str | None
    resources: str | None
    deploy_region: str | None
    tenant: str | None
    owner: str | None
    remark: str | None
    gmt_created: datetime | None
    gmt_job_running: datetime | None
    gmt_finished: datetime | None


@dataclass(frozen=True, slots=True)
class PodRecord:
    """A row of replica_info (seed type Pod). Times are naive UTC."""

    pod_id: str
    name: str | None
    namespace: str | None
    version: str | None
    status: str | None
    image: str | None
    job_id: str | None
    replica_type: str | None
    resources: str | None
    host_ip: str | None
    pod_ip: str | None
    deploy_region: str | None
    remark: str | None
    gmt_created: datetime | None
    gmt_started: datetime | None
    gmt_finished: datetime | None


@dataclass(frozen=True, slots=True)
class EventRecord:
    """A row of event_info (seed type Event). Times are naive UTC."""

    obj_uid: str
    name: str
    kind: str | None
    type: str | None
    obj_namespace: str | None
    obj_name: str | None
    reason: str | None
    message: str | None
    count: int
    region: str | None
    first_timestamp: datetime | None
    last_timestamp: datetime | None


def job_record(job: Object, region: str | None = None) -> JobRecord | None:
    """The row of a job; ``region`` is where this controller runs, else the tenancy annotation tells."""
    uid = text(at(job, "metadata", "uid"), UID)
    if uid is None:
        return None
    tenancy = _tenancy(job)
    return JobRecord(
        job_id=uid,
        name=text(at(job, "metadata", "name"), NAME),
        namespace=text(at(job, "metadata", "namespace"), NAME),
        version=version(job),
        status=job_status(job),
        kind=text(at(job, "kind"), WORD),
        resources=resources.of_job(_kind(job), job),
        deploy_region=text(region, UID) or text(at(tenancy, "region"), UID),
        tenant=text(at(tenancy, "tenant"), WHO),
        owner=text(at(tenancy, "user"), WHO) or text(at(job, "metadata", "annotations", OWNER), WHO),
        remark=_verdict(job),
        gmt_created=moment(at(job, "metadata", "creationTimestamp")),
        gmt_job_running=job_began(job),
        gmt_finished=_finished(job),
    )


def pod_record(pod: Object, job_uid: str, replica_type: str, region: str | None = None) -> PodRecord | None:
    """The row of a pod of the job ``job_uid``; status is its phase, image and times are its main container's."""
    uid = text(at(pod, "metadata", "uid"), UID)
    if uid is None:
        return None
    name = main_container(pod)
    main = _named(each(pod, "status", "containerStatuses"), name)
    return PodRecord(
        pod_id=uid,
        name=text(at(pod, "metadata", "name"), NAME),
        namespace=text(at(pod, "metadata", "namespace"), NAME),
        version=version(pod),
        status=text(at(pod, "status", "phase"), WORD),
        image=text(at(_named(each(pod, "spec", "containers"), name), "image"), IMAGE),
        job_id=text(job_uid, UID),
        replica_type=text(replica_type, WORD),
        resources=resources.of_pod(pod),
        host_ip=text(at(pod, "status", "hostIP"), UID),
        pod_ip=text(at(pod, "status", "podIP"), UID),
        deploy_region=text(region, UID),
        remark=_failure(pod, main),
        gmt_created=moment(at(pod, "metadata", "creationTimestamp")),
        gmt_started=_began(main),
        gmt_finished=_ended_at(pod, main),
    )


def event_record(event: Object, region: str | None = None) -> EventRecord | None:
    """The row of a core/v1 Event, of the old form (count, lastTimestamp) or the new (series, eventTime)."""
    uid = text(at(event, "involvedObject", "uid"), UID)
    name = text(at(event, "metadata", "name"), NAME)
    if uid is None or name is None:
        return None
    first, last = _span(event)
    return EventRecord(
        obj_uid=uid,
        name=name,
        kind=text(at(event, "involvedObject", "kind"), WORD),
        type=text(at(event, "type"), WORD),
        obj_namespace=text(at(event, "involvedObject", "namespace"), UID),
        obj_name=text(at(event, "involvedObject", "name"), UID),
        reason=text(at(event, "reason"), NAME),
        message=long_text(at(event, "message")),
        count=max(number(at(event, "series", "count")) or number(at(event, "count")) or 1, 1),
        region=text(region, UID),
        first_timestamp=first,
        last_timestamp=last,
    )


def job_status(job: Object) -> str:
    """The type of the job's True condition, read by type and status, never by position."""
    true = _true_conditions(job)
    return next((state for state in STATES if state in true), CREATED)


def job_began(job: Object) -> datetime | None:
    """When a job that runs now began to; of all answers over its life the earliest counts."""
    return moment(at(_true_conditions(job).get("Running"), "lastTransitionTime"))


def pod_began(pod: Object) -> datetime | None:
    """When the pod's main container began, the earliest that its status still tells."""
    statuses = each(pod, "status", "containerStatuses")
    return _began(_named(statuses, main_container(pod))) if statuses else None


def _began(main: Object) -> datetime | None:
    places = (("state", "running"), ("state", "terminated"), ("lastState", "terminated"))
    return earliest(*(moment(at(main, *place, "startedAt")) for place in places))


def main_container(pod: Object) -> str | None:
    """Name of the container whose image, times and exit code are the pod's: the kind's, else the first."""
    names = [name for container in each(pod, "spec", "containers") if (name := text(container.get("name"), NAME))]
    owner = next((ref for ref in each(pod, "metadata", "ownerReferences") if ref.get("controller") is True), {})
    kind = _kind(owner)
    wanted = {kind.container} if kind else CONTAINERS
    return next((name for name in names if name in wanted), names[0] if names else None)


def _kind(obj: Object) -> JobKind | None:
    """The row of the kind table for an object or an owner reference."""
    kind, api_version = obj.get("kind"), obj.get("apiVersion")
    if not isinstance(kind, str) or not isinstance(api_version, str):
        return None
    return find(kind, api_version.rpartition("/")[0])


def _named(items: list[Object], name: str | None) -> Object:
    return next((item for item in items if name is not None and item.get("name") == name), {})


def _true_conditions(job: Object) -> dict[str, Object]:
    found = each(job, "status", "conditions")
    return {kind: item for item in found if item.get("status") == "True" and isinstance(kind := item.get("type"), str)}


def _end(job: Object) -> Object | None:
    """The terminal condition of a job that has one."""
    true = _true_conditions(job)
    return true.get("Succeeded") or true.get("Failed")


def _finished(job: Object) -> datetime | None:
    end = _end(job)
    if end is None:
        return None
    return moment(at(job, "status", "completionTime")) or moment(end.get("lastTransitionTime"))


def _verdict(job: Object) -> str | None:
    """``reason: message`` of the terminal condition."""
    end = _end(job) or {}
    return long_text(": ".join(part for key in ("reason", "message") if isinstance(part := end.get(key), str) and part))


def _tenancy(job: Object) -> Any:
    annotation = at(job, "metadata", "annotations", TENANCY)
    try:
        return orjson.loads(annotation) if isinstance(annotation, str) else None
    except ValueError:
        return None


def _failure(pod: Object, main: Object) -> str | None:
    """``reason: message, exit code N`` of what failed: the main container, else an init container, else the pod."""
    statuses = (main, *each(pod, "status", "initContainerStatuses"))
    ends = (at(status, "state", "terminated") for status in statuses)
    end = next((end for end in ends if at(end, "exitCode") not in (None, 0)), None)
    if end is None and at(pod, "status", "phase") != "Failed":
        return None
    source = at(pod, "status") if end is None else end
    said = ": ".join(part for key in ("reason", "message") if isinstance(part := at(source, key), str) and part)
    code = number(at(end, "exitCode"))
    return long_text(", ".join(part for part in (said, "" if code is None else f"exit code {code}") if part))


def _ended_at(pod: Object, main: Object) -> datetime | None:
    """When a finished pod's main container ended; one that never started ends with its last change of condition."""
    if text(at(pod, "status", "phase"), WORD) not in COMPLETED:
        return None
    changes = (moment(item.get("lastTransitionTime")) for item in each(pod, "status", "conditions"))
    known = [time for time in changes if time is not None]
    return moment(at(main, "state", "terminated", "finishedAt")) or max(known, default=None)


def _span(event: Object) -> tuple[datetime | None, datetime | None]:
    """First and last occurrence."""
    once = moment(at(event, "eventTime")) or moment(at(event, "metadata", "creationTimestamp"))
    first = moment(at(event, "firstTimestamp")) or once
    return first, moment(at(event, "series", "lastObservedTime")) or moment(at(event, "lastTimestamp")) or first
