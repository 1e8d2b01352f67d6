"""Break the code in 400 places, one at a time, and count in how many of them a test fails.

    python tests/mutation/sample.py [--seed TEXT] [--number N] [--folder FOLDER] [--processes N] [--modules ...]
        [--tests ...] [--least P]

Each package and each module of its own gets the same share of the places. The exit code is 1 if the tests detect fewer
than P percent of the changes.

The processes share the tests and the mutants; each has its own copy of the source and its own PostgreSQL server. First
all tests run once, to record which test reaches which statement. Then each mutant runs in a fork of its process. The
fork replaces the code of one function and runs tests that reach the statement, and stops at the first that fails. Tests
that take different paths through the module come first, the fastest first. A statement that only runs while modules are
imported is tested in new processes. FOLDER contains the copies of the source and all verdicts; a run with the same
FOLDER continues. harmless.txt lists mutants that no test needs to find, with the reason.
Constants of modules and classes, and sentences, which golden files contain, are not changed.
"""

from __future__ import annotations

import argparse
import ast
import copy
import faulthandler
import gc
import importlib
import importlib.util
import inspect
import json
import mmap
import multiprocessing
import os
import random
import shutil
import signal
import subprocess
import sys
import time
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from itertools import chain, islice, zip_longest
from multiprocessing.synchronize import Barrier
from pathlib import Path
from types import CodeType, FunctionType
from typing import Any

import pytest

TESTS = Path(__file__).parents[1]
SOURCE = TESTS.parent / "src"
HARMLESS = Path(__file__).with_name("harmless.txt")
MODULES = ("**/*.py",)
FOLDERS = "rules", "store", "contract", "faults", "golden", "stories", "sandbox", "process", "test_imports.py"
STARTED_BY = {
    "msgctl.lists.workbook_process": "msgctl.lists.workbook",
    "msgctl.lists.kinds": "msgctl.lists.workbook",
    "msgctl.cli.shell.completion": "",
    "msgctl.cli.shell.process": "",
    "msgctl.commands.serve": "",
    "msgctl.sandbox.serving": "",
}
"""Modules that run in a separate process, each with the module whose tests reach its statements; "" is `PROCESSES`."""
MAX_STATEMENTS = 100_000
MAX_SECONDS = 20.0
"""Processor time of the tests that run for a mutant. More tests would take several minutes."""
PATIENCE = 20.0
"""Additional seconds that a test may take with a mutant. A mutant that takes longer is detected as endless."""
UNCHANGED = "unchanged"
PROCESSES = "tests/process/", "tests/sandbox/test_serving.py", "tests/sandbox/test_exec.py", "tests/test_imports.py"
"""Tests that start msgctl as a process, which runs what no test reaches in its own process, such as decorators."""
IMPORTING = (
    "contract/test_help.py", "contract/test_manual.py", "contract/test_commands.py", "contract/test_options.py",
    "rules/test_judge.py", "golden/test_messages.py",
)  # fmt: skip
"""Tests of options, help and tables, which are made while modules are imported; they run last, in a new process."""
MEASURING = 3600.0
"""Seconds to wait until the other processes have run their share of all tests, or until a new process ends."""

COMPARISONS: dict[type[ast.cmpop], type[ast.cmpop]] = {
    ast.Lt: ast.LtE, ast.LtE: ast.Lt, ast.Gt: ast.GtE, ast.GtE: ast.Gt, ast.Eq: ast.NotEq, ast.NotEq: ast.Eq,
    ast.In: ast.NotIn, ast.NotIn: ast.In, ast.Is: ast.IsNot, ast.IsNot: ast.Is,
}  # fmt: skip
OPERATORS: dict[type[ast.operator], type[ast.operator]] = {
    ast.Add: ast.Sub, ast.Sub: ast.Add, ast.Mult: ast.FloorDiv, ast.FloorDiv: ast.Mult, ast.Div: ast.Mult,
    ast.BitOr: ast.BitAnd, ast.BitAnd: ast.BitOr,
}  # fmt: skip

