"""One real control plane for the whole test run, shared by all xdist workers, ended with it.

It starts when the first test asks for it, in a directory of its own under the system's temporary directory. A watchdog
ends it when the test run is killed.
"""

import os
import shutil
import tempfile
import uuid
from collections.abc import Iterator
from pathlib import Path
from subprocess import CompletedProcess
from typing import Protocol

import pytest
from hypothesis import settings
from rich.console import Console

from signalbox.local import cluster as local
from signalbox.local import watchdog
from signalbox.local.cluster import Cluster

STATE_DIR = "SIGNALBOX_TESTRUN_DIR"
RUN = "SIGNALBOX_TESTRUN_PID"


# a timing never fails a test
settings.register_profile("signalbox", deadline=None)
settings.load_profile("signalbox")


class Kubectl(Protocol):
    def __call__(self, *arguments: str, stdin: str | None = None, check: bool = True) -> CompletedProcess[str]: ...


@pytest.fixture(scope="session")
def cluster() -> Cluster:
    """The control plane of this test run; the test fails when it cannot be started."""
    state_dir = Path(os.environ[STATE_DIR])
    with local.alone(state_dir):
        watchdog.launch(state_dir, int(os.environ[RUN]))
    return local.start_control_plane(state_dir, console=Console(stderr=True))


@pytest.fixture(scope="session")
def kubectl(cluster: Cluster) -> Kubectl:
    """Runs kubectl as administrator; an error fails the test unless ``check=False``."""

    def run(*arguments: str, stdin: str | None = None, check: bool = True) -> CompletedProcess[str]:
        done = local.kubectl(cluster, *arguments, stdin=stdin)
        assert not check or done.returncode == 0, f"kubectl {' '.join(arguments)}: {done.stderr}"
        return done

    return run


@pytest.fixture
def namespace(kubectl: Kubectl) -> Iterator[str]:
    """The name of a fresh namespace, deleted after the test."""
    name = f"test-{uuid.uuid4().hex[:10]}"
    kubectl("create", "namespace", name)
    yield name
    kubectl("delete", "namespace", name, "--wait=false", "--ignore-not-found")


def pytest_configure(config: pytest.Config) -> None:
    if not _is_worker(config):
        os.environ[STATE_DIR] = tempfile.mkdtemp(prefix="signalbox-test-")
        os.environ[RUN] = str(os.getpid())


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter, exitstatus: int) -> None:
    """What fails may be explained by a log of the control plane: they are kept then."""
    logs = sorted(Path(os.environ[STATE_DIR]).glob("*.log"))
    if exitstatus and logs:
        terminalreporter.write_line(f"logs of the control plane: {logs[0].parent}")


def pytest_sessionfinish(session: pytest.Session, exitstatus: int) -> None:
    session.config.stash[FAILED] = bool(exitstatus)


def pytest_unconfigure(config: pytest.Config) -> None:
    if _is_worker(config):
        return
    state_dir = Path(os.environ[STATE_DIR])
    local.stop(state_dir)
    watchdog.stop(state_dir)
    if not config.stash.get(FAILED, False) or not any(state_dir.glob("*.log")):
        shutil.rmtree(state_dir)


FAILED = pytest.StashKey[bool]()


def _is_worker(config: pytest.Config) -> bool:
    return hasattr(config, "workerinput")
