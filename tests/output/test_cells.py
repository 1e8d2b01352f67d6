"""Folding, shortening and measuring text."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from msgctl.http.response import Number
from msgctl.output.cells import cell, fold, reach, shorten_middle, width_of


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (None, ""),
        (True, "true"),
        (False, "false"),
        (Number("1.10"), "1.10"),
        (7, "7"),
        ("a\tb\x1b[0m", "a\\tb\\x1b[0m"),
        ({"a": [Number("1.0"), None]}, '{"a":[1.0,null]}'),
        (["\u202e"], '["\\u202e"]'),
    ],
)
def test_a_cell_is_one_clean_line(value: object, text: str) -> None:
    assert cell(value) == text


@pytest.mark.parametrize(
    ("name", "value"),
    [("a.b", 1), ("list.1.c", 2), ("list.9.c", None), ("list.c", None), ("list.-1", None), ("x.y", 3), ("a.b.c", None)],
)
def test_a_dotted_name_reaches_into_objects_and_arrays(name: str, value: object) -> None:
    assert reach({"a": {"b": 1}, "list": [0, {"c": 2}], "x.y": 3}, name) == value


@pytest.mark.parametrize(
    ("text", "lines"),
    [
        ("one two three", ["one two", "three"]),
        ("abcdefghijk", ["abcdefgh", "ijk"]),
        ("12345678 9", ["12345678", "9"]),
        ("a aaaaaaa漢", ["a", "aaaaaaa", "漢"]),
        ("", [""]),
    ],
)
def test_folding_breaks_at_spaces_where_there_are_any(text: str, lines: list[str]) -> None:
    assert fold(text, 8) == lines


@given(text=st.text(), width=st.integers(2, 30))
def test_folding_loses_nothing_but_spaces_and_keeps_to_the_width(text: str, width: int) -> None:
    lines = fold(text, width)
    assert "".join(lines).replace(" ", "") == text.replace(" ", "")
    assert max(map(width_of, lines)) <= width


@given(text=st.text(min_size=1), width=st.integers(3, 20))
def test_shortening_keeps_to_the_width(text: str, width: int) -> None:
    assert width_of(shorten_middle(text, width, "…")) <= width


def test_shortening_keeps_both_ends() -> None:
    assert shorten_middle("Mozilla/5.0 (X11) Firefox", 9, "…") == "Mozi…efox"


@pytest.mark.parametrize(("text", "width"), [("abc", 3), ("漢字", 4), ("e\u0301", 1), ("ñ", 1)])
def test_width_counts_terminal_columns(text: str, width: int) -> None:
    assert width_of(text) == width
