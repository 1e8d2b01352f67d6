"""Numbers that a job must not send to: millions of them, in little memory."""

from __future__ import annotations

import os
import re
from array import array
from bisect import bisect_left, bisect_right
from collections.abc import Iterable, Iterator
from itertools import islice
from tempfile import TemporaryFile
from typing import BinaryIO

from msgctl.errors import ConfigurationError, UsageError
from msgctl.jobs.decode import decoded
from msgctl.jobs.reader import InvalidRow, PhoneCells, head_of, opened
from msgctl.phones import InvalidPhoneError, Reader
from msgctl.storage.files import MAKE_ROOM
from msgctl.text import shorten

_RUN = 1 << 17
"""Numbers that are sorted in memory at once: 5 MiB."""
_SAMPLE = 1 << 10
"""One number in so many of each run is kept in memory."""
_BLOCK = 512
"""Numbers that one look-up reads: 4 KiB."""
_SIZE = 8
_NUMBER = re.compile(r"[\s+0-9().-]*[0-9][\s+0-9().-]*", re.ASCII)


class NumberSet:
    """A set of phone numbers, as strings of digits, in a temporary file that only this process can see.

    `add` all of them first, then `seal` it, then ask. Raises ConfigurationError if the disk is full.
    """

    def __init__(self) -> None:
        try:
            self._file = TemporaryFile()  # noqa: SIM115 (closed by `close`)
        except OSError as error:
            raise _no_room(error) from error
        self._waiting: list[int] = []
        self._runs: list[int] = []
        """The size of each sorted run in the file."""
        self._samples: list[int] = []
        self._index = array("q")
        """The first number of each block of the sorted file."""

    def close(self) -> None:
        self._file.close()

    def add(self, phones: Iterable[str]) -> int:
        """Add numbers, and return how many there were."""
        rest = iter(phones)
        added = 0
        while chunk := list(islice(map(_number, rest), _RUN - len(self._waiting))):
            added += len(chunk)
            self._waiting += chunk
            if len(self._waiting) >= _RUN:
                self._spill()
        return added

    def seal(self) -> None:
        """Sort the whole set."""
        self._spill()
        try:
            merged = TemporaryFile()  # noqa: SIM115
            pending = array("q")
            for part in self._merged():
                pending.extend(part)
                whole = len(pending) - len(pending) % _BLOCK
                self._index.extend(pending[:whole:_BLOCK])
                merged.write(pending[:whole].tobytes())
                del pending[:whole]
            self._index.extend(pending[:1])
            merged.write(pending.tobytes())
            merged.flush()
        except OSError as error:
            raise _no_room(error) from error
        self._file.close()
        self._file = merged

    def __contains__(self, phone: str) -> bool:
        number = _number(phone)
        place = bisect_right(self._index, number) - 1
        if place < 0:
            return False
        block = array("q", os.pread(self._file.fileno(), _BLOCK * _SIZE, place * _BLOCK * _SIZE))
        found = bisect_left(block, number)
        return found < len(block) and block[found] == number

    def _spill(self) -> None:
        """Write the waiting numbers as one sorted run."""
        self._waiting.sort()
        self._runs.append(len(self._waiting))
        self._samples += self._waiting[::_SAMPLE]
        try:
            self._file.write(array("q", self._waiting).tobytes())
            self._file.flush()
        except OSError as error:
            raise _no_room(error) from error
        self._waiting = []

    def _merged(self) -> Iterator[list[int]]:
        """Yield all numbers in order, a range at a time that holds some from every run."""
        self._samples.sort()
        runs = []
        start = 0
        for size in self._runs:
            runs.append(_Run(self._file.fileno(), start, size))
            start += size
        for limit in self._samples[64::64]:
            yield sorted(number for run in runs for number in run.below(limit))
        yield sorted(number for run in runs for number in run.below(None))


class Exclusions:
    """The numbers that a job leaves out, each with a reason."""

    def __init__(self) -> None:
        self._sets: list[tuple[str, NumberSet]] = []

    def add(self, reason: str, phones: Iterable[str]) -> None:
        """Leave out some numbers. Raises what reading them raises, and ConfigurationError if the disk is full."""
        numbers = NumberSet()
        self._sets.append((reason, numbers))
        numbers.add(phones)
        numbers.seal()

    def reason(self, phone: str) -> str | None:
        """Return why a number is left out; None if it is not."""
        return next((reason for reason, numbers in self._sets if phone in numbers), None)

    def close(self) -> None:
        for _, numbers in self._sets:
            numbers.close()


def numbers_in(source: BinaryIO, name: str, country: str | None, phone_column: str | None = None) -> Iterator[str]:
    """Yield the numbers in a file: one per line, or any file of recipients.

    ``name`` is what messages call the file, ``country`` is that of national numbers. Raises UsageError for a number
    that is not valid.
    """
    if not _is_list(head_of(source)):
        yield from _from_recipients(source, name, PhoneCells(country), phone_column)
        return
    reader = Reader(country)
    with decoded(source, shorten(name)) as text:
        for line, content in enumerate(text.lines(), 1):
            digits = reader.quick(content)
            if digits is None and content.strip():
                try:
                    digits = reader.read(content.strip()).digits
                except InvalidPhoneError as error:
                    raise UsageError(f"Line {line} of {text.name}: {error.what}", error.hint) from None
            if digits is not None:
                yield digits


def _is_list(head: bytes) -> bool:
    """Return whether the first line that is not blank is a phone number and nothing else."""
    lines = head.decode("latin-1").removeprefix("\u00ef\u00bb\u00bf").splitlines()
    return _NUMBER.fullmatch(next((line for line in lines if line.strip()), "")) is not None


def _from_recipients(source: BinaryIO, name: str, cells: PhoneCells, phone_column: str | None) -> Iterator[str]:
    with opened(source, name, phone_column, cells) as rows:
        for row in rows:
            if isinstance(row, InvalidRow):
                raise UsageError(f"Line {row.line} of {shorten(name)}: {row.phone}: {row.reason}", "Fix or remove it.")
            yield row.phone


class _Run:
    """A sorted part of the file, read from its beginning to its end."""

    def __init__(self, descriptor: int, start: int, size: int) -> None:
        self._descriptor = descriptor
        self._next, self._end = start * _SIZE, (start + size) * _SIZE
        self._read = array("q")

    def below(self, limit: int | None) -> array[int]:
        """Return the numbers below a limit; for None, all the rest."""
        while self._next < self._end and (limit is None or not self._read or self._read[-1] < limit):
            block = os.pread(self._descriptor, min(_SAMPLE * _SIZE, self._end - self._next), self._next)
            self._next += len(block)
            self._read.frombytes(block)
        cut = len(self._read) if limit is None else bisect_left(self._read, limit)
        found, self._read = self._read[:cut], self._read[cut:]
        return found


def _number(phone: str) -> int:
    """Return the digits of a phone as a number; the 1 before them keeps leading zeros."""
    return int(f"1{phone}")


def _no_room(error: OSError) -> ConfigurationError:
    return ConfigurationError(f"Cannot keep the excluded numbers: {error.strerror or error}", MAKE_ROOM)
