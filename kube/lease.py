"""Leader election by a Lease: reads, asks ``kube.election`` what to do, writes.

Not the official client's: that one compares clocks of two machines, keeps leading when a call hangs, and does not
release (kubernetes-client/python#1669, #2379).
"""

import socket
import threading
import time
import uuid
from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, datetime

import structlog

from kube import election
from kube.election import Step, Terms, View
from kube.errors import AlreadyExists, Conflict, KubeError, NotFound
from kube.raw import RawKube
from kube.resources import LEASES

log = structlog.get_logger(__name__)


def boot_clock() -> float:
    """Seconds that also pass while the machine is suspended, when others may take the Lease."""
    return time.clock_gettime(time.CLOCK_BOOTTIME)


def identity() -> str:
    """A name for this process that no other one has or had."""
    return f"{socket.gethostname()}_{uuid.uuid4()}"


@dataclass(frozen=True, slots=True)
class Place:
    """Where the Lease is."""

    namespace: str
    name: str

    @property
    def path(self) -> str:
        return LEASES.path(self.namespace, self.name)


class Election:
    """One candidate. ``run`` stands for election until ``stop``; ``leading`` may be asked from any thread.

    ``on_change(leads)`` is called in the thread of ``run`` whenever the answer has changed. ``kube`` must be a
    connection of its own, so that neither other calls nor a fence hold a renewal up, and its timeout at most half
    of ``terms.renew``.
    """

    def __init__(
        self,
        kube: RawKube,
        place: Place,
        *,
        on_change: Callable[[bool], None],
        me: str | None = None,
        terms: Terms | None = None,
        clock: Callable[[], float] = boot_clock,
    ) -> None:
        self._kube = kube
        self._place = place
        self._on_change = on_change
        self._terms = terms or Terms()
        self._clock = clock
        self._view = View(me or identity())
        self._told = False
        self._trouble = ""

    @property
    def holder(self) -> str:
        """Who held the Lease when it was last seen; empty for nobody."""
        lease = self._view.lease
        return lease.holder if lease else ""

    def leading(self) -> bool:
        """Whether this process may act now. Becomes false by itself when renewals are not answered."""
        return election.leading(self._view, self._clock(), self._terms)

    def remaining(self) -> float:
        """Seconds for which a write of ours may be under way; 0 when this process must not write."""
        return election.remaining(self._view, self._clock(), self._terms)

    def run(self, stop: threading.Event) -> None:
        """Acquire, renew, wait, and tell of changes, until ``stop``; then release."""
        while not stop.is_set():
            self.round()
            stop.wait(election.pause(self._view, self._clock(), self._terms))
        self.release()

    def round(self) -> None:
        """One look at the Lease and the write that follows from it."""
        try:
            self._look()
            self._trouble = ""
        except KubeError as error:
            self._report(error)
        self._tell()

    def release(self) -> None:
        """Stop leading and give the Lease up if we hold it: the next candidate need not wait for it to expire."""
        view, self._view = self._view, View(self._view.me)
        if view.lease is not None and view.lease.holder == view.me:
            try:
                self._kube.replace(
                    self._place.path, election.given_up(view, self._place.name, self._place.namespace, _stamp())
                )
                log.info("lease released", lease=self._place.name)
            except KubeError as error:
                log.warning("lease not released", lease=self._place.name, reason=error.message)
        self._tell()

    def _look(self) -> None:
        """A leader writes without reading first; what it has seen makes the write conditional."""
        if election.decide(self._view, self._clock(), self._terms) is not Step.RENEW:
            self._observe()
        step = election.decide(self._view, self._clock(), self._terms)
        if step is Step.WAIT:
            return
        try:
            self._write(step)
        except (AlreadyExists, Conflict, NotFound):  # somebody else was faster, or deleted it
            self._observe()

    def _observe(self) -> None:
        try:
            lease = election.held(self._kube.get(self._place.path))
        except NotFound:
            lease = None
        self._view = election.observed(self._view, lease, self._clock())

    def _write(self, step: Step) -> None:
        begun = self._clock()
        body = election.written(self._view, self._place.name, self._place.namespace, _stamp(), self._terms)
        if step is Step.CREATE:
            answer = self._kube.create(LEASES.path(self._place.namespace), body)
        else:
            answer = self._kube.replace(self._place.path, body)
        self._view = election.confirmed(self._view, election.held(answer), begun)

    def _tell(self) -> None:
        leads = self.leading()
        if leads != self._told:
            self._told = leads
            log.info("leads" if leads else "does not lead", lease=self._place.name, me=self._view.me)
            self._on_change(leads)

    def _report(self, error: KubeError) -> None:
        """Once for each kind of trouble, not every two seconds."""
        if error.message != self._trouble:
            self._trouble = error.message
            log.warning("lease cannot be had", lease=self._place.name, reason=error.message, leads=self.leading())


def _stamp() -> str:
    return datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%S.%fZ")
