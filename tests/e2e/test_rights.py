"""Our processes on the local cluster act as their service accounts: all e2e tests run with the shipped rights alone."""

import json
from dataclasses import replace
from pathlib import Path

import pytest
import yaml

from kube.config import connect
from kube.errors import Forbidden
from kube.raw import RawKube
from kube.resources import LEASES, NAMESPACES, PODS, SECRETS
from signalbox.local import processes
from signalbox.local.site import Site, ensure_certificates

pytestmark = pytest.mark.cluster

SYSTEM = "signalbox-system"


def kubeconfig_of(signalbox, process):
    record = processes.running(signalbox.state_dir, process)
    [flag] = [argument for argument in record.argv if argument.startswith("--kubeconfig=")]
    return flag.removeprefix("--kubeconfig=")


@pytest.fixture(params=["webhook", "controller"])
def process(request):
    return request.param


def test_each_process_runs_with_the_token_of_its_service_account(signalbox, kubectl, process):
    path = kubeconfig_of(signalbox, process)
    told = kubectl(f"--kubeconfig={path}", "auth", "whoami", "-o", "json").stdout
    assert json.loads(told)["status"]["userInfo"]["username"] == f"system:serviceaccount:{SYSTEM}:signalbox-{process}"
    [user] = yaml.safe_load(Path(path).read_text())["users"]
    assert set(user["user"]) == {"tokenFile"}


def test_certificates_are_issued_without_the_administrators_credentials(signalbox, cluster, tmp_path):
    site = Site.on(replace(cluster, kubeconfig=tmp_path / "none", token=""))
    ensure_certificates(site)
    assert (signalbox.certificates / "tls.crt").read_bytes().startswith(b"-----BEGIN CERTIFICATE-----")


def test_no_process_may_do_what_it_need_not(signalbox, process):
    kube = RawKube(connect(kubeconfig_of(signalbox, process)))
    for call in (
        lambda: kube.get(SECRETS.path(SYSTEM, "another")),
        lambda: kube.list(SECRETS.path()),
        lambda: kube.delete(NAMESPACES.path(name="default")),
        lambda: kube.get(LEASES.path(SYSTEM, "another")),
        lambda: kube.create("/apis/rbac.authorization.k8s.io/v1/clusterroles", {"metadata": {"name": "mine"}}),
    ):
        with pytest.raises(Forbidden):
            call()
    kube.close()


@pytest.mark.parametrize("path", [SECRETS.path(SYSTEM, "signalbox-webhook-ca"), PODS.path()])
def test_the_webhook_may_not_read_what_the_controller_needs(signalbox, path):
    kube = RawKube(connect(kubeconfig_of(signalbox, "webhook")))
    with pytest.raises(Forbidden):
        kube.get(path)
    kube.close()
