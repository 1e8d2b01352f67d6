"""What fills a template: values in order, or a JSON object as it is."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from cli.typed import ANSWER, PHONE, refused
from support.service import Service, answer
from support.tool import Outcome, Tool

SEND = ("chatapp", "send", "--template", "t")
ORDER = ("chatapp", "order", "--template", "t")
MOST = 1024 * 1024

each_command = pytest.mark.parametrize("command", [SEND, ORDER], ids=["send", "order"])


def carried_out(tool: Tool, service: Service, *command: str, stdin: bytes | None = None) -> bytes:
    """The body that was sent."""
    service.will(answer(ANSWER))
    outcome = tool(*command, stdin=stdin)
    assert outcome.code == 0, outcome.err
    return service.received[-1].body


@each_command
def test_values_fill_the_places_in_order_as_texts(command: tuple[str, ...], tool: Tool, service: Service) -> None:
    values = ["Ana", "8:00", "45.00 EUR", "Ana", "true", "null", "1", "a,b", " two\nlines ", '"{}"']
    body = carried_out(tool, service, *command, "+57 300 123 4567", *values)
    assert json.loads(body) == {"phone": PHONE, "body": values}


def test_a_value_that_looks_like_an_option_is_given_after_two_dashes(tool: Tool, service: Service) -> None:
    assert json.loads(carried_out(tool, service, *SEND, "--", PHONE, "-5", "--json"))["body"] == ["-5", "--json"]


@each_command
def test_an_empty_value_among_others_is_refused(command: tuple[str, ...], tool: Tool, service: Service) -> None:
    refused(tool, service, *command, PHONE, "Ana", "", "8:00", names=("VALUE", "empty"))


@each_command
def test_phone_or_body_is_needed(command: tuple[str, ...], tool: Tool, service: Service) -> None:
    refused(tool, service, *command, names=("PHONE", "--body"), stdin=b'{"phone": "573001234567"}')


@each_command
@pytest.mark.parametrize("typed", [(PHONE,), (PHONE, "Ana"), ("Ana",)], ids=str)
def test_a_body_excludes_phone_and_values(
    command: tuple[str, ...], typed: tuple[str, ...], tool: Tool, service: Service
) -> None:
    said = refused(tool, service, *command, *typed, "--body", "-", names=("--body", "PHONE"), stdin=b'{"a": 1}')
    assert "exclude" in said


BODIES = [
    b'{"phone":"573001234567","body":["Ana"]}',
    b'\r\n {"b" : 1.0, "a":1e2,\t"b":12345678901234567890123}\n\n',
    '{"ñ": "漢 😀 \\u00f1 \\ud83d\\ude00", "x": "\u2028\u202e"}'.encode(),
    b'{"": {"": []}, "n": null, "t": true, "f": false, "z": -0}',
    b'{"lone": "\\ud800", "nul": "\\u0000"}',
    b'{"big": %s, "huge": 1e999}' % (b"9" * 6000),
]


@each_command
@pytest.mark.parametrize("body", BODIES, ids=range(len(BODIES)))
def test_a_json_object_is_sent_to_the_byte(
    command: tuple[str, ...], body: bytes, tmp_path: Path, tool: Tool, service: Service
) -> None:
    file = tmp_path / "body.json"
    file.write_bytes(body)
    assert carried_out(tool, service, *command, "--body", str(file)) == body
    assert carried_out(tool, service, *command, "--body", "-", stdin=body) == body


def test_a_byte_order_mark_is_not_part_of_a_json_object(tool: Tool, service: Service) -> None:
    assert carried_out(tool, service, *SEND, "--body", "-", stdin=b'\xef\xbb\xbf{"a":1}') == b'{"a":1}'


def test_a_body_file_leaves_standard_input_untouched(tmp_path: Path, tool: Tool, service: Service) -> None:
    file = tmp_path / "body.json"
    file.write_bytes(BODIES[0])
    service.will(answer(ANSWER))
    assert tool(*SEND, "--body", str(file), stdin=b"next").unread == b"next"


@each_command
@pytest.mark.parametrize(
    ("body", "fault"),
    [
        (b"", "not JSON"),
        (b"phone=573001234567", "not JSON"),
        (b'{"a": 1', "not JSON"),
        (b'{"a": 1} {"b": 2}', "not JSON"),
        (b'{"a": 1,}', "not JSON"),
        (b"{'a': 1}", "not JSON"),
        (b'{"a": "line\nend"}', "not JSON"),
        (b'{"a": 01}', "not JSON"),
        (b'{"a": NaN}', "NaN"),
        (b'{"a": [-Infinity]}', "-Infinity"),
        (b'["573001234567", "Ana"]', "object"),
        (b'"573001234567"', "object"),
        (b"573001234567", "object"),
        (b"null", "object"),
        (b"{}", "object with members"),
        (b'{"a": "\xff"}', "UTF-8"),
        (b'\xff\xfe{\x00"\x00a\x00"\x00:\x001\x00}\x00', "UTF-8"),
        (b'{"a":' + b"[" * 100_000 + b"]" * 100_000 + b"}", "nested too deeply"),
        (b"[" * 200_000, "nested too deeply"),
    ],
    ids=lambda each: ascii(each)[:40],
)
def test_what_is_no_json_object_is_refused(
    command: tuple[str, ...], body: bytes, fault: str, tool: Tool, service: Service
) -> None:
    refused(tool, service, *command, "--body", "-", names=("body", fault, "JSON"), stdin=body)


def of_size(size: int) -> bytes:
    return b'{"a":"' + b"x" * (size - 8) + b'"}'


def test_a_body_of_1_mib_is_the_largest(tool: Tool, service: Service) -> None:
    assert len(carried_out(tool, service, *SEND, "--body", "-", stdin=of_size(MOST))) == MOST
    outcome = tool(*SEND, "--body", "-", stdin=of_size(MOST + 1))
    assert (outcome.code, len(service.received)) == (2, 1)
    assert str(MOST) in outcome.err


def test_a_body_without_an_end_is_refused(tool: Tool, service: Service) -> None:
    refused(tool, service, *SEND, "--body", "/dev/zero", names=("JSON object", str(MOST)))


@pytest.mark.parametrize(("path", "fault"), [("no/such/file", "No such file"), ("/", "directory"), ("", "directory")])
def test_a_body_that_cannot_be_read_is_refused(path: str, fault: str, tool: Tool, service: Service) -> None:
    refused(tool, service, *SEND, "--body", path, names=(f"'{path}'", "cannot be read", fault))


@pytest.mark.parametrize("depth", [10, 500, *range(900, 1000, 5)])
def test_any_depth_is_either_sent_and_shown_or_refused(depth: int, tool: Tool, service: Service) -> None:
    body = b'{"a":' + b"[" * depth + b"]" * depth + b"}"
    service.always(answer(ANSWER))
    outcomes: list[Outcome] = [
        tool(*SEND, "--body", "-", *more, stdin=body) for more in ((), ("-n",), ("-n", "--json"), ("-n", "-o", "csv"))
    ]
    assert {outcome.code for outcome in outcomes} <= {0, 2}
    assert [request.body for request in service.received] == [body] * (outcomes[0].code == 0)
