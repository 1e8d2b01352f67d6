"""The rows of a file of recipients, and the phone numbers in its cells."""

from __future__ import annotations

import re
from typing import NamedTuple

from msgctl import phones
from msgctl.errors import UsageError
from msgctl.jsontext import Number
from msgctl.phones import InvalidPhoneError
from msgctl.text import shorten

MIN_DIGITS = 7
"""Minimum digits of values in a phone column that is found by its content."""
MAX_SHOWN = 40
"""Maximum characters of a phone in a message."""
_DECIMAL = re.compile(r"\+?[0-9]{5,}\.(?:0+|[0-9]{1,2})|[0-9]+(?:[.,][0-9]+)?[eE]\+?[0-9]+", re.ASCII)
_BETWEEN_NUMBERS = re.compile(r"[/,;|&\n]|\s-\s|\s(?:y|e|o|u|or|and)\s|(?<=\d)\s*(?=\+)", re.IGNORECASE)


class Row(NamedTuple):
    """A recipient: its line (from 1), the phone's digits, and the values in the order of the columns."""

    line: int
    phone: str
    values: tuple[str, ...]


class InvalidRow(NamedTuple):
    """A row that cannot be used: its line, the phone as written (cleaned), the reason, and the values if known."""

    line: int
    phone: str
    reason: str
    values: tuple[str, ...] = ()


class PhoneCells:
    """Reads the phones in a file: national numbers belong to ``country``, and ``sms`` refuses fixed lines.

    Without ``check``, the digits are used unchanged, for short codes and test numbers. ``without_country`` counts rows
    that are invalid only because no country is known.
    """

    def __init__(self, country: str | None = None, *, sms: bool = False, check: bool = True) -> None:
        self._reader = phones.Reader(country, sms=sms)
        self._check = check
        self.without_country = 0

    def read(self, text: str) -> str:
        """Return the international number in a cell. Raises UsageError."""
        if self._check and text.isdigit() and (digits := self._reader.quick(text)) is not None:  # the usual case
            return digits
        if not text or text.isspace():
            raise UsageError("no phone number")
        if (count := len(several(text))) > 1:
            raise UsageError(f"{'two' if count == 2 else count} numbers in one cell")
        # Dots in a phone are ignored, so 573001234567.0 would get an additional digit.
        if _DECIMAL.fullmatch(text.strip()) or (isinstance(text, Number) and not text.isdigit()):
            raise UsageError("the phone is not written as a whole number; format its column as text and enter it again")
        try:
            phone = self._reader.read(text) if self._check else phones.as_typed(text)
        except InvalidPhoneError as error:
            self.without_country += error.needs_country
            raise UsageError(f"not a valid phone number: {error.problem}") from None
        if phone.abroad:
            raise UsageError(f"valid only in {phone.abroad}; if that is right, write it with +")
        return phone.digits

    def row(self, line: int, cells: list[str], phone: int) -> Row | InvalidRow:
        """Return the recipient in a row's cells; ``phone`` is the index of its number."""
        try:
            return Row(line, self.read(cells[phone]), tuple(cells))
        except UsageError as error:
            return InvalidRow(line, shorten(cells[phone], MAX_SHOWN), error.message, tuple(cells))


def several(text: str) -> list[str]:
    """Return the numbers in a cell that contains several, such as ``300 123 4567 / 310 987 6543``."""
    if len(text) <= phones.MAX_DIGITS:
        return [text]
    parts = [part.strip() for part in _BETWEEN_NUMBERS.split(text)]
    numbers = [part for part in parts if sum(map(str.isdigit, part)) >= MIN_DIGITS]
    return numbers if len(numbers) == len([*filter(None, parts)]) else [text]


def is_phone(text: str, least: int = MIN_DIGITS) -> bool:
    """Return whether a text is a phone number of this length, or several of them."""
    try:
        return all(len(phones.as_typed(number).digits) >= least for number in several(text))
    except InvalidPhoneError:
        return False
