"""What takes the key out of what the service says: all of it, and nothing else."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from conftest import KEY
from msgctl.config.credential import Credential, Secret
from msgctl.http.masking import LEAST_MASKED, MASK
from support.leaks import shows_key, spellings_of
from support.service import Service, answer
from support.tool import Tool

KEYS = st.text(st.characters(exclude_categories=["Cc", "Cs"]), min_size=LEAST_MASKED, max_size=12).filter(str.strip)


def of(key: str) -> Credential:
    return Credential(1, Secret(key))


@given(key=KEYS)
def test_every_key_is_masked_in_every_spelling(key: str) -> None:
    spellings = spellings_of(key)
    if max(key) > "\xff":
        del spellings["percent-encoded as Latin-1"]
    for name, spelling in spellings.items():
        # A shell has quotes around it.
        assert of(key).mask(f"\x00{spelling}\x01").replace("'", "") == f"\x00{MASK}\x01", name


@given(key=KEYS, ascii_only=st.booleans(), inside=st.booleans())
def test_json_that_holds_the_key_stays_json_and_loses_the_key_alone(key: str, ascii_only: bool, inside: bool) -> None:
    def document(key: str) -> Any:
        found = {"msg": f'"\x00{key}\x00"', f"\x00{key}\x00": [f"\x00{key}\x00", 1.5, None, "\n\\"]}
        return {"said": json.dumps(found, ensure_ascii=ascii_only)} if inside else found

    masked = of(key).mask_body(json.dumps(document(key), ensure_ascii=ascii_only).encode())
    found = json.loads(masked)
    assert {"said": json.loads(found["said"])} if inside else found == document(MASK)
    if inside:
        assert json.loads(found["said"]) == json.loads(document(MASK)["said"])


@pytest.mark.parametrize(
    "body", [b'\n{"a": 1.00,"a":[ "%s" ,1e5], "\\u00f1":"\\/"}', b"\xef\xbb\xbf[%s]", b"<p>\xff%s\0"]
)
def test_an_answer_stays_as_it_came_but_for_the_key(body: bytes) -> None:
    for other in (b"", b"k3y", b"another-key", b"%41 \\u0041 &#65;"):
        assert of(KEY).mask_body(body.replace(b"%s", other)) == body.replace(b"%s", other)
    if b'"%s"' in body or b"<p>" in body:
        in_json = json.dumps(KEY)[1:-1].encode()
        assert of(KEY).mask_body(body.replace(b"%s", in_json)) == body.replace(b"%s", MASK.encode())


@pytest.mark.parametrize("spelling", spellings_of(KEY))
@pytest.mark.parametrize("body", ['{{"status": {in_json}}}', "<p>{raw}</p>", '{{"status": {twice}}}', "{raw}"])
def test_the_key_of_the_tests_is_masked_in_a_body_of_any_kind(spelling: str, body: str) -> None:
    raw = spellings_of(KEY)[spelling]
    in_json = json.dumps(f"the key: {raw}.")
    said = body.format(raw=raw, in_json=in_json, twice=json.dumps(in_json, ensure_ascii=False))
    masked = of(KEY).mask_body(said.encode())
    assert not shows_key(masked)
    assert MASK.encode() in masked
    assert not body.startswith("{{") or MASK in json.loads(masked)["status"]


def test_a_key_too_short_to_be_one_does_not_garble_what_the_service_says() -> None:
    assert of("key").mask("client or key is wrong") == "client or key is wrong"
    assert of("1" * (LEAST_MASKED - 1)).mask_body(b'{"status": 11111}') == b'{"status": 11111}'


@pytest.mark.parametrize(
    ("said", "shown"),
    [
        ("8675309", '"***"'),
        ('"8675309"', '"***"'),
        ("-8675309.0", '"***"'),
        ("573008675309", "573008675309"),
        ('"+578675309"', '"+578675309"'),
        ("86753090", "86753090"),
        ("1.8675309", "1.8675309"),
        ('"key 8675309!"', '"key ***!"'),
        ('"\\u0038675309!"', '"***!"'),
    ],
)
def test_a_number_is_the_key_as_a_whole_or_not_at_all(said: str, shown: str) -> None:
    body = '{"key": 8675309, "a": %s, "b": 1}'
    assert of("8675309").mask_body((body % said).encode()).decode() == body.replace("8675309", '"***"') % shown


def test_a_number_that_is_the_key_is_not_shown_either(
    tool: Tool, service: Service, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("MSGCTL_KEY", "8675309")
    service.will(*[answer({"error": 8675309, "msg": "no"}, 520)] * 2, *[answer({"status": 8675309})] * 2)
    for code in (1, 0):
        for flags in ((), ("--json",)):
            done = tool("balance", *flags)
            assert (done.code, b"8675309" in done.stdout + done.stderr) == (code, False)


@pytest.mark.parametrize("spelling", spellings_of(KEY))
def test_the_rest_of_what_the_service_says_stays(tool: Tool, service: Service, spelling: str) -> None:
    said = f"the key {spellings_of(KEY)[spelling]} is not of this account"
    service.will(answer({"error": "denied", "msg": said}, 520), answer({"status": said}))
    expected = f"the key {MASK} is not of this account"
    assert tool("balance", "--json").error["msg"].replace("'", "") == expected
    assert tool("balance", "--json").document["status"].replace("'", "") == expected
