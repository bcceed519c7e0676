from datetime import timedelta

import pytest
from prometheus_client import REGISTRY

from certs.bundles import CONFIGURATIONS, inject
from certs.keeper import EVERY, LONGEST_RETRY, SHORTEST_RETRY, Keeper, Settings, contested_event
from certs.repairs import FIRST_PAUSE
from certs.secrets import TLS_SECRET
from kube.errors import Forbidden

NAMESPACE = "signalbox-system"


class Clock:
    """Moves when told; both kinds of time together."""

    def __init__(self, now):
        self.start, self.seconds = now, 0.0

    def monotonic(self):
        return self.seconds

    def utc(self):
        return self.start + timedelta(seconds=self.seconds)


@pytest.fixture
def clock(now):
    return Clock(now)


@pytest.fixture
def keeper(api, names, clock, tmp_path):
    settings = Settings(NAMESPACE, names, directory=tmp_path / "tls")
    return Keeper(
        api,
        settings,
        leading=lambda: True,
        find=lambda _published: [],
        monotonic=clock.monotonic,
        utc=clock.utc,
    )


@pytest.fixture
def events(api, monkeypatch):
    """Events that were written; they are no part of the configurations' world."""
    written, create = [], api.create

    def record(path, body):
        return written.append(body) if body.get("kind") == "Event" else create(path, body)

    monkeypatch.setattr(api, "create", record)
    return written


def value(name, **labels):
    return REGISTRY.get_sample_value(name, labels) or 0.0


def test_a_look_puts_all_in_place_and_rests(keeper, api, now, tmp_path):
    assert keeper.look() == EVERY
    assert api.secret(TLS_SECRET, "tls.crt") == (tmp_path / "tls" / "tls.crt").read_bytes()
    expiry = value("signalbox_certificate_expiry_timestamp_seconds", certificate="server")
    assert expiry == (now + timedelta(days=90)).timestamp()
    api.writes.clear()
    assert keeper.look() == EVERY
    assert api.writes == []


def test_wiped_bundle_is_put_right_at_once(keeper, api):
    keeper.look()
    before = value("signalbox_ca_bundle_repairs_total", configuration="signalbox-mutating")
    inject(api, b"")
    keeper.look()
    assert {bundle for bundles in api.bundles().values() for bundle in bundles} != {b""}
    assert value("signalbox_ca_bundle_repairs_total", configuration="signalbox-mutating") == before + 1


def test_a_fight_gets_slower_and_is_told_once(keeper, api, clock, events):
    keeper.look()
    pauses = []
    for _ in range(6):
        inject(api, b"")
        clock.seconds += pauses[-1] if pauses and pauses[-1] < EVERY else 0
        keeper.look()
        pauses.append(keeper.look())
    assert pauses == [EVERY, EVERY, FIRST_PAUSE, 2 * FIRST_PAUSE, 4 * FIRST_PAUSE, 8 * FIRST_PAUSE]
    assert sorted(event["involvedObject"]["name"] for event in events) == sorted(CONFIGURATIONS)
    assert value("signalbox_ca_bundle_contested") == 1


def test_an_opponent_who_is_faster_does_not_hold_a_pass(keeper, api):
    keeper.look()
    inject(api, b"")
    api.after_write = lambda: wipe(api)
    api.writes.clear()
    keeper.look()
    assert len(api.writes) <= 2 * len(CONFIGURATIONS)


def wipe(api):
    for path in CONFIGURATIONS.values():
        configuration = api.get(path)
        for webhook in configuration["webhooks"]:
            webhook["clientConfig"].pop("caBundle", None)
        api.put(path, configuration)


def test_failures_are_counted_and_tried_again(keeper, api, monkeypatch):
    before = value("signalbox_certificate_failures_total")

    def refuse(path):
        raise Forbidden("not yours", status=403)

    with monkeypatch.context() as patched:
        patched.setattr(api, "get", refuse)
        pauses = [keeper.look() for _ in range(8)]
    assert pauses[:2] == [SHORTEST_RETRY, 2 * SHORTEST_RETRY]
    assert pauses[-1] == LONGEST_RETRY
    assert value("signalbox_certificate_failures_total") == before + 8
    assert keeper.look() == EVERY


def test_whatever_is_stored_ends_no_thread(keeper, api):
    keeper.look()
    for path in CONFIGURATIONS.values():
        api.put(path, {"metadata": {"name": "x"}, "webhooks": [{"name": "no clientConfig"}]})
    assert keeper.look() == SHORTEST_RETRY


def test_event_is_where_events_about_cluster_wide_objects_belong(now):
    event = contested_event("signalbox-validating", now)
    assert event["metadata"]["namespace"] == "default"
    assert event["involvedObject"]["kind"] == "ValidatingWebhookConfiguration"
