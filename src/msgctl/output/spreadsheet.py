"""Write rows to a file: an Excel workbook, or csv."""

from __future__ import annotations

import os
import re
import stat
from collections.abc import Iterable, Iterator, Sequence
from contextlib import closing, contextmanager, suppress
from datetime import datetime, tzinfo
from importlib.util import find_spec
from pathlib import Path
from tempfile import TemporaryDirectory, mkstemp
from typing import Any, BinaryIO

from msgctl import files
from msgctl.errors import ConfigurationError, UsageError, install_hint
from msgctl.output import fields
from msgctl.output.fields import text_of
from msgctl.output.result import Document
from msgctl.text import shorten

MAX_ROWS = 2**20
MAX_COLUMNS = 2**14
MAX_CELL = 2**15 - 1
"""UTF-16 code units in a cell of Excel."""

USE_CSV = "Use csv: --save FILE.csv"

TEXTS = ("phone", "id", "status", "state", "error", "reason", "message")
"""The columns of msgctl that are always text, even if it looks like a date."""
_TIME = re.compile(r"(?!1900)(?:19|[2-9]\d)\d\d-\d\d-\d\d(?: \d\d:\d\d:\d\d)?", re.ASCII)
"""A date or time as `msgctl.lists.workbook` reads it from a cell. Excel counts the days of 1900 incorrectly."""


def check_target(path: Path) -> None:
    """Check that a file can be written to a path. Raises UsageError and ConfigurationError."""
    if path.suffix.lower() not in (".xlsx", ".csv"):
        raise UsageError(f'--save must end in .xlsx or .csv, not "{shorten(str(path))}"')
    with files.explained("write", path), suppress(FileNotFoundError):
        if not path.parent.exists():
            what = f"The directory {files.shown(path.parent)} does not exist"
            raise ConfigurationError(what, "Create it, or change --save.")
        if not stat.S_ISREG(mode := path.lstat().st_mode):
            kind = "a device"
            if stat.S_ISDIR(mode):
                kind = "a directory"
            elif stat.S_ISLNK(mode):
                kind = "a symbolic link"
            raise UsageError(f'--save must be a regular file, and "{shorten(str(path))}" is {kind}')
    if is_workbook(path) and not find_spec("xlsxwriter"):
        what = "--save FILE.xlsx needs the package xlsxwriter, which is not installed"
        raise UsageError(what, f"{USE_CSV}. {install_hint('xlsxwriter>=3.1', 'Or install the package')}")


def is_workbook(path: Path) -> bool:
    return path.suffix.lower() == ".xlsx"


def save(
    path: Path, columns: Sequence[str], rows: Iterable[Document], *, header: bool = True, zone: tzinfo | None = None
) -> int:
    """Write these columns of rows to a file, completely or not at all; return the number of rows.

    The times of a workbook are in ``zone``; None is this machine's time zone. A new file has the default permissions
    (umask); a file that is replaced keeps its permissions. Raises UsageError and ConfigurationError.
    """
    check_target(path)
    with files.explained("write", path, "nothing was changed"), _replacing(path) as file:
        if is_workbook(path):
            return _workbook(file, columns, rows, header, zone)
        number = 0
        for line in fields.lines(fields.csv_line, columns, rows, header=header):
            file.write(line.encode())
            number += 1
        return number - header


@contextmanager
def _replacing(path: Path) -> Iterator[BinaryIO]:
    """Open a new file that replaces another one at the end of the block, unless the block fails. Raises OSError."""
    descriptor, name = mkstemp(prefix=".msgctl-", dir=path.parent)
    try:
        with os.fdopen(descriptor, "wb") as file:
            yield file
            file.flush()
            os.fchmod(descriptor, _mode(path))
            os.fsync(descriptor)
        Path(name).replace(path)
    except BaseException:
        Path(name).unlink(missing_ok=True)
        raise


