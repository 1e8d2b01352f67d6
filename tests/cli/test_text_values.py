"""Short texts (names, templates, codes, identifiers), and the URLs to shorten."""

from __future__ import annotations

import pytest

from cli.typed import ANSWER, PHONE, refused, used
from contract.commands import FULL, Line
from support.service import Service, answer
from support.tool import Tool

OPTIONS = {
    "name": "--name",
    "alias": "--alias",
    "group-name": "--group-name",
    "domain-name": "--domain-name",
    "app-name": "--app-name",
    "audio-code": "--audio-code",
    "template": "--template",
    "code": "--code",
    "name-url": "NAME",
    "id": "ID",
    "sms": "message",
    "message": "message",
    "body": "VALUE",
}

SHORTEN = ("url", "shorten", "--name", "offers")
VERIFY = ("2fa", "verify", PHONE, "--app-name", "Shop")

texts = pytest.mark.parametrize(
    ("line", "name"),
    [(line, name) for line in FULL for name in (*line.free, *line.prose)],
    ids=lambda each: each if isinstance(each, str) else each.command[1],
)
lines = pytest.mark.parametrize(
    ("line", "name"),
    [(line, name) for line in FULL for name in line.free],
    ids=lambda each: each if isinstance(each, str) else each.command[1],
)


@texts
@pytest.mark.parametrize("text", ["", "  ", "\u2003"], ids=ascii)
def test_nothing_is_sent_empty_or_blank(line: Line, name: str, text: str, tool: Tool, service: Service) -> None:
    refused(tool, service, *line.with_text(name, text).command, names=(OPTIONS[name], "empty"))


@texts
def test_a_text_that_is_not_utf8_is_refused(line: Line, name: str, tool: Tool, service: Service) -> None:
    names = (OPTIONS[name], "UTF-8", r"'a\udcffb'")
    refused(tool, service, *line.with_text(name, "a\udcffb").command, names=names)


@texts
def test_a_control_character_is_refused(line: Line, name: str, tool: Tool, service: Service) -> None:
    names = (OPTIONS[name], "U+001B", r"'a\x1b[2Jb'")
    refused(tool, service, *line.with_text(name, "a\x1b[2Jb").command, names=names)


@lines
def test_a_short_text_has_one_line(line: Line, name: str, tool: Tool, service: Service) -> None:
    refused(tool, service, *line.with_text(name, "a\nb").command, names=(OPTIONS[name], "U+000A", r"'a\nb'"))


@pytest.mark.parametrize(
    ("command", "option"),
    [
        (("2fa", "send-sms", PHONE), "--app-name"),
        (("2fa", "send-call", PHONE, "--voice", "Mia"), "--app-name"),
        (("2fa", "send-chatapp", PHONE), "--app-name"),
        (("2fa", "verify", PHONE, "--code", "480615"), "--app-name"),
        (("url", "shorten", "https://example.com/"), "--name"),
        (("url", "stats", "--since", "7d"), "NAME"),
        (("chatapp", "send", PHONE), "--template"),
        (("chatapp", "order", PHONE), "--template"),
        (("state", "get"), "ID"),
        (("state", "watch"), "ID"),
        (("balance", "check"), "--min"),
    ],
    ids=str,
)
def test_what_is_needed_and_missing_is_named(
    command: tuple[str, ...], option: str, tool: Tool, service: Service
) -> None:
    refused(tool, service, *command, names=(option,))


# --- URLs ---


@pytest.mark.parametrize(
    "url",
    [
        "https://example.com",
        "http://example.com/",
        "HTTPS://Example.COM/Path",
        "https://example.com:8443/a?b=c&d=%2B+e#f",
        "https://192.0.2.1/",
        "https://[2001:db8::1]:80/",
        "https://user:word@example.com/",
        "https://exämple.com/ñ/漢?q=😀",
        "https://under_score.example.com./",
        "http://localhost/",
        "https://example.com/{id}|[x]^`",
    ],
)
def test_an_absolute_http_url_is_sent_as_it_was_typed(url: str, tool: Tool, service: Service) -> None:
    assert used(tool, service, *SHORTEN, url)["url-long"] == url


