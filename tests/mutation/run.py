"""What the tests of a module notice: it is broken in every place in turn, and its tests run against each mutant.

Run it as ``python tests/mutation/run.py MODULE``, for example ``values`` or ``jobs/ledger``, with an interpreter that
has the dev extra and mutmut (``pip install mutmut``). It works on copies of the tree, and prints each mutant that no
test noticed as a diff, and the score. A module takes some minutes to an hour; ``--every 5`` takes each fifth mutant,
``--only 12 40`` those with these numbers. With TMPDIR on a file system in memory it need not wait for the disk.

The mutants are those of mutmut's operators, also of constants and decorated functions, which mutmut itself leaves as
they are. They run from here since mutmut names each test on pytest's command line, which names like ``[b'\\xff']`` do
not survive: it takes the complaint about that for a test that failed.
"""

from __future__ import annotations

import argparse
import contextlib
import difflib
import os
import shutil
import signal
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import partial
from importlib import import_module
from pathlib import Path
from typing import Any, NamedTuple

import pytest
from hypothesis import Phase, settings
from mypy.api import run_dmypy

ROOT = Path(__file__).parent.parent.parent
TESTS = {
    "values": (
        "test_values.py",
        *(f"cli/test_{each}_values.py" for each in ("date", "phone", "choice", "text", "message")),
    ),
    "profiles": ("test_profiles.py", "test_profile_choice.py", "test_profile_add.py", "test_config_file.py"),
    "client": (
        *(f"test_{each}.py" for each in ("connection", "answers", "regressions", "repeats", "transport", "exit_codes")),
        "cli/test_api.py",
    ),
    "verdicts": ("test_regressions.py", "test_exit_codes.py", "test_answers.py", "cli/test_api.py"),
    "jobs/states": ("jobs/test_ledger_machine.py", "jobs/test_runner.py"),
    "jobs/ledger": tuple(
        f"jobs/test_{each}.py" for each in ("ledger_machine", "store", "dispatch", "runner", "limits")
    ),
}
"""The tests of a module, the quickest first; they stop at the first that fails."""
LOADED = ("trustme", "typer", "rich.table", "sqlite3", "http.server", "tomli_w", "xdist")
"""What every run needs is loaded once."""
OPTIONS = (
    *("-x", "-q", "-n0", "-pno:cacheprovider", "--hypothesis-profile=mutants"),
    "-Wignore::pytest.PytestAssertRewriteWarning",  # of what is loaded already
)
PATIENCE = 5
"""How many times as long as the tests of the module as it is those of a mutant may take."""

USUAL_DEPTH = 1000
"""Of calls; mypy raises the limit of the process that it is loaded into."""
say = partial(print, flush=True)


class Mutant(NamedTuple):
    """A module with one thing changed."""

    number: int
    text: str


class Run(NamedTuple):
    """The tests of a mutant, under way in a process of their own."""

    mutant: Mutant
    tree: Path
    deadline: float


def changed(source: str) -> Iterator[str]:
    """The code with one thing changed, for everything there is to change; never an annotation or a docstring."""
    libcst, operators = import_module("libcst"), import_module("mutmut.mutation.mutators").mutation_operators
    module = libcst.parse_module(source)

    def nodes(node: Any) -> Iterator[Any]:
        if isinstance(node, libcst.Annotation | libcst.ImportFrom | libcst.Import):
            return
        if isinstance(node, libcst.Expr) and isinstance(node.value, libcst.SimpleString):
            return
        yield node
        for child in node.children:
            yield from nodes(child)

    code = [module.code_for_node(statement) for statement in module.body]
    for place, statement in enumerate(module.body):
        before, after = "".join(code[:place]), "".join(code[place + 1 :])
        for node in nodes(statement):
            for mutated in (each for kind, operator in operators if isinstance(node, kind) for each in operator(node)):
                yield before + module.code_for_node(statement.deep_replace(node, mutated)) + after


def mutants_of(source: str) -> list[Mutant]:
    """The mutants of a module, each once. What differs in upper and lower case alone is a message, mostly."""
    texts = dict.fromkeys(text for text in changed(source) if text.casefold() != source.casefold())
    return [Mutant(number, text) for number, text in enumerate(texts, start=1)]


def well_typed(mutants: Iterable[Mutant], tree: Path, module: Path) -> Iterator[Mutant]:
    """The mutants that mypy takes: a check of what has changed is quicker than the tests."""
    daemon = ["--status-file", str(tree / "daemon.json")]
    with contextlib.chdir(tree):
        run_dmypy([*daemon, "run", "--timeout", "900", "--", "src"])
        for mutant in mutants:
            write(tree / module, mutant)
            if not run_dmypy([*daemon, "check", "src"])[2]:
                yield mutant
        run_dmypy([*daemon, "stop"])


def write(path: Path, mutant: Mutant) -> None:
    path.write_text(mutant.text)
    os.utime(path, (mutant.number, mutant.number))  # Python takes compiled code for current by the time of its source


