"""What the webhook process is told when it starts. A wrong value stops the start with a message that names it."""

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from kube.listeners import Address, SettingError, address

LOG_LEVELS = ("debug", "info", "warning", "error")
MAX_WORKERS = 32
MAX_THREADS = 256
PROBE_NAME = "readiness.signalbox.invalid"
"""The server name that our own readiness probe asks for: it has no client certificate, and expects to be refused."""


@dataclass(frozen=True, slots=True)
class TlsFiles:
    """PEM files. With ``client_ca`` only clients whose certificate it signed get in, and only those of the names."""

    cert: Path
    key: Path
    client_ca: Path | None = None
    client_names: frozenset[str] = frozenset()
    """Common names or DNS names, one of which the certificate must have; empty: any."""

    @property
    def paths(self) -> tuple[Path, ...]:
        return tuple(path for path in (self.cert, self.key, self.client_ca) if path is not None)


@dataclass(frozen=True, slots=True)
class Settings:
    """The settings of one webhook process; made by ``checked``."""

    bind: Address
    no_tls: bool
    cert_file: Path | None
    key_file: Path | None
    """PEM files; None only with ``no_tls``."""
    client_ca: Path | None
    client_names: tuple[str, ...]
    health_bind: Address
    metrics_bind: Address
    workers: int
    threads: int
    log_level: str

    @property
    def tls_files(self) -> TlsFiles | None:
        """None when TLS is off."""
        if self.no_tls or self.cert_file is None or self.key_file is None:
            return None
        return TlsFiles(self.cert_file, self.key_file, self.client_ca, frozenset(self.client_names))


def checked(
    *,
    bind: str,
    no_tls: bool,
    cert_file: Path | None,
    key_file: Path | None,
    client_ca: Path | None = None,
    client_name: tuple[str, ...] = (),
    health_bind: str,
    metrics_bind: str,
    workers: int,
    threads: int,
    log_level: str,
) -> Settings:
    """Settings from the text of the options. SettingError for the first that is wrong."""
    settings = Settings(
        bind=address("bind", bind),
        no_tls=no_tls,
        cert_file=cert_file,
        key_file=key_file,
        client_ca=client_ca,
        client_names=client_name,
        health_bind=address("health-bind", health_bind),
        metrics_bind=address("metrics-bind", metrics_bind),
        workers=workers,
        threads=threads,
        log_level=log_level.lower(),
    )
    for rule in RULES:
        rule(settings)
    return settings


def plain_text_stays_here(settings: Settings) -> None:
    """Without TLS anybody on the way could read and change what users submit."""
    if settings.no_tls and not settings.bind.is_loopback:
        raise SettingError(
            "no-tls", "is for development and allowed only with --bind on a loopback address", settings.bind
        )


def tls_files_exist(settings: Settings) -> None:
    for option, file in (("cert-file", settings.cert_file), ("key-file", settings.key_file)):
        if not settings.no_tls and (file is None or not file.is_file()):
            raise SettingError(
                option, "must be an existing PEM file (or use --no-tls on a loopback address)", file or ""
            )


def client_ca_can_be_used(settings: Settings) -> None:
    if settings.client_ca is not None and (settings.no_tls or not settings.client_ca.is_file()):
        raise SettingError("client-ca", "must be an existing PEM file, and goes with TLS only", settings.client_ca)
    if settings.client_names and settings.client_ca is None:
        raise SettingError("client-name", "needs --client-ca", ", ".join(settings.client_names))


def listeners_differ(settings: Settings) -> None:
    if len({settings.bind.port, settings.health_bind.port, settings.metrics_bind.port}) < 3:
        raise SettingError(
            "bind",
            "must have another port than --health-bind and --metrics-bind, and these two different ones",
            settings.bind,
        )


def counts_are_in_range(settings: Settings) -> None:
    for option, most in (("workers", MAX_WORKERS), ("threads", MAX_THREADS)):
        value = getattr(settings, option)
        if not 1 <= value <= most:
            raise SettingError(option, f"must be from 1 to {most}", value)


def log_level_is_known(settings: Settings) -> None:
    if settings.log_level not in LOG_LEVELS:
        raise SettingError("log-level", f"must be one of {', '.join(LOG_LEVELS)}", settings.log_level)


RULES: tuple[Callable[[Settings], None], ...] = (
    plain_text_stays_here,
    tls_files_exist,
    client_ca_can_be_used,
    listeners_differ,
    counts_are_in_range,
    log_level_is_known,
)
