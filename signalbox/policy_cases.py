"""Jobs judged by policies without a cluster, by the very functions of the webhook."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

import orjson

from policy.model import PolicySet
from schemas.kinds import JobKind
from webhook.governed import Ground
from webhook.mutate import mutate
from webhook.review import Review, Verdict

JSON = dict[str, Any]


@dataclass(frozen=True)
class Circumstances:
    """What a manifest does not say: who submits it, where, and when."""

    now: datetime
    namespace: str = "default"
    namespace_labels: Mapping[str, Mapping[str, str]] = field(default_factory=dict)
    """Namespace to labels."""
    user: str = ""
    groups: tuple[str, ...] = ()

    def ground(self, policies: PolicySet, namespace: str) -> Ground:
        """What a submission to ``namespace`` is judged on."""
        return Ground(policies, self.namespace_labels.get(namespace, {}), self.now)


def review_of(kind: JobKind, job: JSON, given: Circumstances, old: JSON | None = None) -> Review:
    """The request that the API server would make of ``kubectl apply`` with this manifest."""
    metadata = job.get("metadata") or {}
    return Review(
        uid="offline",
        operation="CREATE" if old is None else "UPDATE",
        subresource="",
        kind=kind,
        group=kind.group,
        kind_name=kind.kind,
        namespace=metadata.get("namespace") or given.namespace,
        name=metadata.get("name") or "",
        object=job,
        old=old,
        dry_run=False,
        user=given.user,
        groups=given.groups,
    )


def verdict_of(policies: PolicySet, kind: JobKind, job: JSON, given: Circumstances, old: JSON | None = None) -> Verdict:
    """What /mutate answers, which is what /validate says of its result as well."""
    review = review_of(kind, job, given, old)
    return mutate(review, given.ground(policies, review.namespace))


def word(verdict: Verdict) -> str:
    """refused, warned or allowed."""
    if not verdict.allowed:
        return "refused"
    return "warned" if verdict.warnings else "allowed"


def as_json(verdict: Verdict) -> JSON:
    """All that was said: every field always there."""
    return {
        "verdict": word(verdict),
        "policies": list(verdict.judgement.matched),
        "errors": [{"path": fault.path, "message": fault.message} for fault in verdict.faults],
        "warnings": list(verdict.warnings),
        "violations": [item.as_json for item in verdict.judgement.violations],
        "defaults": [
            {"path": item.path, "value": item.value, "policy": item.policy, "audit": item.audit}
            for item in verdict.applied
        ],
        "expiredExceptions": list(verdict.judgement.expired),
    }


def pretty(value: Any) -> str:
    return orjson.dumps(value, option=orjson.OPT_INDENT_2, default=str).decode()
