"""AdmissionReview v1, in and out. Pure: bytes and verdicts, no HTTP."""

import base64
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import orjson

from policy.defaults import Applied
from policy.verdicts import NO_JUDGEMENT, Judgement, annotations
from schemas import faults, kinds
from schemas.faults import Fault
from schemas.job import mapping, sequence, text
from schemas.kinds import JobKind

JSON = dict[str, Any]

API_VERSION = "admission.k8s.io/v1"
JUDGED = ("CREATE", "UPDATE")
SCALE = "scale"


class NotAReview(ValueError):  # noqa: N818 - it reads as what it says
    """The body is no AdmissionReview of v1 with a request and a uid."""


@dataclass(frozen=True, slots=True)
class Review:
    """One request. ``kind`` is None for objects that Signalbox does not serve."""

    uid: str
    operation: str
    subresource: str
    kind: JobKind | None
    group: str
    kind_name: str
    namespace: str
    name: str
    object: Any
    old: Any
    dry_run: bool
    user: str = ""
    groups: tuple[str, ...] = ()

    @property
    def passes_by(self) -> bool:
        """Whether there is nothing to say: not a create or update of a live job of ours (nolar/kopf#857, ome#846)."""
        deleting = any(
            mapping(mapping(item).get("metadata")).get("deletionTimestamp") for item in (self.object, self.old)
        )
        return self.kind is None or self.operation not in JUDGED or self.subresource != "" or deleting


@dataclass(frozen=True, slots=True)
class Verdict:
    """The answer to a review: refused when there are faults, else patched by ``patch``.

    ``judgement`` and ``applied`` are what policies had to do with it.
    """

    faults: tuple[Fault, ...] = ()
    patch: tuple[JSON, ...] = ()
    warnings: tuple[str, ...] = ()
    judgement: Judgement = NO_JUDGEMENT
    applied: tuple[Applied, ...] = ()

    @property
    def allowed(self) -> bool:
        return not self.faults


def read(body: bytes) -> Review:
    """The review in ``body``; raises ``NotAReview`` with what is wrong."""
    try:
        document = orjson.loads(body)
    except orjson.JSONDecodeError as error:
        raise NotAReview(f"body: must be JSON ({error})") from error
    if not isinstance(document, dict) or document.get("apiVersion") != API_VERSION:
        raise NotAReview(f"apiVersion: must be {API_VERSION}")
    request = document.get("request")
    if not isinstance(request, dict) or not text(request.get("uid")):
        raise NotAReview("request.uid: must be set")
    return _review(request)


def _review(request: Mapping[str, Any]) -> Review:
    kind, resource = mapping(request.get("kind")), mapping(request.get("resource"))
    group, name = text(kind.get("group")), text(kind.get("kind"))
    is_scale = request.get("subResource") == SCALE
    served = kinds.serving(text(resource.get("resource")), text(resource.get("group"))) if is_scale else None
    return Review(
        uid=text(request.get("uid")),
        operation=text(request.get("operation")),
        subresource=text(request.get("subResource")),
        kind=served or kinds.find(name, group),
        group=group,
        kind_name=name,
        namespace=text(request.get("namespace")),
        name=text(request.get("name")),
        object=request.get("object"),
        old=request.get("oldObject"),
        dry_run=request.get("dryRun") is True,
        user=text(mapping(request.get("userInfo")).get("username")),
        groups=tuple(filter(None, map(text, sequence(mapping(request.get("userInfo")).get("groups"))))),
    )


def answer(review: Review, verdict: Verdict) -> bytes:
    """The AdmissionReview that answers ``review``, always for HTTP 200."""
    response: JSON = {"uid": review.uid, "allowed": verdict.allowed}
    if not verdict.allowed:
        response["status"] = _status(review, list(verdict.faults))
    if verdict.allowed and verdict.patch:
        response["patchType"] = "JSONPatch"
        response["patch"] = base64.b64encode(orjson.dumps(list(verdict.patch))).decode()
    if verdict.warnings:
        response["warnings"] = list(verdict.warnings)
    if told := annotations(verdict.applied, verdict.judgement):
        response["auditAnnotations"] = told
    return orjson.dumps({"apiVersion": API_VERSION, "kind": "AdmissionReview", "response": response})


def _status(review: Review, found: list[Fault]) -> JSON:
    """A Status as the API server makes it for an invalid object: kubectl prints each path once."""
    metadata = mapping(mapping(review.object).get("metadata"))
    name = review.name or text(metadata.get("name")) or text(metadata.get("generateName"))
    shown = found[: faults.MOST_FAULTS]
    return {
        "status": "Failure",
        "code": 422,
        "reason": "Invalid",
        "message": f"{review.kind_name} {name!r} is invalid: {faults.summary(found)}",
        "details": {
            "group": review.group,
            "kind": review.kind_name,
            "name": name,
            "causes": [{"reason": f.reason, "field": f.path, "message": f.message} for f in shown] + _more(found),
        },
    }


def _more(found: list[Fault]) -> list[JSON]:
    left = len(found) - faults.MOST_FAULTS
    return [{"reason": faults.INVALID, "field": "", "message": f"and {left} more"}] if left > 0 else []
