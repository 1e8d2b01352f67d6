"""Read Excel workbooks in a child process with limited memory, because a small file can need hundreds of gigabytes.

The child (`main`) gets the workbook on standard input. Each line of its output is JSON: an array with the text of each
cell of a row, or a string with the reason why it refuses the workbook.
"""

from __future__ import annotations

import io
import json
import os
import re
import resource
import signal
import subprocess
import sys
import zipfile
import zlib
from collections.abc import Generator, Iterable, Iterator
from contextlib import suppress
from datetime import datetime, time
from importlib.util import find_spec
from typing import IO, BinaryIO, cast

from msgctl.errors import UsageError
from msgctl.jobs.formats import MAX_RECORD, Record, unreadable

MAX_SIZE = 2**26
MAX_MEMORY = 2**30
MAX_CPU_SECONDS = 60
MAX_UNPACKED = 2**29
"""Maximum sum of the sizes of all parts of a workbook. A million rows with ten columns need about 500 MB."""
MAX_ROW = 2**20
"""The last row of a sheet in Excel."""
MAX_CELLS = 10_000_000
"""Maximum cells from A1 to the last row and column. python-calamine uses 32 bytes for each, even for empty cells."""
MAX_DIGITS = 15
"""The digits of a number that Excel keeps."""

UNREADABLE = "is not a workbook that can be read"
OUT_OF_MEMORY = f"needs more than {MAX_MEMORY // 2**20:,} MiB of memory, the limit"
OUT_OF_TIME = f"needs more than {MAX_CPU_SECONDS} seconds of processor time, the limit"

_CHUNK = 2**20
_MAX_TAG = 512
_REFERENCE = re.compile(
    rb"""<(?:x:)?(?:c|row)\s                # a cell or a row, as programs write them,
    (?:[^<>]{0,60}?\s)??r=                 # with its reference, such as XFD1048576 or 1048576,
    ["']([A-Za-z]{0,3}+)([0-9]{1,20}+)["']
    [^<>]{0,100}+(?<!/)>                   # and with content, unlike <c r="XFD1" s="1"/>""",
    re.VERBOSE,
)
"""The quantifiers are limited, because otherwise some inputs would take quadratic time."""


def records(source: BinaryIO, name: str) -> Generator[Record]:
    """Yield the rows of the first sheet of a workbook. Raises UsageError."""
    if find_spec("python_calamine") is None:
        from msgctl import extras

        raise UsageError(
            f"{name} is an Excel workbook, and the package python-calamine, which reads them, is not installed",
            f"Install it, or save the file as CSV in UTF-8: {extras.install('campaigns')}",
        )
    with _reader(name) as reader:
        try:
            _copy(source, cast(IO[bytes], reader.stdin), name)
            for number, line in enumerate(cast(IO[bytes], reader.stdout), 1):
                row = json.loads(line) if line.endswith(b"\n") else _ended(reader.wait())
                if isinstance(row, str):
                    raise _refused(name, row)
                yield number, row
            if code := reader.wait():
                raise _refused(name, _ended(code))
        finally:
            reader.kill()
            reader.wait()


def _ended(code: int) -> str:
    """Return why the child process failed."""
    reasons = {-signal.SIGABRT: OUT_OF_MEMORY, -signal.SIGXCPU: OUT_OF_TIME}
    return reasons.get(
        code, f"cannot be read: signal {-code} ended the process that reads it" if code < 0 else UNREADABLE
    )


def _refused(name: str, reason: str) -> UsageError:
    if reason == UNREADABLE:
        return UsageError(f"{name} {reason}", "Save it as .xlsx without a password, or as CSV in UTF-8.")
    return UsageError(f"{name} {reason}", "Copy the recipients to a new workbook, or save them as CSV in UTF-8.")


def _reader(name: str) -> subprocess.Popen[bytes]:
    """Start the child process. It finds modules in the same places as this process. Raises UsageError."""
    try:
        return subprocess.Popen(  # noqa: S603 (this module)
            [sys.executable, "-P", "-c", f"from {__name__} import main; main()"],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            env={**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, sys.path))},
        )
    except OSError as error:
        what = f"Cannot read {name}: the process that reads workbooks does not start: {error.strerror}"
        raise UsageError(what, "Save it as CSV in UTF-8.") from None


def _copy(source: BinaryIO, to: IO[bytes], name: str) -> None:
    """Copy a workbook to the child process. Raises UsageError."""
    size = 0
    try:
        while chunk := source.read(_CHUNK):
            size += len(chunk)
            if size > MAX_SIZE:
                raise UsageError(
                    f"{name} is larger than {MAX_SIZE // 2**20} MiB, the limit for workbooks",
                    "Save it as CSV in UTF-8.",
                )
            to.write(chunk)
    except BrokenPipeError:
        pass  # it ended early; its exit code shows why
    except OSError as error:
        raise unreadable(name, error) from None
    finally:
        with suppress(BrokenPipeError):
            to.close()


# --- the child process


