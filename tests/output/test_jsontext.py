"""JSON laid out anew has the same value to the last digit, and nothing in it that acts on a terminal."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from msgctl.http.response import load_json
from msgctl.output import jsontext
from msgctl.text import is_unsafe

_hostile = st.sampled_from(["\x1b[2J", "\x9b31m", "\u202e", "\x7f", "\U000e0041", '"', "\\", "ñ", "😀", "\ud800"])
_strings = st.text(max_size=10) | _hostile
_documents = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | _strings,
    lambda children: st.lists(children, max_size=4) | st.dictionaries(_strings, children, max_size=4),
    max_leaves=20,
)


def pairs(text: str) -> Any:
    """A document with its repetitions, order and digits."""
    return json.loads(text, parse_float=str, parse_int=str, object_pairs_hook=list)


@given(document=_documents, ascii_escapes=st.booleans(), spaces=st.sampled_from([None, 1, "\t"]))
def test_indented_and_compact_are_the_same_value(document: Any, ascii_escapes: bool, spaces: int | str | None) -> None:
    text = json.dumps(document, ensure_ascii=ascii_escapes, indent=spaces)
    assert pairs("".join(jsontext.indent(text))) == pairs(text)
    assert pairs(jsontext.compact(text)) == pairs(text)
    assert "\n" not in jsontext.compact(text)


@given(document=_documents, ascii_only=st.booleans())
def test_no_unsafe_character_is_left_and_the_value_stays(document: Any, ascii_only: bool) -> None:
    text = json.dumps(document, ensure_ascii=False)
    escaped = jsontext.escape(text, ascii_only=ascii_only)
    assert pairs(escaped) == pairs(text)
    assert not any(map(is_unsafe, escaped))
    assert escaped.isascii() or not ascii_only


@given(document=_documents)
def test_a_document_without_spaces_to_lose_is_indented_as_python_does(document: Any) -> None:
    text = json.dumps(document, ensure_ascii=False)
    assert "".join(jsontext.indent(text)) == json.dumps(document, ensure_ascii=False, indent=2)


@given(document=_documents)
def test_what_was_read_is_written_with_the_same_digits(document: Any) -> None:
    text = json.dumps(document, ensure_ascii=True)
    assert pairs(jsontext.dump(load_json(text.encode()))) == pairs(text)


def test_every_digit_every_repetition_and_every_escape_stays() -> None:
    text = '{"a":1.10,"a":1E400,"n":-0.0,"big":123456789012345678901234567890,"t":"\\u001b\\/ \\n"}'
    lines = "".join(jsontext.indent(text)).splitlines()
    assert [line.strip().rstrip(",") for line in lines[1:-1]] == [
        '"a": 1.10',
        '"a": 1E400',
        '"n": -0.0',
        '"big": 123456789012345678901234567890',
        '"t": "\\u001b\\/ \\n"',
    ]


def test_brackets_quotes_and_spaces_in_strings_are_text() -> None:
    text = '{ "a{[ ,:" : "\\" } ]  \\\\" }'
    assert jsontext.compact(text) == '{"a{[ ,:":"\\" } ]  \\\\"}'
    assert "".join(jsontext.indent(text)) == '{\n  "a{[ ,:": "\\" } ]  \\\\"\n}'


def test_characters_beyond_the_basic_plane_are_escaped_as_surrogate_pairs() -> None:
    assert jsontext.escape('"\U000e0041\u2028\x7f\x9b"') == '"\\udb40\\udc41\\u2028\\u007f\\u009b"'


@pytest.mark.parametrize("depth", [100, 100_000])
def test_no_depth_is_too_deep_and_deep_levels_are_not_indented_further(depth: int) -> None:
    text = "[" * depth + "1,2" + "]" * depth
    output = "".join(jsontext.indent(text))
    assert "".join(output.split()) == text
    assert len(output) < len(text) + 4 * jsontext.MOST_INDENTED**2


def test_a_deep_value_is_written_without_recursion() -> None:
    value: Any = 1
    for _ in range(100_000):
        value = [value]
    assert jsontext.dump(value).count("[") == 100_000
