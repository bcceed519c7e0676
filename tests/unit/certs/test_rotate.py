from datetime import timedelta

import pytest
from cryptography import x509

from certs.bundles import CONFIGURATIONS, inject, published_bundles
from certs.issue import Names
from certs.plan import Keep, Stored, issued_by, plan
from certs.rotate import ASK_AGAIN, ATTEMPTS, OVERLAP, ensure
from certs.secrets import CA_SECRET, TLS_SECRET, Secrets, read_secrets
from certs.steps import PATIENCE
from kube.errors import Conflict
from kube.resources import SECRETS

NAMESPACE = "signalbox-system"
CA_PATH, TLS_PATH = SECRETS.path(NAMESPACE, CA_SECRET), SECRETS.path(NAMESPACE, TLS_SECRET)
FIVE_YEARS = timedelta(days=5 * 365)
MINUTE = timedelta(minutes=1)
SECOND = timedelta(seconds=1)
DAY = timedelta(days=1)


@pytest.fixture
def run(api, names, now):
    def run(after=timedelta(), names=names, **options):
        api.writes.clear()
        return ensure(api, namespace=NAMESPACE, names=names, now=now + after, **options)

    return run


def certificates(pem):
    return x509.load_pem_x509_certificates(pem)


def stored(api) -> Secrets:
    return read_secrets(api, NAMESPACE)


def test_first_pass_issues_stores_and_publishes_in_this_order(api, run, names, now):
    issued = run()
    assert api.writes == [
        ("create", CA_PATH),
        *(("patch", path) for path in CONFIGURATIONS.values()),
        ("create", TLS_PATH),
    ]
    assert issued.done == (
        "issued a CA: the CA is missing",
        "caBundle of signalbox-mutating: changed",
        "caBundle of signalbox-validating: changed",
        "issued a server certificate: the server certificate is missing",
    )
    assert api.bundles() == {name: {issued.ca_pem} for name in CONFIGURATIONS}
    assert isinstance(plan(stored(api).stored, names, now), Keep)
    assert issued.cert_pem == api.secret(TLS_SECRET, "tls.crt")
    assert api.secret(TLS_SECRET, "ca.key") is None  # the webhook's pods mount this one


def test_second_pass_writes_nothing(api, run):
    first = run()
    second = run()
    assert (second.done, api.writes) == ((), [])
    assert (second.ca_pem, second.cert_pem, second.key_pem) == (first.ca_pem, first.cert_pem, first.key_pem)


@pytest.mark.parametrize("lost", [b"", b"something else"])
def test_wiped_bundle_is_repaired(api, run, lost):
    issued = run()
    inject(api, lost)
    assert run().done == tuple(f"caBundle of {name}: changed" for name in CONFIGURATIONS)
    assert api.bundles() == {name: {issued.ca_pem} for name in CONFIGURATIONS}


def test_inject_names_what_it_changed(api, run):
    bundle = run().ca_pem
    assert inject(api, bundle) == []
    configuration = api.get(CONFIGURATIONS["signalbox-validating"])
    del configuration["webhooks"][1]["clientConfig"]["caBundle"]
    api.put(CONFIGURATIONS["signalbox-validating"], configuration)
    assert inject(api, bundle) == ["signalbox-validating"]


def test_missing_configuration_is_reported(api, run):
    del api.objects[CONFIGURATIONS["signalbox-mutating"]]
    assert "caBundle of signalbox-mutating: not found" in run().done
    assert published_bundles(api)["signalbox-mutating"] is None
    assert set(published_bundles(api)["signalbox-validating"]) == {stored(api).stored.ca.certificate}


def test_server_renewal_keeps_the_ca(api, run):
    first = run()
    second = run(timedelta(days=67))
    assert api.writes == [("replace", TLS_PATH)]
    assert second.ca_pem == first.ca_pem
    assert second.cert_pem != first.cert_pem


def test_other_names_renew_the_server_certificate(api, run):
    run()
    assert run(names=Names("renamed", NAMESPACE)).done == (
        "issued a server certificate: the server certificate is for other names",
    )


PUBLISHES = [("patch", path) for path in CONFIGURATIONS.values()]
CHANGE = [
    ("replace", CA_PATH),
    *PUBLISHES,
    ("replace", CA_PATH),
    ("replace", TLS_PATH),
    ("replace", CA_PATH),
    *PUBLISHES,
]
"""A new CA, both are published, that is noted; a new leaf; the old CA is dropped, and its bundle."""


