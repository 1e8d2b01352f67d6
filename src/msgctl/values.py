"""What a person types -> what the wire takes.

Every function takes the text of one argument or option and gives its value, or raises `UsageError` with a message
that names the text, says what is allowed and what to do. The rules are those of the interface ("Endpoints", "Limits")
and nothing here knows about profiles, requests or terminals.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from datetime import date, timedelta
from difflib import get_close_matches
from math import nan
from typing import NamedTuple
from urllib.parse import urlsplit

from msgctl import countries
from msgctl.errors import UsageError
from msgctl.operations import Field, Kind
from msgctl.text import is_unsafe, shorten

MOST_MESSAGE_BYTES = 64 * 1024
"""The longest message that is taken, in bytes of UTF-8; far over the 255 segments that an SMS can have."""

NOT_A_MESSAGE = "Every argument is a phone number; the message is given with -m TEXT."

LEAST_LIKENESS = 0.65
"""Of what may have been meant, from 0 to 1: mms is that near to sms, and FETCH no longer to PATCH."""

LONGEST_TIMEOUT = 3600.0
LONGEST_URL = 8192

_READING_AIDS = str.maketrans("", "", " .-()\u00a0\u2010\u2011\u2013")
_PHONE = re.compile(r"\+?([0-9]{5,15})")
_INTEGER = re.compile(r"[0-9]{1,19}")
_DECIMAL = re.compile(r"[0-9.eE+-]+")  # float() also takes "1_0", " 5" and digits of every script
_DATE = re.compile(r"([0-9]{4})-([0-9]{2})-([0-9]{2})")
_NOT_IN_HOSTS = frozenset('\\<>"^`{|}')
_DAYS_AGO = re.compile(r"([0-9]{1,6})d")


class Recipients(NamedTuple):
    """Phone numbers in the order given, each once, and those that were given again."""

    phones: tuple[str, ...]
    repeated: tuple[str, ...]


def quote(text: str) -> str:
    """A value as a message names it: in quotes, visible, and not longer than a line."""
    return f"'{shorten(text, 60)}'"


def phone(text: str, advice: str | None = None) -> str:
    """A phone number as its 5 to 15 digits. A leading ``+``, spaces, dots, dashes and parentheses are dropped.

    Raises UsageError, with ``advice`` of what to do where it is given.
    """
    match = _PHONE.fullmatch(text.translate(_READING_AIDS))
    if match is None:
        raise UsageError(
            f"{quote(text)} is not a phone number: allowed are 5 to 15 digits, with an optional + before them",
            advice or "Write it with its country code, for example 573001234567 or '+57 300 123 4567'.",
        )
    return match[1]


def phones(texts: Iterable[str]) -> Recipients:
    """Phone numbers from several arguments, each one number or several separated by commas."""
    seen: dict[str, None] = {}
    repeated: dict[str, None] = {}
    for text in texts:
        parts = text.split(",")
        if len(parts) > 1 and not all(part.strip() for part in parts):
            raise UsageError(
                f"{quote(text)} has a comma without a number beside it: allowed are phone numbers separated by commas",
                "Take the comma out, or put the number in.",
            )
        for part in parts:
            number = phone(part, NOT_A_MESSAGE if any(map(str.isalpha, part)) else None)
            (repeated if number in seen else seen)[number] = None
    return Recipients(tuple(seen), tuple(repeated))


def choice(text: str, allowed: Sequence[str], what: str) -> str:
    """One of ``allowed``, upper and lower case not mattering; the spelling returned is the one in ``allowed``."""
    by_lowered = {name.lower(): name for name in allowed}
    found = by_lowered.get(text.lower())
    if found is None:
        near = get_close_matches(text.lower(), by_lowered, n=1, cutoff=LEAST_LIKENESS)
        suggestion = f"Did you mean {by_lowered[near[0]]}?" if near else None
        raise UsageError(f"{quote(text)} is not a {what}: allowed are {', '.join(allowed)}", suggestion)
    return found


def voice(text: str, field: Field) -> str:
    """A voice of the operation that ``field`` belongs to, in the interface's spelling."""
    return choice(text, field.choices, "voice of this command")


def whole_number(text: str, what: str, least: int = 0, most: int | None = None) -> int:
    """A number written in digits, from ``least`` to ``most``."""
    allowed = f"a whole number from {least} to {most}" if most is not None else f"a whole number, {least} or more"
    if len(text) > 19:
        allowed += ", of at most 19 digits"
    number = int(text) if _INTEGER.fullmatch(text) else None
    if number is None or number < least or (most is not None and number > most):
        raise UsageError(f"{quote(text)} is not {what}: allowed is {allowed}")
    return number


def limited(text: str, field: Field) -> str:
    """A number within the limits of ``field``, as the wire takes it (the interface sends numbers as strings)."""
    return str(whole_number(text, f"allowed for {field.typed}", field.least or 0, field.most))


def is_typed(value: object, field: Field) -> bool:
    """Whether a value is one that these functions make of what is typed for a field (other than a phone or date)."""
    if field.kind is Kind.BOOLEAN:
        return isinstance(value, bool)
    if field.kind is Kind.ARRAY:
        return isinstance(value, list) and all(isinstance(each, str) for each in value)
    if not isinstance(value, str):
        return False
    try:
        if field.name == "country-code":
            return country_code(value) == value
        if field.most is not None:
            return limited(value, field) == value
        return value in field.choices if field.choices else prose(value, field.typed) == value
    except UsageError:
        return False


