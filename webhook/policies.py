"""The policies that reviews are judged by: from a directory, or from the cluster by a watch in each worker.

The watches are ours, so no worker imports the Kubernetes client.
"""

import threading
import time
from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from datetime import UTC, datetime
from typing import Any, Protocol

import structlog

from kube.config import Connection
from kube.errors import Conflict, KubeError, NotFound
from kube.raw import RawKube
from kube.reflector import Reflector
from kube.resources import NAMESPACES, TRAINING_POLICIES
from kube.store import Store
from policy.catalog import Catalog
from policy.evaluate import IsLate
from policy.model import Invalid, PolicySet
from schemas.job import integer, mapping
from webhook.accounts import Counts
from webhook.governed import Ground
from webhook.review import Review

JSON = dict[str, Any]
log = structlog.get_logger()

RULE_SECONDS = 1.0
"""How long the rules of one review may take; /mutate is given 2 s by the API server, /validate 3 s."""
NAMESPACE_SECONDS = 0.5
FIRST_LIST_SECONDS = 5.0
FLUSH_SECONDS = 10.0
"""How often at most a worker writes the status of a policy."""


class Book(Protocol):
    """Where the webhook gets its policies, and tells what came of them."""

    def ground(self, review: Review) -> Ground:
        """What this review is judged on."""

    def add(self, counts: Counts) -> None:
        """Count what a review did."""


class Bound:
    """A book that does not change: policies that were read when the webhook started.

    All namespaces have the same ``labels``, since there is no cluster to ask; each has its name as the API server's
    label says it.
    """

    def __init__(
        self, policies: PolicySet, now: Callable[[], datetime], labels: Mapping[str, str] | None = None
    ) -> None:
        self._policies = policies
        self._now = now
        self._labels = labels or {}

    def ground(self, review: Review) -> Ground:
        labels = {"kubernetes.io/metadata.name": review.namespace, **self._labels}
        return Ground(self._policies, labels, self._now(), _limit())

    def add(self, counts: Counts) -> None: ...


class Watched:
    """The cluster's policies. ``start`` begins the watches and waits for the first list."""

    def __init__(self, connection: Connection, *, flush_seconds: float = FLUSH_SECONDS) -> None:
        self._kube = RawKube(connection)
        self._quick = RawKube(connection, timeout=NAMESPACE_SECONDS)
        self._policies, self._namespaces = Store(), Store()
        self._catalog = Catalog()
        self._told: set[tuple[str, int]] = set()
        self._version = 0
        self._built = 0, PolicySet()
        self._lock = threading.Lock()
        self._counts: Counts = Counter()
        self._flush_seconds = flush_seconds
        self._stop = threading.Event()
        self._policy_reflector = Reflector(
            self._kube, TRAINING_POLICIES.path(), self._policies, on_change=self._changed
        )
        self._namespace_reflector = Reflector(
            self._kube, NAMESPACES.path(), self._namespaces, on_change=lambda *_: None
        )

    def start(self, seconds: float = FIRST_LIST_SECONDS) -> None:
        """Returns once the policies are known or cannot be had, after ``seconds`` in any case."""
        for target in (self._policy_reflector, self._namespace_reflector):
            threading.Thread(target=target.run, args=(self._stop,), daemon=True).start()
        threading.Thread(target=self._flush_for_ever, daemon=True).start()
        deadline = time.monotonic() + seconds
        while not self._is_loaded() and time.monotonic() < deadline:
            self._policy_reflector.synced.wait(0.05)

    def stop(self) -> None:
        """Ends the watches and writes what has been counted."""
        self._stop.set()
        self._kube.stop_watches()
        self.flush()

    def ground(self, review: Review) -> Ground:
        policies = self._current()
        labels = self._labels(review.namespace) if policies.asks_for_namespace_labels else {}
        return Ground(policies, labels, datetime.now(UTC), _limit(), self._is_loaded())

    def add(self, counts: Counts) -> None:
        if counts:
            with self._lock:
                self._counts.update(counts)

    def flush(self) -> None:
        """Adds the counts to the statuses; a policy whose status somebody else writes just now waits for the next."""
        with self._lock:
            counts, self._counts = self._counts, Counter()
        for name in {policy for policy, _ in counts}:
            deltas = {field: number for (policy, field), number in counts.items() if policy == name}
            if not self._written(name, deltas):
                self.add(Counter({(name, field): number for field, number in deltas.items()}))

    def _is_loaded(self) -> bool:
        """Known, or not to be had: without the CRD, or the right to read it, there are no policies."""
        return self._policy_reflector.synced.is_set() or bool(self._policy_reflector.unavailable)

    def _changed(self, *_: object) -> None:
        self._version += 1

    def _current(self) -> PolicySet:
        """Built anew after a change; a change meanwhile makes it stale again."""
        version = self._version
        if self._built[0] == version:
            return self._built[1]
        with self._lock:
            contents = self._catalog.read(self._policies.values())
            self._built = version, contents.policies
        self._tell(contents.invalid)
        return contents.policies

    def _tell(self, invalid: Iterable[Invalid]) -> None:
        """Each once; that it is not in force is said in its status by the controller."""
        for item in invalid:
            if (item.name, item.generation) in self._told:
                continue
            log.warning("policy is invalid and not in force", policy=item.name, faults=list(map(str, item.faults)))
            self._told.add((item.name, item.generation))

    def _labels(self, namespace: str) -> Mapping[str, str] | None:
        """From the watch; of a namespace it does not know yet from the API server, which is asked once."""
        known = self._namespaces.get("", namespace)
        if known is None:
            try:
                known = self._quick.get(NAMESPACES.path(name=namespace))
            except (KubeError, ValueError) as error:
                log.warning("labels of a namespace cannot be had", namespace=namespace, reason=str(error))
                return None
        return dict(mapping(mapping(known.get("metadata")).get("labels")))

    def _flush_for_ever(self) -> None:
        while not self._stop.wait(self._flush_seconds):
            self.flush()

    def _written(self, name: str, deltas: Mapping[str, int]) -> bool:
        """Whether the deltas are done with."""
        try:
            stored = self._kube.get(TRAINING_POLICIES.path(name=name))
            status = mapping(stored.get("status"))
            raised = {field: (integer(status.get(field)) or 0) + number for field, number in deltas.items()}
            body = {"metadata": {"resourceVersion": stored["metadata"]["resourceVersion"]}, "status": raised}
            self._kube.patch(TRAINING_POLICIES.path(name=name, subresource="status"), body, kind="merge")
        except NotFound:
            return True
        except Conflict:
            return False
        except KubeError as error:
            log.warning("status of a policy cannot be written", policy=name, reason=error.message)
            return False
        return True


def _limit() -> IsLate:
    end = time.monotonic() + RULE_SECONDS
    return lambda: time.monotonic() > end
