"""Random lives of jobs, for as many steps as wanted: ``python bench/laws.py --steps 20000``.

Runs the state machines of tests/unit/controller/test_lives.py against new random lives until that many events have
happened, and prints how many, with how many crashes. The first broken law ends it, with the steps that led there.
"""

import argparse
import importlib.util
import sys
import time
from collections import Counter
from concurrent.futures import ProcessPoolExecutor
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


def live(wanted: int) -> dict[str, int]:
    """Lives until ``wanted`` steps are taken under each law; what has been counted on the way."""
    server = load("controller_apiserver", "apiserver.py")
    lives = load("controller_lives", "test_lives.py")
    for machine in (lives.Twins, lives.Interrupted):
        before = lives.STEPS["taken"]
        while lives.STEPS["taken"] - before < wanted:
            again = settings(max_examples=20, stateful_step_count=LENGTH, database=None, **lives.SETTINGS)
            run_state_machine_as_test(machine, settings=again)
    return {**lives.STEPS, **server.COUNTS}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--steps", type=int, default=20000, help="how many events are to happen in all")
    parser.add_argument("--jobs", type=int, default=2, help="processes that live at once")
    options = parser.parse_args()
    begun = time.monotonic()
    share = -(-options.steps // (2 * options.jobs))
    with ProcessPoolExecutor(options.jobs) as pool:
        counts = sum((Counter(found) for found in pool.map(live, [share] * options.jobs)), Counter())
    alive, crashes, calls = counts["before the end"], counts["crashes"], counts["calls"]
    print(
        f"{counts['taken']} steps ({alive} of them before a job's end), {crashes} crashes, {calls} API calls, "
        f"0 violations, {time.monotonic() - begun:.0f} s"
    )


if __name__ == "__main__":
    main()
