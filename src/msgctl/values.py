"""Convert arguments and options to the values that are sent.

Each function takes the text of one argument or option and returns its value, or raises `UsageError`. The rules come
from the API documentation ("Endpoints", "Limits"). Nothing here depends on profiles, requests or terminals.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from datetime import date, timedelta, tzinfo
from functools import cache
from math import nan
from urllib.parse import urlsplit

from msgctl import phones
from msgctl.errors import ConfigurationError, UsageError
from msgctl.operations import Field
from msgctl.text import is_unsafe, nearest, shorten

MAX_MESSAGE_BYTES = 64 * 1024
"""The longest message, in bytes of UTF-8. An SMS of 255 segments, the maximum, fits if few letters have accents."""

MIN_LIKENESS = 0.65
"""Minimum similarity of a suggestion, from 0 to 1: "sms" is suggested for "mms", but not "PATCH" for "FETCH"."""

MAX_CLIENT = 2**63 - 1
MAX_TIMEOUT = 3600.0
MAX_URL = 8192

_INTEGER = r"[0-9]{1,19}"
_DECIMAL = r"[0-9.eE+-]+"  # float() also accepts "1_0", " 5" and digits of other scripts
_DATE = r"([0-9]{4})-([0-9]{2})-([0-9]{2})"
_NOT_IN_HOSTS = frozenset('\\<>"^`{|}')
_DAYS_AGO = r"([0-9]{1,6})d"


def quote(text: str) -> str:
    """Return a value for a message: in quotes, without control characters, at most 60 characters."""
    return f'"{shorten(text, 60)}"'


SAME_VOICE = {"marian": "mariana", "mariana": "marian"}
"""The voice that the API spells in two ways: Marian in calls, Mariana in verification calls."""


def choice(text: str, choices: Sequence[str], what: str) -> str:
    """Return the choice that equals ``text`` in any case, in the spelling of ``choices``."""
    by_lowered = {name.lower(): name for name in choices}
    chosen = by_lowered.get(text.lower()) or by_lowered.get(SAME_VOICE.get(text.lower(), ""))
    if chosen is None:
        near = nearest(text.lower(), by_lowered, MIN_LIKENESS)
        hint = near and f"Did you mean {by_lowered[near]}?"
        raise UsageError(f"Unknown {what} {quote(text)}: choose from {', '.join(choices)}", hint)
    return chosen


def whole_number(text: str, name: str, least: int = 0, most: int | None = None) -> int:
    """Return a whole number from ``least`` to ``most``; ``name`` is its option or argument."""
    number = int(text) if re.fullmatch(_INTEGER, text) else None
    if number is None or number < least or (most is not None and number > most):
        limits = f"a whole number, {least} or more" if most is None else f"from {least:,} to {most:,}"
        if number is None and most is not None:
            limits = f"a whole number {limits}"
        digits = " (at most 19 digits)" if len(text) > 19 else ""
        raise UsageError(f"{name} must be {limits}{digits}, not {quote(text)}")
    return number


def client(text: str) -> int:
    """Return a client ID."""
    number = int(text) if re.fullmatch(_INTEGER, text) else -1
    if not 0 <= number <= MAX_CLIENT:
        raise UsageError(f"--client must be a client ID, such as 12345, not {quote(text)}")
    return number


def of_field(text: str, field: Field) -> str:
    """Return the value of a field that is a number (sent as text), or a short text."""
    if field.least is not None:
        return str(whole_number(text, field.typed, field.least, field.most))
    return short_text(text, field.typed)


def seconds(text: str, name: str, most: float = MAX_TIMEOUT) -> float:
    """Return a time in seconds, more than 0 and at most ``most``; fractions are allowed."""
    number = _number(text)
    if not 0 < number <= most:
        raise UsageError(f"{name} must be more than 0 and at most {most:,.10g} seconds, not {quote(text)}")
    return number


def decimal(text: str, name: str, least: float, most: float) -> float:
    """Return a number from ``least`` to ``most``; fractions are allowed."""
    number = _number(text)
    if not least <= number <= most:
        raise UsageError(f"{name} must be from {least:g} to {most:,.10g}, not {quote(text)}")
    return number


def _number(text: str) -> float:
    """Return a decimal number. For any other text, return NaN, which is outside all limits."""
    try:
        return float(text) if re.fullmatch(_DECIMAL, text) else nan
    except ValueError:
        return nan


def day(text: str, today: date) -> date:
    """Return a date given as ``YYYY-MM-DD``, ``today``, ``yesterday``, or ``7d`` for seven days before ``today``."""
    try:
        if text.lower() == "today":
            return today
        if text.lower() == "yesterday":
            return today - timedelta(days=1)
        if ago := re.fullmatch(_DAYS_AGO, text):
            return today - timedelta(days=int(ago[1]))
        if written := re.fullmatch(_DATE, text):
            return date(int(written[1]), int(written[2]), int(written[3]))
    except (ValueError, OverflowError):
        raise UsageError(f"The date {quote(text)} does not exist", "Write dates as YYYY-MM-DD.") from None
    raise UsageError(f"{quote(text)} is not a date: use YYYY-MM-DD, today, yesterday, or 7d for seven days ago")


def last_day(since: date, until: date | None, today: date) -> date:
    """Return the last day of a period, ``today`` if omitted. Raises UsageError if it is before the first day."""
    last = until or today
    if since > last:
        until_day = f"today ({last})" if until is None else f"--until {last}"
        raise UsageError(f"--since {since} is after {until_day}")
    return last


@cache
def zone_of(name: str | None) -> tzinfo | None:
    """Return a time zone; None is this machine's time zone. Raises ConfigurationError for an unknown name."""
    if name is None:
        return None
    import zoneinfo  # few commands need it

    try:
        return zoneinfo.ZoneInfo(name)
    except (zoneinfo.ZoneInfoNotFoundError, ValueError, OSError):
        raise ConfigurationError(f"Unknown time zone {quote(name)}", "Use a name like America/Bogota.") from None


