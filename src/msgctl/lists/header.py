"""The header of a file of people: its row, and the columns with the phones.

Both follow from headings, never from the values in a column.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from itertools import chain, dropwhile, islice

from msgctl.lists.formats import FileError, RawRow, unmarked
from msgctl.lists.rows import PhoneCells
from msgctl.text import normalized, shorten
from msgctl.values import quote

MAX_ABOVE = 20
"""Rows at the beginning of a file that are searched for the header."""

WORDS = (
    "phone", "phones", "telephone", "telephones", "tel", "mobile", "mobiles", "cell", "cellphone", "cellular", "msisdn",
    "whatsapp", "telefono", "telefonos", "celular", "celulares", "cel", "cels", "movil", "moviles", "telf", "tlf",
    "tfno", "telef", "fono", "fonos", "wasap", "wsp", "wpp", "telefone", "telefones", "telemovel", "telemoveis", "fone",
    "fones", "portable", "gsm", "cellulaire", "telefon", "handy", "mobil", "mobiltelefon", "handynummer",
    "telefonnummer", "mobilnummer", "cellulare", "telefonino",
)  # fmt: skip
"""The words for phones, without accents. In any case, and with or without accents, they mark a column of phones."""
_STEMS = re.compile("phone|telefon|celular|whatsapp|msisdn")
"""The words that also count within a longer word: phonenumber, telefonocliente."""
_BESIDE = frozenset("number numbers numero numeros num nro no nr n o de del do of".split())
"""Words that may surround a word for phones without changing its meaning: phone number, N.º de celular."""
_PARTS = re.compile("[a-z]+")
_CAMEL_CASE = re.compile("(?<=[a-z])(?=[A-Z])")


class NoTableError(FileError):
    """The file or sheet has no header that can be used."""


@dataclass(frozen=True)
class Reading:
    """How a file is read. msgctl finds the sheet, the row of the header and the phone column if they are None.

    With ``skip_hidden``, rows that Excel hides are left out; otherwise they are an error. ``skip_hidden``
    is None if no option changes this, as for a file of --exclude. With ``is_optional``, the file may lack the column
    ``phone_column``; the header then determines the column. With ``leaves_out``, the file lists people to leave out:
    all its phone columns are read, and all numbers in a cell. Without ``phones``, the file needs no phone column, and
    the phone of each row is empty.
    """

    sheet: str | None = None
    header_row: int | None = None
    phone_column: str | None = None
    skip_hidden: bool | None = None
    is_optional: bool = False
    leaves_out: bool = False
    phones: PhoneCells | None = None


@dataclass
class PhoneSource:
    """Where the phones of a file are: its sheet, the row of its header, the columns, and the first number.

    ``sheet`` is empty unless the file is a workbook. ``header_row`` is None for JSON Lines and a list of numbers.
    ``first_line`` is 0 if no row has a number.
    """

    sheet: str
    header_row: int | None
    columns: tuple[str, ...]
    first: str = ""
    first_line: int = 0

    @property
    def column(self) -> str:
        """The headings of the columns, as ``job show`` has them."""
        return ", ".join(self.columns)

    def __str__(self) -> str:
        """Return ``sheet "Clientes", header in row 3, column "Celular" · first 573001112233 (line 4)``."""
        parts = []
        if self.sheet:
            parts.append(f"sheet {quote(self.sheet)}")
        if self.header_row is not None:
            parts.append(f"header in row {self.header_row:,}")
        if self.columns:
            noun = "column" if len(self.columns) == 1 else "columns"
            parts.append(f"{noun} {', '.join(quote(on_one_line(name)) for name in self.columns)}")
        first = [f"first {self.first} (line {self.first_line:,})"] if self.first_line else []
        return " · ".join(filter(None, (", ".join(parts), *first)))


def is_phone_word(heading: str) -> bool:
    """Return whether a heading is a word for phones: mobile, phone_number, Teléfono móvil."""
    parts = [part for part in _parts(heading) if part not in _BESIDE]
    return (
        bool(parts)
        and not re.search(r"\d", heading)
        and all(
            part in WORDS or part.removesuffix("number") in WORDS or part.removeprefix("numero") in WORDS
            for part in parts
        )
    )


def has_phone_word(heading: str) -> bool:
    """Return whether a heading contains a word for phones: Celular codeudor, Phone 1 - Value."""
    return any(part in WORDS or _STEMS.search(part) for part in _parts(heading))


def _parts(heading: str) -> list[str]:
    """Return the words of a heading in lower case, without accents."""
    spaced = _CAMEL_CASE.sub(" ", heading.replace("WhatsApp", "Whatsapp"))
    decomposed = normalized(spaced, "NFKD").casefold()
    return _PARTS.findall("".join(char for char in decomposed if not unicodedata.combining(char)))


def on_one_line(heading: str) -> str:
    """Return a heading on one line, since it can have a newline in a cell of two lines."""
    return " ".join(heading.split())


def find_column(name: str, columns: Sequence[str]) -> int | None:
    """Return the index of the column with this name, or else of the only column that differs in case or spaces."""
    if name in columns:
        return columns.index(name) if name else None
    indexes = [index for index, column in enumerate(columns) if _key(column) == _key(name)]
    return indexes[0] if len(indexes) == 1 else None


def _key(name: str) -> str:
    """Return a name in a normal form for comparison, since systems may compose the same letters differently."""
    return on_one_line(normalized(name)).casefold()


def in_words(columns: Sequence[str]) -> str:
    """Return the names of columns for a message: ``Columns: phone, name``."""
    return f"Columns: {shorten(', '.join(filter(None, map(on_one_line, columns)))) or 'none'}"


@dataclass(frozen=True)
class PhoneColumns:
    """The phone columns that follow from the headings.

    Without ``indexes``, ``doubt`` is the reason. ``is_only_a_part`` means that the heading contains more than a word
    for phones; the column is then certain only if no other column has a phone. ``has_several`` means that several
    headings have such a word, and none is certain.
    """

    indexes: tuple[int, ...] = ()
    is_only_a_part: bool = False
    has_several: bool = False
    doubt: str = "no heading looks like a phone column"

    @property
    def is_certain(self) -> bool:
        """Whether the headings decide which columns have the phones, whatever is in other columns."""
        return bool(self.indexes) and not self.is_only_a_part

    @property
    def has_heading(self) -> bool:
        """Whether a heading has a word for phones, so that the file is a list of people."""
        return bool(self.indexes) or self.has_several


def phone_columns(columns: Sequence[str], reading: Reading) -> PhoneColumns:
    """Return the column of the phones of recipients, or all columns with phones of people to leave out.

    It is the column in ``reading``, or else the column "phone", or else the only column whose heading is or contains a
    word for phones. For people to leave out, it is every column whose heading contains such a word.
    """
    if reading.phones is None:
        return PhoneColumns()
    chosen, index = reading.phone_column, None
    if chosen is not None:
        index = find_column(chosen.strip(), columns)
        if index is None and reading.is_optional:
            chosen = None
    if reading.leaves_out and (chosen is None or reading.is_optional):
        all_indexes = [position for position, name in enumerate(columns) if has_phone_word(name) or position == index]
        return PhoneColumns(tuple(all_indexes))
    if chosen is None:
        index = find_column("phone", columns)
    if index is not None:
        return PhoneColumns((index,))
    if chosen is not None:
        return PhoneColumns(doubt=f"it has no column {quote(chosen)}")
    words = [position for position, name in enumerate(columns) if is_phone_word(name)]
    if len(words) == 1:
        return PhoneColumns((words[0],))
    parts = words or [position for position, name in enumerate(columns) if has_phone_word(name)]
    if len(parts) == 1:
        return PhoneColumns((parts[0],), is_only_a_part=True)
    if parts:
        return PhoneColumns(has_several=True, doubt="several headings look like phone columns")
    return PhoneColumns()


def with_header(
    raw_rows: Iterator[RawRow], name: str, reading: Reading
) -> tuple[tuple[int, list[str]], Iterator[RawRow]]:
    """Return the header with its line, and the rows below it. Raises NoTableError."""
    cells = reading.phones or PhoneCells()
    raw_rows = dropwhile(lambda raw_row: not has_text(raw_row), raw_rows)
    if reading.header_row is None:
        head = [*islice(raw_rows, MAX_ABOVE)]
        index = find_header([*map(_cleaned, head)], reading.phone_column, cells.number)
    else:
        head = []
        for raw_row in raw_rows:
            head.append(raw_row)
            if raw_row[0] >= reading.header_row:
                break
        index = len(head) - 1
        if not head or head[-1][0] != reading.header_row or not has_text(head[-1]):
            raise NoTableError(f"Row {reading.header_row:,} of {name} has no text", "Choose another --header-row.")
    if not head:
        raise NoTableError(f"{name} has no header", "Add a first line with the names of the columns.")
    line, names = _cleaned(head[index])
    if isinstance(names, str):
        raise NoTableError(f"Row {line:,} of {name} cannot be the header: {names}")
    if phone := next(filter(cells.may_be_number, names), None):
        raise without_header(name, line, phone)
    for above, row in map(_cleaned, head[:index]):
        if not isinstance(row, str) and (phone := next(filter(cells.number, row), None)):
            raise NoTableError(  # it may be a person, who would get no message
                f"Row {above:,} of {name}, above the header in row {line:,}, has a phone number: {quote(phone)}",
                "If it is not a recipient, delete it. Otherwise, move it below the header.",
            )
    return (line, names), chain(head[index + 1 :], raw_rows)


def without_header(name: str, line: int, phone: str) -> NoTableError:
    """Return the error for a file whose first row is a person."""
    what = f"{name} has no header: row {line:,} contains a phone number, {quote(phone)}"
    return NoTableError(what, "Above it, add a line with the column names, for example: phone,name")


def find_header(rows: Sequence[RawRow], chosen: str | None, is_phone: Callable[[str], object]) -> int:
    """Return the index of the header in the first rows of a file. The first row has text.

    The header is the first row with at least two filled cells, one of which has a word for phones or is the column
    ``chosen``. Without such a row, it is the first one. A row with a phone is never the header. A row below it can be
    the header only if the first row is a title.
    """
    is_title = has_phone = False
    for index, (_, cells) in enumerate(rows):
        filled = [] if isinstance(cells, str) else [cell for cell in cells if cell.strip()]
        if index == 0:
            is_title = len(filled) == 1
        if any(map(is_phone, filled)):
            has_phone = True
            continue
        is_chosen = chosen is not None and find_column(chosen.strip(), filled) is not None
        has_heading = is_chosen or any(map(has_phone_word, filled))
        if len(filled) > 1 and has_heading and (is_title or not has_phone):
            return index
    return 0


def has_text(raw_row: RawRow) -> bool:
    """Return whether a row has an error or a cell that is not blank."""
    return bool("".join(raw_row[1]).strip())


def _cleaned(raw_row: RawRow) -> RawRow:
    """Return a row without the marks that programs add for spreadsheets."""
    line, cells = raw_row
    if isinstance(cells, str) or not ("'" in (text := "".join(cells)) or '="' in text):  # the usual case
        return raw_row
    return line, [*map(unmarked, cells)]
