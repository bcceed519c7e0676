"""Random lives of jobs, for as many steps as wanted: ``python bench/laws.py --steps 20000``.

Runs the state machines of tests/unit/controller/test_lives.py against new random lives until that many events have
happened, and prints how many, with how many crashes. The first broken law ends it, with the steps that led there.
"""

import argparse
import importlib.util
import sys
import time
from pathlib import Path
from types import ModuleType

from hypothesis import settings
from hypothesis.stateful import run_state_machine_as_test

TESTS = Path(__file__).resolve().parents[1] / "tests" / "unit" / "controller"
LENGTH = 50


def load(name: str, path: str) -> ModuleType:
    spec = importlib.util.spec_from_file_location(name, TESTS / path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module
    spec.loader.exec_module(module)
    return module


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--steps", type=int, default=20000, help="how many events are to happen in all")
    wanted = parser.parse_args().steps
    server = load("controller_apiserver", "apiserver.py")
    lives = load("controller_lives", "test_lives.py")
    begun = time.monotonic()
    for machine in (lives.Twins, lives.Interrupted):
        before, lived = lives.STEPS["taken"], 0
        while lives.STEPS["taken"] - before < wanted / 2:
            again = settings(max_examples=50, stateful_step_count=LENGTH, database=None, **lives.SETTINGS)
            run_state_machine_as_test(machine, settings=again)
            lived += 50
        print(f"{machine.__name__}: {lives.STEPS['taken'] - before} steps in {lived} lives, no law broken", flush=True)
    seconds = time.monotonic() - begun
    counts = f"{server.COUNTS['crashes']} crashes, {server.COUNTS['calls']} API calls"
    alive = lives.STEPS["before the end"]
    print(f"{lives.STEPS['taken']} steps ({alive} of them before a job's end), {counts}, 0 violations, {seconds:.0f} s")


if __name__ == "__main__":
    main()
