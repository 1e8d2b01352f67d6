"""Output for programs: csv, tsv, and aligned columns for pipes, without colour, never folded or cut, without Rich."""

from __future__ import annotations

import io
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

from msgctl.output.fields import cell, reach
from msgctl.text import clean

GAP = "  "
_FORMULA = re.compile(r"[=@\t\r]|[+-](?![0-9 ().-]*\Z)")
"""A cell that a spreadsheet would run as a formula. A phone number such as +57 300 and a negative number are not."""


def aligned(columns: Sequence[str], documents: Iterable[Any]) -> Iterator[str]:
    """Return a header line and one line per document. ``documents`` is walked twice."""
    header = [*map(cell, columns)]
    widths = [width_of(name) for name in header]
    for document in documents:
        widths = [max(width, width_of(text)) for width, text in zip(widths, cells(columns, document), strict=True)]
    yield padded(header, widths)
    for document in documents:
        yield padded(cells(columns, document), widths)


def listing(names: Sequence[str], document: Mapping[str, Any]) -> Iterator[str]:
    """Return one line for each field and its value."""
    width = max((width_of(cell(name)) for name in names), default=0)
    for name in names:
        yield padded([cell(name), cell(reach(document, name))], (width, 0))


def cells(columns: Sequence[str], document: Any) -> list[str]:
    """Return the clean values of the columns."""
    return [cell(reach(document, name)) for name in columns]


def padded(row: Sequence[str], widths: Sequence[int]) -> str:
    """Return cells beside each other, each at least as wide as its column, and a line end."""
    texts = [text + " " * (width - width_of(text)) for text, width in zip(row, widths, strict=True)]
    return GAP.join(texts).rstrip() + "\n"


def width_of(text: str) -> int:
    """Return the columns that clean text takes on a terminal."""
    if text.isascii():
        return len(text)
    from rich.cells import cell_len  # the smallest part of Rich, and only for letters that may be wide

    return cell_len(text)


def csv_line(row: Iterable[str]) -> str:
    """Return a row quoted according to RFC 4180, but with a bare line feed. A newline in a cell stays one."""
    import csv  # not for tables

    line = io.StringIO()
    guarded = [_guard("\n".join(map(clean, text.splitlines()))) for text in row]
    csv.writer(line, lineterminator="\n").writerow(guarded)
    return line.getvalue()


def tsv_line(row: Iterable[str]) -> str:
    """Return cells between tabs, without quotes: a tab or newline in a cell becomes ``\\t`` or ``\\n``."""
    return "\t".join(_guard(clean(text)) for text in row) + "\n"


def _guard(text: str) -> str:
    return "'" + text if _FORMULA.match(text) else text