class WorkbookError(Exception):
    """A workbook is refused. The message follows the name of the workbook."""


def main() -> None:
    """Print the rows of the workbook on standard input."""
    _limit(resource.RLIMIT_AS, MAX_MEMORY)
    _limit(resource.RLIMIT_CPU, MAX_CPU_SECONDS)
    _limit(resource.RLIMIT_CORE, 0)
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # after Ctrl-C, the parent process ends this one
    signal.signal(signal.SIGPIPE, signal.SIG_DFL)
    output = sys.stdout.buffer
    try:
        content = io.BytesIO(sys.stdin.buffer.read())
        check(content)
        for row in rows(content):
            output.write(json.dumps(row, ensure_ascii=False).encode() + b"\n")
    except WorkbookError as error:
        output.write(json.dumps(str(error)).encode() + b"\n")
    except MemoryError:
        output.write(json.dumps(OUT_OF_MEMORY).encode() + b"\n")
    output.flush()


def _limit(kind: int, most: int) -> None:
    _, hard = resource.getrlimit(kind)
    with suppress(ValueError, OSError):  # macOS does not limit memory
        resource.setrlimit(kind, (most if hard == resource.RLIM_INFINITY else min(most, hard), hard))


def check(content: BinaryIO) -> None:
    """Check the sizes of a workbook's parts and the references of its cells. Raises WorkbookError."""
    try:
        with zipfile.ZipFile(content) as archive:
            parts = archive.infolist()
            _check_size(sum(part.file_size for part in parts))
            unpacked = 0
            for part in parts:
                part.file_size = sys.maxsize  # the stated size may be wrong, so read to the end
                area = _Area()
                with archive.open(part) as stream:
                    while chunk := stream.read(_CHUNK):
                        unpacked += len(chunk)
                        _check_size(unpacked)
                        area.add(chunk)
    except (zipfile.BadZipFile, zlib.error, EOFError, LookupError, OSError, RuntimeError, ValueError):
        raise WorkbookError(UNREADABLE) from None


def _check_size(size: int) -> None:
    if size > MAX_UNPACKED:
        raise WorkbookError(f"unpacks to more than {MAX_UNPACKED // 2**20} MiB, the limit")


class _Area:
    """The cells of a sheet from A1 to the last row and column with content."""

    def __init__(self) -> None:
        self._rest = b""
        self._columns: set[bytes] = set()
        self._last_row = self._references = 0

    def add(self, chunk: bytes) -> None:
        """Count the cells in the next chunk of the sheet's XML. Raises WorkbookError if there are too many."""
        text = self._rest + chunk
        self._rest = text[max(text.rfind(b"<"), len(text) - _MAX_TAG, 0) :]
        found = _REFERENCE.findall(text)
        self._references += len(found)
        last = max((int(row) for row in {row for _, row in found}), default=0)
        if last > MAX_ROW:
            raise WorkbookError(f"has a row {last:,}; the last row of a sheet is {MAX_ROW:,}")
        self._columns.update({column for column, _ in found})
        self._last_row = max(self._last_row, *(int(row) for row in {row for column, row in found if column}), 0)
        area = self._last_row * max(map(_number, self._columns), default=0)
        cells = max(area, self._references - MAX_ROW)  # rows also have references
        if cells > MAX_CELLS:
            raise WorkbookError(f"has {cells:,} cells up to the last row and column; the limit is {MAX_CELLS:,}")


def _number(column: bytes) -> int:
    """Return the number of a column: 1 for A, 28 for AB."""
    number = 0
    for letter in column.upper():
        number = number * 26 + letter - ord("A") + 1
    return number


def rows(content: BinaryIO) -> Iterator[list[str]]:
    """Yield the rows of the first sheet of a workbook. Raises WorkbookError and MemoryError."""
    from python_calamine import CalamineWorkbook

    content.seek(0)
    try:
        sheet = CalamineWorkbook.from_filelike(content).get_sheet_by_index(0)
        for number, row in enumerate(sheet.iter_rows(), 1):
            yield _texts(row, number)
    except (MemoryError, WorkbookError, GeneratorExit):
        raise
    except BaseException:  # noqa: BLE001 (a panic of Rust is not an Exception)
        raise WorkbookError(UNREADABLE) from None


def _texts(row: Iterable[object], number: int) -> list[str]:
    """Return the text of each cell of a row. Raises WorkbookError."""
    cells = [_cell_text(cell) for cell in row]
    if sum(map(len, cells)) > MAX_RECORD:
        raise WorkbookError(f"has more than {MAX_RECORD:,} characters in row {number:,}, the limit")
    return cells


def _cell_text(cell: object) -> str:
    """Return a cell as Excel shows it: whole numbers without a decimal point, dates as 2026-12-01."""
    if isinstance(cell, bool):
        return "true" if cell else "false"
    if isinstance(cell, float):
        return f"{cell:.{MAX_DIGITS}g}"
    if isinstance(cell, datetime):
        return cell.date().isoformat() if cell.time() == time() else cell.isoformat(" ")
    return str(cell)
