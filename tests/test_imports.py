"""Modules import only from lower layers, and short commands do not load heavy modules."""

from __future__ import annotations

import ast
import json
import subprocess
import sys
from collections.abc import Sequence
from functools import cache
from pathlib import Path

import msgctl
from support import PATIENCE

SOURCE = Path(msgctl.__file__).parent
FILES = sorted(SOURCE.rglob("*.py"))

LAYERS = (
    {"__main__", "testing"},
    {"commands"},
    {"reference"},
    {"cli.runs"},
    {"cli.options"},
    {"cli.shell"},
    {"output"},
    {"jobs", "sandbox"},
    {"lists", "store"},
    {"http"},
    {"config", "outcomes"},
    {"files", "values"},
    {"credits", "jsontext", "operations", "phones", "segments"},
    {"errors", "text", "__init__"},
)
"""The parts of the package from the top down: each imports only from the parts of lower layers."""

CLIENT_SIDE = {"http", "config", "output", "values"}
HEAVY = set("http.client ssl urllib.request rich sqlite3 platformdirs tomllib tomli_w asyncio".split())


def relative(path: Path) -> str:
    return path.relative_to(SOURCE).as_posix()


def part_of(module: str) -> str:
    """Return the part of the package that contains a module. The parts of ``cli`` are layers of their own."""
    _, *names = module.split(".")
    if names[:1] == ["cli"]:
        return ".".join(names[:2])
    return names[0] if names else "__init__"


@cache
def graph() -> dict[str, set[str]]:
    """Return each module with the modules of the package that it imports, even late or only for types."""
    paths = {".".join(("msgctl", *path.relative_to(SOURCE).with_suffix("").parts)): path for path in FILES}
    paths = {name.removesuffix(".__init__"): path for name, path in paths.items()}
    return {name: imports(path) & paths.keys() - {name} for name, path in paths.items()}


def imports(path: Path) -> set[str]:
    names = set()
    for node in nodes(path):
        if isinstance(node, ast.ImportFrom) and node.module:
            assert node.level == 0, f"{relative(path)}: imports are absolute"
            names |= {node.module, *(f"{node.module}.{alias.name}" for alias in node.names)}
        elif isinstance(node, ast.Import):
            names |= {alias.name for alias in node.names}
    return names


def level(part: str) -> int:
    """The line of a part. A new part fails here until it is listed."""
    return next(number for number, layer in enumerate(LAYERS) if part in layer)


def test_imports_run_downwards() -> None:
    pairs = {(module, part_of(other)) for module, imported in graph().items() for other in imported}
    assert [
        f"{module} imports {other}"
        for module, other in pairs
        if other not in (part := part_of(module), "__init__", "cli") and level(other) <= level(part)
    ] == []


def test_imports_have_no_cycles_even_with_late_imports_and_imports_for_types() -> None:
    left = graph()
    while leaves := {name for name, imported in left.items() if not imported & left.keys()}:
        left = {name: imported for name, imported in left.items() if name not in leaves}
    assert left == {}, "these modules are in a cycle, or import from one"


def test_the_sandbox_shares_no_code_with_the_client() -> None:
    waiting = [name for name in graph() if part_of(name) == "sandbox"]
    reached = set[str]()
    while waiting:
        reached.add(module := waiting.pop())
        waiting.extend(graph()[module] - reached)
    parts = {part_of(module) for module in reached}
    assert {"operations", "segments", "errors"} <= parts
    assert parts & CLIENT_SIDE == set()


@cache
def nodes(path: Path) -> Sequence[ast.AST]:
    return [*ast.walk(ast.parse(path.read_text(encoding="utf-8")))]


# --- what is loaded


def loaded(code: str) -> set[str]:
    """The modules that a fresh process has loaded after some code."""
    report = "\nimport json, sys\nsys.stderr.write(json.dumps(sorted(sys.modules)))"
    done = subprocess.run(
        [sys.executable, "-c", code + report],
        capture_output=True,
        timeout=PATIENCE,
        check=True,
        stdin=subprocess.DEVNULL,
    )
    return set(json.loads(done.stderr.splitlines()[-1]))


def after(*arguments: str) -> set[str]:
    """The modules that a command line has loaded when it is done, in a pipe."""
    code = f"import sys\nsys.argv = {['msgctl', *arguments]!r}\nfrom msgctl.__main__ import main\nassert main() == 0"
    return loaded(code)


def test_the_command_tree_does_not_load_heavy_modules() -> None:
    assert loaded("import msgctl.cli.shell.main").isdisjoint(HEAVY)


def test_the_version_option_does_not_load_typer() -> None:
    assert after("--version").isdisjoint(HEAVY | {"typer", "msgctl.cli"})


def test_a_table_in_a_pipe_does_not_load_rich() -> None:
    modules = after("-q", "-p", "sandbox", "sms", "send", "573001234567", "-m", "Hello")
    assert "msgctl.http.client" in modules
    assert modules.isdisjoint({"rich"})


def test_a_dry_run_loads_no_client() -> None:
    modules = after("-p", "sandbox", "-n", "sms", "send", "573001234567", "-m", "Hello")
    assert modules.isdisjoint({"msgctl.http.client", "http.client", "sqlite3", "rich"})


def test_the_help_of_the_tool_loads_no_command() -> None:
    assert [name for name in after("--help") if name.startswith("msgctl.commands.")] == []