CLOCKS = {"monotonic", "boot_time"}
"""Clocks with nanoseconds. It makes no difference whether a comparison with one includes the same moment."""


@dataclass(frozen=True)
class Mutant:
    """A change in one place of a function. ``place`` is the number of the place, and ``text`` the new code.

    ``line`` is the line of the place, and ``statement`` the line of its statement.
    """

    module: str
    function: str
    place: int
    line: int
    statement: int
    text: str

    @property
    def name(self) -> str:
        return f"{self.module}.{self.function}:{self.line}: {self.text}"

    def unchanged(self) -> Mutant:
        """Return a mutant without a change, which no test may detect."""
        return replace(self, place=-1, text=UNCHANGED)


def changed(node: ast.AST) -> ast.AST | None:
    """Return a copy of a node that behaves differently, or None."""
    new = copy.copy(node)
    match new:
        case ast.Compare(ops=[ast.Lt() | ast.LtE() | ast.Gt() | ast.GtE()]) if _reads_clock(new):
            return None
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
        case ast.Return(value=ast.expr() as value) if ast.unparse(value) not in ("None", "False"):
            new.value = ast.copy_location(ast.Constant(None), node)
        case ast.Constant(value=bool()):
            new.value = not new.value
        case ast.Constant(value=int() | float() as number):
            new.value = number + 1
        case ast.Constant(value=str() as text) if text and " " not in text:
            new.value = f"{text}XX"
        case ast.Raise() | ast.Expr(value=ast.Call()) | ast.AugAssign():
            return ast.copy_location(ast.Pass(), node)
        case _:
            return None
    return new


def _reads_clock(comparison: ast.Compare) -> bool:
    calls = [node.func for node in ast.walk(comparison) if isinstance(node, ast.Call)]
    return any(getattr(call, "attr", getattr(call, "id", None)) in CLOCKS for call in calls)


class Changer(ast.NodeTransformer):
    """Visits the places of a function in order, and changes the place with a number."""

    def __init__(self, place: int | None = None) -> None:
        self.place = place
        self.places: list[tuple[int, int, str]] = []
        self._statement = 0

    def visit(self, node: ast.AST) -> Any:
        if isinstance(node, (ast.arguments, ast.AnnAssign)) or _is_docstring(node):
            return node
        outer = self._statement
        if isinstance(node, ast.stmt):
            self._statement = node.lineno
        new = self._change(node)
        if new is None:
            new = self._inside(node)
        self._statement = outer
        return new

    def _inside(self, node: ast.AST) -> ast.AST:
        """Visit the parts of a node, but not the words of a sentence between the values in it."""
        if isinstance(node, ast.JoinedStr) and any(
            isinstance(part, ast.Constant) and " " in str(part.value) for part in node.values
        ):
            for part in node.values:
                if isinstance(part, ast.FormattedValue):
                    part.value = self.visit(part.value)
            return node
        return self.generic_visit(node)

    def _change(self, node: ast.AST) -> ast.AST | None:
        new = changed(node)
        if new is not None:
            text = ast.unparse(new).partition("\n")[0][:80]
            self.places.append((node.lineno, self._statement, text))  # type: ignore[attr-defined]
            if len(self.places) - 1 == self.place:
                return new
        return None


class Marker(ast.NodeTransformer):
    """Inserts a call before each statement that records its number: its place in ``lines``."""

    def __init__(self, module: str, lines: list[str]) -> None:
        self._module = module
        self._lines = lines

    def generic_visit(self, node: ast.AST) -> ast.AST:
        super().generic_visit(node)
        for name in ("body", "orelse", "finalbody"):
            statements = getattr(node, name, None)
            if isinstance(statements, list):
                setattr(node, name, [each for statement in statements for each in (self._mark(statement), statement)])
        return node

    def _mark(self, statement: ast.stmt) -> ast.stmt:
        (mark,) = ast.parse(f"_reach_({len(self._lines)}, 1)").body
        self._lines.append(f"{self._module}:{statement.lineno}")
        return mark


