"""Phone numbers: what a person writes, and the digits that the service takes.

Google's libphonenumber (the `phonenumbers` package) decides what a valid number is. It is imported when the first
number is read, since that takes 20 ms.
"""

from __future__ import annotations

import unicodedata
from typing import TYPE_CHECKING, NamedTuple

from msgctl import countries
from msgctl.errors import UsageError
from msgctl.text import shorten

if TYPE_CHECKING:
    from phonenumbers import PhoneNumber

LEAST_DIGITS, MOST_DIGITS = 3, 15
"""Short codes have three digits or more; E.164 allows fifteen."""
LONGEST_NATIONAL = 11
"""A number without + that has more digits than this hardly lacks its country code."""

NAME_COUNTRY = "If it is a national number, name its country: --country-code CO"
WRITE_IN_FULL = "Write it with + and its country code, for example '+57 300 123 4567'."
UNCHECKED = "To send to it anyway, add --no-number-check."


class InvalidPhoneError(UsageError):
    """A text that is not a phone number a message can reach; ``reason`` is the part that a list of rows shows."""

    def __init__(self, text: str, reason: str, hint: str) -> None:
        super().__init__(f'"{shorten(text, 40)}" is not a valid phone number: {reason}', hint)
        self.reason = reason


class Phone(NamedTuple):
    """A number as the service takes it: all ``digits`` with the country code, without ``+``.

    ``abroad`` names the number's country if it is valid only in another one than was expected, else it is empty.
    """

    digits: str
    abroad: str = ""


def read(text: str, country: str | None = None, *, sms: bool = False) -> Phone:
    """Return the international number that a text means.

    A ``+`` or ``00`` begins an international number. Without either, the number is national if ``country`` (ISO 3166-1
    alpha-2) is given and the number is valid there, and else international. ``sms`` refuses fixed lines. Raises
    InvalidPhoneError.
    """
    digits, international = _written(text)
    if not international and country and (number := _parsed(digits, country)) and _is_valid(number):
        return _checked(text, number, country, sms=sms)
    number = _parsed(f"+{digits}", None)
    if number is not None and _is_valid(number):
        return _checked(text, number, None if international else country, sms=sms)
    if not international and country:
        raise InvalidPhoneError(text, _fault(_parsed(digits, country), country), f"{WRITE_IN_FULL} {UNCHECKED}")
    hint = WRITE_IN_FULL if international or len(digits) > LONGEST_NATIONAL else NAME_COUNTRY
    raise InvalidPhoneError(text, _fault(number, None), f"{hint} {UNCHECKED}")


def as_typed(text: str) -> Phone:
    """Return the digits of a text without checking that the number exists: for short codes and test numbers.

    Raises InvalidPhoneError for a text that is not 3 to 15 digits.
    """
    digits, _ = _written(text)
    if not LEAST_DIGITS <= len(digits) <= MOST_DIGITS:
        raise InvalidPhoneError(text, f"it has {len(digits)} digits", f"Give {LEAST_DIGITS} to {MOST_DIGITS} digits.")
    return Phone(digits)


def _written(text: str) -> tuple[str, bool]:
    """Return the digits of a text, and whether it is written as an international number. Raises InvalidPhoneError."""
    if text.isascii() and text.isdecimal():  # most rows of most files
        return (text[2:], True) if text.startswith("00") else (text, False)
    digits, plus = [], False
    for char in text:
        category = unicodedata.category(char)
        if category == "Nd":
            digits.append(str(unicodedata.decimal(char)))
        elif char in "+\N{FULLWIDTH PLUS SIGN}" and not digits and not plus:
            plus = True
        elif not (char.isspace() or category in ("Cf", "Pd") or char in ".()"):
            raise InvalidPhoneError(text, f'"{shorten(char)}" cannot be part of one', WRITE_IN_FULL)
    written = "".join(digits)
    if not written:
        raise InvalidPhoneError(text, "it has no digits", WRITE_IN_FULL)
    if not plus and written.startswith("00"):
        return written[2:], True
    return written, plus


def _parsed(text: str, country: str | None) -> PhoneNumber | None:
    """Return what libphonenumber makes of a text; None if its country code does not exist or its length is absurd."""
    import phonenumbers

    try:
        return phonenumbers.parse(text, country)
    except phonenumbers.NumberParseException:
        return None


def _is_valid(number: PhoneNumber) -> bool:
    import phonenumbers

    return phonenumbers.is_valid_number(number)


def _checked(text: str, number: PhoneNumber, expected: str | None, *, sms: bool) -> Phone:
    """Return a valid number. ``expected`` is the country that its writer lives in, if known."""
    import phonenumbers

    if sms and phonenumbers.number_type(number) == phonenumbers.PhoneNumberType.FIXED_LINE:
        raise InvalidPhoneError(text, "it is a fixed line, which cannot receive an SMS", UNCHECKED)
    digits = phonenumbers.format_number(number, phonenumbers.PhoneNumberFormat.E164)[1:]
    if expected is None or phonenumbers.is_valid_number_for_region(number, expected):
        return Phone(digits)
    return Phone(digits, _country_name(phonenumbers.region_code_for_number(number)))


def _fault(number: PhoneNumber | None, country: str | None) -> str:
    """Return why a number is not valid, read in a country or, for None, as an international one."""
    import phonenumbers

    if number is None or not number.country_code:
        return "no country code begins like this" if country is None else "it has too few or too many digits"
    region = country or phonenumbers.region_code_for_country_code(number.country_code)
    where = _country_name(region)
    metadata = phonenumbers.PhoneMetadata.metadata_for_region(region)
    mobile = metadata.mobile if metadata is not None else None
    lengths = [length for length in (mobile.possible_length if mobile else ()) if length > 0]
    length = len(phonenumbers.national_significant_number(number))
    if lengths and length < min(lengths):
        return f"too short for {where}"
    if lengths and length > max(lengths):
        return f"too long for {where}"
    return f"no such number exists in {where}"


def _country_name(region: str | None) -> str:
    """Return a country's name; libphonenumber's regions without one are services that no country runs."""
    return countries.names().get(region or "") or (
        region if region and region.isalpha() else "an international service"
    )
