"""deploy/Dockerfile without docker: its steps, done in a directory that stands for the image's root."""

import os
import re
import shlex
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from signalbox.local.paths import deploy_dir

ROOT = Path(__file__).parents[2]
FILE = deploy_dir() / "Dockerfile"


def instructions(text):
    """(word, argument) of each line, without comments."""
    lines = (line for line in text.splitlines() if line.strip() and not line.startswith("#"))
    return [tuple(line.split(maxsplit=1)) for line in lines]


def stages():
    """The instructions of the build stage, and those of the image."""
    every = instructions(FILE.read_text())
    starts = [at for at, (word, _) in enumerate(every) if word == "FROM"]
    assert len(starts) == 2
    return every[: starts[1]], every[starts[1] :]


def only(word, stage):
    [argument] = [argument for found, argument in stage if found == word]
    return argument


class Root:
    """A directory in which absolute paths of the image are looked up."""

    def __init__(self, directory):
        self.directory = directory
        self.workdir = directory

    def path(self, name):
        return self.directory / name.lstrip("/") if name.startswith("/") else self.workdir / name

    def do(self, word, argument):
        if word == "WORKDIR":
            self.workdir = self.path(argument)
            self.workdir.mkdir(parents=True)
        elif word == "COPY":
            self.copy(*shlex.split(argument))
        elif word == "RUN":
            self.run(argument)

    def copy(self, *names):
        *sources, target = names
        for source in sources:
            into = self.path(target) / Path(source).name if target.endswith("/") else self.path(target)
            into.parent.mkdir(parents=True, exist_ok=True)
            if (ROOT / source).is_dir():
                shutil.copytree(ROOT / source, into, ignore=shutil.ignore_patterns("__pycache__"))
            else:
                shutil.copy(ROOT / source, into)

    def run(self, command):
        words = [re.sub(r"^(?=/opt/)", str(self.directory), word) for word in shlex.split(command)]
        if words[0] == "python":
            words[0] = sys.executable
        clean = {name: value for name, value in os.environ.items() if not name.startswith(("PYTHON", "VIRTUAL"))}
        done = subprocess.run(words, cwd=self.workdir, env=clean, capture_output=True, text=True, check=False)
        assert done.returncode == 0, f"{command}\n{done.stderr}"


def test_the_image_runs_as_nobody_in_an_empty_directory_of_its_own():
    _, image = stages()
    user, group = only("USER", image).split(":")
    assert int(user) > 0 < int(group)
    assert "PYTHONSAFEPATH=1" in only("ENV", image)
    assert only("ENTRYPOINT", image) == '["/opt/signalbox/bin/signalbox"]'
    workdir = only("WORKDIR", image)
    assert not [argument for word, argument in image if word == "COPY" and argument.split()[-1].startswith(workdir)]
    assert [argument for word, argument in image if word == "RUN"] == []


def test_what_is_installed_from_outside_is_locked_by_hash():
    build, _ = stages()
    installs = [argument for word, argument in build if word == "RUN" and "pip install" in argument]
    assert installs
    for command in installs:
        assert "--require-hashes" in command or ("--no-index" in command and "--no-deps" in command), command


def test_every_package_is_copied_and_nothing_that_is_ignored():
    build, _ = stages()
    copied = {name for word, argument in build if word == "COPY" for name in argument.split()[:-1]}
    project = (ROOT / "pyproject.toml").read_text()
    packages = set(re.findall(r'"(\w+)"', re.search(r"^packages = \[(.*)\]$", project, re.MULTILINE)[1]))
    assert packages <= copied
    kept = {line[1:] for line in (FILE.parent / "Dockerfile.dockerignore").read_text().split() if line.startswith("!")}
    assert {name.partition("/")[0] for name in copied} <= kept


@pytest.fixture(scope="module")
def root(tmp_path_factory):
    build, _ = stages()
    made = Root(tmp_path_factory.mktemp("image"))
    for word, argument in build:
        made.do(word, argument)
    return made


def run(directory, *command):
    """What it prints, in an environment like the image's."""
    clean = {"PATH": "/usr/bin:/bin", "PYTHONSAFEPATH": "1", "PYTHONDONTWRITEBYTECODE": "1"}
    done = subprocess.run(command, cwd=directory, env=clean, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_the_steps_make_an_environment_that_works(root, tmp_path):
    """Everything comes from the locked requirements: this test's own environment is not on its path."""
    python = root.path("/opt/signalbox/bin/python")
    program = [str(python), "-m", "signalbox"]
    for arguments in ("--help", "webhook --help", "controller --help", "certs --help", "history --help"):
        assert run(tmp_path, *program, *arguments.split())
    script = (
        "import psycopg, pymysql, signalbox, controller.run, webhook.app, history.writer; print(signalbox.__file__)"
    )
    assert run(tmp_path, str(python), "-c", script).startswith(str(root.directory))
    assert list(tmp_path.iterdir()) == []
