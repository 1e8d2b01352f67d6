"""Limits of texts: the longest that is accepted or shown completely, and one character more."""

from __future__ import annotations

import json
import time
from io import StringIO
from pathlib import Path
from typing import Any

import pytest

from msgctl.cli.shell.errors import MAX_WORD
from msgctl.cli.shell.prompts import MAX_INPUT
from msgctl.config.credential import MAX_OUTPUT, key_of_command
from msgctl.config.profiles import MAX_KEY, key_fault
from msgctl.errors import ConfigurationError
from msgctl.http.client import MAX_LOGGED_CHARACTERS, MAX_LOGGED_LINES, MAX_REQUEST_URL
from msgctl.http.response import MAX_QUOTED_BODY, details_of
from msgctl.outcomes.record import MAX_STORED, text_to_store
from msgctl.outcomes.words import MAX_TEXT, cut
from msgctl.output.fields import MAX_REPEATED
from msgctl.output.printer import terminal_width
from support.commands import PHONE
from support.jobs import of_phones
from support.service import Service, respond
from support.tool import Tool


def test_a_key_has_at_most_4096_characters() -> None:
    assert [key_fault(key) for key in ("k" * MAX_KEY, "k" * (MAX_KEY + 1), " ", "a\x1bbcdef", "señal\u200d")] == [
        None, "is longer than 4096 characters", "is empty", "contains control characters, or is not UTF-8 text", None,
    ]  # fmt: skip


def test_a_key_command_prints_at_most_64_kib() -> None:
    rest = "; head -c {} /dev/zero"
    assert key_of_command("key_command", "echo a-key" + rest.format(MAX_OUTPUT - 6)) == "a-key"
    with pytest.raises(ConfigurationError, match="printed over 65,536 bytes"):
        key_of_command("key_command", "echo a-key" + rest.format(MAX_OUTPUT - 5))


def test_the_name_of_a_job_has_at_most_100_characters_and_is_no_id(service: Service, tool: Tool, home: Path) -> None:
    file = of_phones(home, [PHONE])
    names = {"n" * 100: 0, "A-1_b.c": 0, "n" * 101: 2, "a b": 2, "ñ": 2, "20261121-362e8c": 2, "": 2}
    for name, code in names.items():
        done = tool("sms", "bulk", file, "-m", "Hola", "--name", name, "--dry-run")
        assert (done.code, "--name must contain only letters" in done.err) == (code, code == 2), name


def test_a_value_of_a_response_is_stored_up_to_4096_characters() -> None:
    long = "x" * MAX_STORED
    values: list[Any] = [long, f"{long}x", "é\ud800", "", None, [], {}, True, False]
    assert [text_to_store(value) for value in values] == [
        long, f"{long}…", "é\\ud800", None, None, None, None, "true", "false",
    ]  # fmt: skip
    assert [cut("x" * MAX_TEXT), cut("x" * (MAX_TEXT + 1))] == ["x" * MAX_TEXT, "x" * MAX_TEXT + " ?"]


def test_an_error_has_the_json_of_a_body_of_at_most_4000_characters() -> None:
    body = json.dumps({"msg": "x"}).ljust(MAX_QUOTED_BODY)
    assert details_of(400, body.encode(), {"msg": "x"}) == (400, {"msg": "x"}, body, {"msg": "x"})
    assert details_of(400, f"{body} ".encode(), {"msg": "x"}) == (400, {"msg": "x"}, body, None)
    for length, shown in (
        (MAX_QUOTED_BODY - 1, MAX_QUOTED_BODY - 1),
        (MAX_QUOTED_BODY, MAX_QUOTED_BODY),
        (MAX_QUOTED_BODY + 5, MAX_QUOTED_BODY),
    ):
        record = details_of(400, b"", {"error": 7, "msg": "x" * length, "other": 1}).record
        assert (record["error"], len(record["msg"])) == (7, shown)


def test_a_field_of_a_dispatch_is_repeated_up_to_200_characters(service: Service, tool: Tool) -> None:
    entry = {"id": "m1", "status": "queued", "credits": 1, "phone": PHONE}
    for length, end in ((MAX_REPEATED, "x"), (MAX_REPEATED + 1, "x…")):
        service.will(respond({"id": "d" + "x" * (length - 1), "status": 1, "data": [entry]}))
        done = tool("sms", "send", PHONE, "-m", "Hola", "-o", "tsv", "--no-header", "--fields", "dispatch.id")
        assert done.out.removesuffix("\n") == "d" + "x" * (MAX_REPEATED - 2) + end


