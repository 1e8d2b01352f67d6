"""Convert phone numbers as people write them to the digits that the service expects.

Google's libphonenumber (the `phonenumbers` package) decides which numbers are valid. It is imported when the first
number is read, since that takes 20 ms.
"""

from __future__ import annotations

import re
import unicodedata
from functools import cache, lru_cache
from typing import TYPE_CHECKING, NamedTuple

from msgctl.errors import UsageError
from msgctl.text import shorten

if TYPE_CHECKING:
    from collections.abc import Callable

    from phonenumbers import PhoneNumber

MIN_DIGITS, MAX_DIGITS = 3, 15
"""Short codes have at least three digits; E.164 allows fifteen."""
MAX_SHORT_CODE = 6
"""Numbers of 3 to 6 digits are short codes."""
MIN_NATIONAL, MAX_NATIONAL = 7, 11
"""Digits of a national number. A longer number without + probably includes its country code."""

NAME_COUNTRY = "If it is a national number, add its country, such as --country-code CO."
WRITE_IN_FULL = "Write it with + and its country code, for example '+57 300 123 4567'."

OLD_FORMS = {
    "AR": (r"(\d{10})", r"9\1", "a mobile has 9"),
    "BJ": (r"(\d{8})", r"01\1", "a number has 01"),
    "BR": (r"(\d\d)([689]\d{7})", r"\g<1>9\2", "a mobile has nine digits"),
    "MX": (r"(?:1|01|044|045)(\d{10})", r"\1", "Mexico no longer uses the prefixes 1, 01, 044 and 045"),
}
"""Countries where people write mobiles in another way: a pattern of the national number, its form today, and the
difference. Only a mobile number that libphonenumber finds valid is suggested.
"""

_WITH_ARTICLE = r"United |Bahamas|Comoros|Gambia|Maldives|Netherlands|Philippines|.*(Islands|Rep)"
_MARKS = ".()\N{MINUS SIGN}\N{FULLWIDTH LEFT PARENTHESIS}\N{FULLWIDTH RIGHT PARENTHESIS}\N{FULLWIDTH FULL STOP}"
_NEVER = "(?!)"
_PUNCTUATION = str.maketrans("", "", " .-()\u00a0")


class InvalidPhoneError(UsageError):
    """A text is not a phone number that can get a message; ``problem`` is shown in lists of rows.

    ``needs_country`` means that it looks like a national number and no country is known. ``not_in_country`` means that
    it is not valid in the known country.
    """

    def __init__(
        self, text: str, problem: str, hint: str, *, needs_country: bool = False, not_in_country: bool = False
    ) -> None:
        what = f'"{shorten(text, 40)}" is not a valid phone number: {problem}'
        if needs_country:
            what = f'"{shorten(text, 40)}" needs a country, such as --country-code CO. Without one, {problem}'
        super().__init__(what, hint, reason="invalid_phone")
        self.problem = problem
        self.needs_country = needs_country
        self.not_in_country = not_in_country


class Phone(NamedTuple):
    """A number as the service expects it: all ``digits`` with the country code, without ``+``.

    ``abroad`` is the name of the number's country if this is not the expected country, and otherwise empty.
    """

    digits: str
    abroad: str = ""


def parse_number(text: str, country: str | None = None, *, sms: bool = False, unchecked: str = "") -> Phone:
    """Return the international number for a text.

    An international number begins with ``+`` or ``00``. Without either, the number is national if ``country`` (ISO
    3166-1 alpha-2) is given and the number is valid there, and otherwise international. ``sms`` refuses numbers that
    cannot be mobiles. Raises InvalidPhoneError. If all digits of the number are certain, its hint ends with
    ``unchecked``, the option that skips this check.
    """
    import phonenumbers

    digits, international = _written(text)
    home = None if international else country
    national = _parsed(digits, home) if home else None
    number = _parsed(f"+{digits}", None)
    for candidate in (national, number):
        if candidate is None or not phonenumbers.is_valid_number(candidate):
            continue
        e164 = phonenumbers.format_number(candidate, phonenumbers.PhoneNumberFormat.E164)[1:]
        if sms and (kind := _without_sms(candidate)):
            problem, hint = f"it is {kind}, which cannot receive an SMS", _without_check(e164, unchecked)
            if candidate is number and may_be_national(text):  # without the check, it would go to another country
                problem = f"it is {kind} in {_country(number)}, which cannot receive an SMS"
                hint = WRITE_IN_FULL if home else NAME_COUNTRY
            if mobile := _mobile_today(candidate):
                problem, hint = f"{problem}; {mobile}", ""
            raise InvalidPhoneError(text, problem, hint)
        if home is None or phonenumbers.is_valid_number_for_region(candidate, home):
            return Phone(e164)
        return Phone(e164, _country(candidate))
    raise _invalid(text, home, national, number, unchecked)


