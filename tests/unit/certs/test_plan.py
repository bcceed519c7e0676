from datetime import timedelta

import pytest
from cryptography import x509

from certs.issue import Names, Pair, new_ca, new_leaf
from certs.plan import Keep, RenewCA, RenewServer, Stored, plan, renewal_time

DAY = timedelta(days=1)
YEAR = 365 * DAY
SOON = timedelta(minutes=1)


@pytest.mark.parametrize(
    ("after", "expected"),
    [
        (timedelta(), Keep),
        (-2 * timedelta(hours=1), RenewCA),  # a clock that was ahead made a CA that is not valid yet
        (54 * DAY - timedelta(hours=2), Keep),
        (66 * DAY + SOON, RenewServer),
        (200 * DAY, RenewServer),
        (5 * YEAR * 2 / 3 * 1.1 + SOON, RenewCA),
        (6 * YEAR, RenewCA),
    ],
    ids=["new", "clock set back", "day 53", "day 66", "expired leaf", "two thirds of the CA", "expired CA"],
)
def test_age(ca, leaf, names, now, after, expected):
    assert isinstance(plan(Stored(ca, leaf), names, now + after), expected)


def test_renewal_is_due_within_a_tenth_of_two_thirds_of_the_life(ca, names, now):
    """Always at the same time for one certificate, and not at the same for all."""
    leaves = [x509.load_pem_x509_certificate(new_leaf(ca, names, now).certificate) for _ in range(20)]
    due = [renewal_time(leaf) - now for leaf in leaves]
    assert due == [renewal_time(leaf) - now for leaf in leaves]
    assert all(54 * DAY - timedelta(hours=1) <= each <= 66 * DAY for each in due)
    assert len(set(due)) > 10


def test_keep_says_until_when(ca, leaf, names, now):
    found = plan(Stored(ca, leaf), names, now)
    assert found == Keep(renew_at=renewal_time(x509.load_pem_x509_certificate(leaf.certificate)))


@pytest.mark.parametrize(
    ("stored", "expected", "reason"),
    [
        (lambda ca, leaf, other: None, RenewCA, "the CA is missing"),
        (lambda ca, leaf, other: Stored(None, None), RenewCA, "the CA is missing"),
        (lambda ca, leaf, other: Stored(None, leaf), RenewCA, "the CA is missing"),
        (lambda ca, leaf, other: Stored(Pair(b"", b""), leaf), RenewCA, "the CA cannot be read"),
        (lambda ca, leaf, other: Stored(Pair(ca.certificate, b"no key"), leaf), RenewCA, "the CA cannot be read"),
        (lambda ca, leaf, other: Stored(Pair(ca.certificate[:300], ca.key), leaf), RenewCA, "the CA cannot be read"),
        (
            lambda ca, leaf, other: Stored(Pair(ca.certificate, other.key), leaf),
            RenewCA,
            "the CA does not match its key",
        ),
        (lambda ca, leaf, other: Stored(leaf, leaf), RenewCA, "the CA is not a CA"),
        (lambda ca, leaf, other: Stored(ca, None), RenewServer, "the server certificate is missing"),
        (
            lambda ca, leaf, other: Stored(ca, Pair(b"\xff", leaf.key)),
            RenewServer,
            "the server certificate cannot be read",
        ),
        (lambda ca, leaf, other: Stored(ca, Pair(leaf.certificate, ca.key)), RenewServer, "does not match its key"),
        (lambda ca, leaf, other: Stored(other, leaf), RenewServer, "was not issued by the CA"),
        (lambda ca, leaf, other: Stored(ca, ca), RenewServer, "is for other names"),
    ],
)
def test_unusable(ca, leaf, names, now, stored, expected, reason):
    found = plan(stored(ca, leaf, new_ca(now)), names, now)
    assert isinstance(found, expected)
    assert reason in found.reason


@pytest.mark.parametrize(
    "other",
    [
        Names("signalbox-webhook", "elsewhere", ("localhost", "127.0.0.1", "::1")),
        Names("signalbox-webhook", "signalbox-system"),
        Names("signalbox-webhook", "signalbox-system", ("localhost", "127.0.0.1", "::1", "more.example")),
        Names("signalbox-webhook", "signalbox-system", ("localhost", "127.0.0.2", "::1")),
    ],
    ids=["namespace", "fewer", "more", "address"],
)
def test_other_names(ca, leaf, now, other):
    assert plan(Stored(ca, leaf), other, now) == RenewServer("the server certificate is for other names")


def test_what_new_leaf_makes_is_kept(ca, now):
    names = Names("s", "n", ("b", "a", "10.0.0.1", "a"))
    assert isinstance(plan(Stored(ca, new_leaf(ca, names, now)), names, now), Keep)
