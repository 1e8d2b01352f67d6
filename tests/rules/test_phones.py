"""Phone numbers: how texts are read, and why some are refused."""

from __future__ import annotations

import random
import re
from collections.abc import Sequence

import phonenumbers
import pytest
from hypothesis import given
from hypothesis import strategies as st
from phonenumbers import PhoneNumberFormat, PhoneNumberType

from msgctl import phones
from msgctl.phones import InvalidPhoneError

REGIONS = sorted(phonenumbers.SUPPORTED_REGIONS)


def example(region: str, kind: int = PhoneNumberType.MOBILE) -> phonenumbers.PhoneNumber | None:
    """The number that libphonenumber gives as an example of a kind in a country."""
    return phonenumbers.example_number_for_type(region, kind)


def digits(number: phonenumbers.PhoneNumber) -> str:
    return phonenumbers.format_number(number, PhoneNumberFormat.E164)[1:]


@pytest.mark.parametrize(
    ("text", "country"),
    [
        ("300 123 4567", "CO"),
        ("573001234567", "CO"),
        ("573001234567", None),
        ("+57 (300) 123-4567", None),
        ("0057.300 1234567", "MX"),
        ("00573001234567", "MX"),
        ("+573001234567", "MX"),
        ("\u202a+57\u00a0300\u202f123\u20114567\u202c", None),
        ("\uff0b\uff15\uff17 300 123 4567", None),
        ("\uff08+57\uff09300\uff0e123\u22124567", None),
    ],
)
def test_one_number_is_read_in_every_spelling(text: str, country: str | None) -> None:
    assert phones.parse_number(text, country) == ("573001234567", "")


def test_an_example_number_of_every_region_is_read_in_national_and_international_form() -> None:
    for region in REGIONS:
        number = example(region) or example(region, PhoneNumberType.FIXED_LINE_OR_MOBILE)
        if number is None or phonenumbers.number_type(number) == PhoneNumberType.FIXED_LINE:
            continue  # libphonenumber has no example of a mobile number there
        international = phonenumbers.format_number(number, PhoneNumberFormat.INTERNATIONAL)
        assert phones.parse_number(international, sms=True).digits == digits(number)
        assert phones.parse_number("00" + digits(number)).digits == digits(number)
        national = phonenumbers.format_number(number, PhoneNumberFormat.NATIONAL)
        assert phones.parse_number(national, region, sms=True) == (digits(number), "")


def test_a_number_of_another_country_is_read_with_the_name_of_that_country() -> None:
    assert phones.parse_number("12025550123", "CO") == ("12025550123", "the United States")
    assert phones.parse_number("+12025550123", "CO") == ("12025550123", "")
    assert phones.parse_number("12025550123") == ("12025550123", "")


def test_a_number_of_7_to_11_digits_may_only_lack_its_country() -> None:
    for length, is_shown, needs_country in ((6, True, False), (7, True, True), (11, True, True), (12, False, False)):
        with pytest.raises(InvalidPhoneError) as caught:
            phones.parse_number("9" * length)
        shown = f"{caught.value.message} {caught.value.hint}"
        assert ("--country-code" in shown, caught.value.needs_country) == (is_shown, needs_country)


def test_an_sms_cannot_be_sent_to_a_number_that_is_not_a_mobile() -> None:
    kinds = {
        PhoneNumberType.TOLL_FREE: "a toll-free number",
        PhoneNumberType.PREMIUM_RATE: "a premium-rate number",
        PhoneNumberType.SHARED_COST: "a shared-cost number",
        PhoneNumberType.VOICEMAIL: "a voicemail number",
        PhoneNumberType.UAN: "a company number",
    }
    for kind, name in kinds.items():
        numbers = [digits(found) for region in REGIONS if (found := example(region, kind))]
        assert numbers
        for number in numbers:
            assert phones.parse_number(f"+{number}").digits == number
            reader = phones.Reader(sms=True)
            for _ in range(2):
                with pytest.raises(InvalidPhoneError, match=f"it is {name}, which cannot receive an SMS"):
                    reader.read(f"+{number}")


def test_without_the_check_any_3_to_15_digits_are_a_number() -> None:
    for text, sent in (("87 654", "87654"), ("+57 000", "57000"), ("123", "123"), ("1" * 15, "1" * 15)):
        assert phones.as_typed(text).digits == sent
    for text in ("12", "1" * 16, "abc", ""):
        with pytest.raises(InvalidPhoneError):
            phones.as_typed(text)


@given(st.text(max_size=40), st.sampled_from([None, "CO", "US", "GB"]))
def test_any_text_becomes_digits_or_an_error(text: str, country: str | None) -> None:
    try:
        number = phones.parse_number(text, country)
    except InvalidPhoneError:
        return
    assert number.digits.isascii()
    assert number.digits.isdecimal()
    assert phones.parse_number("+" + number.digits).digits == number.digits


# --- many numbers


