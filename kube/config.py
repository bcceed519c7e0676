"""Which API server to talk to, and as whom: kubeconfig files and in-cluster service accounts.

The common cases (in-cluster, token, client certificate) are read here; the official client, which takes seconds and
100 MB to import, is only loaded for the rest (exec plugins, auth providers, lists of kubeconfig files).
"""

import base64
import binascii
import os
import threading
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml

SERVICE_ACCOUNT = Path("/var/run/secrets/kubernetes.io/serviceaccount")
TOKEN_PERIOD = 60.0
"""Seconds after which a token file is read again; the kubelet renews it 2 minutes or more before it expires."""

UNSUPPORTED = ("username", "password", "as", "as-uid", "as-groups", "as-user-extra")


class ConfigError(Exception):
    """The configuration names no usable API server; the message names file and field."""


@dataclass(frozen=True)
class Connection:
    """How to reach one API server. ``token`` is called for every request and may answer a renewed one."""

    server: str
    ca_pem: bytes | None
    token: Callable[[], str | None]
    client_cert_pem: bytes | None
    client_key_pem: bytes | None
    insecure: bool = False
    namespace: str = "default"


class TokenFile:
    """A bearer token in a file that someone renews; read again every ``period`` seconds.

    A file that cannot be read for a moment (the kubelet swaps a symlink) keeps the token read before.
    """

    def __init__(
        self, path: Path, *, period: float = TOKEN_PERIOD, monotonic: Callable[[], float] = time.monotonic
    ) -> None:
        self._path = path
        self._period = period
        self._monotonic = monotonic
        self._lock = threading.Lock()
        self._token = _text(path, "token")
        self._read_at = monotonic()

    def __call__(self) -> str | None:
        with self._lock:
            if self._monotonic() - self._read_at >= self._period:
                self._renew()
            return self._token

    def _renew(self) -> None:
        self._read_at = self._monotonic()
        try:
            self._token = self._path.read_text().strip() or self._token
        except OSError:
            return


def connect(kubeconfig: str | None = None, context: str | None = None) -> Connection:
    """The connection of the first source that exists.

    In this order: ``kubeconfig`` (one file), ``$KUBECONFIG`` (a list of files is merged), the pod's service account,
    ``~/.kube/config``. ``context`` overrides the file's current-context. ConfigError when something is missing.
    """
    if kubeconfig:
        return from_file(Path(kubeconfig), context)
    if listed := [part for part in os.environ.get("KUBECONFIG", "").split(os.pathsep) if part]:
        return from_file(Path(listed[0]), context) if len(listed) == 1 else _official(os.pathsep.join(listed), context)
    if is_in_cluster() and context is None:
        return in_cluster()
    home = Path.home() / ".kube" / "config"
    if home.exists():
        return from_file(home, context)
    raise ConfigError(f"no cluster: --kubeconfig and $KUBECONFIG are not set, this is not a pod, and {home} is missing")


def is_in_cluster() -> bool:
    """Whether this process runs in a pod, as far as its environment tells."""
    return bool(os.environ.get("KUBERNETES_SERVICE_HOST"))


def in_cluster(directory: Path | None = None) -> Connection:
    """The connection of this pod's service account."""
    directory = directory or SERVICE_ACCOUNT
    host, port = os.environ.get("KUBERNETES_SERVICE_HOST", ""), os.environ.get("KUBERNETES_SERVICE_PORT", "443")
    if not host:
        raise ConfigError("$KUBERNETES_SERVICE_HOST is not set: this is not a pod")
    namespace = directory / "namespace"
    return Connection(
        server=f"https://{f'[{host}]' if ':' in host else host}:{port}",
        ca_pem=_bytes(directory / "ca.crt", "service account CA"),
        token=TokenFile(directory / "token"),
        client_cert_pem=None,
        client_key_pem=None,
        namespace=_text(namespace, "namespace") if namespace.exists() else "default",
    )


def from_file(path: Path, context: str | None = None) -> Connection:
    """The connection a kubeconfig file describes; relative paths in it are relative to the file."""
    document = _document(path)
    name = context or document.get("current-context")
    if not name:
        raise ConfigError(f"{path}: current-context: required when no context is given")
    chosen = _named(document, "contexts", "context", name, path)
    cluster = _named(document, "clusters", "cluster", chosen.get("cluster"), path)
    user = _named(document, "users", "user", chosen["user"], path) if chosen.get("user") else {}
    _refuse_unsupported(path, cluster, user)
    if "exec" in user or "auth-provider" in user:
        return _official(str(path), name)
    return _plain(path, cluster, user, str(chosen.get("namespace") or "default"))


