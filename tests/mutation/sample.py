"""Break the code in 400 places, one at a time, and count in how many of them the tests fail.

    pip install mutmut==3.8.1
    python tests/mutation/sample.py [--seed N] [--number N] [--children N]

mutmut makes the mutants and runs the tests; its settings are in pyproject.toml. Of the mutants of http, jobs, history
and phones that mypy accepts, a seeded sample is tried. mutmut leaves out decorated functions and the constants of
modules and classes. Set aside, and counted, are mutants that change nothing but the case of words in an SQL statement,
outside of quotes and parameters: SQLite does not distinguish them, so no test can. `mutmut show NAME` prints a mutant
that survived, `mutmut run NAME` tries it again.
"""

from __future__ import annotations

import argparse
import ast
import json
import os
import random
import re
from collections import Counter
from importlib import import_module
from pathlib import Path
from typing import Any

MUTANTS = Path("mutants", "src")
KILLED = "killed", "timeout"
STATEMENT = r"\s*(SELECT|INSERT|UPDATE|DELETE|CREATE|PRAGMA|ATTACH|DETACH|BEGIN|COMMIT|ROLLBACK)\b"
PRESERVED_OR_WORD = r"""('[^']*'|"[^"]*"|:\w+)|\w+"""


def verdicts() -> dict[str, int | None]:
    """Return mutmut's exit code of each mutant, None for those that were not tried."""
    every = (json.loads(path.read_text())["exit_code_by_key"] for path in MUTANTS.rglob("*.meta"))
    return {name: code for each in every for name, code in each.items()}


class Folded(ast.NodeTransformer):
    """Mark SQL statements, and write their words in lower case but for what is in quotes and names of parameters."""

    def __init__(self, statement: str) -> None:
        self._statement = statement

    def visit_Constant(self, node: ast.Constant) -> ast.Constant:
        if isinstance(node.value, str) and re.match(self._statement, node.value):
            node.value = "SQL: " + re.sub(PRESERVED_OR_WORD, lambda word: word[1] or word[0].lower(), node.value)
        return node


def unchanged(names: list[str]) -> set[str]:
    """Return the mutants of functions that differ from the original only in the case of words in SQL statements."""
    bodies: dict[str, list[str]] = {}
    for module in {name.rpartition(".")[0] for name in names}:
        tree = ast.parse(MUTANTS.joinpath(*module.split(".")).with_suffix(".py").read_text())
        for node in ast.walk(tree):
            if isinstance(node, ast.FunctionDef):
                is_original = node.name.endswith("__mutmut_orig")
                Folded(STATEMENT if is_original else f"{STATEMENT}|{STATEMENT.lower()}").visit(node)
                bodies[f"{module}.{node.name}"] = [ast.dump(each) for each in (node.args, *node.body)]
    return {name for name in names if bodies[name] == bodies[re.sub("[0-9]+$", "orig", name)]}


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
        typed = sorted(verdicts().keys() - refused.keys())
        aside = unchanged(typed)
        accepted = [name for name in typed if name not in aside]
        print(f"{len(aside)} mutants differ only in the case of SQL and are set aside")
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
