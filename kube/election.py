"""Who leads: decided from the Lease as last seen and our own clock. Pure.

Times written by others are never compared with our clock: a Lease has expired when we have watched it stay unchanged
for its whole duration. All times here are seconds of one clock of ours that also counts while the machine sleeps.
"""

import math
from collections.abc import Mapping
from dataclasses import dataclass, replace
from enum import Enum
from typing import Any

RELEASED_SECONDS = 1
"""The duration a leader leaves behind when it gives the Lease up; others need not wait even that."""


@dataclass(frozen=True, slots=True)
class Terms:
    """How long a Lease lasts, how long a leader acts on one renewal, and how often it looks; in seconds.

    A leader stops ``duration - renew`` seconds before anybody may take its Lease. ValueError unless
    0 < retry < renew < duration.
    """

    duration: float = 15.0
    renew: float = 10.0
    retry: float = 2.0

    def __post_init__(self) -> None:
        if not 0 < self.retry < self.renew < self.duration:
            raise ValueError(f"a lease needs 0 < retry < renew < duration (got {self})")


class Step(Enum):
    """What to do about the Lease now."""

    CREATE = "create"
    ACQUIRE = "acquire"
    RENEW = "renew"
    WAIT = "wait"


@dataclass(frozen=True, slots=True)
class Held:
    """A Lease as the API server had it; ``holder`` is empty when nobody has it."""

    holder: str
    version: str
    duration: float
    transitions: int = 0
    acquired: str = ""
    """When the holder got it, in its own words."""


@dataclass(frozen=True, slots=True)
class View:
    """What one candidate knows."""

    me: str
    lease: Held | None = None
    seen: float = 0.0
    """When the Lease was first seen in this version."""
    confirmed: float | None = None
    """When the last write that made or kept us the holder was *begun*; None when we are not the holder."""


def observed(view: View, lease: Held | None, now: float) -> View:
    """The view after reading the Lease. Another holder ends our leadership; an unchanged version ages.

    A Lease that somebody deleted counts as held for its duration: its holder does not know yet.
    """
    if lease is None and view.lease is not None and view.lease.holder != view.me:
        lease = replace(view.lease, version="")
    mine = lease is not None and lease.holder == view.me
    seen = view.seen if lease == view.lease else now
    return replace(view, lease=lease, seen=seen, confirmed=view.confirmed if mine else None)


def confirmed(view: View, lease: Held, begun: float) -> View:
    """The view after a write of ours, begun at ``begun``, was answered with ``lease``."""
    return replace(view, lease=lease, seen=begun, confirmed=begun)


def decide(view: View, now: float, terms: Terms) -> Step:
    """What a candidate does. Every write it leads to is conditional on the version that was seen."""
    if view.lease is None:
        return Step.CREATE
    if view.lease.holder == view.me:
        return Step.RENEW
    if now < expiry(view, terms):
        return Step.WAIT
    return Step.ACQUIRE if view.lease.version else Step.CREATE


def expiry(view: View, terms: Terms) -> float:
    """When the Lease of another may be taken. The longer of both durations counts, so that mixed settings are safe."""
    if view.lease is None or not view.lease.holder:
        return view.seen
    return view.seen + max(view.lease.duration, terms.duration)


def leading(view: View, now: float, terms: Terms) -> bool:
    """Whether we may act: a renewal begun at most ``renew`` seconds ago was answered."""
    return view.confirmed is not None and now < view.confirmed + terms.renew


def remaining(view: View, now: float, terms: Terms) -> float:
    """Seconds for which nobody else can lead; 0 when we do not lead. No write may be under way for longer."""
    if view.confirmed is None or not leading(view, now, terms):
        return 0.0
    return view.confirmed + terms.duration - now


def pause(view: View, now: float, terms: Terms) -> float:
    """Seconds until the next look: at once when a Lease expires, else after ``retry``."""
    if decide(view, now, terms) is Step.WAIT:
        return min(terms.retry, expiry(view, terms) - now)
    return terms.retry


def held(lease: Mapping[str, Any]) -> Held:
    """The Lease as a candidate sees it; what is missing or odd counts as not held."""
    metadata, spec = lease.get("metadata") or {}, lease.get("spec") or {}
    return Held(
        holder=str(spec.get("holderIdentity") or ""),
        version=str(metadata.get("resourceVersion") or ""),
        duration=float(spec.get("leaseDurationSeconds") or 0),
        transitions=int(spec.get("leaseTransitions") or 0),
        acquired=str(spec.get("acquireTime") or ""),
    )


def written(view: View, name: str, namespace: str, stamp: str, terms: Terms) -> dict[str, Any]:
    """The Lease that makes or keeps us the holder. ``stamp`` (RFC 3339, microseconds) is for people to read."""
    before = view.lease or Held("", "", 0)
    changes = before.holder != view.me
    spec = {
        "holderIdentity": view.me,
        "leaseDurationSeconds": math.ceil(terms.duration),
        "acquireTime": stamp if changes else before.acquired or stamp,
        "renewTime": stamp,
        "leaseTransitions": before.transitions + (1 if changes and before.version else 0),
    }
    return _lease(name, namespace, before.version, spec)


def given_up(view: View, name: str, namespace: str, stamp: str) -> dict[str, Any]:
    """The Lease without a holder: the next candidate that looks may take it."""
    before = view.lease or Held("", "", 0)
    spec = {
        "holderIdentity": "",
        "leaseDurationSeconds": RELEASED_SECONDS,
        "renewTime": stamp,
        "leaseTransitions": before.transitions,
    }
    return _lease(name, namespace, before.version, spec)


def _lease(name: str, namespace: str, version: str, spec: dict[str, Any]) -> dict[str, Any]:
    metadata = {"name": name, "namespace": namespace} | ({"resourceVersion": version} if version else {})
    return {"apiVersion": "coordination.k8s.io/v1", "kind": "Lease", "metadata": metadata, "spec": spec}