def _plain(path: Path, cluster: Mapping[str, Any], user: Mapping[str, Any], namespace: str) -> Connection:
    server = cluster.get("server")
    if not isinstance(server, str) or not server.startswith(("https://", "http://")):
        raise ConfigError(f"{path}: cluster.server: must be an http(s) URL (got {server!r})")
    cert, key = _pem(path, user, "client-certificate"), _pem(path, user, "client-key")
    if (cert is None) != (key is None):
        raise ConfigError(f"{path}: user: client-certificate and client-key must be given together")
    return Connection(
        server=server.rstrip("/"),
        ca_pem=_pem(path, cluster, "certificate-authority"),
        token=_token(path, user),
        client_cert_pem=cert,
        client_key_pem=key,
        insecure=cluster.get("insecure-skip-tls-verify") is True,
        namespace=namespace,
    )


def _token(path: Path, user: Mapping[str, Any]) -> Callable[[], str | None]:
    """As kubectl does, the file wins over the literal."""
    if user.get("tokenFile"):
        return TokenFile(path.parent / str(user["tokenFile"]))
    token = str(user["token"]) if user.get("token") else None
    return lambda: token


def _pem(path: Path, section: Mapping[str, Any], field: str) -> bytes | None:
    """The bytes of ``field-data`` or of the file that ``field`` names; None when neither is there."""
    if data := section.get(f"{field}-data"):
        try:
            return base64.b64decode(data, validate=True)
        except (binascii.Error, TypeError, ValueError) as error:
            raise ConfigError(f"{path}: {field}-data: must be base64 ({error})") from error
    if name := section.get(field):
        return _bytes(path.parent / str(name), f"{field} in {path}")
    return None


def _refuse_unsupported(path: Path, cluster: Mapping[str, Any], user: Mapping[str, Any]) -> None:
    """Fields whose silent neglect would act as someone else, or talk to something else."""
    found = [f"user.{name}" for name in UNSUPPORTED if user.get(name)]
    found += [f"cluster.{name}" for name in ("tls-server-name", "proxy-url") if cluster.get(name)]
    if found:
        raise ConfigError(f"{path}: {found[0]}: not supported")


def _document(path: Path) -> dict[str, Any]:
    try:
        document = yaml.safe_load(_bytes(path, "kubeconfig"))
    except yaml.YAMLError as error:
        raise ConfigError(f"{path}: not YAML: {error}") from error
    if not isinstance(document, dict):
        raise ConfigError(f"{path}: must be a mapping")
    return document


def _named(document: Mapping[str, Any], plural: str, singular: str, name: object, path: Path) -> dict[str, Any]:
    entries = document.get(plural) or []
    if not isinstance(entries, list):
        raise ConfigError(f"{path}: {plural}: must be a list")
    for entry in entries:
        if isinstance(entry, dict) and entry.get("name") == name:
            value = entry.get(singular)
            return value if isinstance(value, dict) else {}
    raise ConfigError(f"{path}: {plural}: has no entry named {name!r}")


def _bytes(path: Path, what: str) -> bytes:
    try:
        return path.read_bytes()
    except OSError as error:
        raise ConfigError(f"{path}: cannot read {what}: {error.strerror}") from error


def _text(path: Path, what: str) -> str:
    text = _bytes(path, what).decode(errors="replace").strip()
    if not text:
        raise ConfigError(f"{path}: {what} is empty")
    return text


def _official(files: str, context: str | None) -> Connection:
    """Everything else, through the official client (2 to 3 s to import)."""
    from kubernetes import client, config

    settings = client.Configuration()
    try:
        contexts, current = config.list_kube_config_contexts(config_file=files)  # type: ignore[no-untyped-call]
        name = context or _current_context(files) or current["name"]
        config.load_kube_config(files, name, client_configuration=settings)  # type: ignore[no-untyped-call]
    except (config.ConfigException, OSError, yaml.YAMLError) as error:
        raise ConfigError(f"{files}: {error}") from error
    if settings.proxy or settings.tls_server_name:
        raise ConfigError(f"{files}: cluster.proxy-url, cluster.tls-server-name: not supported")
    if not (settings.api_key or settings.cert_file):  # a plugin that fails is only logged by the official client
        raise ConfigError(f"{files}: context {name!r}: user: neither the file nor a plugin gave any credentials")
    return Connection(
        server=settings.host,
        ca_pem=_optional(settings.ssl_ca_cert),
        token=lambda: _bearer(settings),
        client_cert_pem=_optional(settings.cert_file),
        client_key_pem=_optional(settings.key_file),
        insecure=not settings.verify_ssl,
        namespace=next(found["context"].get("namespace") for found in contexts if found["name"] == name) or "default",
    )


def _current_context(files: str) -> str | None:
    """The first file that sets one decides, as in kubectl; the official client takes the last."""
    documents = (_document(Path(name)) for name in files.split(os.pathsep) if Path(name).exists())
    return next((str(found["current-context"]) for found in documents if found.get("current-context")), None)


def _optional(name: str | None) -> bytes | None:
    return _bytes(Path(name), "certificate or key") if name else None


def _bearer(settings: Any) -> str | None:
    """The current token; the official client runs the plugin again when it has expired."""
    value = settings.get_api_key_with_prefix("BearerToken")
    return str(value).removeprefix("Bearer ") if value else None
