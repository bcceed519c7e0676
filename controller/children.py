"""Children: what is missing is created, what is surplus or already accounted is deleted. Pure."""

from dataclasses import replace
from datetime import datetime
from typing import Any

from controller import build, extras
from controller.course import Course, named
from controller.plan import Create, Delete, Update
from controller.pods import Pod
from schemas import conditions, names
from schemas.job import mapping, text

JSON = dict[str, Any]

PODS = "pods"
SERVICES = "services"


def children(course: Course, now: datetime) -> Course:
    """The last policy: brings the children to what the spec wants, one pod object per index at most."""
    course = _trimmed(course)
    course = _without_accounted(course, now)
    course = _without_surplus(course)
    if _leaving(course):
        return course
    return _with_pods(_with_services(_with_extras(course)), now)


def _trimmed(course: Course) -> Course:
    """Indexes beyond the wanted ones are no longer listed, so that their absence is no loss."""
    for name, tally in course.ledger.tallies.items():
        entry = course.job.replica(name)
        count = max(entry.count, 0) if entry else 0
        created = frozenset(index for index in tally.created if index < count)
        retries = {index: retry for index, retry in tally.retries.items() if index < count}
        if created != tally.created or len(retries) != len(tally.retries):
            course = course.counting(name, created=created, retries=retries)
    return course


def _without_accounted(course: Course, now: datetime) -> Course:
    """Failed pods whose accounting is stored go once their delay has passed; UIDs without a pod are dropped."""
    live = {pod.uid: pod for pod in course.pods}
    for uid in course.stored.pending:
        pod = live.get(uid)
        if pod is None or pod.deleting or _is_surplus(course, pod):
            continue
        retry = course.tally(pod.type).retries.get(pod.index)
        if retry and retry.holds(now):
            course = course.wakes(retry.not_before)
        else:
            course = course.does(Delete(PODS, pod.name, pod.uid))
    left = tuple(uid for uid in course.ledger.pending if uid in live)
    return replace(course, ledger=replace(course.ledger, pending=left))


def _without_surplus(course: Course) -> Course:
    """Pods of indexes no longer wanted, or of an older round, are deleted; scaling is never a failure.

    Only once the index is stored as unlisted: a pod that is scaled away and wanted again at once is not taken for lost.
    """
    surplus = [pod for pod in course.pods if _is_surplus(course, pod) and not pod.deleting]
    unlisted = [pod for pod in surplus if pod.index not in course.stored.tally(pod.type).created]
    course = course.does(*(Delete(PODS, pod.name, pod.uid) for pod in unlisted))
    return course.does(*_surplus_services(course), *_surplus_extras(course))


def _is_surplus(course: Course, pod: Pod) -> bool:
    return not course.is_wanted(pod) or pod.round < course.stored.round


def _surplus_services(course: Course) -> list[Delete]:
    wanted = build.service_names(course.job)
    return gone(SERVICES, tuple(service for service in course.seen.services if _name(service) not in wanted))


def _leaving(course: Course) -> bool:
    """A whole-job restart creates nothing while a pod of an older round is left."""
    return any(pod.round < course.ledger.round for pod in course.pods)


def _with_extras(course: Course) -> Course:
    """PodGroup and the like: before the pods that need them, and changed only where they differ."""
    for extra in _wanted_extras(course):
        key = extra.sort.key
        stored = _named(course.seen.extras.get(key, ()), extra.name)
        if stored is None:
            course = course.does(Create(key, extra.manifest))
        elif not _is_leaving(stored) and (change := extras.change(extra, stored)):
            course = course.does(Update(key, extra.name, _uid(stored), change))
    return course


def _wanted_extras(course: Course) -> list[extras.Extra]:
    running = {pod.name for pod in course.pods if pod.running and not pod.deleting and course.is_wanted(pod)}
    return extras.wanted(course.job, course.seen.settings, running)


def _surplus_extras(course: Course) -> list[Delete]:
    wanted = {(extra.sort.key, extra.name) for extra in _wanted_extras(course)}
    return [
        action
        for key, stored in course.seen.extras.items()
        for action in gone(key, tuple(child for child in stored if (key, _name(child)) not in wanted))
    ]


def _named(stored: tuple[JSON, ...], name: str) -> JSON | None:
    return next((child for child in stored if _name(child) == name), None)


def _name(child: JSON) -> str:
    return text(mapping(child.get("metadata")).get("name"))


def _uid(child: JSON) -> str:
    return text(mapping(child.get("metadata")).get("uid"))


def _is_leaving(child: JSON) -> bool:
    return mapping(child.get("metadata")).get("deletionTimestamp") is not None


def gone(key: str, stored: tuple[JSON, ...]) -> list[Delete]:
    """Deletes of all these children that are not leaving yet."""
    return [Delete(key, _name(child), _uid(child)) for child in stored if not _is_leaving(child)]


def _with_services(course: Course) -> Course:
    have = {text(mapping(service.get("metadata")).get("name")) for service in course.seen.services}
    return course.does(*(Create(SERVICES, service) for service in build.missing_services(course.job, have)))


def _with_pods(course: Course, now: datetime) -> Course:
    """Creates what is missing and unlisted; a listed one that is missing is first accounted, in a write of its own."""
    for entry, index in course.wanted():
        tally, stored = course.tally(entry.type), course.stored.tally(entry.type)
        if (entry.type, index) in course.by_key or index in tally.succeeded or index in stored.created:
            continue
        retry = tally.retries.get(index)
        if retry and retry.holds(now):
            course = course.wakes(retry.not_before)
            continue
        attempt = retry.attempt if retry else 0
        round_, settings = course.ledger.round, course.seen.settings
        manifest = build.pod(course.job, entry, index, attempt=attempt, round_=round_, settings=settings)
        course = course.does(Create(PODS, manifest))
    return course


def listed(course: Course) -> Course:
    """The pods that exist are listed as created, unless they are being replaced or belong to an older round."""
    for pod in course.pods:
        tally = course.tally(pod.type)
        fit = course.is_wanted(pod) and course.is_current(pod) and not course.is_accounted(pod) and not pod.deleting
        if fit and pod.index not in tally.created:
            course = course.counting(pod.type, created=tally.created | {pod.index})
    return course


def _starting_over(course: Course) -> bool:
    """A whole-job restart has begun, and not every pod of the new round has started."""
    if not course.ledger.round or course.state != conditions.RESTARTING:
        return False
    return not all(
        index in course.tally(entry.type).succeeded or _has_begun(course.by_key.get((entry.type, index)))
        for entry, index in course.wanted()
    )


def _has_succeeded(course: Course, pod: Pod) -> bool:
    return pod.index in course.tally(pod.type).succeeded


def _has_begun(pod: Pod | None) -> bool:
    return pod is not None and (pod.started or pod.finished)


def replacing(course: Course) -> str:
    """Which pod is being replaced, in words; empty when every replacement has started."""
    pending = [pod for pod in course.pods if course.is_accounted(pod) and not _has_succeeded(course, pod)]
    if pending:
        what = "is being deleted" if pending[0].deleting and not pending[0].over else "has failed"
        return f"{named(pending[0])} {what} and is being replaced."
    if _leaving(course) or _starting_over(course):
        return "All pods are being replaced."
    for name, tally in sorted(course.ledger.tallies.items()):
        for index in sorted(tally.retries):
            pod = course.by_key.get((name, index))
            if index not in tally.succeeded and not _has_begun(pod):
                pod_name = names.child(course.job.kind, course.job.name, name, index)
                return f"The replacement of pod {pod_name} is starting."
    return ""