@pytest.mark.parametrize(
    "url",
    [
        *("", " ", "example.com", "www.example.com/a", "/a", "//example.com/a", "?a=b", "#a", "https", "https:"),
        *("https://", "http:///a", "https:example.com", "http:/example.com", "https://?q", "https://#f", "https://@"),
        *("https://:443", "https://example.com:0/", "https://example.com:99999/", "https://example.com:x/"),
        *("ftp://example.com", "javascript:alert(1)", "mailto:a@example.com", "file:///etc/passwd", "data:,x"),
        *("https://exa mple.com/", "https://example.com/a b", " https://example.com/", "https://example.com/ "),
        *("https://[::1", "https://[zz]/", "https://a..example.com/", "https://./", "https://a\\b.example.com/"),
        *("https://<host>/", "https://{host}/", "hTTps ://example.com"),
    ],
)
def test_another_url_is_refused(url: str, tool: Tool, service: Service) -> None:
    refused(tool, service, *SHORTEN, url, names=(f"'{url}'", "absolute http or https URL"))


@pytest.mark.parametrize("char", ["\n", "\t", "\x00", "\x1b", "\u202e", "\u200b", "\udcff", "\u2028"], ids=ascii)
def test_a_url_holds_nothing_that_cannot_be_seen(char: str, tool: Tool, service: Service) -> None:
    said = refused(tool, service, *SHORTEN, f"https://example.com/{char}a", names=("absolute http or https URL",))
    assert char not in said


def test_a_url_beyond_reason_is_refused_and_not_quoted_whole(tool: Tool, service: Service) -> None:
    said = refused(tool, service, *SHORTEN, "https://example.com/" + "a" * 100_000, names=("'https://example.com/aaa",))
    assert len(said) < 500


# --- Codes ---


def test_a_code_is_given_by_an_option(tool: Tool, service: Service) -> None:
    assert used(tool, service, *VERIFY, "--code", "480 615", stdin="7\n")["code"] == "480 615"


@pytest.mark.parametrize("line", ["480615", "480615\n", "480615\r\n", "  480615 \n"], ids=ascii)
def test_a_code_is_read_as_one_line_of_standard_input(line: str, tool: Tool, service: Service) -> None:
    assert used(tool, service, *VERIFY, "--code", "-", stdin=line)["code"] == "480615"


def test_lines_after_the_code_are_left_to_others(tool: Tool, service: Service) -> None:
    service.will(answer(ANSWER))
    outcome = tool(*VERIFY, "--code", "-", stdin="480615\nnext\n")
    assert (outcome.code, outcome.unread) == (0, b"next\n")


def test_a_code_is_asked_for_on_a_terminal(tool: Tool, service: Service) -> None:
    service.will(answer(ANSWER))
    outcome = tool(*VERIFY, stdin="480615\n", terminal=True)
    assert outcome.code == 0
    assert "Code: " in outcome.err
    assert "Code: " not in outcome.out
    assert dict(service.received[0].form)["code"] == "480615"


def test_a_code_is_asked_for_only_when_everything_else_is_right(tool: Tool, service: Service) -> None:
    for command in (("2fa", "verify", PHONE), ("2fa", "verify", "57", "--app-name", "Shop")):
        outcome = tool(*command, stdin="480615\n", terminal=True)
        assert (outcome.code, outcome.unread) == (2, b"480615\n")
        assert "Code: " not in outcome.err


def test_a_question_without_an_answer_sends_nothing(tool: Tool, service: Service) -> None:
    outcome = tool(*VERIFY, terminal=True)
    assert (outcome.code, outcome.out, service.received) == (130, "", [])


def test_a_code_that_is_missing_in_a_pipe_is_not_taken_from_it(tool: Tool, service: Service) -> None:
    refused(tool, service, *VERIFY, names=("--code", "missing"), stdin="480615\n")
    assert tool(*VERIFY, stdin="480615\n").unread == b"480615\n"


@pytest.mark.parametrize(
    ("content", "fault"),
    [(b"", "empty"), (b"\n480615\n", "empty"), (b" \t\n", "empty"), (b"\xff\n", "UTF-8"), (b"4\x008\n", "U+0000")],
    ids=ascii,
)
def test_a_line_that_is_no_code_is_refused(content: bytes, fault: str, tool: Tool, service: Service) -> None:
    refused(tool, service, *VERIFY, "--code", "-", names=("--code", fault), stdin=content)


def test_a_line_without_an_end_is_no_code(tool: Tool, service: Service) -> None:
    refused(tool, service, *VERIFY, "--code", "-", names=("the code", "1024"), stdin="4" * 100_000)


@pytest.mark.parametrize("content", [b"\xff\n", b"\n", b"\x1b[A\n"], ids=ascii)
def test_an_answer_that_is_no_code_is_refused(content: bytes, tool: Tool, service: Service) -> None:
    outcome = tool(*VERIFY, stdin=content, terminal=True)
    assert (outcome.code, outcome.out, service.received) == (2, "", [])
    assert "mistake of its own" not in outcome.err