def test_ca_is_changed_in_this_order(api, run, now):
    first = run()
    second = run(DAY, renew="ca")
    assert api.writes == CHANGE[:4]
    new, old = certificates(second.ca_pem)
    assert second.cert_pem == first.cert_pem
    assert issued_by(certificates(first.cert_pem)[0], old)
    assert second.again == now + DAY + OVERLAP
    assert run(DAY + OVERLAP - SECOND).cert_pem == first.cert_pem
    assert api.writes == []
    third = run(DAY + OVERLAP)
    assert api.writes == CHANGE[4:5]
    assert issued_by(certificates(third.cert_pem)[0], new)
    assert api.bundles() == {name: {second.ca_pem} for name in CONFIGURATIONS}
    assert third.again == now + DAY + OVERLAP + ASK_AGAIN


def test_old_ca_goes_in_time_when_no_server_can_be_asked(api, run):
    run()
    run(DAY, renew="ca")
    both = run(DAY + OVERLAP).ca_pem
    assert run(DAY + OVERLAP + PATIENCE - MINUTE).ca_pem == both
    assert api.writes == []
    after = run(DAY + OVERLAP + PATIENCE)
    assert api.writes == CHANGE[5:]
    assert after.done[0] == "dropped the previous CA"
    assert len(certificates(after.ca_pem)) == 1
    assert api.bundles() == {name: {after.ca_pem} for name in CONFIGURATIONS}
    assert run(DAY + OVERLAP + PATIENCE).done == ()


def test_old_ca_goes_when_all_servers_show_the_new_leaf(api, run, serving):
    """And not before: one replica whose files are still the old ones keeps both CAs trusted."""
    first = run()
    run(DAY, renew="ca")
    second = run(DAY + OVERLAP)
    with serving(first) as behind, serving(second) as ahead:
        for servers in ([behind, ahead], [behind]):
            assert run(DAY + OVERLAP + PATIENCE, find=lambda _published, found=servers: found).done == ()
        assert run(DAY + OVERLAP, find=lambda _published: [ahead]).done[0] == "dropped the previous CA"


def test_bundle_wiped_while_waiting_starts_the_wait_anew(api, run, now):
    run()
    run(DAY, renew="ca")
    inject(api, b"")
    found = run(DAY + OVERLAP - SECOND)
    assert found.repaired == tuple(CONFIGURATIONS)
    assert found.again == now + DAY + OVERLAP - SECOND + OVERLAP


def test_asking_twice_for_a_new_ca_makes_one(run):
    run()
    first = run(DAY, renew="ca")
    second = run(DAY + SECOND, renew="ca")
    assert second.done == ("a new CA is on its way already",)
    assert second.ca_pem == first.ca_pem


def test_new_leaf_when_asked(api, run):
    first = run()
    second = run(DAY, renew="server")
    assert api.writes == [("replace", TLS_PATH)]
    assert (second.ca_pem, second.done) == (first.ca_pem, ("issued a server certificate: asked for",))


def test_nobody_waits_for_a_leaf_that_has_expired(run):
    run()
    found = run(FIVE_YEARS * 0.75)
    [new, _old] = certificates(found.ca_pem)
    assert issued_by(certificates(found.cert_pem)[0], new)


def test_nobody_waits_for_a_leaf_of_a_clock_that_was_ahead(api, run):
    run(10 * DAY)
    found = run()
    assert issued_by(certificates(found.cert_pem)[0], certificates(found.ca_pem)[0])


def test_nobody_waits_for_another_leaf_of_a_ca_that_is_in_use(api, run):
    """The previous CA is still trusted, but nothing that is served comes from it any more."""
    run()
    run(DAY, renew="ca")
    run(DAY + OVERLAP)
    found = run(DAY + OVERLAP + SECOND, names=Names("renamed", NAMESPACE))
    assert found.done == ("issued a server certificate: the server certificate is for other names",)


def test_nobody_waits_for_a_leaf_that_is_lost(api, run):
    run()
    run(DAY, renew="ca")
    del api.objects[TLS_PATH]
    found = run(DAY + SECOND)
    [new, _old] = certificates(found.ca_pem)
    assert issued_by(certificates(found.cert_pem)[0], new)