def country_code(text: str) -> str:
    """Return an ISO 3166-1 alpha-2 country code in upper case."""
    code = text.upper()
    if not text.isascii() or code not in phones.country_names():  # "ß" becomes "SS" in upper case
        raise UsageError(
            f"{quote(text)} is not a country code: use a two-letter code of ISO 3166-1",
            "For example CO for Colombia, ES for Spain, US for the United States.",
        )
    return code


def long_url(text: str) -> str:
    """Return an absolute http or https URL, as it was typed."""
    example = "For example: https://example.com/offers?id=7"
    if len(text) > MAX_URL:
        raise UsageError(f"The URL to shorten is longer than {MAX_URL} characters")
    if any(char.isspace() or is_unsafe(char) for char in text):
        raise UsageError(f"The URL {quote(text)} contains a space or a control character", example)
    try:
        parts = urlsplit(text)
        host = (parts.hostname or "").encode("idna").decode()
        is_absolute = parts.scheme in {"http", "https"} and host and parts.port != 0 and _NOT_IN_HOSTS.isdisjoint(host)
    except ValueError:
        is_absolute = False
    if not is_absolute:
        raise UsageError(f"{quote(text)} is not an absolute http or https URL", example)
    return text


def short_text(text: str, name: str) -> str:
    """Return a text of one line (a name, a template) unchanged, if it is not blank and has no control characters."""
    return _printable(text, name, allowed="", hint="Give it a value, or leave it out if it is optional.")


def prose(text: str, name: str = "The message", hint: str | None = None) -> str:
    """Return a text that may have several lines, if it is not blank and at most 64 KiB of UTF-8."""
    _printable(text, name, allowed="\n\r\t", hint=hint)
    size = len(text.encode())
    if size > MAX_MESSAGE_BYTES:
        raise UsageError(f"{name} is {size:,} bytes long; the maximum is {MAX_MESSAGE_BYTES:,}")
    return text


def _printable(text: str, name: str, allowed: str, hint: str | None) -> str:
    """Return the text if it has no control characters except ``allowed``. Undecodable bytes are lone surrogates."""
    if not text.strip():
        raise UsageError(f"{name} is empty", hint)
    if text.isprintable():  # the usual case, much faster than checking each character
        return text
    for position, char in enumerate(text, start=1):
        if char in allowed:
            continue
        if "\ud800" <= char <= "\udfff":  # a byte that is not UTF-8 (PEP 383)
            wrong = len(text[: position - 1].encode()) + 1
            raise UsageError(f"{name} is not valid UTF-8 text at position {wrong:,}: {quote(text)}")
        if char < " " or "\x7f" <= char <= "\x9f":
            control = f"the control character U+{ord(char):04X} at position {position}"
            raise UsageError(f"{name} contains {control}: {quote(text)}", "Remove it.")
    return text
