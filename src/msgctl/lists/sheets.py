"""Choose the sheet of a workbook that has the recipients."""

from __future__ import annotations

import shlex
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from typing import TYPE_CHECKING

from msgctl.lists.faults import MAX_NAMED, rows_left_out
from msgctl.lists.formats import FileError
from msgctl.lists.header import NoTableError, Reading, find_column
from msgctl.lists.rows import InvalidRow, Recipient
from msgctl.lists.table import Recipients, below_header
from msgctl.text import plural, some_of
from msgctl.values import quote

if TYPE_CHECKING:
    from msgctl.lists.workbook import Sheet


def chosen(sheets: Iterator[Sheet], name: str, reading: Reading, note: Callable[[str], None]) -> Recipients:
    """Return the people in the sheet of --sheet, or in the only visible sheet with recipients. Raises UsageError."""
    names: list[str] = []
    unsure: list[Recipients] = []
    last: Recipients | FileError | None = None
    for sheet in sheets:
        names.append(sheet.name)
        if reading.sheet is not None and find_column(reading.sheet, [sheet.name]) is None:
            continue
        try:
            last = table = _table(sheet, name, reading)
        except NoTableError as error:
            last = error
            continue
        if table.is_empty:
            continue
        if not table.is_list and reading.sheet is None:
            deque(table.read(), maxlen=0)  # it may be the only sheet with phones
            unsure.append(table)
            continue
        _refuse_hidden(sheet, name, reading, note)
        _note_formulas(sheet, name, note)
        table.rows = _rows(table, sheets, name, reading)
        return table
    if reading.sheet is not None and last is None:
        what = f"{name} has no visible sheet {quote(reading.sheet)}"
        raise FileError(what, f"Its sheets: {_quoted(names)}")
    if len(unsure) == 1 and unsure[0].listed_phones():
        unsure[0].check()
    if len(names) > 1 and reading.sheet is None:
        listed = [line for table in unsure for line in table.listed_phones()]
        what = f"None of the visible sheets of {name} has recipients: {_quoted(names)}"
        use = "use --sheet and --phone-column"
        if reading.skip_hidden is None:
            use = "save the sheet with the people as a file, and use --phone-column"
        hint = f"One sheet must have a phone column and rows. Otherwise, {use}."
        raise FileError("\n".join([what, *listed]), hint)
    if last is None:
        raise FileError(f"{name} has no visible sheet")
    if isinstance(last, FileError):
        raise last
    return last


def _table(sheet: Sheet, name: str, reading: Reading) -> Recipients:
    raw_rows = sheet.rows
    if reading.skip_hidden:
        raw_rows = (raw_row for raw_row in raw_rows if raw_row[0] not in sheet.hidden)
    return below_header(raw_rows, name, sheet.name, reading)


def _refuse_hidden(sheet: Sheet, name: str, reading: Reading, note: Callable[[str], None]) -> None:
    """Raise FileError for rows that Excel hides, or print a note if they are left out."""
    if not sheet.hidden:
        return
    if reading.skip_hidden:
        note(rows_left_out(len(sheet.hidden), "hidden", name))
        return
    hint = "Show hidden rows in Excel, or leave them out with --skip-hidden."
    if reading.skip_hidden is None:
        hint = "Show hidden rows in Excel: without them, a person would get the message."
    elif reading.leaves_out:
        hint = "Show hidden rows in Excel. With --skip-hidden, these people are left out, and would get messages."
    noun = "row" if len(sheet.hidden) == 1 else "rows"
    where = f"sheet {quote(sheet.name)}, {noun} {some_of([str(row) for row in sorted(sheet.hidden)])}"
    what = f"{name} has {plural(len(sheet.hidden), 'row')} that Excel hides, by hand or by a filter ({where})"
    raise FileError(what, hint)


def _note_formulas(sheet: Sheet, name: str, note: Callable[[str], None]) -> None:
    """Print a note about formulas without a result. A program that is not a spreadsheet writes them."""
    if sheet.formulas:
        count = plural(sheet.formulas, "formula")
        note(
            f"{name} has {count} without a result, first in {sheet.first_formula}: msgctl reads an empty cell. "
            "Open the file in Excel and save it."
        )


def _rows(
    table: Recipients, others: Iterator[Sheet], name: str, reading: Reading
) -> Iterator[Recipient | InvalidRow | None]:
    """Yield the rows. Raises UsageError if another sheet has recipients, too."""
    yield from table.read()
    names = [table.source.sheet]
    if reading.sheet is None:
        for sheet in others:
            with suppress(NoTableError):
                other = _table(sheet, name, reading)
                if other.is_list and not other.is_empty:
                    names.append(sheet.name)
    if len(names) > 1:
        what = f"{len(names)} visible sheets of {name} have recipients: {_quoted(names)}"
        hint = f"Choose one of them, for example: --sheet {shlex.quote(names[0])}"
        if reading.skip_hidden is None:
            hint = "Save the sheets with people to leave out as files, and add --exclude for each file."
        raise FileError(what, hint)
    table.check()


def _quoted(names: Sequence[str]) -> str:
    return some_of([*map(quote, names)], MAX_NAMED)
