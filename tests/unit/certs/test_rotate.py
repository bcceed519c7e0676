from datetime import timedelta

import pytest
from cryptography import x509

from certs.issue import Names
from certs.plan import Keep, Stored, issued_by, plan
from certs.rotate import (
    ATTEMPTS,
    CA_SECRET,
    CONFIGURATIONS,
    OVERLAP,
    TLS_SECRET,
    Secrets,
    ensure,
    inject,
    published_bundles,
    read_secrets,
)
from kube.errors import Conflict
from kube.resources import SECRETS

NAMESPACE = "signalbox-system"
CA_PATH, TLS_PATH = SECRETS.path(NAMESPACE, CA_SECRET), SECRETS.path(NAMESPACE, TLS_SECRET)
FIVE_YEARS = timedelta(days=5 * 365)
MINUTE = timedelta(minutes=1)


@pytest.fixture
def run(api, names, now):
    def run(after=timedelta(), names=names):
        api.writes.clear()
        return ensure(api, namespace=NAMESPACE, names=names, now=now + after)

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
        "issued a server certificate: the CA is missing",
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
    second = run(timedelta(days=61))
    assert api.writes == [("replace", TLS_PATH)]
    assert second.ca_pem == first.ca_pem
    assert second.cert_pem != first.cert_pem


def test_other_names_renew_the_server_certificate(api, run):
    run()
    assert run(names=Names("renamed", NAMESPACE)).done == (
        "issued a server certificate: the server certificate is for other names",
    )


def test_ca_renewal_publishes_both_before_the_new_leaf(api, run):
    first = run()
    second = run(FIVE_YEARS * 0.7)
    assert api.writes == [
        ("replace", CA_PATH),
        *(("patch", path) for path in CONFIGURATIONS.values()),
        ("replace", TLS_PATH),
    ]
    new, old = certificates(second.ca_pem)
    assert issued_by(certificates(first.cert_pem)[0], old)
    assert issued_by(certificates(second.cert_pem)[0], new)
    assert api.bundles() == {name: {second.ca_pem} for name in CONFIGURATIONS}


def test_old_ca_is_dropped_after_the_overlap(api, run):
    run()
    renewed = FIVE_YEARS * 0.7
    both = run(renewed).ca_pem
    assert run(renewed + OVERLAP - MINUTE).ca_pem == both
    assert api.writes == []
    after = run(renewed + OVERLAP)
    assert after.done[0] == "dropped the previous CA"
    assert len(certificates(after.ca_pem)) == 1
    assert api.bundles() == {name: {after.ca_pem} for name in CONFIGURATIONS}
    assert run(renewed + OVERLAP).done == ()


def test_expired_ca_is_not_kept(run):
    run()
    assert len(certificates(run(FIVE_YEARS + MINUTE).ca_pem)) == 1


def test_lost_ca_secret_keeps_trusting_the_served_leaf(api, run):
    first = run()
    del api.objects[CA_PATH]
    second = run()
    assert [issued_by(certificates(first.cert_pem)[0], ca) for ca in certificates(second.ca_pem)] == [False, True]


def test_garbage_is_never_published(api, run):
    run()
    secret = api.get(CA_PATH)
    secret["data"] = {"ca.crt": "bm90IFBFTQ==", "ca.key": "bm90IFBFTQ=="}
    api.put(CA_PATH, secret)
    for ca in certificates(run().ca_pem):
        assert ca.issuer == ca.subject


@pytest.mark.parametrize("stop", range(4))
def test_pass_that_was_cut_off_is_finished(api, run, names, now, stop):
    first = run()
    renewed = FIVE_YEARS * 0.7

    def die():
        raise KeyboardInterrupt

    api.before_write = [*[lambda: None] * stop, die]
    with pytest.raises(KeyboardInterrupt):
        run(renewed)
    served = certificates(api.secret(TLS_SECRET, "tls.crt"))[0]
    assert all(any(issued_by(served, ca) for ca in certificates(pem)) for [pem] in api.bundles().values())
    second = run(renewed)
    assert any(issued_by(certificates(first.cert_pem)[0], ca) for ca in certificates(second.ca_pem))
    assert isinstance(plan(stored(api).stored, names, now + renewed), Keep)


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
        run(timedelta(days=61))


def test_foreign_metadata_of_a_secret_stays(api, run):
    run()
    secret = api.get(TLS_PATH)
    secret["metadata"]["labels"] = {"team": "ml"}
    api.put(TLS_PATH, secret)
    run(timedelta(days=61))
    assert api.get(TLS_PATH)["metadata"]["labels"] == {"team": "ml"}


def test_stored_pairs_need_both_parts(api):
    assert Secrets(NAMESPACE, {"data": {"ca.crt": "YQ=="}}, {}).stored == Stored(None, None)
