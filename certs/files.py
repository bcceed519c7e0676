"""The certificates as files, swapped as the kubelet swaps a mounted Secret: readers see the old pair or the new one."""

import os
import shutil
import tempfile
from pathlib import Path

from certs.issue import Issued

LINK = "..data"
"""The symlink that names the current directory; the files are symlinks through it."""


def write_pair(directory: Path, issued: Issued) -> bool:
    """Write ``tls.crt``, ``tls.key`` (mode 0600) and ``ca.crt`` into ``directory`` and show them all at once.

    False, and nothing touched, when they are there already. Raises OSError.
    """
    content = {"tls.crt": issued.cert_pem, "tls.key": issued.key_pem, "ca.crt": issued.ca_pem}
    directory.mkdir(parents=True, exist_ok=True)
    if all(_read(directory / name) == value for name, value in content.items()):
        return False
    before = _target(directory / LINK)
    fresh = Path(tempfile.mkdtemp(prefix="..", dir=directory))
    for name, value in content.items():
        _write(fresh / name, value)
    _point(directory / LINK, fresh.name)
    for name in content:
        if _target(directory / name) != f"{LINK}/{name}":
            _point(directory / name, f"{LINK}/{name}")
    if before:
        shutil.rmtree(directory / before)
    return True


def _read(path: Path) -> bytes | None:
    try:
        return path.read_bytes()
    except FileNotFoundError:
        return None


def _write(path: Path, value: bytes) -> None:
    with os.fdopen(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "wb") as file:
        file.write(value)


def _target(link: Path) -> str | None:
    return str(link.readlink()) if link.is_symlink() else None


def _point(link: Path, target: str) -> None:
    """Make ``link`` a symlink to ``target`` in one step, whatever it was."""
    fresh = link.with_name(f"{link.name}.new")
    fresh.unlink(missing_ok=True)
    fresh.symlink_to(target)
    fresh.replace(link)
