"""Suspension, deadline, and what follows the end of a job: clean-up and TTL. Pure."""

from collections.abc import Callable, Iterable
from dataclasses import replace
from datetime import UTC, datetime, timedelta

from controller import extras
from controller.children import PODS, SERVICES, gone
from controller.course import Course
from controller.ledger import Tally
from controller.plan import Delete, DeleteJob, Event
from controller.pods import Pod
from controller.success import deadline
from schemas import conditions, times
from schemas.job import integer, mapping

SKEW = timedelta(seconds=60)
"""How far clocks may differ without anyone being told."""
IN_FUTURE = "status.completionTime {} is in the future: ttlSecondsAfterFinished counts from then."
NO_GANG_SCHEDULER = "runPolicy.schedulingPolicy has no effect: no gang scheduler is set."


def suspended(course: Course, now: datetime) -> Course:  # noqa: ARG001
    """No child exists while a job is suspended; they go once the suspension is stored (kubernetes-sigs/kueue)."""
    if not course.suspending:
        return _resumed(course)
    begun = mapping(conditions.true_state(course.conditions)).get("reason")
    ours = {conditions.JOB_SUSPENDING, conditions.reason_of(course.job.kind, "JobSuspended")}
    if begun in ours:
        course = _without_extras(_without_children(course, course.pods), course.seen.extras)
    ledger = replace(course.ledger, start=None, pending=(), tallies=_uncreated(course))
    has_children = bool(course.pods or course.seen.services or any(course.seen.extras.values()))
    return replace(course, ledger=ledger).knowing(suspend=True, has_children=has_children).settle()


def _uncreated(course: Course) -> dict[str, Tally]:
    return {
        name: replace(tally, created=frozenset(), retries={}, initial=None)
        for name, tally in course.ledger.tallies.items()
    }


def _resumed(course: Course) -> Course:
    """A job that was suspended starts as new: counts and successes begin afresh."""
    if not conditions.is_true(course.conditions, conditions.SUSPENDED):
        return course
    reason = conditions.reason_of(course.job.kind, conditions.JOB_RESUMED)
    event = Event("Normal", reason, "The job is resumed.")
    return replace(course, ledger=course.ledger.afresh()).tells(event)


def started(course: Course, now: datetime) -> Course:
    """The controller takes the job up: the clock of the deadline starts."""
    if course.ledger.start is None:
        course = _told_of_gang(replace(course, ledger=replace(course.ledger, start=now)))
    for entry in course.job.replicas:
        if course.tally(entry.type).initial is None:
            course = course.counting(entry.type, initial=entry.count)
    return course


def _told_of_gang(course: Course) -> Course:
    """A wish that nothing fulfils is not passed over in silence."""
    if course.seen.settings.gang_scheduler in extras.POD_GROUPS or not course.job.run_policy.get("schedulingPolicy"):
        return course
    return course.tells(Event("Warning", "NoGangScheduler", NO_GANG_SCHEDULER))


def expired(course: Course, now: datetime) -> Course:
    """The deadline ends the job by a timer, without needing any event (kubeflow/trainer#3358)."""
    limit = deadline(course.job, course.ledger.start)
    if limit is None:
        return course
    if now < limit:
        return course.wakes(limit)
    seconds = course.job.run_policy.get("activeDeadlineSeconds")
    message = f"The job was active longer than its activeDeadlineSeconds of {seconds}."
    return course.ends(conditions.FAILED, conditions.DEADLINE_EXCEEDED, message, now)


def ended(course: Course, now: datetime) -> Course:
    """Nothing is created for a job that has ended; its pods follow cleanPodPolicy, then the job its TTL."""
    end = course.stored_end
    if end is None:
        return course
    policy = course.job.clean_pod_policy
    cleaned = CLEANED.get(policy, _is_live)
    expired_ = end.get("reason") == conditions.DEADLINE_EXCEEDED
    goners = tuple(pod for pod in course.pods if cleaned(pod) or (expired_ and _is_live(pod)))
    course = _without_children(course, goners, services=policy != "None")
    course = _without_extras(course, extras.GO_WITH_END)
    return _after_ttl(course, end, now).settle()


def _is_live(pod: Pod) -> bool:
    return pod.phase in ("Pending", "Running", "Unknown")


CLEANED: dict[str, Callable[[Pod], bool]] = {"All": lambda _: True, "Running": _is_live, "None": lambda _: False}


def _without_children(course: Course, pods: tuple[Pod, ...], *, services: bool = True) -> Course:
    course = course.does(*(Delete(PODS, pod.name, pod.uid) for pod in pods if not pod.deleting))
    return course.does(*gone(SERVICES, course.seen.services)) if services else course


def _without_extras(course: Course, keys: Iterable[str]) -> Course:
    return course.does(*(action for key in keys for action in gone(key, course.seen.extras.get(key, ()))))


def _after_ttl(course: Course, end: conditions.Condition, now: datetime) -> Course:
    """The job itself goes at its completion plus the TTL, computed anew each time (kubeflow/trainer#1533)."""
    ttl = integer(course.job.run_policy.get("ttlSecondsAfterFinished"))
    finished = course.ledger.completion or times.parse(end.get("lastTransitionTime"))
    if ttl is None or finished is None:
        return course
    if finished > now + SKEW:
        course = course.notes(Event("Warning", "CompletionInFuture", IN_FUTURE.format(times.written(finished))))
    due = _after(finished, ttl)
    return course.does(DeleteJob(due)) if now >= due else course.wakes(due)


def _after(moment: datetime, seconds: int) -> datetime:
    try:
        return moment + timedelta(seconds=max(seconds, 0))
    except OverflowError:  # beyond the year 9999
        return datetime.max.replace(tzinfo=UTC)


def forced(course: Course, now: datetime) -> Course:
    """A pod that is still there long after its grace period goes without its kubelet's consent, if the administrator
    allows that: only then can its index have a new one (kubeflow/trainer#956).
    """
    patience = course.seen.settings.force_delete_after
    if patience is None:
        return course
    for pod in course.pods:
        if pod.gone_by is None or not _is_settled(course, pod):
            continue
        due = _after(pod.gone_by, int(patience))
        course = course.wakes(due) if now < due else course.does(Delete(PODS, pod.name, pod.uid, force=True))
    return course


def _is_settled(course: Course, pod: Pod) -> bool:
    """What became of the pod is stored, so that nothing is lost with it."""
    tally = course.stored.tally(pod.type)
    known = pod.uid in course.stored.pending or pod.index in tally.succeeded or pod.index not in tally.created
    return known or course.stored_end is not None
