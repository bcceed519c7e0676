"""What to do next for one job. Pure and total: any snapshot gives a plan.

Two kinds of plan. Constructive: creates are sent, the children are looked at again, then the status is written once.
Destructive (a failed pod, clean-up, deadline, suspension): the status is written first, and the delete comes from a
later decision that rests on the stored status alone. A crash between the two loses and repeats nothing.
"""

from collections.abc import Callable
from datetime import datetime, timedelta

from controller import children, endings, restart, status, success
from controller.course import Course
from controller.plan import Plan, Snapshot
from schemas.kinds import JobKind

HELD_LOOK = timedelta(seconds=30)
"""A job that waits is looked at when a place becomes free, and this often in any case."""
Policy = Callable[[Course, datetime], Course]


def foreign(course: Course, now: datetime) -> Course:  # noqa: ARG001
    """A job that another controller manages, or that is being deleted, is not touched at all."""
    return course.leaves_alone() if not course.job.managed_by_us or course.job.deleting else course


def invalid(course: Course, now: datetime) -> Course:  # noqa: ARG001
    """An invalid job without pods gets none until it is edited; one that runs is left running."""
    return course.settle() if course.seen.faults and not course.pods else course


def held(course: Course, now: datetime) -> Course:
    """A job that a policy holds back has not started yet: it waits without children, and its deadline does not run."""
    if not course.seen.held or course.stored.start is not None or course.pods:
        return course
    return course.knowing(held=course.seen.held).wakes(now + HELD_LOOK).settle()


POLICIES: tuple[Policy, ...] = (
    foreign,
    endings.ended,
    success.accounted,
    success.succeeded,
    endings.suspended,
    invalid,
    held,
    endings.started,
    endings.expired,
    restart.failed,
    children.children,
)


def decide(kind: JobKind, seen: Snapshot, now: datetime) -> Plan:
    """The plan for one job at one moment: the first policy that settles the matter ends the list."""
    course = endings.forced(Course.of(kind, seen), now)
    for policy in POLICIES:
        course = policy(course, now)
        if course.settled:
            break
    if not course.ours:
        return Plan()
    wanted = status.compose(course, now)
    events = (*course.events, *status.transition(course.job, wanted))
    return Plan(course.actions, wanted, events, course.notices, course.wake, course.restarts)
