"""Rules about the code itself that a linter does not know: sizes, purity, and no kind by name."""

import ast
import re
import subprocess
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
PACKAGES = ("schemas", "policy", "certs", "webhook", "kube", "controller", "history", "signalbox")
LONGEST_FILE = 500
LONGEST_FUNCTION = 60
PURE_MODULES = (
    *(f"controller/{name}.py" for name in (
        "build", "children", "course", "decide", "endings", "extras", "gang", "ledger", "mpi", "owned", "plan", "pods",
        "progress", "restart", "scan", "settings", "status", "success")),
    *(f"webhook/{name}.py" for name in ("accounts", "governed", "mutate", "policy_review", "review", "validate")),
    "certs/issue.py",
    "certs/plan.py",
    "certs/repairs.py",
    "certs/steps.py",
    "history/records.py",
    "kube/election.py",
    "history/details.py",
    "history/web/charts.py",
)  # fmt: skip
IMPURE_IMPORTS = {"kube", "os", "time", "socket", "random", "logging", "structlog", "flask", "sqlalchemy", "requests"}
CLOCK_CALLS = re.compile(r"datetime\.now\(|time\.time\(|monotonic\(|utcnow\(")


def tracked(*patterns):
    listed = subprocess.run(["git", "ls-files", *patterns], cwd=ROOT, capture_output=True, text=True, check=True).stdout
    return [ROOT / line for line in listed.splitlines() if (ROOT / line).exists()]


def imports_of(path):
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.Import):
            yield from (alias.name.split(".")[0] for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and node.module:
            yield node.module.split(".")[0]


def test_no_file_is_too_long():
    too_long = {str(path.relative_to(ROOT)) for path in tracked("*.py") if path.read_text().count("\n") > LONGEST_FILE}
    assert too_long == set()


def test_no_function_is_too_long():
    too_long = [
        f"{path.relative_to(ROOT)}:{node.lineno} {node.name}"
        for path in tracked("*.py")
        for node in ast.walk(ast.parse(path.read_text()))
        if isinstance(node, ast.FunctionDef) and (node.end_lineno or 0) - node.lineno + 1 > LONGEST_FUNCTION
    ]
    assert too_long == []


@pytest.mark.parametrize("module", [*PURE_MODULES, "schemas", "policy"])
def test_pure_modules_have_no_effects(module):
    files = sorted((ROOT / module).rglob("*.py")) if module in PACKAGES else [ROOT / module]
    for path in files:
        assert not set(imports_of(path)) & IMPURE_IMPORTS, path
        assert not CLOCK_CALLS.search(path.read_text()), path


def test_the_controller_has_one_clock():
    reads = re.compile(r"datetime\.now\(|utcnow\(|^import time$|^from time ", re.MULTILINE)
    found = {path.name for path in tracked("controller/*.py") if reads.search(path.read_text())}
    assert found == {"clock.py"}


def test_no_code_branches_on_the_name_of_a_kind():
    """Kinds are rows: outside the table, the schemas and the examples no code knows one by its name."""
    branch = re.compile(
        r"""(==|!=|\bin\b)\s*[(\[{]?\s*["'](TrainingJob|PyTorchJob|TFJob|MPIJob|XGBoostJob|PaddleJob|JAXJob)["']"""
    )
    found = [
        f"{path.relative_to(ROOT)}: {line.strip()}"
        for path in tracked(*(f"{package}/*.py" for package in PACKAGES))
        for line in path.read_text().splitlines()
        if branch.search(line)
    ]
    assert found == []


def test_the_controller_writes_to_the_api_server_in_one_module():
    writes = re.compile(r"kube\.(create|replace|patch|delete)\(")
    found = {path.name for path in tracked("controller/*.py") if writes.search(path.read_text())}
    assert found == {"apply.py"}


def test_no_registry_host_is_named():
    hosts = re.compile(r"pypi\.org|pythonhosted|proxy\.golang|registry\.npmjs|deb\.debian|crates\.io", re.IGNORECASE)
    found = [
        str(path)
        for path in tracked()
        if path.name != Path(__file__).name and hosts.search(path.read_text(errors="ignore"))
    ]
    assert found == []


def test_no_test_is_skipped_quietly():
    quiet = re.compile(r"pytest\.skip|mark\.skip|mark\.xfail|importorskip")
    found = [
        str(path)
        for path in tracked("tests/*.py")
        if path.name != Path(__file__).name and quiet.search(path.read_text())
    ]
    assert found == []