def seconds(text: str, what: str, least: float = 0.0, most: float = LONGEST_TIMEOUT) -> float:
    """A time in seconds, over ``least`` and up to ``most``; fractions are allowed."""
    number = _number(text)
    if not least < number <= most:
        raise UsageError(
            f"{quote(text)} is not {what}: allowed is a number of seconds over {least:g}, up to {most:.10g}"
        )
    return number


def decimal(text: str, what: str, least: float, most: float) -> float:
    """A number from ``least`` to ``most``; fractions are allowed."""
    number = _number(text)
    if not least <= number <= most:
        raise UsageError(f"{quote(text)} is not {what}: allowed is a number from {least:g} to {most:.10g}")
    return number


def _number(text: str) -> float:
    """A number in decimal notation; NaN, which is within no limits, for any other text."""
    try:
        return float(text) if _DECIMAL.fullmatch(text) else nan
    except ValueError:
        return nan


def day(text: str, today: date) -> date:
    """A date: ``YYYY-MM-DD``, ``today``, ``yesterday``, or ``7d`` for seven days before ``today``."""
    try:
        if text.lower() == "today":
            return today
        if text.lower() == "yesterday":
            return today - timedelta(days=1)
        if ago := _DAYS_AGO.fullmatch(text):
            return today - timedelta(days=int(ago[1]))
        if written := _DATE.fullmatch(text):
            return date(int(written[1]), int(written[2]), int(written[3]))
    except (ValueError, OverflowError):
        raise UsageError(f"{quote(text)} is not a date that exists", "Dates are written YYYY-MM-DD.") from None
    raise UsageError(f"{quote(text)} is not a date: allowed are YYYY-MM-DD, today, yesterday, or 7d for seven days ago")


def days(since: str, until: str | None, today: date) -> tuple[str, str]:
    """First and last day as ``YYYY-MM-DD``; the last is ``today`` where it was left out."""
    first = day(since, today)
    last = today if until is None else day(until, today)
    if first > last:
        until_text = "left out, that is today" if until is None else quote(until)
        raise UsageError(
            f"--since {quote(since)} ({first}) is after --until ({until_text}, {last})",
            "Give a first day that is not after the last.",
        )
    return first.isoformat(), last.isoformat()


def country_code(text: str) -> str:
    """An ISO 3166-1 alpha-2 country code, in upper case."""
    code = text.upper()
    if not text.isascii() or code not in countries.names():  # 'ß' in upper case is SS
        raise UsageError(
            f"{quote(text)} is not a country code: allowed are the two-letter codes of ISO 3166-1",
            "For example CO for Colombia, ES for Spain, US for the United States.",
        )
    return code


def long_url(text: str) -> str:
    """An absolute http or https URL, as it was typed."""
    reason = _url_fault(text)
    if reason:
        raise UsageError(
            f"{quote(text)} is not a URL to shorten ({reason}): allowed is an absolute http or https URL",
            "For example https://example.com/offers?id=7.",
        )
    return text


def _url_fault(text: str) -> str | None:
    if len(text) > LONGEST_URL:
        return f"it is longer than {LONGEST_URL} characters"
    if any(char.isspace() or is_unsafe(char) for char in text):
        return "it holds a space or a control character"
    try:
        parts = urlsplit(text)
        host, port = parts.hostname or "", parts.port
        host.encode("idna")
    except ValueError:
        return "its host or port is malformed"
    if parts.scheme not in {"http", "https"}:
        return f"its scheme is {shorten(parts.scheme, 20)}" if parts.scheme else "it has no scheme"
    if not host:
        return "it has no host"
    if port == 0:
        return "its port is 0"
    return "its host is malformed" if not _NOT_IN_HOSTS.isdisjoint(host) else None


def words(text: str, what: str) -> str:
    """A name or other short text on one line: not blank, no control characters; as it was typed."""
    return _shown(text, what, allowed="", advice="Give it a value, or leave it out where it is optional.")


def message(text: str, typed: str = "-m TEXT") -> str:
    """The text of a message: not blank, and without control characters but line ends and tabs; as it was given.

    ``typed`` is how it is given on the command line.
    """
    return prose(text, "the message", f"Give it as {typed}, with --message-file PATH, or on standard input.")


def prose(text: str, what: str, advice: str | None = None) -> str:
    """A text that may have several lines: not blank, no other control characters, at most 64 KiB of UTF-8."""
    _shown(text, what, allowed="\n\r\t", advice=advice)
    size = len(text.encode())
    if size > MOST_MESSAGE_BYTES:
        raise UsageError(f"{what} is {size} bytes long: allowed are {MOST_MESSAGE_BYTES}", "Send a shorter text.")
    return text


def _shown(text: str, what: str, allowed: str, advice: str | None) -> str:
    """A text of characters that can be shown. Bytes that are not UTF-8 come as lone surrogates (PEP 383)."""
    if not text.strip():
        raise UsageError(f"{what} is empty", advice)
    if text.isprintable():  # the usual case, many times as fast as looking at each character
        return text
    for position, char in enumerate(text, start=1):
        if char in allowed:
            continue
        if "\ud800" <= char <= "\udfff":
            raise UsageError(f"{what} is not valid UTF-8 text at position {position}: {quote(text)}")
        if char < " " or "\x7f" <= char <= "\x9f":
            raise UsageError(
                f"{what} holds the control character U+{ord(char):04X} at position {position}: {quote(text)}",
                "Take it out.",
            )
    return text
