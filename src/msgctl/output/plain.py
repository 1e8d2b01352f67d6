"""Output for programs: csv, tsv, and aligned columns for pipes, without colour, never folded or cut, without Rich."""

from __future__ import annotations

import io
import re
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from typing import Any

from msgctl.output.fields import cell
from msgctl.text import clean

GAP = "  "
_FORMULA = re.compile(r"[=@\t\r]|[+-](?![0-9 ().-]*\Z)")
"""A cell that a spreadsheet would run as a formula. A phone number such as +57 300 and a negative number are not."""


def aligned(columns: Sequence[str], rows: Collection[Sequence[str]]) -> Iterator[str]:
    """Return a header line and one line per row of clean cells. ``rows`` is walked twice."""
    widths = [width_of(name) for name in columns]
    for row in rows:
        widths = [max(width, width_of(text)) for width, text in zip(widths, row, strict=True)]
    yield padded(columns, widths)
    for row in rows:
        yield padded(row, widths)


def listing(pairs: Sequence[tuple[str, str]]) -> Iterator[str]:
    """Return one line for each name and its value."""
    width = max((width_of(name) for name, _ in pairs), default=0)
    for name, value in pairs:
        yield padded((name, value), (width, 0))


def padded(row: Sequence[str], widths: Sequence[int]) -> str:
    """Return cells beside each other, each at least as wide as its column, and a line end."""
    cells = [text + " " * (width - width_of(text)) for text, width in zip(row, widths, strict=True)]
    return GAP.join(cells).rstrip() + "\n"


def width_of(text: str) -> int:
    """Return the columns that clean text takes on a terminal."""
    if text.isascii():
        return len(text)
    from rich.cells import cell_len  # the smallest part of Rich, and only for letters that may be wide

    return cell_len(text)


USUAL_WIDTHS = {"time": 20, "kind": 8, "phone": 15, "code": 6}
"""Widths of columns whose rows are printed as they come."""


def checks(documents: Iterable[Mapping[str, Any]]) -> Iterator[str]:
    """Return the lines of checks: the check, its status, what it found, and how to fix it below."""
    for document in documents:
        yield padded([cell(document[name]) for name in ("check", "status", "found")], (12, 8, 0))
        if document.get("fix"):
            yield padded(["", "", cell(document["fix"])], (12, 8, 0))


def csv_lines(rows: Iterable[Sequence[str]]) -> Iterator[str]:
    """Return rows quoted according to RFC 4180, but with a bare line feed at the end. A newline in a cell stays one."""
    import csv  # not for tables

    buffer = io.StringIO()
    writer = csv.writer(buffer, lineterminator="\n")
    for row in rows:
        writer.writerow([_guard("\n".join(map(clean, text.splitlines()))) for text in row])
        yield buffer.getvalue()
        buffer.seek(0)
        buffer.truncate()


def tsv_lines(rows: Iterable[Sequence[str]]) -> Iterator[str]:
    """Return cells between tabs, without quotes: a tab or newline in a cell becomes ``\\t`` or ``\\n``."""
    for row in rows:
        yield "\t".join(_guard(clean(text)) for text in row) + "\n"


def _guard(text: str) -> str:
    return "'" + text if _FORMULA.match(text) else text
