"""What doctor found, for a terminal: one check per line, each as soon as it is made."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from rich.console import RenderableType
from rich.table import Table
from rich.text import Text

from msgctl.output.cells import cell
from msgctl.output.signs import SIGNS, kind_of
from msgctl.output.theme import verdict
from msgctl.text import plural

NAME_WIDTH = len("credentials") + 1


def parts(documents: Iterable[Mapping[str, Any]]) -> Iterator[RenderableType]:
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
        yield _check(kind, cell(document["check"]), cell(document["found"]), cell(document.get("fix")))
    for reason, names in skipped.items():
        yield Text(f"{SIGNS['off']} {', '.join(names)}: {reason}", "dim")
    if any(counts.values()):
        told = [f"{plural(counts['bad'], 'check')} failed"] if counts["bad"] else []
        told += [plural(counts["warn"], "warning")] if counts["warn"] else []
        yield Text("")
        yield verdict("bad" if counts["bad"] else "warn", *told)


def _check(kind: str, name: str, found: str, fix: str) -> Table:
    grid = Table.grid(padding=(0, 1, 0, 0))
    grid.add_column(width=1)
    grid.add_column(width=NAME_WIDTH)
    grid.add_column(overflow="fold")
    grid.add_row(Text(SIGNS[kind], kind), Text(name), Text(found))
    if fix:
        grid.add_row("", "", Text.assemble(("→ ", kind), fix))
    return grid
