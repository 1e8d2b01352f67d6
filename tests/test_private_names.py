"""Names with a leading underscore that the source takes from third-party modules: none without a reason."""

from __future__ import annotations

import ast
import re
import sys
from collections.abc import Collection, Iterator
from functools import cache
from importlib.util import find_spec
from pathlib import Path

import pytest

import msgctl

SOURCE = Path(msgctl.__file__).parent
REASONS: dict[str, str] = {}
"""The private names that the source uses, each with the reason."""

_NAMED_TUPLE = ("_replace", "_asdict", "_fields", "_make")
"""Documented methods of named tuples; the underscore keeps them apart from fields."""
_PRIVATE = re.compile(r"_(?!_)\w+")
_PATH = re.compile(r"[a-z]\w*(\.\w+)*(\._\w+)(\.\w+)*", re.IGNORECASE)


@cache
def is_installed(top: str) -> bool:
    return find_spec(top) is not None


def is_third_party(module: str) -> bool:
    top = module.partition(".")[0]
    return top not in ("msgctl", "_typeshed") and top not in sys.stdlib_module_names  # type checkers have _typeshed


def private_names(tree: ast.AST, inherited: Collection[str] = ()) -> Iterator[str]:
    """Yield the private modules, imported names, attributes and module paths in strings.

    An attribute belongs to a library unless the same module defines its name, or it is an attribute of ``self`` whose
    name is ``inherited``, or of a module of msgctl or of the standard library.
    """
    imported = dict(_imported(tree))
    own = {*_NAMED_TUPLE, *_defined(tree)}
    yield from (path for path in imported.values() if is_third_party(path) and _has_private_part(path))
    for node in ast.walk(tree):
        if isinstance(node, ast.Constant) and isinstance(node.value, str) and _PATH.fullmatch(node.value):
            if is_third_party(node.value) and is_installed(node.value.partition(".")[0]):
                yield node.value
        elif isinstance(node, ast.Attribute) and _PRIVATE.fullmatch(node.attr) and node.attr not in own:
            first = _first_name(node)
            owner = imported.get(first, first)
            if is_third_party(owner) and not (first == "self" and node.attr in inherited):
                yield f"{owner}.{node.attr}"


def _imported(tree: ast.AST) -> Iterator[tuple[str, str]]:
    """Yield the names that a module imports, each with its path."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            yield from ((each.asname or each.name.partition(".")[0], each.name) for each in node.names)
        elif isinstance(node, ast.ImportFrom) and node.module and not node.level:
            yield from ((each.asname or each.name, f"{node.module}.{each.name}") for each in node.names)


def _first_name(node: ast.expr) -> str:
    """Return the name at the beginning of an expression such as ``a.b().c``; empty if it begins otherwise."""
    while isinstance(node, (ast.Attribute, ast.Call)):
        node = node.value if isinstance(node, ast.Attribute) else node.func
    return node.id if isinstance(node, ast.Name) else ""


def _has_private_part(path: str) -> bool:
    return any(_PRIVATE.fullmatch(part) for part in path.split("."))


def _defined(tree: ast.AST) -> Iterator[str]:
    """Yield the names of functions, methods and attributes that a module defines itself."""
    for node in ast.walk(tree):
        if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)):
            yield node.name
        elif isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
            yield node.id
        elif (
            isinstance(node, ast.Attribute) and isinstance(node.ctx, ast.Store) and _first_name(node) in ("self", "cls")
        ):
            yield node.attr


def test_every_private_name_of_a_library_has_a_reason() -> None:
    trees = [ast.parse(file.read_text(encoding="utf-8")) for file in SOURCE.rglob("*.py")]
    inherited = {name for tree in trees for name in _defined(tree)}
    found = {name for tree in trees for name in private_names(tree, inherited)}
    assert found == REASONS.keys()


@pytest.mark.parametrize(
    ("source", "name"),
    [
        ("import httpx\nhttpx.HTTPTransport()._pool", "httpx._pool"),
        ("from httpcore._sync import http11", "httpcore._sync.http11"),
        ("from click import _compat as other", "click._compat"),
        ("def close(response):\n    response._content = b''", "response._content"),
        ("import sys\nsys.modules['httpx._main'] = None", "httpx._main"),
    ],
    ids=range(5),
)
def test_a_private_name_is_found(source: str, name: str) -> None:
    assert list(private_names(ast.parse(source))) == [name]


def test_names_of_msgctl_and_of_the_standard_library_are_not_private_names_of_a_library() -> None:
    source = "import os, sys\nos._exit(0)\nsys._MEIPASS\nclass A:\n    def __init__(self):\n        self._x = 1\n"
    source += "def f(a):\n    return a._x, a.__class__\nfrom msgctl.cli import _run\n"
    assert list(private_names(ast.parse(source))) == []
