"""Keeps the webhook's certificates current in the cluster: takes ``steps`` until nothing is left to do for now."""

import logging
from datetime import datetime, timedelta
from typing import Literal

from certs.bundles import Published, publish, read_published
from certs.issue import Issued, Names, Pair, new_ca, new_leaf
from certs.secrets import (
    Authority,
    Kube,
    Secrets,
    read_secrets,
    readable,
    store_authority,
    store_leaf,
    store_told,
)
from certs.servers import Find, all_show
from certs.steps import (
    Drop,
    Publish,
    Remember,
    Rest,
    Situation,
    Step,
    StoreAuthority,
    StoreLeaf,
    Verify,
    Wait,
    is_accepted,
    next_step,
)
from kube.errors import AlreadyExists, Conflict, NotFound

OVERLAP = timedelta(seconds=60)
"""How long API servers get to notice a new caBundle before a leaf is shown that needs it."""
ASK_AGAIN = timedelta(seconds=10)
"""A kubelet delivers a changed Secret within two minutes or so."""
ATTEMPTS = 8
"""Tries before a lost race is the caller's; each one lost means that another writer got on."""
MOST_STEPS = 12
"""Twice what a change of the CA takes: more means that another writer undoes ours."""

Renewal = Literal["ca", "server"]
log = logging.getLogger("signalbox.certs")


def ensure(
    kube: Kube,
    *,
    namespace: str,
    names: Names,
    now: datetime,
    overlap: timedelta = OVERLAP,
    find: Find | None = None,
    renew: Renewal | None = None,
) -> Issued:
    """Take every step that can be taken now; writes nothing when all is in place.

    ``find`` finds the servers to ask before a previous CA is dropped; without it time decides. ``renew`` asks for a
    new CA or leaf before its time. Raises ``kube.errors.KubeError``; a Conflict only after ``ATTEMPTS`` lost races. A
    webhook configuration that does not exist yet is named in ``Issued.done``.
    """
    return _Pass(kube, namespace, names, now, overlap, find, renew).run()


class _Pass:
    """Everything is read anew before each step, so that each rests on what is stored."""

    def __init__(
        self,
        kube: Kube,
        namespace: str,
        names: Names,
        now: datetime,
        overlap: timedelta,
        find: Find | None,
        renew: Renewal | None,
    ) -> None:
        self._kube, self._namespace, self._names, self._now = kube, namespace, names, now
        self._overlap, self._find, self._asked = overlap, find, renew
        self._done: list[str] = []
        self._repaired: list[str] = []
        self._lost = 0
        self._again: datetime | None = None

    def run(self) -> Issued:
        for _ in range(MOST_STEPS + ATTEMPTS):
            seen = self._look()
            step = self._wanted(next_step(seen, self._names, self._now, self._overlap))
            if isinstance(step, Wait | Rest):
                return self._issued(seen, step.until)
            try:
                self._take(seen, step)
            except (Conflict, AlreadyExists, NotFound) as lost:
                self._count(lost)
            if self._again is not None:
                return self._issued(seen, self._again)
        raise Conflict("another writer undoes what is written here", status=409)

    def _look(self) -> Situation:
        return Situation(read_secrets(self._kube, self._namespace), read_published(self._kube))

    def _wanted(self, step: Step) -> Step:
        """The step itself, or what was asked for once everything is in place; a CA that is being changed is new."""
        if self._asked is None or not isinstance(step, Rest | Verify | Wait):
            return step
        asked, self._asked = self._asked, None
        if isinstance(step, Wait):
            self._done.append("a new CA is on its way already")
            return step
        return StoreAuthority("asked for") if asked == "ca" else StoreLeaf("asked for")

    def _count(self, lost: Conflict | AlreadyExists | NotFound) -> None:
        self._lost += 1
        log.info("another writer was faster", extra={"attempt": self._lost, "answer": lost.message})
        if self._lost == ATTEMPTS:
            raise lost

    def _take(self, seen: Situation, step: Step) -> None:
        secrets = seen.secrets
        match step:
            case StoreAuthority(reason):
                store_authority(self._kube, secrets, Authority(new_ca(self._now), secrets.outgoing(self._now)))
                self._done.append(f"issued a CA: {reason}")
            case Publish(bundle, wrong):
                self._publish(secrets, bundle, wrong)
            case Remember(told):
                store_told(self._kube, secrets, told)
            case StoreLeaf(reason):
                ca = _ca(secrets)
                store_leaf(self._kube, secrets, Authority(ca), new_leaf(ca, self._names, self._now))
                self._done.append(f"issued a server certificate: {reason}")
            case Verify(without_proof):
                self._verify(seen, without_proof=without_proof)
            case Drop():
                self._drop(secrets)

    def _publish(self, secrets: Secrets, bundle: bytes, wrong: tuple[Published, ...]) -> None:
        """A repair, unless the bundle is new."""
        if {each.name for each in wrong} & set(self._repaired):  # undone at once: not again in this pass
            self._again = self._now + timedelta(seconds=1)
            return
        in_use = is_accepted(secrets.stored.leaf, _ca(secrets).certificate, self._now)
        is_new = bool(self._done) or not (in_use or secrets.told)
        for each in wrong:
            publish(self._kube, each, bundle)
            if not is_new:
                self._repaired.append(each.name)
        self._done += [f"caBundle of {each.name}: changed" for each in wrong]

    def _verify(self, seen: Situation, *, without_proof: bool) -> None:
        shown = all_show(self._find(seen.published) if self._find else (), _ca(seen.secrets).certificate)
        if shown or (shown is None and without_proof):
            self._drop(seen.secrets)
        else:
            self._again = self._now + ASK_AGAIN

    def _drop(self, secrets: Secrets) -> None:
        store_authority(self._kube, secrets, Authority(_ca(secrets)))
        self._done.append("dropped the previous CA")

    def _issued(self, seen: Situation, again: datetime) -> Issued:
        ca, leaf = _ca(seen.secrets), seen.secrets.stored.leaf
        assert leaf is not None  # no step comes to rest without one
        missing = [f"caBundle of {name}: not found" for name, each in seen.published.items() if each is None]
        others = [each for each in seen.published.values() if each is not None and not each.is_ours]
        left = [f"caBundle of {each.name}: left to cert-manager" for each in others]
        bundle = ca.certificate + readable(self._now, seen.secrets.previous)
        return Issued(
            bundle,
            leaf.certificate,
            leaf.key,
            done=(*self._done, *missing, *left),
            again=again,
            repaired=tuple(self._repaired),
        )


def _ca(secrets: Secrets) -> Pair:
    ca = secrets.stored.ca
    assert ca is not None  # it is stored before any other step
    return ca