def difference(source: str, text: str) -> str:
    """The lines that differ, with the number of the first."""
    lines = list(difflib.unified_diff(source.splitlines(), text.splitlines(), lineterm="", n=0))
    return "\n".join(lines[2:])


def copy_of_the_tree(folder: Path) -> Path:
    for name in ("src", "tests", "man", "completions"):
        shutil.copytree(ROOT / name, folder / name, ignore=shutil.ignore_patterns("__pycache__"))
    for name in ("pyproject.toml", "README.md", "CHANGELOG.md", "LICENSE"):
        shutil.copy(ROOT / name, folder)
    return folder


def start(tree: Path, module: Path, mutant: Mutant, tests: Sequence[str]) -> int:
    """Run the tests of a mutant in a process of its own, whose id is given back."""
    write(tree / module, mutant)
    if pid := os.fork():
        return pid
    os.setsid()
    sys.setrecursionlimit(USUAL_DEPTH)
    os.chdir(tree)
    os.environ["PYTHONPATH"] = str(tree / "src")
    sys.path.insert(0, str(tree / "src"))
    os.dup2(os.open(os.devnull, os.O_RDONLY), 0)
    output = os.open(tree / "output", os.O_WRONLY | os.O_CREAT | os.O_TRUNC)
    for stream in (1, 2):
        os.dup2(output, stream)
    code = 1
    try:
        code = pytest.main([*OPTIONS, f"--basetemp={tree}/temp", *tests])
        sys.stdout.flush()
    finally:
        os._exit(code)


def verdicts(
    mutants: Iterable[Mutant], trees: Sequence[Path], module: Path, tests: Sequence[str], seconds: float
) -> Iterator[tuple[Mutant, str]]:
    """What became of each mutant: killed, survived, or timeout; as many at a time as there are trees."""
    waiting, free, runs = iter(mutants), list(trees), dict[int, Run]()
    while True:
        while free and (mutant := next(waiting, None)):
            tree = free.pop()
            runs[start(tree, module, mutant, tests)] = Run(mutant, tree, time.monotonic() + seconds)
        if not runs:
            return
        time.sleep(0.02)
        for pid, run in list(runs.items()):
            late = time.monotonic() > run.deadline
            if late:
                os.killpg(pid, signal.SIGKILL)
            ended, status = os.waitpid(pid, 0 if late else os.WNOHANG)
            if ended:
                del runs[pid]
                free.append(run.tree)
                yield run.mutant, "timeout" if late else "killed" if status else "survived"


def examine(name: str, wanted: Callable[[Mutant], bool], tests: Sequence[str], workers: int) -> None:
    """Print the survivors among the mutants of a module that are wanted, and the score."""
    module = Path("src/msgctl", f"{name}.py")
    source = (ROOT / module).read_text()
    chosen = [mutant for mutant in mutants_of(source) if wanted(mutant)]
    with tempfile.TemporaryDirectory() as folder:
        trees = [copy_of_the_tree(Path(folder, str(number))) for number in range(workers)]
        typed = list(well_typed(chosen, trees[0], module))
        began = time.monotonic()
        for _, said in verdicts([Mutant(0, source)] * workers, trees, module, tests, 600):
            if said != "survived":
                sys.exit(f"The tests fail with the module as it is:\n{(trees[0] / 'output').read_text()}")
        patience = PATIENCE * (time.monotonic() - began)
        score = Counter({"rejected by mypy": len(chosen) - len(typed)})
        say(f"{name}: {len(chosen)} mutants, of which mypy takes {len(typed)}")
        for mutant, said in verdicts(typed, trees, module, tests, patience):
            score[said] += 1
            if said != "killed":
                say(f"\n{said} {mutant.number}\n{difference(source, mutant.text)}")
    say(f"\n{name}: {len(chosen)} mutants, " + ", ".join(f"{count} {said}" for said, count in score.items()))


def main() -> None:
    parser = argparse.ArgumentParser(description="What the tests of a module notice.")
    parser.add_argument("module", help="such as values, or jobs/ledger")
    parser.add_argument("tests", nargs="*", help="files below tests, the quickest first; left out, those in TESTS")
    parser.add_argument("--every", type=int, default=1, metavar="K", help="only each k-th mutant")
    parser.add_argument("--only", type=int, nargs="+", default=(), metavar="NUMBER", help="only these mutants")
    parser.add_argument("--workers", type=int, default=os.cpu_count() or 1)
    given = parser.parse_intermixed_args()
    tests = [f"tests/{each}" for each in given.tests or TESTS.get(given.module, ("",))]
    for name in LOADED:
        import_module(name)
    # The smallest example that fails is of no interest, and takes a second to find.
    settings.register_profile(
        "mutants", deadline=None, database=None, derandomize=True, phases=[Phase.explicit, Phase.generate]
    )
    os.nice(10)
    only = set(given.only)
    examine(
        given.module,
        lambda mutant: mutant.number in only if only else mutant.number % given.every == 0,
        tests,
        given.workers,
    )


if __name__ == "__main__":
    main()
