"""The official releases of the control plane's binaries, for machines without Go; checksums are verified."""

import hashlib
import io
import json
import platform
import tarfile
import urllib.request
from pathlib import Path

KUBERNETES = "https://dl.k8s.io"
GITHUB = "https://api.github.com/repos"
TIMEOUT = 60.0
MACHINES = {"x86_64": "amd64", "aarch64": "arm64", "arm64": "arm64"}


def download(name: str, version: str, target: Path) -> None:
    """Fetch binary ``name`` in ``version`` (``v1.36.3``) into ``target``.

    Raises OSError when a release cannot be reached, ValueError when a checksum does not match, KeyError when there is
    no release for this machine.
    """
    system = f"{platform.system().lower()}-{MACHINES[platform.machine()]}"
    target.write_bytes(_fetch(name, version, system))


def verified(content: bytes, sha256: str, source: str) -> bytes:
    """``content`` again. Raises ValueError when its SHA-256 is not ``sha256`` (hex)."""
    if hashlib.sha256(content).hexdigest() != sha256:
        raise ValueError(f"the checksum of {source} does not match the published one")
    return content


def _fetch(name: str, version: str, system: str) -> bytes:
    if name == "kwok":
        return _github("kubernetes-sigs/kwok", version, f"kwok-{system}")
    if name == "etcd":
        archive = f"etcd-{version}-{system}"
        return _member(_github("etcd-io/etcd", version, f"{archive}.tar.gz"), f"{archive}/etcd")
    url = f"{KUBERNETES}/{version}/bin/{system.replace('-', '/')}/{name}"
    return verified(_get(url), _get(f"{url}.sha256").decode().split()[0], url)


def _github(repository: str, version: str, asset: str) -> bytes:
    release = json.loads(_get(f"{GITHUB}/{repository}/releases/tags/{version}"))
    found = {item["name"]: item for item in release["assets"]}[asset]
    url = found["browser_download_url"]
    return verified(_get(url), found["digest"].removeprefix("sha256:"), url)


def _member(archive: bytes, path: str) -> bytes:
    with tarfile.open(fileobj=io.BytesIO(archive)) as tar:
        member = tar.extractfile(path)
        assert member is not None
        return member.read()


def _get(url: str) -> bytes:
    with urllib.request.urlopen(url, timeout=TIMEOUT) as answer:  # noqa: S310  # nosec B310
        body: bytes = answer.read()
    return body