def _invalid(
    text: str, home: str | None, national: PhoneNumber | None, number: PhoneNumber | None, unchecked: str
) -> InvalidPhoneError:
    """Return the error for a text that is not a valid number, either in ``home`` or as an international ``number``."""
    digits, international = _written(text)
    is_national_form = may_be_national(text)
    likely = national if home else number
    if (home or not is_national_form) and (mobile := _mobile_today(likely)):
        return InvalidPhoneError(text, mobile, "")
    if MIN_DIGITS <= len(digits) <= MAX_SHORT_CODE:
        unchecked = _without_check(digits, unchecked, "To send to the short code")
    elif international and len(digits) <= MAX_DIGITS:
        unchecked = _without_check(digits, unchecked)
    else:
        unchecked = ""
    may_lack_country = is_national_form and not home
    needs_country = may_lack_country and len(digits) >= MIN_NATIONAL  # then the error itself names the option
    advice = NAME_COUNTRY if may_lack_country and not needs_country else WRITE_IN_FULL
    hint = f"{advice} {unchecked}".rstrip()
    if home and national and number and number.country_code == national.country_code:
        national = number  # the national number after the country code, which has no +
    problem = _fault(national, home) if home else _fault(number, None)
    if (home or international) and problem.startswith("too short"):
        hint = f"Check its digits: some are missing. {unchecked}".rstrip()
    if home:
        return InvalidPhoneError(text, problem, hint, not_in_country=is_national_form)
    if number and number.country_code and not international:
        problem = f"it is read as +{number.country_code}, {problem}"
    return InvalidPhoneError(text, problem, hint, needs_country=needs_country)


def may_be_national(text: str) -> bool:
    """Return whether a number has neither ``+`` nor ``00``, and is short enough for a number without its country."""
    digits, international = _written(text)
    return not international and len(digits) <= MAX_NATIONAL


def _country(number: PhoneNumber) -> str:
    import phonenumbers

    return country_name(phonenumbers.region_code_for_number(number))


def _without_check(digits: str, option: str, what: str = "To send to") -> str:
    """Return the hint that skips the check; empty if the command has no such option."""
    return f"{what} {digits} anyway, give it in full with {option}." if option else ""


def _without_sms(number: PhoneNumber) -> str:
    """Return the kind of a number that cannot receive an SMS; empty for any other number."""
    import phonenumbers

    kinds = phonenumbers.PhoneNumberType
    names = {
        kinds.FIXED_LINE: "a fixed line",
        kinds.TOLL_FREE: "a toll-free number",
        kinds.PREMIUM_RATE: "a premium-rate number",
        kinds.SHARED_COST: "a shared-cost number",
        kinds.VOICEMAIL: "a voicemail number",
        kinds.UAN: "a company number",
    }
    return names.get(phonenumbers.number_type(number), "")


def _mobile_today(number: PhoneNumber | None) -> str:
    """Return a mobile number's form today, like ``a mobile has 9: +54 9 11 6677 3399``; empty if not certain."""
    import phonenumbers

    if number is None or not number.country_code:
        return ""
    region = phonenumbers.region_code_for_country_code(number.country_code)
    pattern, today, difference = OLD_FORMS.get(region, (_NEVER, "", ""))
    old = re.fullmatch(pattern, phonenumbers.national_significant_number(number))
    mobile = _parsed(f"+{number.country_code}{old.expand(today)}", None) if old else None
    if mobile is None or not phonenumbers.is_valid_number(mobile) or _without_sms(mobile):
        return ""
    written = phonenumbers.format_number(mobile, phonenumbers.PhoneNumberFormat.INTERNATIONAL)
    return f"{difference}: {written.replace('-', ' ')}"


