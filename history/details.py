"""What a job's object and the webhook tell beside the seed's rows: conditions, restarts, answers, snapshots. Pure."""

import hashlib
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

import orjson

from history.fields import NAME, TEXT, UID, WHO, WORD, Object, at, each, long_text, moment, number, text
from schemas.records import Admission

LAST_APPLIED = "kubectl.kubernetes.io/last-applied-configuration"
HIDDEN = "(not kept)"
DEEPEST = 100
"""Levels of an object that are kept."""
LARGEST_OBJECT = 2**21
"""Bytes of JSON; an API server takes no larger object."""


@dataclass(frozen=True, slots=True)
class RestartRecord:
    """A row of restart_info: one pod that was replaced."""

    job_id: str
    restart_id: str
    gmt_restarted: datetime | None
    replica_type: str | None
    replica_index: int | None
    pod_name: str | None
    reason: str | None
    exit_code: int | None
    container: str | None
    message: str | None
    counted: int | None


@dataclass(frozen=True, slots=True)
class ConditionRecord:
    """A row of condition_info: one transition."""

    job_id: str
    type: str
    gmt_changed: datetime
    status: str | None
    reason: str | None
    message: str | None


@dataclass(frozen=True, slots=True)
class AdmissionRecord:
    """A row of admission_info: one answer."""

    review_uid: str
    gmt_created: datetime
    job_id: str | None
    username: str | None
    user_groups: str | None
    namespace: str | None
    name: str | None
    kind: str | None
    operation: str | None
    verdict: str | None
    policy: str | None
    errors: str | None
    defaults: str | None


@dataclass(frozen=True, slots=True)
class SnapshotRecord:
    """A row of object_snapshot: an object without its status."""

    uid: str
    generation: int
    namespace: str | None
    name: str | None
    kind: str | None
    spec_hash: str | None
    object: str
    username: str | None
    user_groups: str | None


def conditions(job: Object) -> Iterator[ConditionRecord]:
    """The last transition of each condition."""
    uid = text(at(job, "metadata", "uid"), UID)
    for item in each(job, "status", "conditions"):
        kind, changed = text(item.get("type"), UID), moment(item.get("lastTransitionTime"))
        if uid and kind and changed:
            said = text(item.get("reason"), NAME), long_text(item.get("message"))
            yield ConditionRecord(uid, kind, changed, text(item.get("status"), WORD), *said)


def restarts(job: Object) -> Iterator[RestartRecord]:
    """The restarts that the status still lists."""
    return restarts_of(text(at(job, "metadata", "uid"), UID), each(job, "status", "restartHistory"))


def restarts_of(uid: str | None, lines: Iterable[Object]) -> Iterator[RestartRecord]:
    """The restarts that these lines of a ``restartHistory`` tell."""
    for item in lines:
        when, index = moment(item.get("time")), number(item.get("index"))
        name = text(item.get("uid"), NAME) or text(f"{item.get('replicaType')}/{index}/{item.get('time')}", NAME)
        if uid and name:
            yield RestartRecord(
                job_id=uid,
                restart_id=name,
                gmt_restarted=when,
                replica_type=text(item.get("replicaType"), WORD),
                replica_index=index,
                pod_name=text(item.get("pod"), NAME),
                reason=text(item.get("reason"), NAME),
                exit_code=number(item.get("exitCode")),
                container=text(item.get("container"), NAME),
                message=long_text(item.get("message")),
                counted=int(counted) if isinstance(counted := item.get("counted"), bool) else None,
            )


def admission(answer: Admission) -> AdmissionRecord | None:
    """The row of an answer; None without the review's UID, or a verdict."""
    review = text(answer.review, UID)
    if review is None or not answer.verdict:
        return None
    return AdmissionRecord(
        review_uid=review,
        gmt_created=answer.time.astimezone(UTC).replace(tzinfo=None, microsecond=0),
        job_id=text(answer.uid, UID),
        username=text(answer.user, WHO),
        user_groups=_listed(answer.groups),
        namespace=text(answer.namespace, NAME),
        name=text(answer.name, NAME),
        kind=text(answer.kind, WORD),
        operation=text(answer.operation, WORD),
        verdict=text(answer.verdict, WORD),
        policy=text(answer.policy, WHO),
        errors=_listed(answer.errors),
        defaults=_listed(answer.defaults),
    )


def submitted(answer: Admission) -> SnapshotRecord | None:
    """What was submitted, as generation 0 of the review: what is stored of the job may be something else."""
    if answer.object is None:
        return None
    return _snapshot(answer.object, text(answer.review, UID), 0, answer.user, answer.groups)


def stored(job: Object) -> SnapshotRecord | None:
    """A job as the API server has it."""
    return _snapshot(job, text(at(job, "metadata", "uid"), UID), _generation(job), None, ())


def _generation(obj: Object) -> int:
    found = at(obj, "metadata", "generation")
    return found if isinstance(found, int) and 0 <= found < 2**63 else 0


def _snapshot(
    obj: Object, uid: str | None, generation: int, user: str | None, groups: Iterable[str]
) -> SnapshotRecord | None:
    dumped = _dumped(_kept(obj))
    if uid is None or dumped is None or len(dumped) > LARGEST_OBJECT:
        return None
    return SnapshotRecord(
        uid=uid,
        generation=generation,
        namespace=text(at(obj, "metadata", "namespace"), NAME),
        name=text(at(obj, "metadata", "name"), NAME) or text(at(obj, "metadata", "generateName"), NAME),
        kind=text(obj.get("kind"), WORD),
        spec_hash=hashlib.sha256(_dumped(obj.get("spec"), orjson.OPT_SORT_KEYS) or b"").hexdigest(),
        object=dumped.decode().replace("\\u0000", ""),
        username=text(user, WHO),
        user_groups=_listed(tuple(groups)),
    )


def _kept(obj: Object) -> dict[str, Any]:
    """The object without status, what the API server and kubectl note in it, and the values of environment variables.

    People put tokens there, and the history is read by more people than the namespace.
    """
    kept = {key: _hidden(value) if key == "spec" else value for key, value in obj.items() if key != "status"}
    metadata = at(obj, "metadata")
    if isinstance(metadata, Mapping):
        kept["metadata"] = {key: value for key, value in metadata.items() if key != "managedFields"}
        annotations = metadata.get("annotations")
        if isinstance(annotations, Mapping) and LAST_APPLIED in annotations:
            others = {key: value for key, value in annotations.items() if key != LAST_APPLIED}
            kept["metadata"]["annotations"] = others
    return kept


def _hidden(tree: Any, *, is_variable: bool = False, depth: int = 0) -> Any:
    if depth > DEEPEST:
        return None
    if isinstance(tree, Mapping):
        hides = is_variable and "value" in tree
        inner = {key: _hidden(value, is_variable=key == "env", depth=depth + 1) for key, value in tree.items()}
        return inner | {"value": HIDDEN} if hides else inner
    if isinstance(tree, list):
        return [_hidden(item, is_variable=is_variable, depth=depth + 1) for item in tree]
    return tree


def _listed(items: Iterable[Any]) -> str | None:
    """A JSON list of as many items as fit a text column; None of an empty one."""
    kept: list[Any] = []
    size = 2
    for item in items:
        dumped = _dumped(item)
        size += len(dumped) + 1 if dumped is not None else TEXT
        if size > TEXT:
            break
        kept.append(item)
    return orjson.dumps(kept).decode().replace("\\u0000", "") if kept else None


def _dumped(value: Any, option: int = 0) -> bytes | None:
    try:
        return orjson.dumps(value, option=option)
    except (orjson.JSONEncodeError, TypeError):
        return None