def _is_docstring(node: ast.AST) -> bool:
    return isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant)


def functions(tree: ast.Module) -> Iterator[tuple[str, ast.FunctionDef]]:
    for node in tree.body:
        if isinstance(node, ast.FunctionDef):
            yield node.name, node
        elif isinstance(node, ast.ClassDef):
            yield from ((f"{node.name}.{each.name}", each) for each in node.body if isinstance(each, ast.FunctionDef))


def mutants(source: Path, path: Path) -> Iterator[Mutant]:
    module = ".".join(path.relative_to(source).with_suffix("").parts)
    for name, function in functions(ast.parse(path.read_text())):
        changer = Changer()
        for statement in function.body:
            changer.visit(statement)
        for place, (line, outer, text) in enumerate(changer.places):
            yield Mutant(module, name, place, line, outer, text)


def file_of(module: str) -> Path:
    file = importlib.import_module(module).__file__
    assert file
    return Path(file)


def broken(mutant: Mutant) -> ast.Module:
    tree = ast.parse(file_of(mutant.module).read_text())
    changer = Changer(mutant.place)
    function = dict(functions(tree))[mutant.function]
    function.body = [changer.visit(statement) for statement in function.body]
    return ast.fix_missing_locations(tree)


def replace_code(module: str, name: str, tree: ast.Module) -> bool:
    """Replace the code of a function in this process with its code in a tree. Return whether this was possible."""
    code: CodeType = compile(tree, str(file_of(module)), "exec")
    target: Any = importlib.import_module(module)
    for part in name.split("."):
        code = next(each for each in code.co_consts if isinstance(each, CodeType) and each.co_name == part)
        target = inspect.getattr_static(target, part)
    while not isinstance(target, FunctionType):
        wrapped = [getattr(target, name, None) for name in ("__wrapped__", "fget", "__func__", "func")]
        target = next(filter(None, wrapped), None)
        if target is None:
            return False
    function = inspect.unwrap(target)
    if function.__module__ != module:
        return False  # Enum replaces the __new__ of a class by its own, which all classes share
    function.__code__ = code
    return True


def clear_caches(modules: Iterable[str]) -> None:
    """Clear cached results of functions: a result from an earlier test would hide a mutant."""
    for module in modules:
        for value in vars(importlib.import_module(module)).values():
            if hasattr(value, "cache_clear"):
                value.cache_clear()


