"""Read people from a file of any supported format: rows and invalid rows."""

from __future__ import annotations

import io
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, closing, contextmanager
from itertools import chain, islice
from pathlib import Path
from typing import BinaryIO, cast

from msgctl.lists import formats, header, kinds
from msgctl.lists.formats import FileError, RawRow
from msgctl.lists.header import NoTableError, Reading, has_text
from msgctl.lists.rows import PhoneCells, is_phone
from msgctl.lists.table import Recipients, below_header
from msgctl.text import shorten
from msgctl.values import quote

PEEKED = 4096
"""The first bytes of a file, by which its kind is recognised."""


@contextmanager
def opened(
    file: str,
    stdin: BinaryIO,
    reading: Reading,
    *,
    note: Callable[[str], None] = lambda _: None,
) -> Iterator[Recipients]:
    """Open a file of people; ``-`` is ``stdin``, which stays open.

    ``note`` is called with messages for the user. Raises UsageError if the file is unreadable or not a list, or has no
    header.
    """
    name = name_of(file)
    with ExitStack() as stack:
        try:
            source = cast(io.BufferedReader, stdin) if file == "-" else stack.enter_context(Path(file).open("rb"))
            head = source.peek(PEEKED)
        except (OSError, ValueError) as error:
            path = name if file == "-" else quote(file)
            raise formats.unreadable(path, error) from None
        kinds.refuse(name, source, head)
        if head.startswith(formats.ZIP_MARK):
            from msgctl.lists import sheets, workbook

            recipients = sheets.chosen(stack.enter_context(workbook.sheets(source, name)), name, reading, note)
            yield recipients
        else:
            lines = stack.enter_context(closing(formats.Lines(source, name, head)))
            if not lines.head:
                hint = "It must contain recipients: CSV with a header, JSON Lines, or .xlsx."
                if file == "-":
                    hint += " It can be read only once."
                raise FileError(f"{name} is empty", hint)
            recipients = _in_text(lines, reading)
            yield recipients
            if lines.is_windows_1252:
                note(f"{name} is not UTF-8; reading it as Windows-1252")
        if recipients.damage.note:
            note(recipients.damage.note)


def _in_text(lines: formats.Lines, reading: Reading) -> Recipients:
    """Return the people in CSV, JSON Lines, or a list of numbers. Raises UsageError."""
    name, first = lines.name, lines.head[0].strip()
    if reading.sheet is not None:
        raise FileError(f"{name} is not a workbook, so it has no sheets", "Omit --sheet.")
    if reading.leaves_out and reading.header_row is None and is_phone(first.removeprefix("'"), least=1):
        recipients = Recipients(name, "", None, ["phone"], _listed_numbers(lines), reading)
        recipients.source.columns = ()
        return recipients
    if first.startswith(("{", "[")):
        if reading.header_row is not None:
            raise FileError(f"{name} is JSON Lines, which has no header", "Omit --header-row.")
        is_needed = header.has_phone_word if reading.leaves_out else (lambda _: False)
        raw_rows = formats.json_rows(lines, is_needed)
        unread: list[RawRow] = []
        for line, cells in islice(raw_rows, header.MAX_ABOVE):
            # The last line of an array may be an object, but the others would be lost.
            if isinstance(cells, list) and not first.startswith("["):
                return Recipients(name, "", None, cells, chain(unread, raw_rows), reading)
            unread.append((line, cells))
        raise NoTableError(
            f"Line {unread[0][0]} of {name}: {unread[0][1]}",
            'Each line must be a whole JSON object, for example: {"phone": "573001234567"}',
        )

    def rank(rows: Sequence[RawRow]) -> tuple[int, ...]:
        """Return the rank of a header: no stray quotes, rows as wide as it, a word for phones, then the most cells."""
        rows = [raw_row for raw_row in rows if has_text(raw_row)]
        index = header.find_header(rows, reading.phone_column, (reading.phones or PhoneCells()).number)
        cells = rows[index][1] if rows else ()
        # A heading may contain another delimiter: "Celular (sin espacios, 10 dígitos);Nombre".
        as_wide = sum(len(row) == len(cells) > 1 for _, row in rows[index + 1 :])
        words = max((header.is_phone_word(cell) + header.has_phone_word(cell) for cell in cells), default=0)
        return '"' not in "".join(cells), as_wide, words, sum(map(bool, cells))

    return below_header(formats.csv_rows(lines, rank), name, "", reading)


def _listed_numbers(lines: formats.Lines) -> Iterator[RawRow]:
    """Yield the lines of a list of numbers as rows of one cell."""
    for line in lines:
        lines.size = 0
        yield lines.begin, [text] if (text := line.strip()) else []


def name_of(file: str) -> str:
    """Return the name of a file for messages."""
    return "standard input" if file == "-" else shorten(Path(file).name)
