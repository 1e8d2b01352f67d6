"""The faults of a file: its invalid rows, reported together."""

from __future__ import annotations

from dataclasses import dataclass, field

from msgctl.errors import Hint
from msgctl.lists.formats import FileError
from msgctl.lists.rows import InvalidRow
from msgctl.phones import country_name
from msgctl.text import plural

MAX_NAMED = 20
"""Maximum rows, columns or sheets that an error or a question lists."""
LIST_ALL = "To list all invalid rows, add --dry-run -o csv."
GIVE_COUNTRY = "Add --country-code CC, for example CO. MSGCTL_COUNTRY_CODE and country_code in the profile do the same."


def rows_left_out(number: int, kind: str, file: str) -> str:
    """Return the note about rows that are left out: ``2 blank rows of people.csv left out``."""
    return f"{plural(number, f'{kind} row')} of {file} left out"


@dataclass
class Faults:
    """The invalid rows of ``file``: their number, the number of all ``rows``, and the first invalid ones.

    ``without_country`` counts rows that are invalid only because no country is known. ``not_in_country`` counts rows
    with a number that is not valid in the known ``country``. ``rows`` does not count ``blank`` rows. ``header_row`` is
    None for a file without a header.
    """

    file: str
    rows: int = 0
    invalid: int = 0
    first: list[InvalidRow] = field(default_factory=list)
    without_country: int = 0
    not_in_country: int = 0
    country: str | None = None
    blank: int = 0
    header_row: int | None = None

    def add(self, row: InvalidRow) -> None:
        self.invalid += 1
        if len(self.first) < MAX_NAMED:
            self.first.append(row)

    @property
    def need_of_country(self) -> str:
        """The description of rows that need a country, if most rows do; otherwise empty."""
        if self.without_country * 2 <= self.rows:
            return ""
        rows = f"{self.without_country:,} of {plural(self.rows, 'row')} of {self.file}"
        return f"{rows} have national numbers, and no country is known"

    @property
    def doubt_of_country(self) -> str:
        """The advice if most numbers are not valid in the known country; otherwise empty."""
        if self.not_in_country * 2 <= self.rows:
            return ""
        return f"Most numbers are not valid in {country_name(self.country)}: check the country (--country-code)."

    def error(self, hint: str, list_all: str = LIST_ALL, *, consequence: str = "") -> FileError:
        """Return the error: no country, or the number of invalid rows, and the first with line and reason.

        ``list_all`` shows how to list them all; empty if the command has listed them.
        """
        if self.need_of_country:
            return FileError(self.need_of_country, GIVE_COUNTRY, consequence=consequence)
        are = "is" if self.invalid == 1 else "are"
        lines = [f"{self.invalid:,} of {plural(self.rows, 'row')} of {self.file} {are} invalid"]
        for row in self.first:
            lines.append("  " + ": ".join(filter(None, (f"line {row.line:,}", row.phone, row.reason))))
        if (more := self.invalid - len(self.first)) > 0:
            lines.append(f"  and {more:,} more")
        if self.without_country:
            hint += " National numbers need a country, such as --country-code CO."
        if self.invalid == self.rows and self.header_row is not None:
            hint += f" If row {self.header_row} is not the header, use --header-row N."
        hint = Hint.joined(self.doubt_of_country, hint, list_all, separator=" ")
        return FileError("\n".join(lines), hint, consequence=consequence)
