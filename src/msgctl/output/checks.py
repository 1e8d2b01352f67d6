"""The findings of doctor on a terminal: one check per line, each as soon as it is made."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from rich.console import RenderableType
from rich.table import Table
from rich.text import Text

from msgctl.output.fields import cell
from msgctl.output.screen import SIGNS, kind_of
from msgctl.output.theme import signed, verdict
from msgctl.text import plural

NAME_WIDTH = len("credentials") + 1
NARROW = 60
"""Columns of a terminal below which what was found follows the name of its check."""


def parts(documents: Iterable[Mapping[str, Any]], width: int) -> Iterator[RenderableType]:
    """Return what to print for each check; those that were skipped come last, together for each reason."""
    skipped: dict[str, list[str]] = {}
    counts = {"bad": 0, "warn": 0}
    for document in documents:
        kind = kind_of(document["status"]) or "ok"
        if kind == "off":
            skipped.setdefault(cell(document["found"]), []).append(cell(document["check"]))
            continue
        if kind in counts:
            counts[kind] += 1
        name, found, fix = (cell(document.get(each)) for each in ("check", "found", "fix"))
        yield _check(kind, name, found, fix, is_narrow=width < NARROW)
    for reason, names in skipped.items():
        yield signed("off", Text(f"{', '.join(names)}: {reason}", "dim"))
    if any(counts.values()):
        told = [f"{plural(counts['bad'], 'check')} failed"] if counts["bad"] else []
        told += [plural(counts["warn"], "warning")] if counts["warn"] else []
        yield Text("")
        yield verdict("bad" if counts["bad"] else "warn", *told)


def _check(kind: str, name: str, found: str, fix: str, *, is_narrow: bool) -> Table:
    grid = Table.grid(padding=(0, 1, 0, 0))
    grid.add_column(width=1)
    if not is_narrow:
        grid.add_column(width=NAME_WIDTH)
    grid.add_column(overflow="fold")
    texts = [Text.assemble((name, "bold"), "  ", found)] if is_narrow else [Text(name), Text(found)]
    grid.add_row(Text(SIGNS[kind], kind), *texts)
    if fix:
        grid.add_row(*[""] * len(texts), Text.assemble(("→ ", kind), fix))
    return grid