def test_what_cert_manager_injects_is_left_alone(api, run):
    path = CONFIGURATIONS["signalbox-mutating"]
    configuration = api.get(path)
    configuration["metadata"]["annotations"] = {"cert-manager.io/inject-ca-from": "signalbox-system/webhook"}
    api.put(path, configuration)
    assert "caBundle of signalbox-mutating: left to cert-manager" in run().done
    assert api.get(path)["webhooks"] == configuration["webhooks"]


def test_wiping_is_a_repair_while_an_old_ca_is_trusted_too(api, run):
    run()
    run(FIVE_YEARS * 0.75)
    inject(api, b"")
    assert run(FIVE_YEARS * 0.75).repaired == tuple(CONFIGURATIONS)


def test_first_publication_is_no_repair(run):
    assert run().repaired == ()
    assert run(DAY, renew="ca").repaired == ()


def test_expired_ca_is_not_kept(run):
    run()
    assert len(certificates(run(FIVE_YEARS + MINUTE).ca_pem)) == 1


def test_lost_ca_secret_keeps_trusting_the_served_leaf(api, run):
    first = run()
    del api.objects[CA_PATH]
    second = run()
    assert second.cert_pem == first.cert_pem
    assert [issued_by(certificates(first.cert_pem)[0], ca) for ca in certificates(second.ca_pem)] == [False, True]


def test_garbage_is_never_published(api, run):
    run()
    secret = api.get(CA_PATH)
    secret["data"] = {"ca.crt": "bm90IFBFTQ==", "ca.key": "bm90IFBFTQ=="}
    api.put(CA_PATH, secret)
    for ca in certificates(run().ca_pem):
        assert ca.issuer == ca.subject


@pytest.mark.parametrize("stop", range(len(CHANGE)))
def test_change_of_the_ca_survives_a_crash_at_each_step(api, run, stop):
    """After each write every configuration trusts the leaf that is stored, and the one before; the next run goes on."""
    leaves = {run().cert_pem}

    def check():
        leaves.add(api.secret(TLS_SECRET, "tls.crt"))
        dropped = api.secret(CA_SECRET, "previous.crt") is None
        shown = {api.secret(TLS_SECRET, "tls.crt")} if dropped else leaves
        for [bundle] in api.bundles().values():
            assert all(any(issued_by(certificates(leaf)[0], ca) for ca in certificates(bundle)) for leaf in shown)

    def die():
        raise KeyboardInterrupt

    api.after_write, api.before_write = check, [*[lambda: None] * stop, die]
    writes, crashes = [], 0
    for moment in (DAY, DAY + MINUTE, DAY + 2 * MINUTE, DAY + 3 * MINUTE + PATIENCE, DAY + 4 * MINUTE + PATIENCE):
        try:
            run(moment, renew="ca" if not writes else None)
        except KeyboardInterrupt:
            crashes += 1
            writes += api.writes
            run(moment + SECOND, renew="ca" if not writes else None)
        writes += api.writes
    assert crashes == 1
    assert writes == CHANGE
    assert len(leaves) == 2


@pytest.mark.parametrize("write", range(4))
@pytest.mark.parametrize("after", [timedelta(), FIVE_YEARS * 0.7], ids=["first", "renewal"])
def test_two_writers_agree(api, run, names, now, write, after):
    if after:
        run()

    def rival():
        ensure(api, namespace=NAMESPACE, names=names, now=now + after)

    api.before_write = [*[lambda: None] * write, rival]
    issued = run(after)
    secrets = stored(api).stored
    assert isinstance(plan(secrets, names, now + after), Keep)
    assert issued.cert_pem == secrets.leaf.certificate
    assert issued.ca_pem.startswith(secrets.ca.certificate)
    assert api.bundles() == {name: {issued.ca_pem} for name in CONFIGURATIONS}


def test_a_race_lost_again_and_again_is_the_callers(api, run):
    def touch():
        for path in list(api.objects):
            api.put(path, api.get(path))

    run()
    api.before_write = [touch] * ATTEMPTS
    with pytest.raises(Conflict):
        run(timedelta(days=67))


def test_foreign_metadata_of_a_secret_stays(api, run):
    run()
    secret = api.get(TLS_PATH)
    secret["metadata"]["labels"] = {"team": "ml"}
    api.put(TLS_PATH, secret)
    run(timedelta(days=67))
    assert api.get(TLS_PATH)["metadata"]["labels"] == {"team": "ml"}


def test_stored_pairs_need_both_parts(api):
    assert Secrets(NAMESPACE, {"data": {"ca.crt": "YQ=="}}, {}).stored == Stored(None, None)