class Runner:
    """A pytest plugin of one process that runs the tests of its mutants instead of all tests."""

    def __init__(self, folder: Path, part: int, measured: Barrier, sample: list[Mutant], modules: list[str]) -> None:
        self._folder = folder / str(part)
        self._part = part
        self._measured = measured
        self._sample = sample
        self._modules = modules
        self._has_failed = False

    def pytest_collection(self) -> None:
        from hypothesis import Phase, settings

        # Do not shrink failing examples: any failure detects the mutant.
        settings.register_profile("mutants", deadline=None, derandomize=True, phases=[Phase.explicit, Phase.generate])
        settings.load_profile("mutants")

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        self._has_failed = self._has_failed or report.failed

    def pytest_runtestloop(self, session: pytest.Session) -> bool:
        self._start_servers(session.items)
        processes = self._measured.parties
        if not (self._folder / "tests.json").exists():
            self._measure(session.items[self._part :: processes])
        self._measured.wait(MEASURING)
        tests: dict[str, tuple[float, float, list[str]]] = {}
        for part in range(processes):
            tests |= json.loads((self._folder.parent / str(part) / "tests.json").read_text())
        ways: dict[str, dict[str, frozenset[str]]] = defaultdict(dict)
        for name, (*_, lines) in tests.items():
            by_module: dict[str, set[str]] = defaultdict(set)
            for line in lines:
                by_module[line.partition(":")[0]].add(line)
            for module, reached in by_module.items():
                ways[module][name] = frozenset(reached)
        seconds = {name: duration for name, (duration, *_) in tests.items()}
        cpu = {name: used for name, (_, used, _) in tests.items()}
        items = {item.nodeid: item for item in session.items}
        gc.collect()
        gc.freeze()
        known = verdicts_in(self._folder)
        # A statement that no test reaches in this process may run in processes that tests start.
        ways[""] = {name: frozenset() for name in tests if name.startswith(PROCESSES)}
        for mutant in [self._sample[0].unchanged(), *self._sample[self._part :: processes]]:
            if mutant.name in known:
                continue
            chosen = choose(mutant, ways, cpu)
            begun = time.monotonic()
            line = f"{mutant.module}:{mutant.statement}"
            is_reached = mutant.module in STARTED_BY or any(line in lines for lines in ways[mutant.module].values())
            verdict = self._try(mutant, [(items[name], seconds[name]) for name in chosen if name in items], is_reached)
            with (self._folder / "verdicts.jsonl").open("a") as file:
                file.write(json.dumps([mutant.name, verdict, len(chosen), round(time.monotonic() - begun, 2)]) + "\n")
        return True

    def _measure(self, items: list[pytest.Item]) -> None:
        """Store how long each test takes, its processor time, and the statements it reaches, unless it fails.

        The tests run in a fork, so that they change nothing in this process.
        """
        if child := os.fork():
            os.waitpid(child, 0)
            return
        reached = mmap.mmap(-1, MAX_STATEMENTS)  # shared with the forks in which tests run msgctl
        lines: list[str] = []
        for module in self._modules:
            source = file_of(module).read_text()
            vars(importlib.import_module(module))["_reach_"] = reached.__setitem__
            for name, _ in functions(ast.parse(source)):
                tree = ast.parse(source)
                Marker(module, lines).visit(dict(functions(tree))[name])
                replace_code(module, name, ast.fix_missing_locations(tree))
        tests: dict[str, tuple[float, float, list[str]]] = {}
        for item in items:
            clear_caches(self._modules)
            reached[:] = bytes(MAX_STATEMENTS)
            self._has_failed = False
            begun, used = time.perf_counter(), sum(os.times()[:4])  # with its child processes
            run(item)
            if not self._has_failed:
                seconds, cpu = time.perf_counter() - begun, sum(os.times()[:4]) - used
                names = sorted({line for number, line in enumerate(lines) if reached[number]})
                tests[item.nodeid] = (seconds, cpu, names)
        (self._folder / "tests.json").write_text(json.dumps(tests))
        os._exit(0)

    def _start_servers(self, items: list[pytest.Item]) -> None:
        """Run a test with PostgreSQL. It starts the server that the tests of all mutants use."""
        item = next((item for item in items if "cluster" in getattr(item, "fixturenames", ())), None)
        if item:
            run(item)

    def _try(self, mutant: Mutant, tests: Sequence[tuple[pytest.Item, float]], is_reached: bool) -> str:
        if not tests:
            return "not executed"
        file = file_of(mutant.module)
        compiled = Path(importlib.util.cache_from_source(str(file)))
        source = file.read_text()
        tree = broken(mutant)
        child = os.fork()
        if not child:
            self._end(mutant, tree, tests, is_reached)
        file.write_text(ast.unparse(tree))  # for processes that tests start
        compiled.unlink(missing_ok=True)
        _, status = os.waitpid(child, 0)
        with suppress(ProcessLookupError):
            os.killpg(child, signal.SIGKILL)
        file.write_text(source)
        compiled.unlink(missing_ok=True)
        if (self._folder / f"{child}.txt").exists():
            log = self._folder / f"{child}.txt"
            is_endless = log.stat().st_size > 0
            log.unlink()
            if is_endless:
                return "detected: endless"
        failed = self._folder / "failed.txt"
        by = failed.read_text() if failed.exists() else "its end"
        failed.unlink(missing_ok=True)
        return {0: "survived", 2: "not changed"}.get(os.waitstatus_to_exitcode(status), f"detected by {by}")

    def _end(
        self, mutant: Mutant, tree: ast.Module, tests: Sequence[tuple[pytest.Item, float]], is_reached: bool
    ) -> None:
        os.setpgid(0, 0)
        code = 1
        try:
            log = (self._folder / f"{os.getpid()}.txt").open("w")
            if not replace_code(mutant.module, mutant.function, tree):
                code = 2
            else:
                clear_caches(self._modules)
                self._has_failed = False
                for item, seconds in tests:
                    faulthandler.dump_traceback_later(PATIENCE * (1 + seconds), exit=True, file=log)
                    run(item)
                    if self._has_failed:
                        (self._folder / "failed.txt").write_text(item.nodeid)
                        break
                else:
                    faulthandler.dump_traceback_later(MEASURING, exit=True, file=log)
                    is_imported = not is_reached or mutant.text == UNCHANGED
                    code = int(is_imported and not passes_in_new_process())
                    if code:
                        (self._folder / "failed.txt").write_text("a new process")
        finally:
            os._exit(code)


