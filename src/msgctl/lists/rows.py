"""The rows of a file of people, and the phone numbers in its cells."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from typing import NamedTuple

from msgctl import phones
from msgctl.errors import UsageError
from msgctl.jsontext import Number
from msgctl.lists.formats import Nested
from msgctl.phones import InvalidPhoneError
from msgctl.text import normalized, shorten

MIN_DIGITS = 7
"""Minimum digits of a text that may be a phone number."""
MAX_SHOWN = 40
"""Maximum characters of a phone in a message."""

MAX_SEARCHED = 200
"""The longest text in which libphonenumber looks for numbers."""

_WHOLE = re.compile(r"(\+?[0-9]{5,})\.0+", re.ASCII)
"""A whole number with decimals, as some programs write it: 573001234567.0."""
_DECIMAL = re.compile(r"\+?[0-9]{5,}\.[0-9]{1,2}", re.ASCII)
_SCIENTIFIC = re.compile(r"(?<![0-9])[0-9]+(?:[.,][0-9]+)?[eE]\+?[0-9]+", re.ASCII)
_DATE = r"[0-9]{4}[-.][0-9]{1,2}[-.][0-9]{1,2}|[0-9]{1,2}[-.][0-9]{1,2}[-.][0-9]{4}"
_DATE_WITHIN = re.compile(f"(?<![0-9])(?:{_DATE})(?![0-9])", re.ASCII)
_DATE_OR_DECIMAL = re.compile(f"{_DATE}|{_DECIMAL.pattern}", re.ASCII)
_BETWEEN_NUMBERS = re.compile(r"[/,;|&\n]|:::|\s-\s|\s(?:y|e|o|u|or|and)\s|(?<=\d)\s*(?=\+)", re.IGNORECASE)
_BETWEEN_RUNS = re.compile(r"[^\W\d_]+|(?=\+)")
"""A word, or the position before a ``+``. No number continues across either."""
_DIGITS = re.compile(r"\+?\d+")
_ZEROS = re.compile(r"(?<=[0-9]{5})\.0+(?![0-9])", re.ASCII)
"""The decimals of a whole number, as in `_WHOLE`, within a text."""
_TOTALS = re.compile(r"\s*(?:sub|gran |grand )?(?:total|totales|totals|totais|suma|soma|sum|summe)\b", re.IGNORECASE)

ERROR_VALUES = frozenset(
    (
        # English, which programs also write
        "#NULL!", "#DIV/0!", "#VALUE!", "#REF!", "#NAME?", "#NUM!", "#N/A", "#GETTING_DATA", "#SPILL!", "#CALC!",
        "#FIELD!", "#BLOCKED!", "#CONNECT!", "#UNKNOWN!", "#BUSY!", "#PYTHON!", "#EXTERNAL!", "#TIMEOUT!", "#ERROR!",
        # Spanish
        "#¡NULO!", "#¡DIV/0!", "#¡VALOR!", "#¡REF!", "#¿NOMBRE?", "#¡NUM!", "#N/D", "#OBTENIENDO_DATOS", "#¡CALC!",
        "#¡DESBORDAMIENTO!", "#¡CAMPO!", "#¡BLOQUEADO!", "#¡CONECTAR!", "#¡DESCONOCIDO!", "#¡OCUPADO!", "#¿CAMPO!",
        # Portuguese
        "#NULO!", "#VALOR!", "#NOME?", "#NÚM!", "#DESPEJAR!", "#CAMPO!", "#OBTENDO_DADOS", "#A_OBTER_DADOS",
        "#BLOQUEADO!", "#CONECTAR!", "#DESCONHECIDO!",
        # French
        "#NUL!", "#VALEUR!", "#NOM?", "#NOMBRE!", "#PROPAGATION!", "#EPARS!", "#CHAMP!", "#BLOQUE!", "#INCONNU!",
        "#CONNEXION!", "#OCCUPE!", "#CHARGEMENT_DONNEES",
        # German
        "#WERT!", "#BEZUG!", "#ZAHL!", "#NV", "#ÜBERLAUF!", "#KALK!", "#FELD!", "#GESPERRT!", "#VERBINDEN!",
        "#UNBEKANNT!", "#DATEN_ABRUFEN",
        # Italian
        "#NULLO!", "#VALORE!", "#RIF!", "#ESPANSIONE!",
    )
)  # fmt: skip
"""The error values of Excel and Google Sheets. LibreOffice also writes ``Err:502``."""
_LIBREOFFICE_ERROR = re.compile(r"(?:Err|Fehler|Erro|Erreur)[.: ]{1,2}5[0-9]{2}", re.IGNORECASE | re.ASCII)


class Recipient(NamedTuple):
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


def is_error_value(text: str) -> bool:
    """Return whether a cell is an error value of a spreadsheet: #N/A, #¡VALOR!."""
    text = text.strip()
    if not text.startswith(("#", "E", "e", "F")):  # the usual case
        return False
    return normalized(text) in ERROR_VALUES or _LIBREOFFICE_ERROR.fullmatch(text) is not None


