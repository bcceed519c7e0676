"""Worlds as fixtures."""

import importlib.util
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from schemas import kinds
from schemas.kinds import JobKind

# tests are no package (import mode importlib), so the world is loaded by its path, once
_SPEC = importlib.util.spec_from_file_location("controller_world", Path(__file__).with_name("world.py"))
_MODULE = importlib.util.module_from_spec(_SPEC)
sys.modules[_SPEC.name] = _MODULE
_SPEC.loader.exec_module(_MODULE)
World = _MODULE.World


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
