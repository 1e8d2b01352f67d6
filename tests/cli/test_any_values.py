"""Whatever is typed, it is used or it is refused: no other exit code, no traceback, nothing in between."""

from __future__ import annotations

import re
from collections.abc import Callable

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from cli.typed import ANSWER, PHONE
from contract.interface import CALL_2FA_VOICES, CALL_VOICES, CATEGORIES, PREMIUM_CATEGORIES
from support.service import Service, answer
from support.tool import Outcome, Tool

Check = Callable[[str, str], object]

MEANINGFUL = "0123456789+-.() ,dT:/@[]%\\\"'=&#?{}\x00\x1b\n\t\x9b\u202e\u00a0\u0301٣５²ßéñK😀漢\udcff\ud800"
WORDS = "today yesterday 7d 2026-02-30 57300 Mia Mariana marian date CO co https:// http:// example.com - -- -n --help"

any_text = (
    st.text(max_size=40)
    | st.text(st.sampled_from(MEANINGFUL), max_size=20)
    | st.lists(st.sampled_from([*WORDS.split(), *MEANINGFUL]), max_size=5).map("".join)
)


def matches(pattern: str) -> Check:
    return lambda sent, _: re.fullmatch(pattern, sent, re.ASCII)


def one_of(*allowed: str) -> Check:
    return lambda sent, typed: sent in allowed and sent.lower() == typed.lower()


def as_typed(sent: str, typed: str) -> bool:
    return sent == typed


SMS = ("sms", "send", PHONE, "-m", "Hola")
CALL = ("call", "send", PHONE, "-m", "Hola")
CALL_2FA = ("2fa", "send-call", PHONE, "--app-name", "Shop")
STATS = ("url", "stats", "offers")
SHORTEN = ("url", "shorten", "https://example.com/", "--name", "n")

# The last word of a command is followed by the text at once, so that an option takes it whatever it looks like.
VALUES: list[tuple[tuple[str, ...], str, Check]] = [
    (("sms", "send", "-m", "Hola", "--", ""), "phone", matches(r"[0-9]{5,15}(,[0-9]{5,15})*")),
    (("block", "add", "--", ""), "phone", matches(r"[0-9]{5,15}")),
    ((*SMS, "--country-code="), "country-code", matches(r"[A-Z]{2}")),
    (("sms", "send", PHONE, "--message="), "sms", as_typed),
    (("sms", "send", PHONE, "--gsm7", "--message="), "sms", lambda sent, _: sent.strip()),
    ((*CALL, "--voice="), "voice", one_of(*CALL_VOICES)),
    ((*CALL_2FA, "--voice="), "voice", one_of(*CALL_2FA_VOICES)),
    ((*CALL, "--voice", "Mia", "--retries="), "retries", matches(r"[123]")),
    (("call", "send", PHONE, "--audio-code="), "audio-code", as_typed),
    ((*STATS, "--until", "9999-12-31", "--since="), "since", matches(r"\d{4}-\d\d-\d\d")),
    ((*STATS, "--since", "0001-01-01", "--until="), "until", matches(r"\d{4}-\d\d-\d\d")),
    ((*STATS, "--since", "7d", "--category="), "category", one_of(*CATEGORIES, *PREMIUM_CATEGORIES)),
    (("url", "stats", "--since", "7d", "--", ""), "name-url", as_typed),
    (("url", "shorten", "--name", "n", "--", ""), "url-long", as_typed),
    ((*SHORTEN, "--alias="), "alias", as_typed),
    ((*SHORTEN, "--expiration-months="), "expiration-time-statistics", matches(r"[0-9]+")),
    (("2fa", "send-sms", PHONE, "--app-name="), "app-name", as_typed),
    (("2fa", "verify", PHONE, "--app-name", "Shop", "--code="), "code", as_typed),
]


def is_used_or_refused(outcome: Outcome, service: Service) -> bool:
    assert outcome.code in {0, 2}, outcome.err
    assert "Traceback" not in outcome.err
    if outcome.code == 0:
        return len(service.received) == 1
    return outcome.err.startswith("Error: ") and (outcome.out, service.received) == ("", [])


def cleared(service: Service) -> Service:
    service.received.clear()
    service.always(answer(ANSWER))
    return service


@pytest.mark.parametrize(("command", "name", "check"), VALUES, ids=[f"{each[0][1]} {each[1]}" for each in VALUES])
@settings(deadline=None, max_examples=40, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(text=any_text)
def test_any_text_is_used_or_refused(
    command: tuple[str, ...], name: str, check: Check, tool: Tool, service: Service, text: str
) -> None:
    cleared(service)
    outcome = tool(*command[:-1], command[-1] + text, stdin=b"")
    assert is_used_or_refused(outcome, service)
    if outcome.code == 0:
        assert check(dict(service.received[0].form)[name], text)


@settings(deadline=None, max_examples=60, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(content=st.binary(max_size=40) | any_text.map(lambda text: text.encode("utf-8", "surrogatepass")))
def test_any_bytes_of_a_pipe_are_a_message_or_refused(content: bytes, tool: Tool, service: Service) -> None:
    cleared(service)
    outcome = tool("sms", "send", PHONE, stdin=content)
    assert is_used_or_refused(outcome, service)
    if outcome.code == 0:
        assert dict(service.received[0].form)["sms"] == content.decode("utf-8-sig").rstrip("\r\n")


JSON_PIECES = ["{", "}", "[", "]", ":", ",", '"', '"a"', "1", "-1.5e3", "null", "NaN", " ", "\\", "\ufeff", "\x00", "é"]


@settings(deadline=None, max_examples=100, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    content=st.binary(max_size=30)
    | st.lists(st.sampled_from(JSON_PIECES), max_size=12).map(lambda pieces: "".join(pieces).encode())
    | st.lists(st.sampled_from(JSON_PIECES), max_size=6).map(lambda pieces: ('{"a":' + "".join(pieces) + "}").encode())
)
def test_any_bytes_of_a_body_are_sent_as_they_are_or_refused(content: bytes, tool: Tool, service: Service) -> None:
    cleared(service)
    outcome = tool("chatapp", "send", "--template", "t", "--body", "-", stdin=content)
    assert is_used_or_refused(outcome, service)
    if outcome.code == 0:
        assert service.received[0].body == content.removeprefix(b"\xef\xbb\xbf")
