"""Break the code in 400 places, one at a time, and count in how many of them a test fails.

    pip install coverage
    python tests/mutation/sample.py [--seed N] [--number N] [--folder FOLDER] [--modules ...] [--tests ...]

First the tests of one process run once, to note which test executes which line (with coverage, several minutes; kept in
the folder). Then each mutant runs in a fork of this process, which replaces the code of one function and runs the tests
that execute the line, the quickest first. A run with the same folder continues: verdicts are lines of verdicts.jsonl.
Constants of modules and classes are not changed.
"""

from __future__ import annotations

import argparse
import ast
import copy
import importlib
import inspect
import json
import os
import random
import signal
import time
from collections import Counter, defaultdict
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from types import CodeType, FunctionType
from typing import Any

import pytest

TESTS = Path(__file__).parents[1]
SOURCE = TESTS.parent / "src"
MODULES = "outcomes/*.py", "store/*.py", "jobs/*.py", "phones.py", "segments.py"
FOLDERS = "units", "rules", "store", "contract", "faults", "golden", "stories"
MAX_TEST = 2.0
"""Maximum duration of a test that is used, in seconds. A mutant that only longer tests detect is not detected."""
MAX_SECONDS = 60
"""Seconds after which a mutant counts as detected, because it does not end."""

COMPARISONS: dict[type[ast.cmpop], type[ast.cmpop]] = {
    ast.Lt: ast.LtE, ast.LtE: ast.Lt, ast.Gt: ast.GtE, ast.GtE: ast.Gt, ast.Eq: ast.NotEq, ast.NotEq: ast.Eq,
    ast.In: ast.NotIn, ast.NotIn: ast.In, ast.Is: ast.IsNot, ast.IsNot: ast.Is,
}  # fmt: skip
OPERATORS: dict[type[ast.operator], type[ast.operator]] = {
    ast.Add: ast.Sub, ast.Sub: ast.Add, ast.Mult: ast.FloorDiv, ast.FloorDiv: ast.Mult, ast.Div: ast.Mult,
    ast.BitOr: ast.BitAnd, ast.BitAnd: ast.BitOr,
}  # fmt: skip


@dataclass(frozen=True)
class Mutant:
    """One changed place: the module, the function, the number of the place in it, its line and the new text."""

    module: str
    function: str
    place: int
    line: int
    text: str

    @property
    def name(self) -> str:
        return f"{self.module}.{self.function}:{self.line}: {self.text}"


def changed(node: ast.AST) -> ast.AST | None:
    """Return a copy of a node that behaves differently, or None."""
    new = copy.copy(node)
    match new:
        case ast.Compare(ops=[operator, *rest]) if type(operator) in COMPARISONS:
            new.ops = [COMPARISONS[type(operator)](), *rest]
        case ast.BinOp(op=operation) if type(operation) in OPERATORS:
            new.op = OPERATORS[type(operation)]()
        case ast.BoolOp():
            new.op = ast.And() if isinstance(new.op, ast.Or) else ast.Or()
        case ast.UnaryOp(op=ast.Not()):
            return new.operand
        case ast.If() | ast.While() | ast.IfExp():
            new.test = ast.copy_location(ast.UnaryOp(ast.Not(), new.test), new.test)
        case ast.Return(value=ast.expr()):
            new.value = ast.copy_location(ast.Constant(None), node)
        case ast.Constant(value=bool()):
            new.value = not new.value
        case ast.Constant(value=int() | float() as number):
            new.value = number + 1
        case ast.Constant(value=str() as text) if text:
            new.value = f"{text}XX"
        case ast.Raise() | ast.Expr(value=ast.Call()) | ast.AugAssign():
            return ast.copy_location(ast.Pass(), node)
        case _:
            return None
    return new


class Changer(ast.NodeTransformer):
    """Visits the places of a function in order, and changes one of them."""

    def __init__(self, place: int | None = None) -> None:
        self.place = place
        self.places: list[tuple[int, str]] = []

    def visit(self, node: ast.AST) -> Any:
        if isinstance(node, (ast.arguments, ast.AnnAssign)) or _is_docstring(node):
            return node
        new = changed(node)
        if new is not None:
            self.places.append((node.lineno, ast.unparse(new).partition("\n")[0][:80]))  # type: ignore[attr-defined]
            if len(self.places) - 1 == self.place:
                return new
        return self.generic_visit(node)


def _is_docstring(node: ast.AST) -> bool:
    return isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant)


def functions(tree: ast.Module) -> Iterator[tuple[str, ast.FunctionDef]]:
    for node in tree.body:
        if isinstance(node, ast.FunctionDef):
            yield node.name, node
        elif isinstance(node, ast.ClassDef):
            yield from ((f"{node.name}.{each.name}", each) for each in node.body if isinstance(each, ast.FunctionDef))


def mutants(path: Path) -> Iterator[Mutant]:
    module = ".".join(path.relative_to(SOURCE).with_suffix("").parts)
    for name, function in functions(ast.parse(path.read_text())):
        changer = Changer()
        for statement in function.body:
            changer.visit(statement)
        for place, (line, text) in enumerate(changer.places):
            yield Mutant(module, name, place, line, text)


