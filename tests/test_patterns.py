"""Every regular expression is fast: matching 16 KiB of unfavourable text takes less than 1/16 second.

The source is searched for every use of `re`, so that no pattern can be left out.
"""

from __future__ import annotations

import ast
import importlib
import re
import signal
from collections.abc import Callable, Iterator
from itertools import product
from pathlib import Path
from types import ModuleType
from typing import Any, NamedTuple

import pytest

import msgctl
from msgctl import phones
from msgctl.http import redaction
from msgctl.outcomes import judge
from msgctl.sandbox import protocol
from msgctl.store import postgresql

SOURCE = Path(msgctl.__file__).parent
SIZE = 16 * 1024
MAX_SECONDS = 1 / 16
"""Processor time for a text. A pattern that is quadratic and reaches it would need a second for 64 KiB."""
MAX_LETTERS = 3
METHODS = "match|fullmatch|search|findall|finditer|split|sub|subn"
LETTERS = "a0 " + "".join(map(chr, range(0x10000)))
"""The characters of examples, in order of preference."""
_parser: Any = re._parser  # type: ignore[attr-defined]
_compiler: Any = re._compiler  # type: ignore[attr-defined]

READ_OUR_OWN_TEXT = ("reference/", "sandbox/page.py")
"""Files with patterns for msgctl's own text only."""
INSERTED = {
    "commands/help.py:help": "sms",
    "text.py:without_parameters": "client|key",
    "sandbox/endpoints.py:_with_links": "http://127\\.0\\.0\\.1:8000/s/",
    "store/postgresql.py:__init__": "db\\.example",
    "store/postgresql.py:create": "now",
}
"""The text that a pattern contains at run time, by its place."""
BUILT: dict[str, Callable[[], list[str]]] = {
    "phones.py:_compiled": lambda: [phones.Reader(country)._match.__self__.pattern for country in ("CO", "AR", None)],  # type: ignore[attr-defined]
    "phones.py:_mobile_today": lambda: [pattern for pattern, *_ in phones.OLD_FORMS.values()],
    "outcomes/judge.py:credits_left": lambda: [judge._CREDITS, judge._NUMBER_OF_CREDITS],
    "sandbox/protocol.py:fits": lambda: [form.pattern for form in protocol.FORMATS.values()],
    "http/redaction.py:_pattern": lambda: [
        redaction._pattern(key).pattern for key in ("+ %2\\" * 12, "\\+ %2" * 12, "1234567890")
    ],
    "store/postgresql.py:_explained": lambda: [*postgresql._SETUP_FIXES],
}
"""Patterns that are built from other data, by their place."""


class Use(NamedTuple):
    """A pattern and the methods that it is used with."""

    place: str
    pattern: re.Pattern[Any]
    methods: tuple[str, ...]


def uses() -> Iterator[Use]:
    for file in sorted(SOURCE.rglob("*.py")):
        name = file.relative_to(SOURCE).as_posix()
        source = file.read_text(encoding="utf-8")
        if re.search(r"\bre\b", source) and not name.startswith(READ_OUR_OWN_TEXT):
            yield from uses_in(name, source)


def uses_in(name: str, source: str) -> Iterator[Use]:
    tree = ast.parse(source)
    assert not [node for node in ast.walk(tree) if isinstance(node, ast.ImportFrom) and node.module == "re"], name
    for node, function, target in calls(tree):
        place = f"{name}:{function or target}"
        method = node.func.attr  # type: ignore[attr-defined]
        if method in ("escape", "purge"):
            continue
        module = importlib.import_module(f"msgctl.{name.removesuffix('.py').replace('/', '.')}")
        if not function:
            used = {*re.findall(rf"\b{target}\.({METHODS})\b", source)} or {"search"}
            yield Use(place, getattr(module, target), tuple(sorted(used)))
            continue
        methods = ("match", "search") if method == "compile" else (method,)
        for pattern in written(place, node.args[0], module):
            yield Use(place, re.compile(pattern), methods)


def calls(tree: ast.AST, function: str = "", target: str = "") -> Iterator[tuple[ast.Call, str, str]]:
    """Yield each call of `re` with the innermost function, or else the name that it is assigned to."""
    for node in ast.iter_child_nodes(tree):
        if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef)):
            yield from calls(node, node.name, target)
            continue
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and ast.unparse(node.func.value) == "re":
            yield node, function, target
        name = ast.unparse(node.targets[0]) if isinstance(node, ast.Assign) else target
        yield from calls(node, function, name)


