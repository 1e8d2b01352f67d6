"""Phone numbers on the command line, read by the country of the option or of the profile."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Annotated

import typer

from msgctl import phones
from msgctl.cli import defaults
from msgctl.cli.context import Context
from msgctl.errors import ConfigurationError, UsageError
from msgctl.values import quote

NoNumberCheck = Annotated[
    bool, typer.Option("--no-number-check", help="Send the digits as typed, for short codes and test numbers.")
]


class Numbers:
    """Reads the phone numbers of one command line. ``sms`` refuses fixed lines, ``unchecked`` takes any digits."""

    def __init__(
        self, context: Context, country_code: str | None, *, sms: bool = False, unchecked: bool = False
    ) -> None:
        self._context = context
        self._country = country(context, country_code)
        self._sms = sms
        self._unchecked = unchecked

    def one(self, text: str) -> str:
        """Return the digits of a number; a note says so if it belongs to another country than the known one."""
        if "," in text:
            raise UsageError(f"{quote(text)} is a list: give one number")
        if self._unchecked:
            return phones.as_typed(text).digits
        found = phones.read(text, self._country, sms=self._sms)
        if found.abroad:
            self._context.note(f"{found.digits} is a number in {found.abroad}")
        return found.digits

    def any(self, text: str) -> str:
        """Return the digits of a number to look up. It may have been sent to without a check."""
        try:
            return self.one(text)
        except phones.InvalidPhoneError:
            return phones.as_typed(text).digits

    def all(self, texts: Iterable[str]) -> tuple[str, ...]:
        """Return the digits of several numbers, each once; an argument may be a comma-separated list."""
        seen: dict[str, None] = {}
        repeated: dict[str, None] = {}
        for part in _parts(texts):
            number = self.one(part)
            (repeated if number in seen else seen)[number] = None
        if repeated:
            self._context.note(f"Repeated numbers are used once: {', '.join(repeated)}")
        return tuple(seen)


def country(context: Context, text: str | None) -> str | None:
    """Return the country to read numbers by, of the option or of the profile. No profile is needed."""
    try:
        return defaults.country_code(context, text)
    except ConfigurationError:
        return None


def _parts(texts: Iterable[str]) -> Iterable[str]:
    for text in texts:
        parts = text.split(",")
        if len(parts) > 1 and not all(part.strip() for part in parts):
            raise UsageError(f"{quote(text)} has a comma without a number beside it")
        if not any(map(str.isdigit, text)) and any(map(str.isalpha, text)):
            raise UsageError(f"{quote(text)} is not a phone number", "Give the message with -m TEXT.")
        yield from parts
