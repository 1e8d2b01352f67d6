"""Read files of recipients in tests."""

from __future__ import annotations

import io
import re
from dataclasses import replace
from typing import NamedTuple, cast

import pytest

from msgctl.errors import UsageError
from msgctl.lists.header import Reading
from msgctl.lists.reader import opened
from msgctl.lists.rows import InvalidRow, PhoneCells, Recipient

ANA, LUIS, EVA = "573001234567", "573007654321", "573009999999"
BY_PHONE = Reading(phone_column="phone")
UNSHOWN = re.compile(r"[\x00-\x1f\x7f-\x9f\u202e\ud800-\udfff]")


class Broken(io.RawIOBase):
    """A file on a medium that fails after some bytes."""

    def __init__(self, content: bytes, good: int) -> None:
        self._content = io.BytesIO(content)
        self._good = good

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: object, /) -> int:
        if self._content.tell() >= self._good:
            raise OSError(5, "Input/output error")
        return self._content.readinto(cast(bytearray, buffer))


class Outcome(NamedTuple):
    columns: tuple[str, ...]
    phone_column: str
    notes: list[str]
    all_rows: list[Recipient | InvalidRow]
    blank: int
    source: str

    @property
    def rows(self) -> list[Recipient]:
        assert all(isinstance(row, Recipient) for row in self.all_rows), self.all_rows
        return cast(list[Recipient], self.all_rows)

    @property
    def invalid(self) -> InvalidRow:
        (invalid,) = (row for row in self.all_rows if isinstance(row, InvalidRow))
        return invalid


def read(content: bytes | str, phone_column: str | None = "phone", country: str | None = None) -> Outcome:
    return read_from(source(content), Reading(phone_column=phone_column), country)


def source(content: bytes | str) -> io.BufferedReader:
    return io.BufferedReader(io.BytesIO(content if isinstance(content, bytes) else content.encode()))


def read_from(source: io.BufferedReader, reading: Reading = BY_PHONE, country: str | None = None) -> Outcome:
    notes: list[str] = []
    with opened("-", source, replace(reading, phones=PhoneCells(country)), note=notes.append) as recipients:
        read_rows = list(recipients.rows)
        rows = [row for row in read_rows if row is not None]
        columns, blank = tuple(recipients.columns), len(read_rows) - len(rows)
        source_of = str(recipients.source)
    return Outcome(columns, recipients.source.column, notes, rows, blank, source_of)


def left_out(content: bytes | str, country: str | None = None, phone_column: str | None = None) -> list[str]:
    """Return the numbers in a file of people to leave out."""
    reading = Reading(phone_column=phone_column, leaves_out=True, phones=PhoneCells(country))
    with opened("-", source(content), reading) as people:
        numbers = [row.phone for row in people.counted() if isinstance(row, Recipient)]
    assert people.faults.invalid == 0, people.faults.first
    return numbers


def refused(content: bytes | str, phone_column: str | None = "phone", country: str | None = None) -> str:
    """Return the error for a file that is refused; it mentions the file and can be shown."""
    with pytest.raises(UsageError) as caught:
        read(content, phone_column, country)
    assert "standard input" in caught.value.message
    printed = f"{caught.value.message} {caught.value.hint or ''}"
    assert not UNSHOWN.search(printed.replace("\n", " "))
    return printed
