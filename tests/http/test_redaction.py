"""The account key is redacted in what the service sends back, and nothing else is."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from conftest import KEY
from msgctl.http.redaction import LEAST_REDACTED, MASK, redact, redact_body
from support.leaks import shows_key, spellings_of
from support.service import Service, respond
from support.tool import Tool

KEYS = st.text(st.characters(exclude_categories=["Cc", "Cs"]), min_size=LEAST_REDACTED, max_size=12).filter(str.strip)


@given(key=KEYS.filter(lambda key: not key.isdecimal()))
def test_every_key_is_redacted_in_every_spelling(key: str) -> None:
    for name, spelling in spellings_of(key).items():
        assert redact(f"\x00{spelling}\x01", key) == f"\x00{MASK}\x01", name


@given(key=KEYS, ascii_only=st.booleans())
def test_json_that_contains_the_key_stays_json_and_loses_only_the_key(key: str, ascii_only: bool) -> None:
    def document(key: str) -> Any:
        return {"msg": f'"\x00{key}\x00"', f"\x00{key}\x00": [f"\x00{key}\x00", 1.5, None, "\n\\"]}

    redacted = redact_body(json.dumps(document(key), ensure_ascii=ascii_only).encode(), key)
    assert json.loads(redacted) == document(MASK)


@pytest.mark.parametrize(
    "body", [b'\n{"a": 1.00,"a":[ "%s" ,1e5], "\\u00f1":"\\/"}', b"\xef\xbb\xbf[%s]", b"<p>\xff%s\0"]
)
def test_a_response_is_unchanged_except_for_the_key(body: bytes) -> None:
    for other in (b"", b"k3y", b"another-key", b"%41 \\u0041 &#65;"):
        assert redact_body(body.replace(b"%s", other), KEY) == body.replace(b"%s", other)
    if b'"%s"' in body or b"<p>" in body:
        in_json = json.dumps(KEY)[1:-1].encode()
        assert redact_body(body.replace(b"%s", in_json), KEY) == body.replace(b"%s", MASK.encode())


@pytest.mark.parametrize("spelling", spellings_of(KEY))
@pytest.mark.parametrize("body", ['{{"status": {in_json}}}', "<p>{raw}</p>", "{raw}"])
def test_the_key_is_redacted_in_a_body_of_any_kind(spelling: str, body: str) -> None:
    raw = spellings_of(KEY)[spelling]
    said = body.format(raw=raw, in_json=json.dumps(f"the key: {raw}."))
    redacted = redact_body(said.encode(), KEY)
    assert not shows_key(redacted)
    assert MASK.encode() in redacted
    assert not body.startswith("{{") or MASK in json.loads(redacted)["status"]


@pytest.mark.parametrize("start", ["", "\ufeff"], ids=["plain", "byte order mark"])
def test_a_number_of_any_length_or_a_mark_does_not_hide_the_key(start: str) -> None:
    escaped = "".join(f"\\u{ord(each):04x}" for each in KEY)
    redacted = redact_body(f'{start}[{"1" * 5000}, "{escaped}"]'.encode(), KEY)
    assert redacted == f'{start}[{"1" * 5000}, "{MASK}"]'.encode()


def test_a_key_too_short_to_be_secret_does_not_garble_the_response() -> None:
    assert redact("client or key is wrong", "key") == "client or key is wrong"
    assert redact_body(b'{"status": 11111}', "1" * (LEAST_REDACTED - 1)) == b'{"status": 11111}'


@pytest.mark.parametrize(
    ("said", "shown"),
    [
        ("8675309", '"***"'),
        ('"8675309"', '"***"'),
        ("573008675309", "573008675309"),
        ('"+578675309"', '"+578675309"'),
        ("86753090", "86753090"),
        ("1.8675309", "1.8675309"),
        ('"key 8675309!"', '"key ***!"'),
        ('"\\u0038675309!"', '"***!"'),
    ],
)
def test_a_key_of_digits_is_redacted_only_as_a_whole_number(said: str, shown: str) -> None:
    body = '{"key": 8675309, "a": %s, "b": 1}'
    assert redact_body((body % said).encode(), "8675309").decode() == body.replace("8675309", '"***"') % shown


def test_a_number_equal_to_the_key_is_not_shown(tool: Tool, service: Service, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MSGCTL_KEY", "8675309")
    service.will(*[respond({"error": 8675309, "msg": "no"}, 520)] * 2, *[respond({"status": 8675309})] * 2)
    for code in (1, 0):
        for flags in ((), ("--json",)):
            done = tool("balance", *flags)
            assert (done.code, b"8675309" in done.stdout + done.stderr) == (code, False)


@pytest.mark.parametrize("spelling", spellings_of(KEY))
def test_the_text_around_the_key_is_shown(tool: Tool, service: Service, spelling: str) -> None:
    said = f"the key {spellings_of(KEY)[spelling]} is not of this account"
    service.will(respond({"error": "denied", "msg": said}, 520), respond({"status": said}))
    expected = f"the key {MASK} is not of this account"
    assert tool("balance", "--json").error["msg"] == expected
    assert tool("balance", "--json").document["status"] == expected
