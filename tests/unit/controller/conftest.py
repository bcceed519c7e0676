"""Worlds as fixtures."""

import importlib.util
import sys
from collections.abc import Callable
from pathlib import Path
from types import ModuleType

import pytest

from schemas import kinds
from schemas.kinds import JobKind


def _load(name: str) -> ModuleType:
    """Tests are no package (import mode importlib), so what they share is loaded by its path, once."""
    spec = importlib.util.spec_from_file_location(f"controller_{name}", Path(__file__).with_name(f"{name}.py"))
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module
    spec.loader.exec_module(module)
    return module


World = _load("world").World
_load("apiserver")


@pytest.fixture
def training() -> World:
    """A TrainingJob in an empty world."""
    return World(kinds.TRAINING_JOB)


@pytest.fixture
def pytorch() -> World:
    """A PyTorchJob in an empty world."""
    return World(kinds.PYTORCH_JOB)


@pytest.fixture
def new_world() -> Callable[[JobKind], World]:
    """Makes worlds, for tests that need several."""
    return World
