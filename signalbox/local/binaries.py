"""The five binaries of the control plane, and where they come from.

For each, the first hit wins: ``$KUBEBUILDER_ASSETS``, the cache, then a ``go build`` of ``deploy/local`` into the
cache, or, on a machine without Go, the official releases. Versions are those of ``deploy/local/go.mod``.
"""

import contextlib
import fcntl
import os
import re
import shutil
import subprocess
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

from rich.console import Console

from signalbox.local import releases
from signalbox.local.paths import cache_dir
from signalbox.local.progress import shown

KUBERNETES = "k8s.io/kubernetes"


class BuildError(Exception):
    """A binary could neither be found, built nor downloaded; the message says which, and what was tried."""


@dataclass(frozen=True, slots=True)
class Tool:
    """One ``tool`` line of go.mod: the binary's name, the package it is built from and that module's version."""

    name: str
    package: str
    version: str


@dataclass(frozen=True, slots=True)
class Module:
    """``deploy/local`` as a Go module."""

    directory: Path
    tools: tuple[Tool, ...]

    @property
    def kubernetes_version(self) -> str:
        """Such as ``v1.36.3``: what discovery reports."""
        return next(tool.version for tool in self.tools if tool.package.startswith(KUBERNETES))

    @property
    def cache(self) -> Path:
        return cache_dir() / f"k8s-{self.kubernetes_version}"


def read_module(directory: Path) -> Module:
    """Read ``go.mod`` in ``directory``."""
    text = (directory / "go.mod").read_text()
    versions = dict(re.findall(r"^\s*(?:require\s+)?(\S+/\S+) (v\S+)", text, re.MULTILINE))
    block = re.search(r"^tool \((.*?)^\)", text, re.MULTILINE | re.DOTALL)
    packages = block[1].split() if block else re.findall(r"^tool (\S+)", text, re.MULTILINE)
    return Module(directory, tuple(_tool(package, versions) for package in packages))


def find(module: Module, environ: Mapping[str, str] = os.environ) -> dict[str, Path]:
    """The binaries that are already on this machine, by name."""
    assets = environ.get("KUBEBUILDER_ASSETS")
    places = [Path(assets)] if assets else []
    places.append(module.cache)
    return {
        tool.name: place / tool.name
        for place in reversed(places)
        for tool in module.tools
        if os.access(place / tool.name, os.X_OK)
    }


def ensure(module: Module, console: Console) -> dict[str, Path]:
    """All binaries by name, built or downloaded where they are missing (minutes, once). Raises BuildError."""
    if len(found := find(module)) == len(module.tools):
        return found
    with _alone(module.cache, console):
        missing = [tool for tool in module.tools if tool.name not in find(module)]
        make = _go_build if shutil.which("go") else _download
        _make_all(module, missing, make, console)
    return find(module)


def _tool(package: str, versions: Mapping[str, str]) -> Tool:
    module = max((path for path in versions if f"{package}/".startswith(f"{path}/")), key=len)
    return Tool("etcd" if "/etcd/" in package else package.rpartition("/")[2], package, versions[module])


@contextlib.contextmanager
def _alone(directory: Path, console: Console) -> Iterator[None]:
    directory.mkdir(parents=True, exist_ok=True)
    with (directory / ".lock").open("w") as lock:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            console.print(f"waiting for another build into {directory}")
            fcntl.flock(lock, fcntl.LOCK_EX)
        yield


def _make_all(
    module: Module, missing: list[Tool], make: Callable[[Module, Tool, Path], None], console: Console
) -> None:
    if missing:
        names = ", ".join(tool.name for tool in missing)
        console.print(f"making {names} in {module.cache} (once, up to 10 minutes)", soft_wrap=True)
    for number, tool in enumerate(missing, 1):
        label = f"{tool.name} {tool.version} ({number} of {len(missing)})"
        draft = module.cache / f".{tool.name}.{os.getpid()}"
        try:
            with shown(label, console):
                make(module, tool, draft)
            draft.chmod(0o755)
            draft.replace(module.cache / tool.name)
        finally:
            draft.unlink(missing_ok=True)


def _go_build(module: Module, tool: Tool, target: Path) -> None:
    version = f"-X k8s.io/component-base/version.gitVersion={module.kubernetes_version}"
    argv = ["go", "build", "-trimpath", "-ldflags", f"-s -w {version}", "-o", str(target), tool.package]
    environ = {**os.environ, "CGO_ENABLED": "0", "GOFLAGS": "-buildvcs=false"}
    done = subprocess.run(argv, check=False, cwd=module.directory, env=environ, capture_output=True, text=True)
    if done.returncode:
        raise BuildError(f"go build of {tool.package} in {module.directory} failed:\n{done.stderr[-2000:]}")


def _download(_module: Module, tool: Tool, target: Path) -> None:
    try:
        releases.download(tool.name, tool.version, target)
    except (OSError, ValueError, KeyError) as error:
        tried = "not in $KUBEBUILDER_ASSETS, not in the cache, no Go (1.26 or newer) on PATH"
        raise BuildError(f"no {tool.name}: {tried}, and its release could not be downloaded: {error}") from error
