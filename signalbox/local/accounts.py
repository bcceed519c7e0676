"""Our processes on the local cluster act as their service accounts, with the shipped rights and no others."""

import contextlib
from pathlib import Path

from kube.config import connect
from kube.raw import RawKube
from kube.resources import SERVICE_ACCOUNTS
from signalbox.local import cluster, credentials
from signalbox.local.cluster import Cluster

TOKEN_SECONDS = 365 * 24 * 3600


def kubeconfig(running: Cluster, account: str) -> Path:
    """The kubeconfig that ``write`` has made for ``account``."""
    return cluster.private_dir(running) / f"{account}.kubeconfig"


def write(running: Cluster, namespace: str, account: str) -> None:
    """A new token for the service account, in a file that running processes read again. Raises KubeError."""
    file = cluster.private_dir(running) / f"{account}.token"
    credentials.write_private(file, token(running, namespace, account))
    content = credentials.kubeconfig(running.server, running.ca_pem, tokenFile=file.name)
    credentials.write_private(kubeconfig(running, account), content)


def token(running: Cluster, namespace: str, account: str) -> str:
    """A token as ``kubectl create token`` gives it."""
    wanted = {
        "apiVersion": "authentication.k8s.io/v1",
        "kind": "TokenRequest",
        "spec": {"expirationSeconds": TOKEN_SECONDS},
    }
    with contextlib.closing(RawKube(connect(str(running.kubeconfig)))) as kube:
        answer = kube.create(SERVICE_ACCOUNTS.path(namespace, account, "token"), wanted)
    return str(answer["status"]["token"])
