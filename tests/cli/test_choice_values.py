"""Values from a list or a range: voices, retries, categories, country codes, months; and a stored audio."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from cli.typed import PHONE, refused, used
from contract.interface import CALL_2FA_VOICES, CALL_VOICES, CATEGORIES, PREMIUM_CATEGORIES
from support.service import Service
from support.tool import Tool

CALL = ("call", "send", PHONE, "-m", "Hola")
CALL_2FA = ("2fa", "send-call", PHONE, "--app-name", "Shop")
STATS = ("url", "stats", "offers", "--since", "2026-01-01")
SHORTEN = ("url", "shorten", "https://example.com/", "--name", "offers")
AUDIO = ("call", "send", PHONE, "--audio-code", "A-1029")

SPEAKING = [(CALL, CALL_VOICES), (CALL_2FA, CALL_2FA_VOICES)]
each_speaking = pytest.mark.parametrize(("command", "voices"), SPEAKING, ids=["call", "2fa"])


# --- voices ---


@pytest.mark.parametrize("write", [str, str.upper, str.lower, str.swapcase])
@pytest.mark.parametrize(
    ("command", "voice"),
    [(command, voice) for command, voices in SPEAKING for voice in voices],
    ids=lambda each: each[0],
)
def test_a_voice_is_sent_in_the_spelling_of_the_interface(
    command: tuple[str, ...], voice: str, write: Callable[[str], str], tool: Tool, service: Service
) -> None:
    assert used(tool, service, *command, "--voice", write(voice))["voice"] == voice


@each_speaking
@pytest.mark.parametrize(
    "typed", ["Nobody", "", " ", "Mia ", "Mia,Lucia", "Marian a", "0", "Mıa", "Conchitа"], ids=ascii
)
def test_another_voice_is_refused_with_the_allowed_ones(
    command: tuple[str, ...], voices: tuple[str, ...], typed: str, tool: Tool, service: Service
) -> None:
    refused(tool, service, *command, "--voice", typed, names=(f"'{typed}'", ", ".join(voices)))


@pytest.mark.parametrize(
    ("command", "typed", "meant"),
    [
        (CALL, "Mariana", "Marian"),
        (CALL, "mariana", "Marian"),
        (CALL_2FA, "Marian", "Mariana"),
        (CALL_2FA, "MARIAN", "Mariana"),
        (CALL, "Penelop", "Penelope"),
        (CALL, "Migel", "Miguel"),
        (CALL_2FA, "lusia", "Lucia"),
    ],
)
def test_the_nearest_voice_is_suggested(
    command: tuple[str, ...], typed: str, meant: str, tool: Tool, service: Service
) -> None:
    refused(tool, service, *command, "--voice", typed, names=(f"'{typed}'", f"Did you mean {meant}?"))


def test_nothing_is_suggested_where_nothing_is_near(tool: Tool, service: Service) -> None:
    assert "Did you mean" not in refused(tool, service, *CALL, "--voice", "Xyzzy", names=("'Xyzzy'",))


@each_speaking
def test_a_voice_is_needed(command: tuple[str, ...], voices: tuple[str, ...], tool: Tool, service: Service) -> None:
    refused(tool, service, *command, names=("--voice", ", ".join(voices)))


# --- retries ---


each_retrying = pytest.mark.parametrize(
    "command", [(*CALL, "--voice", "Mia"), (*CALL_2FA, "--voice", "Mia"), AUDIO], ids=["call", "2fa", "audio"]
)


@each_retrying
@pytest.mark.parametrize("typed", ["1", "2", "3"])
def test_one_to_three_attempts_are_sent(command: tuple[str, ...], typed: str, tool: Tool, service: Service) -> None:
    assert used(tool, service, *command, "--retries", typed)["retries"] == typed


@each_retrying
@pytest.mark.parametrize(
    "typed",
    ["0", "4", "-1", "+1", "10", "1.0", "1e0", "", " ", " 1", "one", "0x1", "1_0", "١", "１", "²", "9" * 30],
    ids=ascii,
)
def test_other_attempts_are_refused(command: tuple[str, ...], typed: str, tool: Tool, service: Service) -> None:
    refused(tool, service, *command, "--retries", typed, names=(f"'{typed}'", "--retries", "from 1 to 3"))


# --- a stored audio ---


@pytest.mark.parametrize(
    "more",
    [
        ("-m", "Hola"),
        ("--message-file", "-"),
        ("--voice", "Mia"),
        ("-m", "Hola", "--voice", "Mia"),
        ("-m", ""),
        ("--voice", ""),
    ],
    ids=str,
)
def test_a_stored_audio_excludes_message_and_voice(more: tuple[str, ...], tool: Tool, service: Service) -> None:
    options = [{"-m": "--message"}.get(word, word) for word in more if word.startswith("-") and word != "-"]
    refused(tool, service, *AUDIO, *more, names=("--audio-code", *options, "exclude"), stdin="Hola")


def test_standard_input_is_not_read_for_a_stored_audio(tool: Tool, service: Service) -> None:
    form = used(tool, service, *AUDIO, stdin=b"for the next command")
    assert form.keys() == {"client", "key", "phone", "audio-code"}
    assert tool(*AUDIO, "-n", stdin=b"for the next command").unread == b"for the next command"


def test_a_stored_audio_needs_no_message_on_a_terminal(tool: Tool, service: Service) -> None:
    assert "message" not in used(tool, service, *AUDIO, terminal=True)


@pytest.mark.parametrize(("option", "sent"), [("--leave-voicemail", "true"), ("--no-leave-voicemail", "false")])
def test_the_voicemail_option_is_sent_in_both_ways(option: str, sent: str, tool: Tool, service: Service) -> None:
    assert used(tool, service, *AUDIO, option)["leave-voicemail"] == sent


# --- categories ---


@pytest.mark.parametrize("write", [str, str.upper, str.lower])
@pytest.mark.parametrize("category", CATEGORIES + PREMIUM_CATEGORIES)
def test_a_category_is_sent_in_the_spelling_of_the_interface(
    category: str, write: Callable[[str], str], tool: Tool, service: Service
) -> None:
    assert used(tool, service, *STATS, "--category", write(category))["category"] == category


@pytest.mark.parametrize("typed", ["", "week", "operating-system", "date,hour", "countries", "ſ"], ids=ascii)
def test_another_category_is_refused_with_the_allowed_ones(typed: str, tool: Tool, service: Service) -> None:
    allowed = ", ".join(CATEGORIES + PREMIUM_CATEGORIES)
    refused(tool, service, *STATS, "--category", typed, names=(f"'{typed}'", allowed))


def test_the_nearest_category_is_suggested(tool: Tool, service: Service) -> None:
    refused(tool, service, *STATS, "--category", "operating-system", names=("Did you mean operatingSystem?",))


# --- country codes ---


each_with_country = pytest.mark.parametrize(
    "command",
    [
        ("sms", "send", PHONE, "-m", "Hola"),
        (*CALL, "--voice", "Mia"),
        AUDIO,
        ("2fa", "send-sms", PHONE, "--app-name", "Shop"),
        (*CALL_2FA, "--voice", "Mia"),
        ("2fa", "send-chatapp", PHONE, "--app-name", "Shop"),
        ("2fa", "verify", PHONE, "--app-name", "Shop", "--code", "480615"),
    ],
    ids=lambda command: " ".join(command[:2]),
)


@each_with_country
def test_a_country_code_is_sent_in_upper_case(command: tuple[str, ...], tool: Tool, service: Service) -> None:
    assert used(tool, service, *command, "--country-code", "cO")["country-code"] == "CO"


@each_with_country
def test_every_command_refuses_what_is_no_country(command: tuple[str, ...], tool: Tool, service: Service) -> None:
    refused(tool, service, *command, "--country-code", "COL", names=("'COL'", "country code", "ISO 3166-1"))


@pytest.mark.parametrize(
    "typed", ["", " ", "C", "XX", "UK", "EU", "57", "CO ", "C0", "ß", "ﬁ", "ıt", "ＣＯ", "Co\u0301"], ids=ascii
)
def test_what_is_no_country_is_refused(typed: str, tool: Tool, service: Service) -> None:
    command = ("sms", "send", PHONE, "-m", "Hola", "--country-code", typed)
    refused(tool, service, *command, names=(f"'{typed}'", "two-letter codes of ISO 3166-1"))


# --- months, credits ---


@pytest.mark.parametrize("typed", ["0", "1", "12", "1200"])
def test_months_are_sent_the_default_of_the_service_too(typed: str, tool: Tool, service: Service) -> None:
    form = used(tool, service, *SHORTEN, "--expiration-months", typed)
    assert form["expiration-time-statistics"] == typed


@pytest.mark.parametrize("typed", ["-1", "", "1.5", "six", "1 month", "٣", "1e3"], ids=ascii)
def test_months_below_zero_or_no_number_are_refused(typed: str, tool: Tool, service: Service) -> None:
    names = (f"'{typed}'", "--expiration-months", "0 or more")
    refused(tool, service, *SHORTEN, "--expiration-months", typed, names=names)


def test_months_beyond_reason_are_refused_with_the_limit(tool: Tool, service: Service) -> None:
    refused(tool, service, *SHORTEN, "--expiration-months", "9" * 5000, names=("at most 19 digits",))


@pytest.mark.parametrize("typed", ["", "-1", "many", "1.5", "٣"], ids=ascii)
def test_a_least_balance_that_is_no_number_is_refused(typed: str, tool: Tool, service: Service) -> None:
    refused(tool, service, "balance", "check", "--min", typed, names=(f"'{typed}'", "--min", "0 or more"))
