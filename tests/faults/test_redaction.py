"""The account key is redacted in responses, and nothing else is."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any
from urllib.parse import quote

import pytest
from hypothesis import given
from hypothesis import strategies as st

from conftest import KEY
from msgctl.config.profiles import MIN_KEY
from msgctl.http.redaction import redact, redact_body
from msgctl.text import MASK
from support.leaks import spellings_of
from support.service import Service, respond
from support.tool import Tool

ASCII_KEY = "Ab+Cd/Ef&Gh9=="
KEYS = st.text(st.characters(exclude_categories=["Cc", "Cs"]), min_size=MIN_KEY, max_size=12).filter(str.strip)


@given(key=KEYS.filter(lambda key: not key.isdecimal()))
def test_every_key_is_redacted_in_every_spelling(key: str) -> None:
    for name, spelling in spellings_of(key).items():
        assert redact(f"\x00{spelling}\x01", key) == f"\x00{MASK}\x01", name


def test_a_key_that_is_escaped_completely_or_twice_is_redacted() -> None:
    escaped = "".join(f"\\u{ord(char):04X}" for char in KEY)
    for spelling in (escaped, json.dumps(json.dumps(KEY))[3:-3]):
        assert redact(f"<{spelling}>", KEY) == f"<{MASK}>"


ESCAPES = st.sampled_from(["{0}", "%{1:02x}", "%{1:02X}", "\\\\u{1:04x}", "\\\\u{1:04X}", "\\\\\\\\u{1:04x}"])


@given(data=st.data())
def test_a_key_in_any_mixture_of_escapes_is_redacted(data: st.DataObject) -> None:
    escaped = "".join(data.draw(ESCAPES).format(char, ord(char)) for char in ASCII_KEY)
    assert redact(f"<{escaped}>", ASCII_KEY) == f"<{MASK}>"


@pytest.mark.parametrize("key", ["ab\\cdef", "\\abcdef", "abcdef\\"])
def test_a_key_with_backslashes_is_redacted_and_json_stays_valid(key: str) -> None:
    document = json.dumps({"a": f'{key}"', "b": [f"%5c{key}"]})
    assert json.loads(redact(document, key))["a"] == f'{MASK}"'
    for text in (key, quote(key), json.dumps(document)):
        assert key not in redact(text, key)


def test_a_text_that_was_cut_off_loses_its_end() -> None:
    escaped_twice = "".join(f"\\\\u{ord(char):04x}" for char in KEY)
    for spelling in (*spellings_of(KEY).values(), escaped_twice):
        for end in range(len(spelling)):
            assert redact(f"{'x' * 500}{spelling[:end]}", KEY, is_cut=True).strip("x") == ""
    assert redact(f"<{KEY}>{'x' * 500}", KEY, is_cut=True).startswith("<***>xx")


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
        ("8675309", "***"),
        ('"8675309"', '"***"'),
        ('"\\u00208675309"', '"\\u0020***"'),
        ("573008675309", "573008675309"),
        ('"+578675309"', '"+578675309"'),
        ("86753090", "86753090"),
        ("1.8675309", "1.8675309"),
        ('"key 8675309!"', '"key ***!"'),
    ],
)
def test_a_key_of_digits_is_redacted_only_as_a_whole_number(sent: str, shown: str) -> None:
    body = '{"key": 8675309, "a": %s, "b": 1}'
    assert redact_body((body % sent).encode(), "8675309").decode() == body.replace("8675309", "***") % shown


@pytest.mark.parametrize("key", ["Ab+Cd/Ef&Gh9=="])
def test_a_key_that_a_service_escapes_like_dotnet_is_shown_nowhere(
    key: str, tool: Tool, service: Service, monkeypatch: pytest.MonkeyPatch, home: Path
) -> None:
    monkeypatch.setenv("MSGCTL_KEY", key)
    echo = rb'{"error": 1, "msg": "key Ab\u002BCd/Ef\u0026Gh9\u003d= is wrong"}'
    for status in (520, 200, 503):
        service.always(respond(echo, status, {"X-Key": "Ab%2BCd/Ef&Gh9=%3D"}))
        for command in ("balance", "sms send 573001234567 -m Hola", "history"):
            done = tool(*command.split(), "--json", "-vv")
            assert b"Gh9" not in done.stdout + done.stderr
    assert not [path for path in home.rglob("*") if path.is_file() and b"Gh9" in path.read_bytes()]


def test_an_incomplete_response_loses_its_end_which_may_be_the_key(tool: Tool, service: Service) -> None:
    for length in ({}, {"Content-Length": "99"}):
        service.always(respond(b"the key is k3y/with", 400, length))
        assert tool("balance", "--json").error["body"] == ("" if length else "the key is k3y/with")