def _mode(path: Path) -> int:
    """Return the permissions of a file, or the default permissions (umask) of a new one."""
    with suppress(FileNotFoundError):
        return stat.S_IMODE(path.lstat().st_mode) & 0o777
    os.umask(mask := os.umask(0o077))  # the umask can only be read by setting it
    return 0o666 & ~mask


def _workbook(
    file: BinaryIO, columns: Sequence[str], rows: Iterable[Document], header: bool, zone: tzinfo | None
) -> int:
    """Write a workbook with one sheet, row by row. Raises UsageError for more than Excel can read, and OSError."""
    from xlsxwriter import Workbook
    from xlsxwriter.exceptions import FileCreateError, FileSizeError

    if len(columns) > MAX_COLUMNS:
        raise UsageError(f"A sheet of Excel has at most {MAX_COLUMNS:,} columns, not {len(columns):,}", USE_CSV)
    try:
        # Closing the workbook also removes its temporary files.
        with (
            TemporaryDirectory() as directory,
            closing(Workbook(file, {"constant_memory": True, "tmpdir": directory})) as book,
        ):
            return _fill(book, columns, rows, header, zone)
    except FileCreateError as error:  # it contains the OSError that is the cause, such as a full disk
        raise error.args[0] from None
    except FileSizeError:
        raise UsageError("The rows are too large for a workbook", USE_CSV) from None


def _fill(book: Any, columns: Sequence[str], rows: Iterable[Document], header: bool, zone: tzinfo | None) -> int:
    sheet = book.add_worksheet()
    sheet.set_column(0, len(columns) - 1, 18)
    if "message" in columns:
        index = columns.index("message")
        sheet.set_column(index, index, 60)
    sheet.ignore_errors({"number_stored_as_text": f"A1:XFD{MAX_ROWS}"})
    day, time = (book.add_format({"num_format": form}) for form in ("yyyy-mm-dd", "yyyy-mm-dd hh:mm:ss"))
    if header:
        sheet.freeze_panes(1, 0)
        bold = book.add_format({"bold": True})
        for index, name in enumerate(columns):
            sheet.write_string(0, index, _fitting(name, name), bold)
    number = 0
    for number, row in enumerate(rows, 1):
        line = number if header else number - 1
        if line == MAX_ROWS:
            raise UsageError(f"A sheet of Excel has at most {MAX_ROWS:,} rows, and there are more", USE_CSV)
        for index, name in enumerate(columns):
            value = row.get(name)
            text = text_of(value)
            if isinstance(value, (int, float)):
                sheet.write_number(line, index, value)
            elif name not in TEXTS and (moment := _moment(text, zone)) is not None:
                form = time
                if len(text) == len("2026-12-01"):
                    form = day
                sheet.write_datetime(line, index, moment, form)
            elif text:
                sheet.write_string(line, index, _fitting(text, name))
    if header:
        sheet.autofilter(0, 0, number, len(columns) - 1)
    return number


def _moment(text: str, zone: tzinfo | None) -> datetime | None:
    """Return the time in a text, without its zone; None if the text is not a time. A time of msgctl ends in Z."""
    if not _TIME.fullmatch(text.replace("T", " ").removesuffix("Z")):
        return None
    try:
        moment = datetime.fromisoformat(text)
    except ValueError:  # there is no 30 February
        return None
    if moment.tzinfo is not None:
        moment = moment.astimezone(zone).replace(tzinfo=None)
    return moment


def _fitting(text: str, column: str) -> str:
    """Return the clean text of a cell. Raises UsageError if it is too long for Excel."""
    cell = fields.clean_lines(text)
    if len(cell) * 2 > MAX_CELL and len(cell.encode("utf-16-le")) // 2 > MAX_CELL:
        what = f"A cell of Excel has at most {MAX_CELL:,} characters, and one in the column {shorten(column)} has more"
        raise UsageError(what, USE_CSV)
    # Without shared strings, xlsxwriter copies a string of rich text as XML, which may contain a formula.
    return f"{cell} " if cell.startswith("<r>") else cell
