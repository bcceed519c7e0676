"""The built wheel: what is in it, and that it works in an environment of its own, away from the checkout."""

import os
import subprocess
import sys
import venv
import zipfile
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
PACKAGES = {"schemas", "policy", "certs", "webhook", "kube", "controller", "history", "signalbox"}


@pytest.fixture(scope="module")
def wheel(tmp_path_factory):
    out = tmp_path_factory.mktemp("wheel")
    command = [sys.executable, "-m", "build", "--wheel", "--no-isolation", "--outdir", str(out), str(ROOT)]
    subprocess.run(command, check=True, capture_output=True)
    [built] = out.glob("*.whl")
    return built


def test_only_our_packages_and_their_data_are_in_it(wheel):
    names = zipfile.ZipFile(wheel).namelist()
    assert {name.split("/")[0] for name in names if ".dist-info" not in name} == PACKAGES
    for needed in (
        "schemas/v1/common.json",
        "schemas/v1/podtemplate.json",
        "history/migrations/env.py",
        "signalbox/deploy/local/go.mod",
        "signalbox/deploy/crds/trainingjob.yaml",
        "signalbox/deploy/examples/pytorch-mnist.yaml",
    ):
        assert needed in names
    assert not [name for name in names if name.endswith((".pem", ".key", ".crt", ".db"))]


def test_it_works_away_from_the_checkout(wheel, tmp_path):
    """Dependencies come from this environment: only our own packages are installed anew."""
    home = tmp_path / "venv"
    venv.create(home, with_pip=False, symlinks=True)
    [site] = home.glob("lib/python*/site-packages")
    zipfile.ZipFile(wheel).extractall(site)
    ours = next(Path(path) for path in sys.path if path.endswith("site-packages"))
    (site / "dependencies.pth").write_text(f"{ours}\n")
    script = (
        "import json, schemas, signalbox.local.paths as p\n"
        "from schemas import kinds, loader\n"
        "[loader.validator(kind) for kind in kinds.KINDS]\n"
        "print(json.dumps([schemas.__file__, str(p.deploy_dir())]))\n"
    )
    environment = {**os.environ, "PYTHONSAFEPATH": "1"}
    done = subprocess.run(
        [home / "bin" / "python", "-c", script],
        cwd=tmp_path,
        env=environment,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    assert str(site) in done.stdout
    assert str(site / "signalbox" / "deploy") in done.stdout


def test_no_dependency_owns_a_name_of_ours():
    """A distribution that ships a package of our name would overwrite it silently: docs/adr/0001."""
    from importlib.metadata import packages_distributions

    owners = packages_distributions()
    assert {name: owners[name] for name in PACKAGES if set(owners.get(name, ())) - {"signalbox"}} == {}