def run(item: pytest.Item) -> None:
    """Run a test, and end all its fixtures except those of the session."""
    item.config.hook.pytest_runtest_protocol(item=item, nextitem=item.session)


def passes_in_new_process() -> bool:
    """Return whether the tests of what runs while modules are imported pass in a process that imports the mutant."""
    command = [sys.executable, "-m", "pytest", "-n", "0", "-q", "-x", "-p", "no:cacheprovider"]
    return not subprocess.run([*command, *(str(TESTS / name) for name in IMPORTING)], check=False).returncode


def choose(mutant: Mutant, ways: dict[str, dict[str, frozenset[str]]], cpu: dict[str, float]) -> list[str]:
    """Return the tests that reach the statement: first one for each path through the module, the fastest first."""
    line = f"{mutant.module}:{mutant.statement}"
    reaching = {name: lines for name, lines in ways[mutant.module].items() if line in lines}
    if mutant.module in STARTED_BY:
        reaching |= ways[STARTED_BY[mutant.module]]
    reaching = reaching or ways[""]
    groups: dict[frozenset[str], list[str]] = defaultdict(list)
    for name in sorted(reaching, key=cpu.__getitem__):
        groups[reaching[name]].append(name)
    chosen: list[str] = []
    total = 0.0
    for name in filter(None, chain.from_iterable(zip_longest(*groups.values()))):
        if not chosen or total + cpu[name] <= MAX_SECONDS:
            chosen.append(name)
            total += cpu[name]
    return chosen


def sample_of(places: Sequence[Mutant], number: int, seed: str) -> list[Mutant]:
    """Return a random sample that takes one place of each room in turn: a package or module of ``msgctl``."""
    rooms: dict[str, list[Mutant]] = defaultdict(list)
    for mutant in places:
        rooms[mutant.module.split(".")[1]].append(mutant)
    dice = random.Random(seed)
    shuffled = [dice.sample(room, len(room)) for room in rooms.values()]
    dice.shuffle(shuffled)
    return [*islice(filter(None, chain.from_iterable(zip_longest(*shuffled))), number)]


def known_harmless() -> dict[str, str]:
    """Return the reasons in harmless.txt by the name of the mutant without its line number."""
    lines = [line.rpartition("  # ") for line in HARMLESS.read_text().splitlines() if line.startswith("msgctl.")]
    return {name.rstrip(): reason for name, _, reason in lines}