class Reader:
    """Reads many numbers like `parse_number`, but is ten times faster for the usual spellings of mobile numbers.

    It matches them with libphonenumber's own patterns, for ``country`` and for the countries of earlier numbers.
    """

    _MAX_COUNTRIES = 8

    def __init__(self, country: str | None = None, *, sms: bool = False) -> None:
        self._country = country
        self._sms = sms
        self._code = ""
        self._codes: dict[str, str] = {}
        """The pattern of the mobile numbers of each country by its calling code."""
        self._national = self._own = _NEVER
        if country is not None:
            self._learn_own(country)
        self._match = self._compiled()

    def read(self, text: str) -> Phone:
        """Return the international number for a text. Raises InvalidPhoneError."""
        digits = self.quick(text)
        if digits is not None:
            return Phone(digits)
        phone = parse_number(text, self._country, sms=self._sms)
        self._learn(phone.digits)
        return phone

    def international(self, text: str) -> str | None:
        """Return the international number of a text; None if it is not a valid number."""
        try:
            return self.read(text).digits
        except InvalidPhoneError:
            return None

    def quick(self, text: str) -> str | None:
        """Return the digits of a mobile number in a usual spelling; None for any other text."""
        match = self._match(text) or self._match(text.translate(_PUNCTUATION))
        if match is None:
            return None
        return match[1] or match[2] or self._code + match[3]

    def _learn_own(self, country: str) -> None:
        import phonenumbers

        code = phonenumbers.country_code_for_region(country)
        metadata = phonenumbers.PhoneMetadata.metadata_for_region(country)
        mobile = _mobile_pattern(country)
        if metadata is None or not mobile:
            return
        general = metadata.general_desc and metadata.general_desc.national_number_pattern
        self._code = str(code)
        self._codes[self._code] = mobile
        self._national = mobile
        # A number that may be national is read by libphonenumber, even if it begins with the country's code.
        self._own = f"(?!(?:{_uncaptured(general or '')})$){code}{mobile}"

    def _learn(self, digits: str) -> None:
        """Remember the country of a number from `read`."""
        number = _parsed(f"+{digits}", None) if len(self._codes) < self._MAX_COUNTRIES else None
        if number is None or not number.country_code or str(number.country_code) in self._codes:
            return
        import phonenumbers

        region = phonenumbers.region_code_for_country_code(number.country_code)
        self._codes[str(number.country_code)] = _mobile_pattern(region) or _NEVER
        self._match = self._compiled()

    def _compiled(self) -> Callable[[str], re.Match[str] | None]:
        """Return the match function of a pattern: groups 1 and 2 are international numbers, group 3 a national one."""
        known = "|".join(code + mobile for code, mobile in self._codes.items()) or _NEVER
        plus = r"(?:\+|00)?" if self._country is None else r"(?:\+|00)"
        return re.compile(f"(?:{plus}({known})|({self._own})|({self._national}))$", re.ASCII).match


def _mobile_pattern(region: str) -> str:
    """Return the pattern of a region's mobile numbers without the country code; empty if the region has none."""
    import phonenumbers

    metadata = phonenumbers.PhoneMetadata.metadata_for_region(region)
    if metadata is None or metadata.mobile is None or not metadata.mobile.national_number_pattern:
        return ""
    prefix = metadata.national_prefix_for_parsing
    other = f"(?!{_uncaptured(prefix)})" if prefix else ""
    return f"(?!0){other}(?:{_uncaptured(metadata.mobile.national_number_pattern)})"


def _uncaptured(pattern: str) -> str:
    """Return a pattern of libphonenumber without capturing groups."""
    return re.sub(r"\((?!\?)", "(?:", pattern)


def as_typed(text: str) -> Phone:
    """Return the digits of a text without checking that the number exists: for short codes and test numbers.

    Raises InvalidPhoneError for a text that is not 3 to 15 digits.
    """
    digits, _ = _written(text)
    if not MIN_DIGITS <= len(digits) <= MAX_DIGITS:
        raise InvalidPhoneError(text, f"it has {len(digits)} digits", f"Give {MIN_DIGITS} to {MAX_DIGITS} digits.")
    return Phone(digits)


