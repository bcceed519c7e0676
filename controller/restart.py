"""Failed and lost pods: whether they end the job or are replaced, counted so that no crash loses or repeats one. Pure.

One status write adds a failed pod's UID to ``pendingRestarts`` together with its counts; the pod is deleted in a later
reconcile, from that stored list; the UID goes once the pod is gone.
"""

from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from enum import Enum

from controller import ledger as ledgers
from controller.course import Course, named
from controller.ledger import LONGEST_DELAY, MOST_PENDING, Retry
from controller.plan import Event
from controller.pods import GONE, Class, Failure, Pod
from schemas import conditions
from schemas.job import integer, mapping, number, sequence, text

FIRST_DELAY = timedelta(seconds=10)
HEALTHY = timedelta(minutes=10)


class Verdict(Enum):
    """What a failed pod leads to."""

    FAIL = "the job fails"
    REPLACE = "the pod is replaced and counted"
    REPLACE_UNCOUNTED = "the pod is replaced"
    RESTART_JOB = "all pods are replaced, counted once"


RULE_ACTIONS = {
    "Fail": Verdict.FAIL,
    "Restart": Verdict.REPLACE,
    "Ignore": Verdict.REPLACE_UNCOUNTED,
    "RestartJob": Verdict.RESTART_JOB,
}

REPLACED = Verdict.REPLACE
UNCOUNTED = Verdict.REPLACE_UNCOUNTED
WEIGHT = {Verdict.FAIL: 0, Verdict.RESTART_JOB: 1, Verdict.REPLACE: 2, Verdict.REPLACE_UNCOUNTED: 2}
"""The order in which several failures of one moment are judged."""

# Rows: class of the failure; columns: restartPolicy (kubeflow/website#443, seed type RestartPolicy).
TABLE: dict[Class, dict[str, Verdict]] = {
    Class.DISRUPTION: {"Never": Verdict.FAIL, "OnFailure": UNCOUNTED, "Always": UNCOUNTED, "ExitCode": UNCOUNTED},
    Class.REFUSED: {"Never": Verdict.FAIL, "OnFailure": REPLACED, "Always": REPLACED, "ExitCode": REPLACED},
    Class.PERMANENT: {"Never": Verdict.FAIL, "OnFailure": REPLACED, "Always": REPLACED, "ExitCode": Verdict.FAIL},
    Class.RETRYABLE: {"Never": Verdict.FAIL, "OnFailure": REPLACED, "Always": REPLACED, "ExitCode": REPLACED},
    Class.GONE: {"Never": UNCOUNTED, "OnFailure": UNCOUNTED, "Always": UNCOUNTED, "ExitCode": UNCOUNTED},
}


@dataclass(frozen=True, slots=True)
class Loss:
    """A failed or vanished pod that is not accounted yet."""

    type: str
    index: int
    failure: Failure
    pod: Pod | None

    @property
    def who(self) -> str:
        return named(self.pod) if self.pod else f"the pod of {self.type} {self.index}"


def failed(course: Course, now: datetime) -> Course:
    """Judges every failed or lost pod not accounted yet, and the restarts that containers made in place.

    What ends the job comes first, then what restarts it as a whole: no pod's failure hides behind another's.
    """
    judged = sorted(((_verdict(course, loss), loss) for loss in _losses(course)), key=lambda pair: WEIGHT[pair[0]])
    for verdict, loss in judged:
        course = _judged(course, loss, verdict, now)
        if course.settled or verdict is Verdict.RESTART_JOB:
            return course
    if _over_limit(course, 0):
        return _exceeded(course, "its containers restarted too often", now)
    return course


def _losses(course: Course) -> list[Loss]:
    """Not more than there is room for in ``pendingRestarts``; the rest is judged once there is."""
    found = [Loss(pod.type, pod.index, pod.failure, pod) for pod in course.unaccounted() if pod.failure]
    room = max(MOST_PENDING - len(course.ledger.pending), 0)
    return [*found[:room], *_vanished(course)[:MOST_PENDING]]


def _vanished(course: Course) -> list[Loss]:
    """Indexes that are listed as created and have no pod: it was taken away, and not by us (kubeflow/trainer#156)."""
    return [
        Loss(entry.type, index, GONE, None)
        for entry, index in course.wanted()
        if index in course.stored.tally(entry.type).created
        and (entry.type, index) not in course.by_key
        and index not in course.tally(entry.type).succeeded
    ]


def _verdict(course: Course, loss: Loss) -> Verdict:
    entry = course.job.replica(loss.type)
    policy = entry.restart_policy if entry else "Never"
    row = TABLE[loss.failure.failure_class]
    judged = row.get(policy, row["Never"])
    if loss.failure.failure_class in (Class.DISRUPTION, Class.REFUSED, Class.GONE):
        return judged
    return _by_rules(course, loss) or judged


def _by_rules(course: Course, loss: Loss) -> Verdict | None:
    """The first of the job's exitCodeRules that matches."""
    for rule in map(mapping, sequence(course.job.run_policy.get("exitCodeRules"))):
        types = sequence(rule.get("replicaTypes"))
        if (not types or _is_named(loss, types)) and _matches(rule.get("codes"), rule.get("range"), loss.failure.code):
            return RULE_ACTIONS.get(text(rule.get("action")))
    return None


def _is_named(loss: Loss, types: list[object]) -> bool:
    return loss.type.lower() in [text(name).lower() for name in types]


