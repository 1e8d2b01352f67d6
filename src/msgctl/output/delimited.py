"""csv and tsv: one header line, and one line a row, whatever the cells hold."""

from __future__ import annotations

import csv
import io
from collections.abc import Iterable, Iterator, Sequence

_FORMULA = ("=", "@")


def csv_lines(columns: Sequence[str], rows: Iterable[Sequence[str]]) -> Iterator[str]:
    """Clean cells as RFC 4180 quotes them, but with a bare line feed at the end of a line."""
    buffer = io.StringIO()
    writer = csv.writer(buffer, lineterminator="\n")
    for row in _guarded(columns, rows):
        writer.writerow(row)
        yield buffer.getvalue()
        buffer.seek(0)
        buffer.truncate()


def tsv_lines(columns: Sequence[str], rows: Iterable[Sequence[str]]) -> Iterator[str]:
    """Clean cells between tabs, without quoting: a tab or a line end in a text is written ``\\t`` or ``\\n``."""
    for row in _guarded(columns, rows):
        yield "\t".join(row) + "\n"


def _guarded(columns: Sequence[str], rows: Iterable[Sequence[str]]) -> Iterator[list[str]]:
    """Header and rows in which no cell is a formula to a spreadsheet."""
    yield [_guard(name) for name in columns]
    for row in rows:
        yield [_guard(text) for text in row]


def _guard(text: str) -> str:
    return "'" + text if text.startswith(_FORMULA) else text