def country_of(digits: str | None) -> str | None:
    """Return the country of an international number (ISO 3166-1 alpha-2); None for a number without one."""
    if not digits or not digits.isdecimal():
        return None
    region, *others = _regions(digits[:3]) or (None,)
    if others:
        import phonenumbers

        if number := _parsed(f"+{digits}", None):
            region = phonenumbers.region_code_for_number(number)
    return region if region and region.isalpha() else None


@lru_cache(maxsize=1000)
def _regions(beginning: str) -> tuple[str, ...]:
    """Return the regions that share the country code at the beginning of a number; codes have one to three digits."""
    import phonenumbers

    codes = phonenumbers.COUNTRY_CODE_TO_REGION_CODE
    return next((codes[code] for length in (1, 2, 3) if (code := int(beginning[:length])) in codes), ())


def _written(text: str) -> tuple[str, bool]:
    """Return the digits of a text, and whether it has an international prefix. Raises InvalidPhoneError."""
    if text.isascii() and text.isdecimal():  # the usual case
        return (text[2:], True) if text.startswith("00") else (text, False)
    digits, plus = [], False
    for char in text:
        category = unicodedata.category(char)
        if category == "Nd":
            digits.append(str(unicodedata.decimal(char)))
        elif char in "+\N{FULLWIDTH PLUS SIGN}" and not digits and not plus:
            plus = True
        elif not (char.isspace() or category in ("Cf", "Pd") or char in _MARKS):
            raise InvalidPhoneError(text, f'it contains "{shorten(char)}"', WRITE_IN_FULL)
    written = "".join(digits)
    if not written:
        raise InvalidPhoneError(text, "it has no digits", WRITE_IN_FULL)
    if not plus and written.startswith("00"):
        return written[2:], True
    return written, plus


def _parsed(text: str, country: str | None) -> PhoneNumber | None:
    """Return the number as libphonenumber parses it; None for an unknown country code or an absurd length."""
    import phonenumbers

    try:
        return phonenumbers.parse(text, country)
    except phonenumbers.NumberParseException:
        return None


def _fault(number: PhoneNumber | None, country: str | None) -> str:
    """Return why a number is not valid: in a country, or if that is None, as an international number."""
    import phonenumbers

    if number is None or not number.country_code:
        return "its country code does not exist" if country is None else "it has too few or too many digits"
    where = country_name(country or phonenumbers.region_code_for_country_code(number.country_code))
    length = phonenumbers.is_possible_number_for_type_with_reason(number, phonenumbers.PhoneNumberType.MOBILE)
    if length in (phonenumbers.ValidationResult.TOO_SHORT, phonenumbers.ValidationResult.IS_POSSIBLE_LOCAL_ONLY):
        return f"too short for {where}"
    if length == phonenumbers.ValidationResult.TOO_LONG:
        return f"too long for {where}"
    return f"no such number exists in {where}"


_UNLISTED = {"AC": "Ascension Island", "TA": "Tristan da Cunha", "XK": "Kosovo"}
"""Regions of libphonenumber that are not in ISO 3166."""


def country_name(region: str | None) -> str:
    """Return a country's name for a sentence; libphonenumber's regions without a name are international services."""
    name = country_names().get(region or "") or _UNLISTED.get(region or "", "an international service")
    return f"the {name}" if re.match(_WITH_ARTICLE, name) else name


def with_country(digits: str) -> str:
    """Return an international number for people: ``+573001234567 (Colombia)``. A short code has no country."""
    country = country_of(digits)
    return f"+{digits} ({country_name(country)})" if country else digits


@cache
def country_names() -> dict[str, str]:
    """Return the English names of the 249 countries by their two-letter codes in upper case."""
    from importlib.resources import files  # few commands need it

    table = files("tzdata").joinpath("zoneinfo", "iso3166.tab").read_text(encoding="utf-8")
    rows = (line.partition("\t") for line in table.splitlines() if not line.startswith("#"))
    return {code: name for code, _, name in rows}