def break_code(mutant: Mutant) -> bool:
    """Replace the code of a function of this process. Return whether that is possible."""
    module = importlib.import_module(mutant.module)
    assert module.__file__
    tree = ast.parse(Path(module.__file__).read_text())
    changer = Changer(mutant.place)
    function = dict(functions(tree))[mutant.function]
    function.body = [changer.visit(statement) for statement in function.body]
    code: CodeType = compile(ast.fix_missing_locations(tree), module.__file__, "exec")
    target: Any = module
    for part in mutant.function.split("."):
        code = next(each for each in code.co_consts if isinstance(each, CodeType) and each.co_name == part)
        target = inspect.getattr_static(target, part)
    while not isinstance(target, FunctionType):
        wrapped = [getattr(target, name, None) for name in ("__wrapped__", "fget", "__func__")]
        target = next(filter(None, wrapped), None)
        if target is None:
            return False
    inspect.unwrap(target).__code__ = code
    return True


class Runner:
    """A plugin of pytest that runs the tests of the mutants instead of all tests."""

    def __init__(self, folder: Path, sample: list[Mutant]) -> None:
        self._folder = folder
        self._sample = sample
        self._has_failed = False

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        self._has_failed = self._has_failed or report.failed

    def pytest_runtestloop(self, session: pytest.Session) -> bool:
        if not (self._folder / "lines.json").exists():
            self._measure(session.items)
        lines: dict[str, list[str]] = json.loads((self._folder / "lines.json").read_text())
        seconds: dict[str, float] = json.loads((self._folder / "seconds.json").read_text())
        items = {item.nodeid: item for item in session.items}
        verdicts = self._folder / "verdicts.jsonl"
        known = {json.loads(line)[0] for line in verdicts.read_text().splitlines()} if verdicts.exists() else set()
        for mutant in self._sample:
            if mutant.name in known:
                continue
            names = [name for name in lines.get(f"{mutant.module}:{mutant.line}", []) if name in items]
            names = sorted((name for name in names if seconds[name] <= MAX_TEST), key=seconds.__getitem__)
            verdict = self._try(mutant, [items[name] for name in names])
            with verdicts.open("a") as file:
                file.write(json.dumps([mutant.name, verdict]) + "\n")
        return True

    def _measure(self, items: list[pytest.Item]) -> None:
        from coverage import Coverage  # type: ignore[import-not-found,unused-ignore]

        coverage = Coverage(data_file=None, include=[f"{SOURCE}/msgctl/*"], config_file=False)
        coverage.start()
        seconds: dict[str, float] = {}
        for item in items:
            coverage.switch_context(item.nodeid)
            begun = time.perf_counter()
            item.config.hook.pytest_runtest_protocol(item=item, nextitem=None)
            seconds[item.nodeid] = time.perf_counter() - begun
        coverage.stop()
        lines: dict[str, list[str]] = defaultdict(list)
        data = coverage.get_data()
        for file in data.measured_files():
            module = ".".join(Path(file).relative_to(SOURCE).with_suffix("").parts)
            for line, names in data.contexts_by_lineno(file).items():
                lines[f"{module}:{line}"] = [name for name in names if name]
        (self._folder / "seconds.json").write_text(json.dumps(seconds))
        (self._folder / "lines.json").write_text(json.dumps(lines))

    def _try(self, mutant: Mutant, items: list[pytest.Item]) -> str:
        if not items:
            return "not executed"
        child = os.fork()
        if not child:
            self._end(mutant, items)
        deadline = time.monotonic() + MAX_SECONDS
        while time.monotonic() < deadline:
            ended, status = os.waitpid(child, os.WNOHANG)
            if ended:
                code = os.waitstatus_to_exitcode(status)
                return {0: "survived", 2: "not changed"}.get(code, "detected")
            time.sleep(0.01)
        os.kill(child, signal.SIGKILL)
        os.waitpid(child, 0)
        return "detected"

    def _end(self, mutant: Mutant, items: list[pytest.Item]) -> None:
        os.setpgid(0, 0)
        code = 1
        try:
            if not break_code(mutant):
                code = 2
            else:
                for item in items:
                    item.config.hook.pytest_runtest_protocol(item=item, nextitem=None)
                    if self._has_failed:
                        break
                else:
                    code = 0
        finally:
            os._exit(code)


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--number", type=int, default=400)
    parser.add_argument("--folder", type=Path, default=Path("mutants"))
    parser.add_argument("--modules", nargs="+", default=MODULES, help="patterns below src/msgctl")
    parser.add_argument("--tests", nargs="+", default=FOLDERS, help="folders of tests")
    given = parser.parse_args()
    given.folder.mkdir(parents=True, exist_ok=True)
    paths = [path for pattern in given.modules for path in sorted((SOURCE / "msgctl").glob(pattern))]
    every = [mutant for path in paths for mutant in mutants(path)]
    sample = random.Random(given.seed).sample(every, min(given.number, len(every)))
    options = ("-n", "0", "-q", "-p", "no:cacheprovider", "-m", "not slow", "-k", "not postgresql")
    pytest.main([*options, *(str(TESTS / folder) for folder in given.tests)], plugins=[Runner(given.folder, sample)])
    names = {mutant.name for mutant in sample}
    found = dict(json.loads(line) for line in (given.folder / "verdicts.jsonl").read_text().splitlines())
    found = {name: verdict for name, verdict in found.items() if name in names}
    for name, verdict in sorted(found.items()):
        if verdict in ("survived", "not executed"):
            print(f"{verdict}: {name}")
    print(len(every), "places;", dict(Counter(found.values())))


if __name__ == "__main__":
    main()