class PhoneCells:
    """Reads the phones in a file. National numbers belong to ``country``.

    ``sms`` refuses numbers that cannot be mobiles. Without ``check``, the digits are used unchanged, for short codes
    and test numbers. ``without_country`` counts rows that are invalid only because no country is known.
    ``not_in_country`` counts rows with a number without ``+`` that is not valid in the known country.
    """

    def __init__(self, country: str | None = None, *, sms: bool = False, check: bool = True) -> None:
        self.country = country
        self._reader = phones.Reader(country, sms=sms)
        self._any_kind = phones.Reader(country) if sms else self._reader
        self._check = check
        self.without_country = 0
        self.not_in_country = 0

    def read(self, text: str) -> str:
        """Return the international number in a cell. Raises UsageError."""
        if self._check and text.isdigit() and (digits := self._reader.quick(text)) is not None:  # the usual case
            return digits
        if not text or text.isspace():
            raise UsageError("no phone number")
        if is_error_value(text):
            raise UsageError(f"the phone is the error value {text.strip()}")
        if (count := len(several(text))) > 1:
            raise _too_many(count)
        if whole := _WHOLE.fullmatch(text.strip()):
            text = whole[1]
        # Dots in a phone are ignored, so 573001234567.5 would get an additional digit.
        if _SCIENTIFIC.fullmatch(text.strip()):
            what = "the phone is in scientific notation: Excel dropped its digits"
            raise UsageError(f"{what}; use the original workbook, or write all digits")
        if _DECIMAL.fullmatch(text.strip()) or (isinstance(text, Number) and not text.isdigit()):
            raise UsageError("the phone is not a whole number")
        try:
            phone = self._reader.read(text) if self._check else phones.as_typed(text)
        except InvalidPhoneError as error:
            if sum(map(str.isdigit, text)) >= 2 * MIN_DIGITS and (count := len(self._all_within(text))) > 1:
                raise _too_many(count) from None
            self.without_country += error.needs_country
            self.not_in_country += error.not_in_country
            raise UsageError(f"not a valid phone number: {error.problem}") from None
        if phone.abroad:
            self.not_in_country += 1
            raise UsageError(f"valid only in {phone.abroad}; if that is right, write it with +")
        return phone.digits

    def row(self, line: int, cells: list[str], phone: int, own_phone: int | None) -> Recipient | InvalidRow:
        """Return the recipient in a row's cells; ``phone`` is the index of its number.

        ``own_phone`` is the index of a number that msgctl wrote: its digits are international.
        """
        text = cells[phone]
        if phone == own_phone and text.isdigit():
            text = f"+{text}"
        try:
            return Recipient(line, self.read(text), tuple(cells))
        except UsageError as error:
            reason = error.message
            if any(map(_TOTALS.match, cells)):
                reason += "; it seems to be a row of totals"
            return InvalidRow(line, shorten(cells[phone], MAX_SHOWN), reason, tuple(cells))

    def people(
        self, line: int, cells: list[str], columns: Sequence[int], own_phone: int | None
    ) -> Iterator[Recipient | InvalidRow]:
        """Yield each person in a row of people to leave out, or an invalid row if it has no number in any column."""
        numbers: dict[str, None] = {}
        fault: InvalidRow | None = None
        before, before_in_country = self.without_country, self.not_in_country
        for index in columns:
            row = self.row(line, cells, index, own_phone)
            if isinstance(row, Recipient):
                numbers[row.phone] = None
                continue
            numbers.update(dict.fromkeys(self.numbers(cells[index])))
            if fault is None or (row.phone and not fault.phone):
                fault = row
        needs_country = not numbers and self.without_country > before
        self.without_country = before + needs_country
        self.not_in_country = before_in_country + (not numbers and self.not_in_country > before_in_country)
        yield from (Recipient(line, number, tuple(cells)) for number in numbers)
        has_unread = any(isinstance(cells[index], Nested) for index in columns)
        if fault is not None and (has_unread or not numbers):
            yield fault

    def numbers(self, text: str) -> list[str]:
        """Return every valid number in a cell."""
        numbers = []
        for part in _BETWEEN_NUMBERS.split(text):
            try:
                numbers.append(self.read(part))
            except UsageError:
                numbers += self._all_within(part)
        return numbers

    def _all_within(self, text: str) -> list[str]:
        """Return the valid numbers in a text: ``00573209998877 (mamá)``, ``300 123 4567 3109876543``."""
        if sum(map(str.isdigit, text)) < MIN_DIGITS or len(text) > MAX_SEARCHED or _SCIENTIFIC.search(text):
            return []
        numbers = []
        for written in _BETWEEN_RUNS.split(_ZEROS.sub("", text)):
            groups = _DIGITS.findall(written)
            while groups:
                for end in range(len(groups), 0, -1):
                    if number := self.number("".join(groups[:end])):
                        numbers.append(number)
                        break
                groups = groups[end:]
        return numbers

    def first_within(self, text: str) -> str:
        """Return the first valid number of any kind that a cell is or contains, if any; otherwise empty."""
        text = text.strip()
        if (number := self.number(text)) or _DATE_OR_DECIMAL.fullmatch(text) or len(text) > MAX_SEARCHED:
            return number
        import phonenumbers

        text = _DATE_WITHIN.sub(" ", text)  # in Guatemala, 31-12-2024 would be a mobile
        for match in phonenumbers.PhoneNumberMatcher(text, self.country):
            return phonenumbers.format_number(match.number, phonenumbers.PhoneNumberFormat.E164)[1:]
        numbers = self._all_within(text)
        return numbers[0] if len(numbers) > 1 else ""

    def number(self, text: str) -> str:
        """Return the first valid number of any kind in a cell; empty if it is not a phone."""
        text = several(text.strip())[0]
        if whole := _WHOLE.fullmatch(text):
            text = whole[1]
        digits = sum(map(str.isdigit, text))
        if not MIN_DIGITS <= digits <= phones.MAX_DIGITS + 2 or _DATE_OR_DECIMAL.fullmatch(text):
            return ""
        try:
            phone = self._any_kind.read(text) if self._check else phones.as_typed(text)
        except InvalidPhoneError:
            return ""
        return "" if phone.abroad else phone.digits

    def may_be_number(self, text: str) -> bool:
        """Return whether a cell is a phone, or would be one in the right country if no country is known."""
        if self.number(text):
            return True
        text = text.strip()
        return self.country is None and is_phone(text) and not _DATE_OR_DECIMAL.fullmatch(text)


def _too_many(count: int) -> UsageError:
    return UsageError(f"{'two' if count == 2 else count} numbers in one cell")


def several(text: str) -> list[str]:
    """Return the numbers in a cell that contains several, such as ``300 123 4567 / 310 987 6543``."""
    if len(text) <= phones.MAX_DIGITS:
        return [text]
    parts = [part.strip() for part in _BETWEEN_NUMBERS.split(text)]
    numbers = [part for part in parts if sum(map(str.isdigit, part)) >= MIN_DIGITS]
    return numbers if len(numbers) > 1 and len(numbers) == len([*filter(None, parts)]) else [text]


def is_phone(text: str, least: int = MIN_DIGITS) -> bool:
    """Return whether a text is one or more phone numbers of at least ``least`` digits."""
    try:
        return all(len(phones.as_typed(number).digits) >= least for number in several(text))
    except InvalidPhoneError:
        return False
