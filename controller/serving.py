"""Which kinds can be served: only those whose installed CRD keeps every status field that decisions rest on.

A kind may be installed by another project, whose CRD silently drops what it does not know: counts that must survive a
crash would be lost. Such a kind is left alone until its CRD is replaced, and the administrator is told what to apply.
"""

import threading
from collections.abc import Callable
from typing import Any

import structlog

from kube import errors
from kube.raw import RawKube
from kube.resources import CRDS
from schemas import crd
from schemas.kinds import JobKind

JSON = dict[str, Any]
log = structlog.get_logger()

MOST_NAMED = 5
OVERLAYS = {"signalbox.dev": "deploy", "kubeflow.org": "deploy/overlays/kubeflow"}
"""What an administrator applies to get the CRDs of a group."""


class Serving:
    """Looks at the CRDs now and again; ``unserved`` says for each kind that cannot be served why."""

    def __init__(self, kube: RawKube, kinds: tuple[JobKind, ...], on_served: Callable[[JobKind], None]) -> None:
        self.unserved: dict[JobKind, str] = {}
        self._kube = kube
        self._kinds = kinds
        self._on_served = on_served
        self._seen: dict[JobKind, str] = {}

    def run(self, stop: threading.Event, seconds: float) -> None:
        """Checks every so often until ``stop``."""
        while not stop.wait(seconds):
            self.check()

    def check(self) -> None:
        """One look at each CRD; a kind whose CRD has been replaced is served from now on."""
        for kind in self._kinds:
            try:
                self._look(kind, CRDS.path(None, f"{kind.plural}.{kind.group}"))
            except errors.KubeError as error:
                self._unread(kind, error)

    def _look(self, kind: JobKind, path: str) -> None:
        """A CRD has 170 KB and hardly ever changes: it is fetched when its version is another one."""
        if self._seen.get(kind) == self._kube.metadata(path)["resourceVersion"]:
            return
        found = self._kube.get(path)
        self._seen[kind] = str(found["metadata"]["resourceVersion"])
        self._judge(kind, why_not(kind, found))

    def _unread(self, kind: JobKind, error: errors.KubeError) -> None:
        """A CRD that is not there has no jobs; one that we may not read is trusted, and that is said once."""
        if isinstance(error, errors.NotFound):
            self._seen.pop(kind, None)
            self.unserved.pop(kind, None)
        elif isinstance(error, errors.Forbidden) and kind not in self._seen:
            self._seen[kind] = ""
            log.warning("the CRD cannot be checked", kind=kind.kind, reason=error.message)

    def _judge(self, kind: JobKind, reason: str) -> None:
        was = self.unserved.pop(kind, "")
        if reason:
            self.unserved[kind] = reason
            log.warning("kind is not served", kind=kind.kind, group=kind.group, reason=reason)
        elif was:
            log.info("kind is served again", kind=kind.kind, group=kind.group)
            self._on_served(kind)


def why_not(kind: JobKind, installed: JSON) -> str:
    """Why a kind cannot be served with this CRD, and what to apply; empty when it can."""
    lacking = crd.shortcomings(kind, installed)
    if not lacking:
        return ""
    more = f" and {len(lacking) - MOST_NAMED} more" if len(lacking) > MOST_NAMED else ""
    source = OVERLAYS.get(kind.group, "deploy/crds")
    return (
        f"the installed CRD {kind.plural}.{kind.group} is not Signalbox's: {', '.join(lacking[:MOST_NAMED])}{more}. "
        f"Apply ours: kubectl apply --server-side --force-conflicts -k {source}"
    )
