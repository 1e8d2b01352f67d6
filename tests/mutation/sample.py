"""Break the code in 400 places, one at a time, and count in how many of them the tests fail.

    pip install mutmut
    python tests/mutation/sample.py [--seed N] [--number N] [--children N]

mutmut makes the mutants and runs the tests; its settings are in pyproject.toml. Of the mutants of http, jobs, history
and phones that mypy accepts, a seeded sample is tried, with as many of each room as it has. mutmut leaves out decorated
functions, constants of modules and default values of parameters. `mutmut show NAME` prints a mutant that survived.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import subprocess
from collections import Counter
from pathlib import Path

MUTANTS = Path("mutants", "src")
KILLED = "killed", "timeout", "segfault"


def mutmut(*arguments: str) -> None:
    """Run mutmut. Processes that tests start load the mutants too."""
    MUTANTS.mkdir(parents=True, exist_ok=True)  # Python forgets a folder that was not there when it started
    subprocess.run(["mutmut", "run", *arguments], check=True, env={**os.environ, "PYTHONPATH": str(MUTANTS.resolve())})


def verdicts() -> dict[str, int | None]:
    """Return mutmut's exit code of each mutant, None for those that were not tried."""
    every = (json.loads(path.read_text())["exit_code_by_key"] for path in MUTANTS.rglob("*.meta"))
    return {name: code for each in every for name, code in each.items()}


def main() -> None:
    from mutmut.mutation.file_mutation import filter_mutants_with_type_checker
    from mutmut.stats import status_by_exit_code

    parser = argparse.ArgumentParser()
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--number", type=int, default=400)
    parser.add_argument("--children", default="2")
    given = parser.parse_args()
    mutmut("msgctl.phones.x__is_valid__mutmut_*")  # makes all mutants, and learns which tests run them
    accepted = sorted(verdicts().keys() - filter_mutants_with_type_checker().keys())
    sample = random.Random(given.seed).sample(accepted, given.number)
    mutmut("--max-children", given.children, *sample)
    found = {name: status_by_exit_code[verdicts()[name]] for name in sample}
    print(f"{len(accepted)} mutants; a sample of", dict(Counter(name.split(".")[1] for name in sample)))
    for name, status in sorted(found.items()):
        if status not in KILLED:
            print(f"{status}: {name}")
    print(
        f"{sum(status in KILLED for status in found.values()) / len(sample):.1%} killed {dict(Counter(found.values()))}"
    )


if __name__ == "__main__":
    main()