def _matches(codes: object, span: object, code: int | None) -> bool:
    if code is None:
        return False
    low, _, high = text(span).partition("-")
    first, last = number(low), number(high)
    in_span = first is not None and last is not None and first <= code <= last
    return in_span or code in [integer(item) for item in sequence(codes)]


def _judged(course: Course, loss: Loss, verdict: Verdict, now: datetime) -> Course:
    if verdict is Verdict.FAIL:
        return _ended(course, loss, now)
    counts = verdict in (Verdict.REPLACE, Verdict.RESTART_JOB)
    if counts and _over_limit(course, 1):
        return _exceeded(course, _because(loss), now)
    course = course.with_failed(loss.pod)
    if verdict is Verdict.RESTART_JOB:
        course = _recorded(course, loss, counts=counts, in_place=_in_place(course), now=now)
        return replace(course, ledger=course.ledger.next_round())
    course = _recorded(course, loss, counts=counts, in_place=loss.pod.restart_count if loss.pod else 0, now=now)
    return _replaced(course, loss, now)


def _ended(course: Course, loss: Loss, now: datetime) -> Course:
    entry = course.job.replica(loss.type)
    rule_fail = _by_rules(course, loss) is Verdict.FAIL
    permanent = loss.failure.failure_class is Class.PERMANENT and entry is not None
    reason = conditions.POD_FAILED
    if rule_fail:
        reason = "JobFailed"
    elif permanent and entry is not None and entry.restart_policy == "ExitCode":
        reason = conditions.PERMANENT_EXIT_CODE
    return course.ends(conditions.FAILED, reason, f"The job failed: {_because(loss)}.", now)


def _because(loss: Loss) -> str:
    failure = loss.failure
    if failure.failure_class is Class.GONE:
        return f"{loss.who} was deleted"
    code = "" if failure.code is None else f" with exit code {failure.code}"
    container = f" container {failure.container}" if failure.container else ""
    reason = f" ({failure.reason})" if failure.reason and failure.reason != "Error" else ""
    return f"{loss.who}{container} failed{code}{reason}"


def _over_limit(course: Course, more: int) -> bool:
    """Whether ``more`` counted restarts would exceed backoffLimit (kubeflow/common#167, as batch/v1 means it)."""
    limit = integer(course.job.run_policy.get("backoffLimit"))
    if limit is None:
        return False
    return course.ledger.restarts_counted + _in_place(course) + more > limit


def _in_place(course: Course) -> int:
    """Restarts that the containers of this round's pods made in place and no ledger holds yet."""
    current = [pod for pod in course.pods if course.is_wanted(pod) and course.is_current(pod)]
    return sum(pod.restart_count for pod in current if not course.is_accounted(pod))


def _exceeded(course: Course, because: str, now: datetime) -> Course:
    limit = integer(course.job.run_policy.get("backoffLimit"))
    message = f"The job reached its backoffLimit of {limit}: {because}."
    return course.ends(conditions.FAILED, conditions.BACKOFF_LIMIT_EXCEEDED, message, now)


def _recorded(course: Course, loss: Loss, *, counts: bool, in_place: int, now: datetime) -> Course:
    ledger = course.ledger
    line = ledgers.entry(
        loss.failure.reason,
        now,
        pod=loss.pod.name if loss.pod else None,
        uid=loss.pod.uid if loss.pod else None,
        replicaType=loss.type,
        index=loss.index,
        exitCode=loss.failure.code,
        container=loss.failure.container or None,
        message=loss.failure.message[:256] or None,
        counted=counts,
    )
    ledger = replace(
        ledger,
        restarts=ledger.restarts + 1 + in_place,
        restarts_counted=ledger.restarts_counted + (1 if counts else 0) + in_place,
        history=(*ledger.history, line)[-ledgers.LONGEST_HISTORY :],
        pending=(*ledger.pending, loss.pod.uid) if loss.pod else ledger.pending,
    )
    reason = conditions.reason_of(course.job.kind, "JobRestarting")
    course = replace(course, ledger=ledger, restarts=(*course.restarts, line))
    return course.tells(Event("Warning", reason, _because(loss) + ": it is replaced."))


def _replaced(course: Course, loss: Loss, now: datetime) -> Course:
    """The index is free for a new pod: unlisted, with its attempt and the time its delay ends (kubernetes#27997)."""
    tally = course.tally(loss.type)
    retry = _next_retry(course, loss, now)
    return course.counting(
        loss.type, created=tally.created - {loss.index}, retries={**tally.retries, loss.index: retry}
    )


def _next_retry(course: Course, loss: Loss, now: datetime) -> Retry:
    known = course.tally(loss.type).retries.get(loss.index, Retry(loss.pod.attempt if loss.pod else 0))
    if loss.failure.failure_class is Class.DISRUPTION:
        return Retry(known.attempt)
    since = loss.pod.running_since if loss.pod else None
    ended = min((loss.pod.ended_at if loss.pod else None) or now, now)  # a node's clock may run ahead of ours
    healthy = since is not None and ended - since >= HEALTHY
    attempt = 1 if healthy else known.attempt + 1
    wait = delay(attempt)
    return Retry(attempt, ended + wait if wait else None)


def delay(attempt: int) -> timedelta:
    """How long the k-th replacement of an index waits: 0, 10 s, 20 s, 40 s, at most 6 min."""
    if attempt <= 1:
        return timedelta(0)
    return min(FIRST_DELAY * int(2 ** min(attempt - 2, 10)), LONGEST_DELAY)
