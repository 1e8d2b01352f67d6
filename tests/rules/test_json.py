"""JSON is read and written without a loss, and JSON that cannot be trusted is refused."""

from __future__ import annotations

import json
from typing import Any

import pytest

from msgctl.jsontext import MAX_PARTS, RepeatedFieldError, ShapeError, dump, escape_json, load_json, load_text, objects

VALUES: list[Any] = [
    None, True, False, "", "é\n", [], {}, [[]], {"a": {}}, [1, [2, {"b": [3]}], {}], {"a": 1, "é": [None, "x"]},
]  # fmt: skip


@pytest.mark.parametrize("value", VALUES, ids=str)
def test_json_that_is_written_and_read_again_is_the_same(value: Any) -> None:
    assert dump(load_text(dump(value), "refuse")) == dump(value)
    assert json.loads(dump(value)) == value


def test_json_is_written_as_it_was_read() -> None:
    for text in ('{"a":1.10,"b":[1e400,-0,123456789012345678901],"c":{"d":"\\u001b"},"ñ":[]}', "7", '"ñ"', "[{},[]]"):
        assert dump(load_text(text, "all")) == text
    assert dump(("a", 1)) == '["a",1]'


@pytest.mark.parametrize(
    ("text", "last", "every"),
    [
        ('{"a":1,"a":2}', {"a": "2"}, {"a": ["1", "2"]}),
        ('{"a":1,"a":1}', {"a": "1"}, {"a": "1"}),
        ('{"a":1,"a":2,"a":1}', {"a": "1"}, {"a": ["1", "2", "1"]}),
        ('{"a":[],"a":[]}', {"a": []}, {"a": [[], []]}),
        ('{"a":{"b":1},"a":{"b":1}}', {"a": {"b": "1"}}, {"a": [{"b": "1"}, {"b": "1"}]}),
        ('{"a":1,"b":2,"a":3}', {"a": "3", "b": "2"}, {"a": ["1", "3"], "b": "2"}),
    ],
)
def test_a_repeated_field_is_read_as_the_caller_asks(text: str, last: Any, every: Any) -> None:
    assert load_text(text, "last") == last
    assert load_text(text, "all") == every
    with pytest.raises(RepeatedFieldError, match="it contains the same field twice"):
        load_text(text, "refuse")
    assert load_text(text, "mark").repeated == "a"
    assert load_text('{"b":1}', "mark").repeated == ""
    assert load_text('{"b":1}', "refuse") == load_text('{"b":1}', "all") == {"b": "1"}


@pytest.mark.parametrize(
    ("body", "problem"),
    [
        (b'{"a":NaN}', "it contains NaN, which is not JSON"),
        (b"{", "it is not JSON"),
        (b"", "it is not JSON"),
        (b'"\xff"', "it is not UTF-8 text"),
        (b"[" * 100_000, "its JSON is nested too deeply"),
        (b"[" + b"0," * MAX_PARTS + b"0]", "it contains too many values"),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_the_error_for_a_body_that_cannot_be_read_has_the_reason(body: bytes, problem: str) -> None:
    with pytest.raises(ShapeError, match=f"^{problem}$"):
        load_json(body)


def test_the_largest_bodies_are_read() -> None:
    most = b"[" + b"0," * (MAX_PARTS - 1) + b"0]"
    assert len(load_json(most)) == MAX_PARTS
    assert load_json(b'\xef\xbb\xbf"' + b"x" * 2 * MAX_PARTS + b'"') == "x" * 2 * MAX_PARTS


def test_every_object_in_a_value_is_seen() -> None:
    value = {"a": [{"b": {}}, "x", [{"c": "d"}]]}
    assert [*objects(value)] == [value, {"c": "d"}, {"b": {}}, {}]
    assert [*objects(["x", "y"])] == []


@pytest.mark.parametrize(
    ("text", "safe", "ascii_only"),
    [
        ('"plain"', '"plain"', '"plain"'),
        ('"ñ😀"', '"ñ😀"', '"\\u00f1\\ud83d\\ude00"'),
        ('"ñ\u202e"', '"ñ\\u202e"', '"\\u00f1\\u202e"'),
        ('"\x7f"', '"\\u007f"', '"\\u007f"'),
        ('"\U000e0001"', '"\\udb40\\udc01"', '"\\udb40\\udc01"'),
        ('"a\n"', '"a\n"', '"a\n"'),
    ],
)
def test_unsafe_characters_of_json_are_escaped_in_it(text: str, safe: str, ascii_only: str) -> None:
    assert escape_json(text) == safe
    assert escape_json(text, ascii_only=True) == ascii_only
