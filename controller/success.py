"""Success: which replicas decide it, and whether they have (kubeflow/trainer#751). Pure."""

from dataclasses import dataclass
from datetime import datetime, timedelta

from controller.course import Course
from schemas import conditions
from schemas.job import Job, Replica, integer


@dataclass(frozen=True, slots=True)
class Decision:
    """The replicas that decide: all of them must succeed, or any one."""

    replicas: tuple[tuple[str, int], ...]
    any_one: bool = False

    def met_by(self, succeeded: set[tuple[str, int]]) -> bool:
        """Zero of zero is never success."""
        if self.any_one:
            return any(replica in succeeded for replica in self.replicas)
        return bool(self.replicas) and all(replica in succeeded for replica in self.replicas)


def decision(job: Job) -> Decision:
    """Who decides this job's success, by its successPolicy or by its kind."""
    if job.leader_type:
        return Decision(((job.leader_type, 0),))
    replicas = tuple((entry.type, index) for entry in job.deciding for index in _deciding_indexes(job, entry))
    elastic = job.kind.any_decides_if_elastic and job.elastic_policy is not None
    return Decision(replicas, any_one=elastic or job.success_policy.get("policy") == "AnyReplica")


def _deciding_indexes(job: Job, entry: Replica) -> range:
    return entry.indexes[:1] if job.first_decides else entry.indexes


def deadline(job: Job, start: datetime | None) -> datetime | None:
    """When the job's time is up, counted from its start."""
    seconds = integer(job.run_policy.get("activeDeadlineSeconds"))
    if start is None or seconds is None:
        return None
    try:
        return start + timedelta(seconds=max(seconds, 0))
    except OverflowError:  # a deadline beyond the year 9999 is none
        return None


def accounted(course: Course, now: datetime) -> Course:  # noqa: ARG001
    """Indexes whose pod has succeeded are remembered, whatever happens to the pod later (kubeflow/trainer#1997)."""
    limit = deadline(course.job, course.ledger.start)
    for pod in course.pods:
        in_time = limit is None or pod.ended_at is None or pod.ended_at <= limit
        done = course.tally(pod.type).succeeded
        if pod.succeeded and in_time and pod.index not in done and course.is_wanted(pod) and course.is_current(pod):
            course = course.counting(pod.type, succeeded=done | {pod.index})
    return course


def succeeded(course: Course, now: datetime) -> Course:
    """The deciding replicas have succeeded: so has the job, even when another pod fails in the same moment."""
    done = {(name, index) for name, tally in course.ledger.tallies.items() for index in tally.succeeded}
    wanted = decision(course.job)
    if not wanted.met_by(done):
        return course
    who = ", ".join(f"{name} {index}" for name, index in wanted.replicas[:3] if (name, index) in done)
    more = " and the others that decide" if len(wanted.replicas) > 3 and not wanted.any_one else ""
    have = "has" if len(wanted.replicas) == 1 or wanted.any_one else "have"
    return course.ends(conditions.SUCCEEDED, "", f"{who}{more} {have} succeeded.", now)
