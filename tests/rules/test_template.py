"""A template fills its placeholders from a row, or has an error that can be shown."""

from __future__ import annotations

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from msgctl.errors import UsageError
from msgctl.lists.formats import Nested
from msgctl.lists.rows import Recipient
from msgctl.lists.template import Template

COLUMNS = ("phone", "name", "Due date", "a.b", "Móvil", "x", "X", "", "ok", "Ok")
ROW = Recipient(7, "57300", ("57300", "Ana", "1 May", "dotted", "m", "small", "big", "unnamed", "", ""))


@pytest.mark.parametrize(
    ("text", "result"),
    [
        ("", ""),
        ("Hello {name}, until {Due date}.", "Hello Ana, until 1 May."),
        ("{ name\t}", "Ana"),
        ("{NAME}, {due DATE}, {MO\u0301VIL}", "Ana, 1 May, m"),
        ("{x}{X}", "smallbig"),
        ("{a.b}", "dotted"),
        ("{{none}} {{{name}}} }}{{", "{none} {Ana} }{"),
        ("{name}}}", "Ana}"),
        ("{name|friend}, {x|a|b}", "Ana, small"),
        ("100 % {name} $name \\{name}", "100 % Ana $name \\Ana"),
    ],
)
def test_columns_are_filled_in(text: str, result: str) -> None:
    assert Template.parse(text, COLUMNS).fill(ROW) == result


@pytest.mark.parametrize(
    ("cell", "fault"), [(" \t\u00a0", "is empty.*"), (Nested("[…]"), "contains an object or a list, not text")]
)
def test_a_long_name_of_a_column_is_shortened_to_40_characters(cell: str, fault: str) -> None:
    template = Template.parse("{%s}" % ("n" * 41), ["n" * 41])
    with pytest.raises(UsageError, match=f'^column "{"n" * 39}…" {fault}$'):
        template.fill(Recipient(7, "57300", (cell,)))


@pytest.mark.parametrize("inside", ["name", " NAME ", "name|friend", " name | friend "])
def test_a_column_in_double_braces_is_refused_with_or_without_a_fallback(inside: str) -> None:
    with pytest.raises(UsageError, match=re.escape(f"it would become {{{inside}}}")):
        Template.parse(f"Hello {{{{{inside}}}}}", ["phone", "name"])


def test_a_fallback_is_used_for_an_empty_cell() -> None:
    template = Template.parse("Hello {name|dear customer}{phone|}", ["phone", "name"])
    assert template.fill(Recipient(7, "57300", ("", " "))) == "Hello dear customer"
    assert template.fill(Recipient(7, "57300", ("57300", ""))) == "Hello dear customer57300"


@pytest.mark.parametrize(
    ("cell", "fault"),
    [
        ("#N/A", "has the error value #N/A"),
        (" #N/D ", "has the error value #N/D"),
        ("#¡VALOR!", "has the error value #¡VALOR!"),
        ("Err:502", "has the error value Err:502"),
        (Nested("[]"), "contains an object or a list, not text"),
    ],
)
@pytest.mark.parametrize("placeholder", ["{name}", "{name|}", "{name|friend}"])
def test_a_fallback_does_not_replace_an_error_value_or_an_object(placeholder: str, cell: str, fault: str) -> None:
    with pytest.raises(UsageError, match=f'^column "name" {fault}$'):
        Template.parse(placeholder, ["name"]).fill(Recipient(7, "57300", (cell,)))


names = st.text(st.characters(exclude_characters="{}|abAB€"), min_size=1, max_size=6).map(str.strip).filter(bool)
texts = st.text(st.sampled_from("ab{}\n€ "), max_size=6)  # never the name of a column in double braces


@given(pieces=st.lists(st.tuples(texts, names, st.text(st.sampled_from("ab{}"), min_size=1))), end=texts)
def test_templates_round_trip(pieces: list[tuple[str, str, str]], end: str) -> None:
    values = {name: value for _, name, value in pieces}
    text = "".join(_doubled(before) + "{" + name + "}" for before, name, _ in pieces) + _doubled(end)
    template = Template.parse(text, list(values))
    expected = "".join(before + values[name] for before, name, _ in pieces) + end
    assert template.fill(Recipient(1, "57300", tuple(values.values()))) == expected


def _doubled(text: str) -> str:
    return text.replace("{", "{{").replace("}", "}}")


@given(text=st.text() | st.text(st.sampled_from("{} namex.!:\x1b\u202e\ud800")))
def test_any_text_is_a_template_or_an_error_that_can_be_shown(text: str) -> None:
    try:
        template = Template.parse(text, COLUMNS)
    except UsageError as error:
        shown = f"{error.message} {error.hint}"
        assert not re.search(r"[\x00-\x1f\x7f-\x9f\u202e\ud800-\udfff]", shown)
        assert len(shown) < 500
    else:
        template.fill(ROW)
