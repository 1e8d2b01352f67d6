"""Break the code in 400 places, one at a time, and count in how many of them the tests fail.

    pip install mutmut==3.8.1
    python tests/mutation/sample.py [--seed N] [--number N] [--children N]

mutmut makes the mutants and runs the tests; its settings are in pyproject.toml. Of the mutants of http, jobs, history
and phones that mypy accepts, a seeded sample is tried. mutmut leaves out decorated functions and the constants of
modules and classes. `mutmut show NAME` prints a mutant that survived, `mutmut run NAME` tries it again.
"""

from __future__ import annotations

import argparse
import json
import os
import random
from collections import Counter
from importlib import import_module
from pathlib import Path
from typing import Any

MUTANTS = Path("mutants", "src")
KILLED = "killed", "timeout"


def verdicts() -> dict[str, int | None]:
    """Return mutmut's exit code of each mutant, None for those that were not tried."""
    every = (json.loads(path.read_text())["exit_code_by_key"] for path in MUTANTS.rglob("*.meta"))
    return {name: code for each in every for name, code in each.items()}


def main() -> None:
    mutmut: Any = import_module("mutmut.__main__")
    parser = argparse.ArgumentParser()
    for name, usual in (("--seed", 1), ("--number", 400), ("--children", 2)):
        parser.add_argument(name, type=int, default=usual)
    given = parser.parse_args()
    sample: list[str] = []
    type_check = mutmut.filter_mutants_with_type_checker

    def draw() -> dict[str, Any]:
        refused: dict[str, Any] = type_check()
        accepted = sorted(verdicts().keys() - refused.keys())
        print(f"{len(accepted)} mutants pass:", dict(Counter(name.split(".")[1] for name in accepted)))
        sample.extend(random.Random(given.seed).sample(accepted, given.number))
        return refused

    MUTANTS.mkdir(parents=True, exist_ok=True)
    os.environ["PYTHONPATH"] = str(MUTANTS.resolve())  # for processes that tests start
    mutmut.filter_mutants_with_type_checker = draw
    mutmut._run(sample, given.children)
    found = {name: mutmut.status_by_exit_code[verdicts()[name]] for name in sample}
    print("\n".join(f"{status}: {name}" for name, status in sorted(found.items()) if status not in KILLED))
    print(
        f"{sum(status in KILLED for status in found.values()) / len(sample):.1%} killed {dict(Counter(found.values()))}"
    )


if __name__ == "__main__":
    main()
