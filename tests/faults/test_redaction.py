"""The account key is redacted in responses, and nothing else is."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from conftest import KEY
from msgctl.config.profiles import MIN_KEY
from msgctl.http.redaction import MASK, MIN_CUT, redact, redact_body
from support.leaks import spellings_of
from support.service import Service, respond
from support.tool import Tool

KEYS = st.text(st.characters(exclude_categories=["Cc", "Cs"]), min_size=MIN_KEY, max_size=12).filter(str.strip)


@given(key=KEYS.filter(lambda key: not key.isdecimal()))
def test_every_key_is_redacted_in_every_spelling(key: str) -> None:
    for name, spelling in spellings_of(key).items():
        assert redact(f"\x00{spelling}\x01", key) == f"\x00{MASK}\x01", name


def test_a_key_that_is_escaped_completely_or_twice_is_redacted() -> None:
    escaped = "".join(f"\\u{ord(char):04X}" for char in KEY)
    for spelling in (escaped, json.dumps(json.dumps(KEY))[3:-3]):
        assert redact(f"<{spelling}>", KEY) == f"<{MASK}>"


@given(cut=st.integers(0, 100))
def test_the_beginning_of_a_key_is_redacted_where_the_text_was_cut_off(cut: int) -> None:
    for spelling in spellings_of(KEY).values():
        sent = f"the key: {spelling}".encode()[: 9 + cut]
        redacted = redact_body(sent, KEY, is_cut=True)
        if len(sent.decode(errors="ignore")) - 9 >= MIN_CUT:
            assert redacted == b"the key: ***", spelling
        else:
            assert redacted == sent


def test_a_long_key_is_redacted_even_if_it_was_cut_off() -> None:
    key, rest = "long-key" * 512, " the rest" * 500
    assert redact_body(f"<{key}>".encode(), key) == b"<***>"
    for end in (10, len(key) - 5):
        assert redact_body(f"<{key[:end]}".encode(), key, is_cut=True) == b"<***"
    assert redact(f"<{key}>{rest}", key, is_cut=True) == f"<***>{rest}"


def test_a_key_with_many_backslashes_is_redacted_in_linear_time() -> None:
    key = "\\" * 20 + "x"
    assert redact("\\" * 200 + "y", key) == "\\" * 200 + "y"
    assert redact_body(json.dumps(f"<{key}>").encode(), key) == b'"<***>"'


@given(key=KEYS.filter(lambda key: not set(key) & set('"\\')), ascii_only=st.booleans())
def test_json_with_a_redacted_key_is_still_valid(key: str, ascii_only: bool) -> None:
    def document(key: str) -> Any:
        return {"msg": f'"\x00{key}\x00"', f"\x00{key}\x00": [f"\x00{key}\x00", 1.5, None, "\n\\"]}

    redacted = redact_body(json.dumps(document(key), ensure_ascii=ascii_only).encode(), key)
    assert json.loads(redacted) == document(MASK)


@pytest.mark.parametrize(
    "body", [b'\n{"a": 1.00,"a":[ "%s" ,1e5], "\\u00f1":"\\/"}', b"\xef\xbb\xbf[%s]", b"<p>\xff%s\0"]
)
def test_a_response_is_unchanged_except_for_the_key(body: bytes) -> None:
    for other in (b"", b"k3y", b"another-key", KEY[:8].encode(), b"%41 \\u0041 &#65;"):
        assert redact_body(body.replace(b"%s", other), KEY) == body.replace(b"%s", other)
    if b'"%s"' in body or b"<p>" in body:
        in_json = json.dumps(KEY)[1:-1].encode()
        assert redact_body(body.replace(b"%s", in_json), KEY) == body.replace(b"%s", MASK.encode())


@pytest.mark.parametrize("start", ["", "\ufeff"], ids=["plain", "byte order mark"])
def test_a_key_next_to_a_number_or_punctuation_is_redacted(start: str) -> None:
    escaped = "".join(f"\\u{ord(each):04x}" for each in KEY)
    redacted = redact_body(f'{start}[{"1" * 5000}, "{escaped}"]'.encode(), KEY)
    assert redacted == f'{start}[{"1" * 5000}, "{MASK}"]'.encode()
    number = redact_body(f"{start}[{'1' * 5000}, 8675309]".encode(), "8675309")
    assert number == redacted


@pytest.mark.parametrize(
    ("sent", "shown"),
    [
        ("client or key is wrong", "client or key is wrong"),
        ('{"status": 12}', '{"status": 12}'),
        ("/balance?client=1&key=12&more=1", "/balance?client=1&key=***&more=1"),
        ("KEY=12", "KEY=***"),
        ("key=123", "key=123"),
        ("monkey=12", "monkey=12"),
        ('{"client": 12, "Key": "12", "key": "123"}', '{"client": 12, "Key": "***", "key": "123"}'),
        ('{"key" : 12}', '{"key" : "***"}'),
        ('{"a": 12, "b": "key=12"}', '{"a": 12, "b": "key=***"}'),
    ],
)
def test_a_short_key_is_redacted_only_as_the_whole_value_of_its_parameter(sent: str, shown: str) -> None:
    assert redact_body(sent.encode(), "12").decode() == shown
    assert redact_body(b"key=abc&key=ab", "ab") == b"key=abc&key=***"


@pytest.mark.parametrize(
    ("sent", "shown"),
    [
        ("8675309", '"***"'),
        ('"8675309"', '"***"'),
        ("573008675309", "573008675309"),
        ('"+578675309"', '"+578675309"'),
        ("86753090", "86753090"),
        ("1.8675309", "1.8675309"),
        ('"key 8675309!"', '"key ***!"'),
    ],
)
def test_a_key_of_digits_is_redacted_only_as_a_whole_number(sent: str, shown: str) -> None:
    body = '{"key": 8675309, "a": %s, "b": 1}'
    assert redact_body((body % sent).encode(), "8675309").decode() == body.replace("8675309", '"***"') % shown
    assert redact_body(b'{"a": 123456}', "123456") == b'{"a": "***"}'


def test_the_beginning_of_the_key_is_masked_at_the_end_of_an_incomplete_response(tool: Tool, service: Service) -> None:
    for length in ({}, {"Content-Length": "99"}):
        service.always(respond(b"the key is k3y/with", 400, length))
        assert tool("balance", "--json").error["body"] == f"the key is {MASK if length else 'k3y/with'}"