@pytest.mark.parametrize(
    ("columns", "width"),
    [("0", 80), ("1", 10), ("9", 10), ("11", 11), ("99999", 99999), ("100000", 80), ("-5", 80), ("٣٣", 80), ("", 80)],
)
def test_the_width_of_a_terminal_is_from_10_to_99999_columns(
    columns: str, width: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", columns)
    assert terminal_width(StringIO()) == width


def test_the_log_has_at_most_100_lines_and_4000_characters_of_a_body(service: Service, tool: Tool) -> None:
    def logged(body: str) -> list[str]:
        service.will(respond(body.encode(), 400))
        lines = tool("balance", "-vv").err.splitlines()
        first = next(number for number, line in enumerate(lines) if line.startswith("< x"))
        return [line for line in lines[first:] if line.startswith("< x") or line == "< …"]

    long = "x" * MAX_LOGGED_CHARACTERS
    assert logged(long) == [f"< {long}"]
    assert logged(f"{long}x") == [f"< {long[:-1]}…"]
    assert logged(f"{long}\nx") == [f"< {long}", "< …"]
    assert logged(f"{long[:-1]}\nx") == [f"< {long[:-1]}", "< x"]
    emoji = "😀" * MAX_LOGGED_CHARACTERS  # four bytes each
    assert logged(f"x{emoji[1:]}") == [f"< x{emoji[1:]}"]
    assert logged(f"x{emoji}") == [f"< x{emoji[2:]}…"]
    assert logged("x\r\nx\r\n") == ["< x", "< x"]
    assert logged("x\n" * MAX_LOGGED_LINES) == ["< x"] * MAX_LOGGED_LINES
    assert logged("x\n" * (MAX_LOGGED_LINES + 1)) == ["< x"] * MAX_LOGGED_LINES + ["< …"]


def test_a_code_has_a_time_only_if_it_is_valid_for_less_than_100000_minutes(service: Service, tool: Tool) -> None:
    for minutes, is_shown in ((99_999, True), (100_000, False)):
        sent = {"id": "m1", "status": "queued", "credits": 1, "phone": PHONE}
        service.will(respond({"id": "d1", "status": 1, "minutes_to_expire": minutes, "data": [sent]}))
        done = tool("2fa", "send-sms", PHONE, "--app-name", "Shop", screen=True)
        assert ("valid until" in done.err + done.out) is is_shown


def test_a_url_has_at_most_65000_bytes(service: Service, tool: Tool) -> None:
    service.always(respond({"id": "m1", "state": "queued"}))
    assert tool("state", "get", "x").code == 0
    length = len(service.base_url.removesuffix("/api/v1") + service.received[0].target)
    for missing, code in ((MAX_REQUEST_URL - length, 0), (MAX_REQUEST_URL + 1 - length, 2)):
        assert tool("state", "get", "x" * (1 + missing)).code == code


@pytest.mark.parametrize(("zone", "code"), [("XXX-23:59:59", 0), ("XXX-24", 3), ("XXX+24", 3)])
def test_the_time_zone_of_the_machine_is_less_than_a_day_from_utc(
    zone: str, code: int, tool: Tool, monkeypatch: pytest.MonkeyPatch
) -> None:
    with monkeypatch.context() as patch:
        patch.setenv("TZ", zone)
        time.tzset()
        done = tool("profile", "list")
    time.tzset()
    assert (done.code, f'TZ must be less than a day from UTC, not "{zone}"' in done.err) == (code, code == 3)


def test_a_line_with_a_key_has_at_most_16388_bytes(tool: Tool) -> None:
    account = ("--base-url", "https://service.example/api/v1", "--client", "1", "--key-stdin")
    for length, fault in ((MAX_INPUT - 1, "is longer than 4096 characters"), (MAX_INPUT, "The line on standard input")):
        done = tool("profile", "add", "main", *account, stdin="k" * length + "\n")
        assert (done.code, fault in done.err) == (2, True)


def test_a_hint_suggests_words_of_at_most_60_characters(service: Service, tool: Tool) -> None:
    for length, is_suggested in ((MAX_WORD, True), (MAX_WORD + 1, False)):
        word = "x" * length
        service.will(respond({"id": "d1", "data": [{"id": "m1", "status": word, "phone": PHONE}]}))
        done = tool("sms", "send", PHONE, "-m", "Hola")
        assert (done.code, f"--word accepted={word}" in done.err) == (5, is_suggested)


def test_twenty_rows_of_a_kind_are_listed_and_the_others_counted(service: Service, tool: Tool, home: Path) -> None:
    for repeats, others in ((20, 0), (21, 1)):
        done = tool("sms", "bulk", of_phones(home, [PHONE] * (1 + repeats)), "-m", "Hola", "--dry-run")
        assert done.err.count("same number as line 2") == 20
        assert ("… and" in done.err, f"… and {others} more" in done.err) == (others > 0, others > 0)
        assert "--gsm7" not in done.err


def test_a_country_is_suggested_if_most_numbers_lack_it(service: Service, tool: Tool, home: Path) -> None:
    for phones, lack in ((["3001234567", f"+{PHONE}"], False), (["3001234567", "3007654321", f"+{PHONE}"], True)):
        done = tool("sms", "bulk", of_phones(home, phones), "-m", "Hola", "--dry-run", "--json")
        assert (done.code, "have national numbers, and no country is known" in done.err) == (2, lack)
