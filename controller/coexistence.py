"""Leaves a kind to another operator for as long as that one is seen at work; looks again without a restart."""

import threading
from collections.abc import Callable, Iterable, Mapping
from typing import Any

import structlog

from controller.rivals import RIVALS, Rival, Sighting, at_work, sighted
from kube.errors import Forbidden, KubeError, NotFound
from kube.raw import RawKube
from kube.resources import DEPLOYMENTS, LEASES, Resource
from schemas.kinds import JobKind

log = structlog.get_logger()

LOOK_SECONDS = 20.0
"""Longer than the 15 s after which a Lease that nobody renews has expired."""


class Coexistence:
    """``may_serve`` is asked by the workers; ``take_over`` serves everything and looks for nobody."""

    def __init__(
        self,
        kube: RawKube,
        *,
        on_change: Callable[[], None],
        take_over: bool = False,
        monotonic: Callable[[], float],
    ) -> None:
        self.ceded: Mapping[JobKind, str] = {}
        """The kinds left to others, each with the reason."""
        self.looked = threading.Event()
        """Set after the first look: before it, nothing may be reconciled."""
        self._kube = kube
        self._on_change = on_change
        self._take_over = take_over
        self._cleared: frozenset[JobKind] = frozenset()
        self._monotonic = monotonic
        self._seen: dict[str, Sighting] = {}
        self._told: set[str] = set()

    def may_serve(self, kind: JobKind) -> bool:
        """Whether ``kind`` is ours: nobody else serves such kinds, or was found at work at the last look."""
        return self._take_over or kind in self._cleared or not any(rival.claims(kind) for rival in RIVALS)

    def look(self, kinds: Iterable[JobKind]) -> None:
        """Look for the rivals of ``kinds``. What cannot be looked at for a moment leaves everything as it was."""
        wanted = () if self._take_over else tuple(kinds)
        try:
            ceded = self._claimed(wanted)
        except KubeError as error:
            self._report("other operators cannot be looked for", error)
            return
        before, self.ceded = (self._cleared, self.ceded), ceded
        self._cleared = frozenset(wanted) - ceded.keys()
        self.looked.set()
        if before != (self._cleared, ceded):
            self._tell(before[1])
            self._on_change()

    def _claimed(self, kinds: tuple[JobKind, ...]) -> dict[JobKind, str]:
        claimed: dict[JobKind, str] = {}
        seen: dict[str, Sighting] = {}
        for rival in RIVALS:
            contested = [kind for kind in kinds if rival.claims(kind)]
            if contested and (sign := self._sign(rival, seen)):
                claimed |= dict.fromkeys(contested, f"{rival.name} is at work: {sign}")
        self._seen = seen
        return claimed

    def _sign(self, rival: Rival, seen: dict[str, Sighting]) -> str:
        deployments = [found for name in rival.deployments for found in self._named(DEPLOYMENTS, name)]
        leases = [found for name in rival.leases for found in self._named(LEASES, name)]
        now = self._monotonic()
        seen |= sighted(leases, self._seen, now)
        return at_work(deployments, leases, seen, now)

    def _named(self, resource: Resource, name: str) -> list[dict[str, Any]]:
        """All of this name, in whatever namespace; none when we may not look, as with rights of one namespace only."""
        try:
            return list(self._kube.get(resource.path(), fieldSelector=f"metadata.name={name}").get("items") or [])
        except (Forbidden, NotFound) as error:
            self._report("another operator may be at work unseen", error)
            return []

    def _report(self, message: str, error: KubeError) -> None:
        """Once for each text, not at every look."""
        if error.message not in self._told:
            self._told.add(error.message)
            log.warning(message, reason=error.message)

    def _tell(self, before: Mapping[JobKind, str]) -> None:
        for kind, reason in self.ceded.items():
            if before.get(kind) != reason:
                log.warning("kind is not served", kind=kind.kind, reason=reason, hint="--take-over serves it anyway")
        for kind in before.keys() & self._cleared:
            log.info("kind is served again", kind=kind.kind)
