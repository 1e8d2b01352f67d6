"""csv and tsv: an optional header line, then one line per row."""

from __future__ import annotations

import csv
import io
import re
from collections.abc import Iterable, Iterator, Sequence

from msgctl.text import clean

_FORMULA = re.compile(r"[=@\t\r]|[+-](?![0-9 ().-]*\Z)")
"""A cell that a spreadsheet would run as a formula. A phone number such as +57 300 and a negative number are not."""


def csv_lines(rows: Iterable[Sequence[str]]) -> Iterator[str]:
    """Return rows quoted according to RFC 4180, but with a bare line feed at the end. A newline in a cell stays one."""
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
