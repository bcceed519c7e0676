from datetime import timedelta

import pytest

from certs.issue import Pair, new_ca
from certs.report import report


def test_complete(ca, leaf, now):
    found = report(ca, leaf, {"one": [ca.certificate, new_ca(now).certificate + ca.certificate]})
    assert found.complete
    assert found.server.subject == "CN=signalbox-webhook"
    assert {"127.0.0.1", "signalbox-webhook.signalbox-system.svc"} <= set(found.server.names)
    assert found.server.not_after == now + timedelta(days=90)
    assert found.ca.subject == "CN=signalbox-webhook-ca 2026-11-04"


@pytest.mark.parametrize(
    ("bundles", "expected"),
    [
        (lambda ca: [ca, ca], True),
        (lambda ca: [ca, b""], False),
        (lambda ca: [b"garbage"], False),
        (lambda ca: [], True),
        (lambda ca: None, None),
    ],
    ids=["all", "one empty", "garbage", "no webhooks", "no configuration"],
)
def test_trusted_by(ca, leaf, bundles, expected):
    found = report(ca, leaf, {"one": bundles(ca.certificate)})
    assert found.trusted_by == {"one": expected}
    assert found.complete is bool(expected)


@pytest.mark.parametrize("pair", [None, Pair(b"garbage", b"")])
def test_nothing_stored(leaf, pair):
    found = report(pair, leaf, {"one": [b"anything"]})
    assert (found.ca, found.issued_by_ca, found.trusted_by, found.complete) == (None, False, {"one": False}, False)
