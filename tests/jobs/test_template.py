"""A template asks only for columns that exist, and is sent only where each of them has a text."""

from __future__ import annotations

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgctl.jobs.rows import Fault, Nested, Row

from msgctl.errors import UsageError
from msgctl.jobs.template import Template, UnfilledError

COLUMNS = ("phone", "name", "Due date", "a.b", "Móvil", "x", "X", "")
ROW = Row(7, "57300", ("57300", "Ana", "1 May", "dotted", "m", "small", "big", "unnamed"))


def filled(text: str) -> str:
    return Template.parse(text, COLUMNS).fill(ROW)


@pytest.mark.parametrize(
    ("text", "result"),
    [
        ("Hello", "Hello"),
        ("", ""),
        ("Hello {name}, until {Due date}.", "Hello Ana, until 1 May."),
        ("{name}{name}", "AnaAna"),
        ("{ name\t}", "Ana"),
        ("{NAME}, {due DATE}, {MO\u0301VIL}", "Ana, 1 May, m"),
        ("{x}{X}", "smallbig"),
        ("{a.b}", "dotted"),
        ("{{name}} {{{name}}} }}{{", "{name} {Ana} }{"),
        ("{name}}}", "Ana}"),
        ("100 % {name} $name \\{name}", "100 % Ana $name \\Ana"),
    ],
)
def test_columns_are_filled_in(text: str, result: str) -> None:
    assert filled(text) == result


def test_what_is_filled_in_is_not_a_template() -> None:
    assert Template.parse("{a}{b}", ["a", "b"]).fill(Row(1, "57300", ("{b}", "{{}"))) == "{b}{{}"


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("Hi {nombre}", ["the message", "{nombre}", "phone, name, Due date", "{{ and }}"]),
        ("Hi {nam}", ["Did you mean {name}?"]),
        ("{MÓVILES}", ["Did you mean {Móvil}?"]),
        ("{x!r}", ["{x!r}"]),
        ("{x:5}", ["{x:5}"]),
        ("{name.__class__}", ["{name.__class__}"]),
        ("{0}", ["{0}"]),
        ("a {} b", ["{}", "names no column"]),
        ("a { } b", ["{}", "names no column"]),
        ("a {name", ["not closed", "position 3", "{{"]),
        ("a {na{me}", ["not closed", "position 3"]),
        ("{{{", ["not closed", "position 3"]),
        ("a } b", ["none that opens it", "position 3", "}}"]),
        ("{name}}", ["none that opens it", "position 7"]),
        ("{\x1b]0;\u202e}", ["{\\x1b]0;\\u202e}"]),
    ],
)
def test_what_cannot_be_filled_in_is_refused_at_once(text: str, said: list[str]) -> None:
    with pytest.raises(UsageError) as caught:
        Template.parse(text, COLUMNS)
    message = f"{caught.value.message} {caught.value.hint}"
    assert [words for words in said if words not in message] == []


def test_case_does_not_choose_between_columns() -> None:
    with pytest.raises(UsageError, match="no such column"):
        Template.parse("{OK}", ["ok", "Ok"])


def test_the_text_is_called_what_it_is() -> None:
    with pytest.raises(UsageError, match=r"^VALUE 2 asks for .city., and the file has no such column"):
        Template.parse("{city}", COLUMNS, "VALUE 2")


@pytest.mark.parametrize(
    ("value", "reason"),
    [
        ("", "column name is empty"),
        (" \t\u00a0", "column name is empty"),
        (Nested(), "column name holds an object or a list, not text"),
    ],
)
def test_nothing_is_sent_with_a_hole_in_it(value: str, reason: str) -> None:
    template = Template.parse("{phone}: {NAME}", ["phone", "name"])
    with pytest.raises(UnfilledError) as caught:
        template.fill(Row(7, "57300", ("57300", value)))
    assert caught.value.fault(7) == Fault(7, "57300", reason)


def test_an_empty_column_that_is_not_asked_for_is_no_matter() -> None:
    assert Template.parse("{phone}", ["phone", "name"]).fill(Row(7, "57300", ("57300", ""))) == "57300"


def test_a_template_fills_row_after_row() -> None:
    template = Template.parse("{phone}, {name}", ["phone", "name"])
    first, second = Row(2, "57300", ("57300", "Ana")), Row(3, "57301", ("57301", "Luis"))
    assert [template.fill(row) for row in (first, second, first)] == ["57300, Ana", "57301, Luis", "57300, Ana"]


@pytest.mark.parametrize(
    ("text", "columns"),
    [("Hello {{name}}", ()), ("{NAME} {x} {name}", ("name", "x"))],
)
def test_a_template_knows_its_columns(text: str, columns: tuple[str, ...]) -> None:
    template = Template.parse(text, COLUMNS)
    assert template.columns == columns
    assert template.is_constant == (not columns)


names = st.text(st.characters(exclude_characters="{}"), min_size=1, max_size=6).map(str.strip).filter(bool)
texts = st.text(st.sampled_from("ab{}\n€ "), max_size=6)


@given(pieces=st.lists(st.tuples(texts, names, st.text(st.sampled_from("ab{}"), min_size=1))), end=texts)
def test_texts_and_values_come_back_as_they_are(pieces: list[tuple[str, str, str]], end: str) -> None:
    values = {name: value for _, name, value in pieces}
    text = "".join(_doubled(before) + "{" + name + "}" for before, name, _ in pieces) + _doubled(end)
    template = Template.parse(text, list(values))
    expected = "".join(before + values[name] for before, name, _ in pieces) + end
    assert template.fill(Row(1, "57300", tuple(values.values()))) == expected
    assert template.columns == tuple(values)


def _doubled(text: str) -> str:
    return text.replace("{", "{{").replace("}", "}}")


@given(text=st.text() | st.text(st.sampled_from("{} namex.!:\x1b\u202e\ud800")))
def test_any_text_is_a_template_or_an_error_that_can_be_shown(text: str) -> None:
    try:
        template = Template.parse(text, COLUMNS)
    except UsageError as error:
        said = f"{error.message} {error.hint}"
        assert not re.search(r"[\x00-\x1f\x7f-\x9f\u202e\ud800-\udfff]", said)
        assert len(said) < 500
    else:
        template.fill(ROW)
