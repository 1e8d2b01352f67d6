"""Break the code in 400 places, one at a time, and count in how many of them the tests fail.

    source .venv/bin/activate  # mutmut runs mypy
    pip install mutmut==3.8.1
    python tests/mutation/sample.py [--seed N] [--number N] [--children N]

mutmut creates the mutants and runs the tests; its settings are in pyproject.toml. The sample is drawn with a seed from
the mutants of http, jobs, history, delivery, recipients and phones that mypy accepts. mutmut leaves out decorated
functions and the constants of modules and classes. The sample also leaves out mutants that only change the case of
words in SQL, outside of quotes and parameters, because SQLite ignores the case; it prints their number. `mutmut show
NAME` prints a mutant that survived, and `mutmut run NAME` runs it again.
"""

from __future__ import annotations

import argparse
import ast
import json
import os
import random
import re
from collections import Counter
from copy import deepcopy
from importlib import import_module
from pathlib import Path
from typing import Any

MUTANTS = Path("mutants", "src")
CHILD = "msgctl.jobs.workbook_process"
"""A module that also runs in a separate process, where mutmut does not see which functions a test calls."""
KILLED = "killed", "timeout"
MAX_TEST = 2.0
"""Maximum duration of a test that is used, in seconds. A mutant that only longer tests detect is not detected."""
SQL = r"\b(SELECT|INSERT|UPDATE|DELETE|CREATE|PRAGMA|ATTACH|DETACH|BEGIN|COMMIT|ROLLBACK|AND|ORDER BY|COLLATE)\b"
"""Keywords by which SQL is recognised; no message for people has them in capitals."""
PRESERVED_OR_WORD = r"""('[^']*'|"[^"]*"|:\w+)|\w+"""


def verdicts() -> dict[str, int | None]:
    """Return mutmut's exit code of each mutant, None for those that were not tried."""
    every = (json.loads(path.read_text())["exit_code_by_key"] for path in MUTANTS.rglob("*.meta"))
    return {name: code for each in every for name, code in each.items()}


def folded(text: str) -> str:
    """Return a text in lower case, except what is in quotes and the names of parameters."""
    return re.sub(PRESERVED_OR_WORD, lambda word: word[1] or word[0].lower(), text)


class Folder(ast.NodeTransformer):
    """Fold the strings of a function that equal one of some SQL statements apart from case."""

    def __init__(self, sql: set[str]) -> None:
        self._sql = sql

    def visit_Constant(self, node: ast.Constant) -> ast.Constant:
        if isinstance(node.value, str) and folded(node.value) in self._sql:
            node.value = folded(node.value)
        return node


def unchanged(names: list[str]) -> set[str]:
    """Return the mutants of functions that differ from the original only in the case of words in SQL."""
    functions: dict[str, ast.FunctionDef] = {}
    for module in {name.rpartition(".")[0] for name in names}:
        tree = ast.parse(MUTANTS.joinpath(*module.split(".")).with_suffix(".py").read_text())
        functions |= {f"{module}.{node.name}": node for node in ast.walk(tree) if isinstance(node, ast.FunctionDef)}
    found: set[str] = set()
    for name in names:
        original = functions[re.sub("[0-9]+$", "orig", name)]
        texts = [node.value for node in ast.walk(original) if isinstance(node, ast.Constant)]
        sql = {folded(text) for text in texts if isinstance(text, str) and re.search(SQL, text)}
        pair = (deepcopy(original), functions[name]) if sql else ()
        bodies = [[ast.dump(Folder(sql).visit(each)) for each in (node.args, *node.body)] for node in pair]
        if sql and bodies[0] == bodies[1]:
            found.add(name)
    return found


def main() -> None:
    mutmut: Any = import_module("mutmut.__main__")
    parser = argparse.ArgumentParser()
    for name, usual in (("--seed", 1), ("--number", 400), ("--children", 2)):
        parser.add_argument(name, type=int, default=usual)
    given = parser.parse_args()
    sample: list[str] = []
    drawn_from: list[str] = []
    type_check, collect = mutmut.filter_mutants_with_type_checker, mutmut.collect_or_load_stats

    def draw() -> dict[str, Any]:
        refused: dict[str, Any] = type_check()
        typed = sorted(verdicts().keys() - refused.keys())
        aside = unchanged(typed)
        accepted = [name for name in typed if name not in aside]
        drawn_from.append(f"{len(aside)} mutants differ only in the case of SQL and are left out")
        drawn_from.append(f"{len(accepted)} mutants pass: {dict(Counter(name.split('.')[1] for name in accepted))}")
        sample.extend(random.Random(given.seed).sample(accepted, given.number))
        return refused

    def assign(*arguments: Any, **options: Any) -> None:
        collect(*arguments, **options)
        tests = mutmut.state().tests_by_mangled_function_name
        for function in {re.sub("__mutmut_[0-9]+$", "", name) for name in sample if name.startswith(CHILD)}:
            tests[function] = tests[function] or tests[f"{CHILD}.x_records"]
        seconds = mutmut.state().duration_by_test
        for function, names in tests.items():  # the quickest first, because most mutants are detected by many tests
            tests[function] = sorted((name for name in names if seconds[name] <= MAX_TEST), key=seconds.__getitem__)

    MUTANTS.mkdir(parents=True, exist_ok=True)
    os.environ["PYTHONPATH"] = str(MUTANTS.resolve())  # for processes that tests start
    mutmut.filter_mutants_with_type_checker, mutmut.collect_or_load_stats = draw, assign
    mutmut._run(sample, given.children)
    print("\n".join(drawn_from))  # not in draw(), because mutmut hides its output
    found = {name: mutmut.status_by_exit_code[verdicts()[name]] for name in sample}
    print("\n".join(f"{status}: {name}" for name, status in sorted(found.items()) if status not in KILLED))
    print(
        f"{sum(status in KILLED for status in found.values()) / len(sample):.1%} killed {dict(Counter(found.values()))}"
    )


if __name__ == "__main__":
    main()
