"""What the control plane's parts prove who they are with: a serving certificate, a signing key, tokens, kubeconfigs.

All of it is made anew with every cluster and is worth nothing outside this machine: the API server listens on loopback.
"""

import base64
import secrets
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path

import yaml
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat

from certs.issue import Names, new_ca, new_leaf


@dataclass(frozen=True, slots=True)
class User:
    """Someone the API server knows by token."""

    name: str
    groups: tuple[str, ...] = ()


ADMIN = User("admin", ("system:masters",))
USERS = (
    ADMIN,
    User("system:kube-controller-manager", ("system:masters",)),  # deletes whatever a namespace holds
    User("system:kube-scheduler"),
    User("kwok", ("system:masters",)),
)


@dataclass(frozen=True, slots=True)
class Credentials:
    """Files in one directory; ``ca_pem`` is what clients trust, ``tokens`` maps user name to token."""

    directory: Path
    ca_pem: bytes
    tokens: dict[str, str]

    @property
    def certificate(self) -> Path:
        return self.directory / "apiserver.crt"

    @property
    def key(self) -> Path:
        return self.directory / "apiserver.key"

    @property
    def signing_key(self) -> Path:
        return self.directory / "service-account.key"

    @property
    def token_file(self) -> Path:
        return self.directory / "tokens.csv"


def ensure(directory: Path) -> Credentials:
    """The credentials in ``directory``, made when they are not there yet."""
    if not (directory / "tokens.csv").exists():
        _make(directory)
    rows = (line.split(",") for line in (directory / "tokens.csv").read_text().splitlines())
    return Credentials(directory, (directory / "ca.crt").read_bytes(), {row[1]: row[0] for row in rows})


def kubeconfig(server: str, ca_pem: bytes, **user: str) -> str:
    """A kubeconfig (YAML) with one context, ``signalbox``. ``user`` is its ``token`` or ``tokenFile``."""
    return yaml.safe_dump(
        {
            "apiVersion": "v1",
            "kind": "Config",
            "current-context": "signalbox",
            "clusters": [
                {
                    "name": "signalbox",
                    "cluster": {
                        "server": server,
                        "certificate-authority-data": base64.b64encode(ca_pem).decode(),
                    },
                }
            ],
            "users": [{"name": "signalbox", "user": user}],
            "contexts": [{"name": "signalbox", "context": {"cluster": "signalbox", "user": "signalbox"}}],
        },
        sort_keys=False,
    )


def write_private(path: Path, content: str | bytes) -> None:
    """Write a file that only its owner can read."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.touch(mode=0o600)
    path.write_bytes(content.encode() if isinstance(content, str) else content)


def _make(directory: Path) -> None:
    now = datetime.now(UTC)
    ca = new_ca(now)
    leaf = new_leaf(ca, Names("kubernetes", "default", ("localhost", "127.0.0.1")), now)
    write_private(directory / "ca.crt", ca.certificate)
    write_private(directory / "apiserver.crt", leaf.certificate)
    write_private(directory / "apiserver.key", leaf.key)
    write_private(directory / "service-account.key", _signing_key())
    write_private(directory / "tokens.csv", "".join(map(_token_row, USERS)))


def _token_row(user: User) -> str:
    groups = f',"{",".join(user.groups)}"' if user.groups else ""
    return f"{secrets.token_urlsafe(32)},{user.name},{user.name}{groups}\n"


def _signing_key() -> bytes:
    """In SEC 1: the API server does not take the public half out of a PKCS#8 file with an elliptic curve key."""
    key = ec.generate_private_key(ec.SECP256R1())
    return key.private_bytes(Encoding.PEM, PrivateFormat.TraditionalOpenSSL, NoEncryption())
