"""Bodies of a 200: JSON and other bytes, and texts and numbers for every value of a record."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import Any

from contract.interface import RECORDS, Field
from faults.hostile.exit_codes import ERROR, NO_STATE, NOT_JSON, OTHER_JSON, TEXTS, Codes


def everything(text: Any) -> dict[str, Any]:
    """A record that fits every operation of the API, with ``text`` in every field and as the name of another field."""
    merged: dict[str, Any] = {}
    for fields in RECORDS.values():
        merged.update(_values(fields, text))
    entries = [field for name in ("ResponseSMS", "ResponseCall") for field in RECORDS[name][-1].fields]
    merged["data"] = [_values(entries, text)] * 2
    return {**merged, str(text): text}


def _values(fields: Any, text: Any) -> dict[str, Any]:
    return {field.name: _value(field, text) for field in fields}


def _value(field: Field, text: Any) -> Any:
    inside = _values(field.fields, text)
    if field.type == "array":
        return [inside]
    return inside if field.fields else text


def body_of(text: Any) -> bytes:
    """The record of `everything` as JSON; characters that UTF-8 can encode are not escaped."""
    try:
        return json.dumps(everything(text), ensure_ascii=False).encode()
    except UnicodeEncodeError:
        return json.dumps(everything(text)).encode()


BODY = body_of("1")

HTML = b"<!DOCTYPE html><html><body><h1>Welcome</h1><script>alert(1)</script></body></html>"
OBJECTS = b'{"status": {"value": 1}, "id": {"a": 1}, "state": [], "urlShort": {}, "data": [1]}'
BODIES: dict[str, tuple[bytes, Codes]] = {
    "empty": (b"", NOT_JSON),
    "spaces": (b" \r\n\t", NOT_JSON),
    "text": (b"OK", NOT_JSON),
    "HTML": (HTML, NOT_JSON),
    "half a document": (b'{"status": 15', NOT_JSON),
    "two documents": (BODY * 2, NOT_JSON),
    "null": (b"null", OTHER_JSON),
    "a string": (b'"status"', OTHER_JSON),
    "a number": (b"1500", OTHER_JSON),
    "an array of numbers": (b"[1, 2]", replace(OTHER_JSON, state=NO_STATE)),
    "another object": (b'{"result": "ok"}', OTHER_JSON),
    "null fields": (b'{"status": null, "id": null, "error": null}', OTHER_JSON),
    "only msg": (b'{"msg": "created"}', OTHER_JSON),
    "objects for values": (OBJECTS, replace(TEXTS, state=NO_STATE)),
    "the error record": (b'{"error": "invalid_parameter", "msg": "The parameter phone is invalid"}', ERROR),
    "not UTF-8": (BODY.replace(b'"status": "1"', b'"status": "\xff\xfe"'), NOT_JSON),
    "UTF-16": (BODY.decode().encode("utf-16"), NOT_JSON),
    "NaN": (BODY[:-1] + b', "more": NaN}', NOT_JSON),
    "a field twice": (b'{"status": {"a": 1}, "id": [], ' + BODY[1:], NOT_JSON),
    "200,000 brackets": (BODY[:-1] + b',"more":' + b"[" * 200_000 + b"]" * 200_000 + b"}", NOT_JSON),
}

NUMBERS = {
    "3,000 digits": (b"9" * 3_000, TEXTS),
    "an exponent that fills the memory": (b"1e999999999", TEXTS),
    "3,000 decimals": (b"0." + b"3" * 3_000, TEXTS),
}
"""Numbers for every value in a record."""

ODD_TEXTS: dict[str, str] = {
    "escape sequences": "\x1b[2J\x1b]0;title\x07\x1b]52;c;Y2F0\x07\x9b31m\x9d0;title\x9c\0\x7f\x85",
    "line ends and a forged error": "a\r\nError: forged\n{}\x0b\x0c\x1c\u2028b\u2029c",
    "direction marks": "\u202eabc\u2066\u2067\u2069\u061c\u200f\ufeff\u200b\u2060\u00ad\u180e\U000e0041\U000e007f",
    "a lone surrogate": "a\ud800b\udfff",
    "markup and formulas": "=cmd|'/C calc'!A0 [bold red]x[/] [/] [link=file:///etc/passwd]y[/link] %s {0.x} ${HOME}",
    "odd characters": "\ue000\uffff\U0010fffd\U000e0fff" + "e" + "\u0301" * 500,
    "an empty text": "",
    "2,000 characters": "x" * 2_000,
}  # fmt: skip
"""Texts for every value in a record, and for the name of an unknown field."""


def of_numbers(number: bytes) -> bytes:
    """The record of `everything`, with a number for every value."""
    return body_of("NUMBER").replace(b'"NUMBER"', number).replace(b", %s: %s" % (number, number), b"")