def written(place: str, argument: ast.expr, module: ModuleType) -> list[str | bytes]:
    """Return the patterns of a call in a function."""
    if isinstance(argument, ast.Name) and isinstance(constant := getattr(module, argument.id, None), (str, bytes)):
        return [constant]
    if isinstance(argument, ast.Constant) and isinstance(argument.value, (str, bytes)):
        return [argument.value]
    if place in BUILT:
        return [*BUILT[place]()]
    assert isinstance(argument, ast.JoinedStr), f"add {place} to BUILT"
    assert place in INSERTED, f"add {place} to INSERTED"
    parts = [part.value if isinstance(part, ast.Constant) else INSERTED[place] for part in argument.values]
    return ["".join(map(str, parts))]


# --- bad texts


def example(parsed: Any) -> str:
    """Return a short text that a parsed pattern matches, apart from its conditions."""
    return "".join(map(example_of, parsed))


def example_of(item: Any) -> str:
    kind, value = str(item[0]), item[1]
    match kind:
        case "LITERAL" | "NOT_LITERAL" | "ANY" | "IN":
            part = _parser.SubPattern(_parser.State(), [item])
            matches: Callable[[str], object] = _compiler.compile(part).fullmatch
            return next(filter(matches, LETTERS))
        case "MAX_REPEAT" | "MIN_REPEAT" | "POSSESSIVE_REPEAT":
            return example(value[2]) * int(max(value[0], 1))
        case "SUBPATTERN":
            return example(value[3])
        case "ATOMIC_GROUP":
            return example(value)
        case "BRANCH":
            return example(value[1][0])
    return ""


def repeats(parsed: Any, before: str = "") -> Iterator[tuple[str, str]]:
    """Yield the text before each repeat of a parsed pattern, and the text that is repeated."""
    for kind, value in parsed:
        name = str(kind)
        if name.endswith("_REPEAT"):
            yield before, example(value[2])
            yield from repeats(value[2], before)
        elif name == "SUBPATTERN":
            yield from repeats(value[3], before)
        elif name == "BRANCH":
            for branch in value[1]:
                yield from repeats(branch, before)
        elif name in ("ASSERT", "ASSERT_NOT"):
            yield from repeats(value[1], before)
        before += example_of((kind, value))


def bad_texts(pattern: re.Pattern[Any]) -> Iterator[str]:
    text = pattern.pattern if isinstance(pattern.pattern, str) else pattern.pattern.decode("latin-1")
    parsed = _parser.parse(text, pattern.flags & ~re.UNICODE if isinstance(pattern.pattern, bytes) else pattern.flags)
    pieces = {(before, body) for before, body in repeats(parsed) if body}
    letters = [*dict.fromkeys("".join([example(parsed), *(body for _, body in pieces)]))]
    letters = [*dict.fromkeys([*letters[-MAX_LETTERS:], " "])]
    pieces |= {("", first + second) for first, second in product(letters, repeat=2)}
    for before, body in sorted(pieces):
        yield before + body * (SIZE // len(body)) + "\x01"
    if whole := example(parsed):
        yield whole * (SIZE // len(whole)) + "\x01"


@pytest.fixture
def time_limit() -> Iterator[Callable[[], object]]:
    """Return a function that starts the time limit, after which TimeoutError is raised."""

    def stop(*_: object) -> None:
        raise TimeoutError

    before = signal.signal(signal.SIGVTALRM, stop)
    yield lambda: signal.setitimer(signal.ITIMER_VIRTUAL, MAX_SECONDS)
    signal.setitimer(signal.ITIMER_VIRTUAL, 0)
    signal.signal(signal.SIGVTALRM, before)


def is_slow(pattern: re.Pattern[Any], method: str, time_limit: Callable[[], object]) -> bool:
    for text in bad_texts(pattern):
        subject = text if isinstance(pattern.pattern, str) else text.encode("latin-1", "replace")
        time_limit()
        try:
            if method in ("match", "fullmatch", "search"):
                getattr(pattern, method)(subject)
            else:
                for _ in pattern.finditer(subject):
                    pass
        except TimeoutError:
            return True
        finally:
            signal.setitimer(signal.ITIMER_VIRTUAL, 0)
    return False


def test_bad_text_is_searched_in_linear_time_with_any_pattern(time_limit: Callable[[], object]) -> None:
    slow = [
        f"{place}: {pattern.pattern!r} {method}"
        for place, pattern, methods in uses()
        for method in methods
        if is_slow(pattern, method, time_limit)
    ]
    assert not slow, "\n".join(slow)


@pytest.mark.parametrize("pattern", ["(?:a+)+b", "(a|a)*b", " *a* *b", "x=(?: ?-+)+y", " *-+(?: ?-+)*(?= )"])
def test_a_slow_pattern_is_found(pattern: str, time_limit: Callable[[], object]) -> None:
    assert is_slow(re.compile(pattern), "search", time_limit)