def verdicts_in(folder: Path) -> dict[str, str]:
    """Return the verdicts of one process by the name of the mutant."""
    file = folder / "verdicts.jsonl"
    if not file.exists():
        return {}
    return {name: verdict for name, verdict, *_ in map(json.loads, file.read_text().splitlines())}


def work(
    folder: Path, part: int, measured: Barrier, sample: list[Mutant], modules: list[str], tests: list[str]
) -> None:
    """Run one process's share of the tests and mutants with its copy of the source."""
    source = folder / str(part) / "src"
    sys.path.insert(0, str(source))
    os.environ["PYTHONPATH"] = str(source)
    with (folder / str(part) / "log").open("a") as log:
        os.dup2(log.fileno(), 1)
    options = ("-n", "0", "-q", "-p", "no:cacheprovider", "--tb=no", "-m", "not slow")
    runner = Runner(folder, part, measured, sample, modules)
    sys.exit(pytest.main([*options, *(str(TESTS / name) for name in tests)], plugins=[runner]))


def report(sample: Sequence[Mutant], found: dict[str, str]) -> int:
    """Print the mutants that no test detected, and the number of each verdict. Return how many are missed."""
    harmless = known_harmless()
    numbers: Counter[str] = Counter()
    for mutant in sample:
        verdict = found[mutant.name]
        if verdict in ("survived", "not executed") and f"{mutant.module}.{mutant.function}: {mutant.text}" in harmless:
            verdict = "harmless"
        if not verdict.startswith("detected"):
            print(f"{verdict}: {mutant.name}")
        numbers[verdict.partition(" by ")[0]] += 1
    print(dict(numbers))
    return numbers["survived"] + numbers["not executed"]


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--seed", default="1", help="any text, such as the name of a commit")
    parser.add_argument("--number", type=int, default=400)
    parser.add_argument("--folder", type=Path, default=Path("mutants"))
    parser.add_argument("--processes", type=int, default=os.cpu_count() or 1)
    parser.add_argument("--modules", nargs="+", default=MODULES, help="patterns below src/msgctl")
    parser.add_argument("--tests", nargs="+", default=FOLDERS, help="folders of tests")
    parser.add_argument("--least", type=int, default=0, metavar="P", help="percent of the mutants to detect")
    given = parser.parse_args()
    folders = [given.folder.absolute() / str(part) for part in range(given.processes)]
    source = given.folder.absolute() / "src"
    if not source.exists():
        shutil.copytree(SOURCE, source, ignore=shutil.ignore_patterns("__pycache__"))
    for folder in folders:
        # A run that was stopped may have left a mutant in its copy.
        shutil.rmtree(folder / "src", ignore_errors=True)
        shutil.copytree(source, folder / "src")
    paths = [path for pattern in given.modules for path in sorted((source / "msgctl").glob(pattern))]
    places = [mutant for path in paths for mutant in mutants(source, path)]
    sample = sample_of(places, given.number, given.seed)
    modules = sorted({mutant.module for mutant in places} | set(filter(None, STARTED_BY.values())))
    fork = multiprocessing.get_context("fork")
    measured = fork.Barrier(given.processes)
    workers = [
        fork.Process(target=work, args=(given.folder.absolute(), part, measured, sample, modules, given.tests))
        for part in range(given.processes)
    ]
    for worker in workers:
        worker.start()
    found: dict[str, str] = {}
    for worker, folder in zip(workers, folders, strict=True):
        worker.join()
        verdicts = verdicts_in(folder)
        unchanged = {verdict for name, verdict in verdicts.items() if name.endswith(f": {UNCHANGED}")}
        assert unchanged == {"survived"}, f"tests fail without a mutant: {unchanged}; see {folder / 'log'}"
        found |= verdicts
    print(f"{len(sample)} of {len(places)} places")
    missed = report(sample, found)
    sys.exit(missed * 100 > len(sample) * (100 - given.least))


if __name__ == "__main__":
    main()
