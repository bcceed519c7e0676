"""The next step towards current certificates. Pure and total: any state of the cluster gives a step.

A CA is changed so that no API server meets a certificate it does not trust (what cert-controller#20 found missing):
the new CA is stored beside the old, both are published, all configurations are read back, API servers get a while to
notice, and only then a leaf of the new CA is stored. The old CA goes when every server is seen to show the new leaf.
Each step rests on what is stored, so a process that dies leaves nothing that the next does not finish.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta

from cryptography import x509

from certs.bundles import Published, mark
from certs.issue import CLOCK_SKEW, Names, Pair
from certs.plan import Keep, RenewCA, RenewServer, issued_by, plan
from certs.secrets import Secrets, Told, readable

PATIENCE = timedelta(days=1)
"""How long a replaced CA is trusted when no server can be asked which certificate it shows."""


@dataclass(frozen=True, slots=True)
class Situation:
    """All that is stored and published."""

    secrets: Secrets
    published: Mapping[str, Published | None]


@dataclass(frozen=True, slots=True)
class StoreAuthority:
    """Store a new CA, beside those whose leaves may still be served."""

    reason: str


@dataclass(frozen=True, slots=True)
class Publish:
    """Put the bundle (PEM) into these configurations."""

    bundle: bytes
    wrong: tuple[Published, ...]


@dataclass(frozen=True, slots=True)
class Remember:
    """Store that the bundle has been read back from all configurations, and when."""

    told: Told


@dataclass(frozen=True, slots=True)
class Wait:
    """API servers may not know the bundle yet."""

    until: datetime


@dataclass(frozen=True, slots=True)
class StoreLeaf:
    """Store a new server certificate of the stored CA."""

    reason: str


@dataclass(frozen=True, slots=True)
class Verify:
    """Look whether all servers show leaves of the stored CA; drop the previous one if so."""

    without_proof: bool
    """Also drop it when no server can be asked."""


@dataclass(frozen=True, slots=True)
class Drop:
    """Nothing of the previous CA is worth keeping."""


@dataclass(frozen=True, slots=True)
class Rest:
    """All is in place until then."""

    until: datetime


Step = StoreAuthority | Publish | Remember | Wait | StoreLeaf | Verify | Drop | Rest


def next_step(seen: Situation, names: Names, now: datetime, overlap: timedelta) -> Step:
    """What to do next. ``overlap`` is how long API servers get to notice a new bundle; ``now`` is aware."""
    stored = seen.secrets.stored
    decision = plan(stored, names, now)
    if isinstance(decision, RenewCA) or stored.ca is None:
        return StoreAuthority(decision.reason if isinstance(decision, RenewCA) else "")
    bundle = stored.ca.certificate + readable(now, seen.secrets.previous)
    wrong = tuple(each for each in seen.published.values() if each is not None and each.lacks(bundle))
    if wrong:
        return Publish(bundle, wrong)
    if isinstance(decision, RenewServer):
        return _new_leaf(seen, decision, bundle, now, overlap)
    return _kept(seen, decision, now)


def _new_leaf(seen: Situation, decision: RenewServer, bundle: bytes, now: datetime, overlap: timedelta) -> Step:
    """At once, unless clients that trust the bundle accept the leaf they meet now, and may not know the new CA yet."""
    leaf, ca = seen.secrets.stored.leaf, seen.secrets.stored.ca
    knows_ca = ca is not None and is_accepted(leaf, ca.certificate, now)
    if knows_ca or not is_accepted(leaf, bundle, now):
        return StoreLeaf(decision.reason)
    told, name = seen.secrets.told, mark(bundle, seen.published)
    if told is None or told.mark != name or told.at > now:  # a clock that was set back
        return Remember(Told(name, now))
    if now < told.at + overlap:
        return Wait(told.at + overlap)
    return StoreLeaf(decision.reason)


def _kept(seen: Situation, decision: Keep, now: datetime) -> Step:
    if not seen.secrets.previous:
        return Rest(decision.renew_at)
    leaf = seen.secrets.stored.leaf
    if leaf is None or not readable(now, seen.secrets.previous):
        return Drop()
    made = x509.load_pem_x509_certificate(leaf.certificate).not_valid_before_utc + CLOCK_SKEW
    return Verify(without_proof=now >= made + PATIENCE)


def is_accepted(leaf: Pair | None, bundle: bytes, now: datetime) -> bool:
    """Whether clients that trust ``bundle`` accept the certificate of ``leaf``, whatever its names."""
    try:
        served = x509.load_pem_x509_certificate(leaf.certificate) if leaf else None
    except ValueError:
        return False
    if served is None or not served.not_valid_before_utc <= now < served.not_valid_after_utc:
        return False
    return any(issued_by(served, authority) for authority in x509.load_pem_x509_certificates(bundle))