def _spellings(region: str) -> list[str]:
    """Return example numbers of a region in many spellings, and the same with a digit that is changed."""
    dice = random.Random(region)
    texts = []
    for kind in (PhoneNumberType.MOBILE, PhoneNumberType.FIXED_LINE, PhoneNumberType.TOLL_FREE):
        if (number := example(region, kind)) is not None:
            national = phonenumbers.national_significant_number(number)
            code = str(number.country_code)
            trunk = phonenumbers.ndd_prefix_for_region(region, True) or ""
            plain = [national, code + national, f"+{code}{national}", f"00{code}{national}", trunk + national]
            texts += [*plain, code + trunk + national, phonenumbers.format_number(number, 1)]
            for text in plain:
                place = dice.randrange(1, len(text))
                texts += [text[:place] + dice.choice("0123456789") + text[place + 1 :], text + "7", text[:-1]]
    return texts


@pytest.mark.parametrize("regions", [("AR", "CO", "US"), pytest.param(REGIONS, marks=pytest.mark.slow)], ids=len)
def test_a_reader_of_many_numbers_reads_each_as_read_does(regions: Sequence[str]) -> None:
    for region in regions:
        for country in (None, region):
            reader = phones.Reader(country, sms=True)
            for text in _spellings(region):
                try:
                    expected = phones.parse_number(text, country, sms=True)
                except phones.InvalidPhoneError as error:
                    with pytest.raises(phones.InvalidPhoneError, match=re.escape(error.problem)):
                        reader.read(text)
                else:
                    assert reader.read(text) == expected, (region, country, text)


def test_a_reader_caches_the_patterns_of_eight_countries(monkeypatch: pytest.MonkeyPatch) -> None:
    slow: list[str] = []
    reader = phones.Reader()
    texts = [digits(number) for region in "CO ES FR GB PE CL BR EC BO".split() if (number := example(region))]
    for text in texts * 2:
        if reader.quick(text) is None:
            slow.append(text)
        assert reader.read(text).digits == text
    assert slow == [*texts, texts[8]]


@pytest.mark.parametrize(
    ("country", "text"),
    [("CO", "3001234567"), ("CO", "573001234567"), ("CO", "+57 (300) 123-4567"), (None, "573001234567"),
     ("ES", "612345678"), ("US", "4155550123"), (None, "0057 300 123.4567")],
)  # fmt: skip
def test_a_reader_matches_usual_spellings_with_a_pattern(country: str | None, text: str) -> None:
    reader = phones.Reader(country)
    reader.read(text)
    assert reader.quick(text) == phones.parse_number(text, country).digits


def test_a_reader_reads_rare_spellings_in_the_same_way_as_read() -> None:
    american = phones.Reader("US")
    for _ in range(2):  # the second time, the reader knows the country
        assert american.read("573001234567") == ("573001234567", "Colombia")
    assert phones.Reader("CO").read("300123456\uff17") == ("573001234567", "")
    with pytest.raises(InvalidPhoneError, match="fixed line"):  # in Germany, it is the number of a town
        phones.Reader("DE", sms=True).read("4915123456789")
    assert american.international("+57 300 123 4567") == "573001234567"
    assert american.international("Ana") is None
    assert phones.Reader().international("+800 1234 5678") == "80012345678"  # this number belongs to no country


def test_the_country_of_a_number_agrees_with_libphonenumber() -> None:
    numbers = [number for region in REGIONS if (number := phonenumbers.example_number(region))]
    assert [phones.country_of(digits(each)) for each in numbers] == [
        phonenumbers.region_code_for_number(each) for each in numbers
    ]
    assert {phones.country_of(text) for text in (None, "", "999", "abc", "80012345678")} == {None}


@pytest.mark.parametrize(
    ("region", "name"),
    [
        ("CO", "Colombia"),
        ("US", "the United States"),
        ("NL", "the Netherlands"),
        ("CK", "the Cook Islands"),
        ("DO", "the Dominican Republic"),
        ("XK", "Kosovo"),
        ("001", "an international service"),
        (None, "an international service"),
    ],
)
def test_a_country_has_its_name_in_a_sentence(region: str | None, name: str) -> None:
    assert phones.country_name(region) == name


def test_a_number_is_shown_with_its_country_and_a_short_code_without_one() -> None:
    assert phones.with_country("573001234567") == "+573001234567 (Colombia)"
    assert [phones.with_country(digits) for digits in ("999123", "80012345678")] == ["999123", "80012345678"]
    names = phones.country_names()
    assert (len(names), names["CO"], names["AD"], names["ZW"]) == (249, "Colombia", "Andorra", "Zimbabwe")


def test_a_number_that_may_be_national_has_at_most_11_digits_and_no_prefix() -> None:
    texts = ("30012345678", "300123456789", "+3001234567", "003001234567", "300 123 4567")
    assert [phones.may_be_national(text) for text in texts] == [True, False, False, False, True]
