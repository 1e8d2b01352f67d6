"""Rows and files of recipients that cannot be used, and their messages."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from jobs.reading import ANA, LUIS, UNSHOWN, read, refused
from msgctl.errors import UsageError
from msgctl.jobs.reader import InvalidRow, Row

# --- a row that cannot be used


@pytest.mark.parametrize(
    ("row", "shown", "reason"),
    [
        ('"5,73E+11",x', "5,73E+11", "not a whole number"),
        (f"{ANA}.00,x", f"{ANA}.00", "not a whole number"),
        ("\x1b[2J\u202e,x", "\\x1b[2J\\u202e", "not a valid phone number"),
    ],
)
def test_reading_continues_after_an_invalid_row(row: str, shown: str, reason: str) -> None:
    outcome = read(f'phone,name\n{ANA},"a\nb"\n{row}\n{LUIS},c\n')
    assert outcome.found[0] == Row(2, ANA, (ANA, "a\nb"))
    assert outcome.found[2] == Row(5, LUIS, (LUIS, "c"))
    assert (outcome.invalid.line, outcome.invalid.phone) == (4, shown)
    assert reason in outcome.invalid.reason


@pytest.mark.parametrize(
    ("line", "shown", "reason"),
    [
        ('["573001234567"]', "", "not a JSON object"),
        ('{"phone": ["573001234567"], "name": "b"}', "", "no phone number"),
        (f'{{"phone": -{ANA}}}', f"-{ANA}", "not a whole number"),
        ('{"phone": 573.001}', "573.001", "not a whole number"),
        ('{"phone": "\\u001b[2J"}', "\\x1b[2J", "not a valid phone number"),
    ],
)
def test_reading_continues_after_an_invalid_line(line: str, shown: str, reason: str) -> None:
    outcome = read(f'{{"phone": "{ANA}", "name": "a"}}\n{line}\n{{"phone": "{LUIS}", "name": "\\ud83d\\ude00"}}\n')
    assert outcome.found[0] == Row(1, ANA, (ANA, "a"))
    assert outcome.found[2] == Row(3, LUIS, (LUIS, "😀"))
    assert (outcome.invalid.line, outcome.invalid.phone) == (2, shown)
    assert reason in outcome.invalid.reason


# --- a file that cannot be used

LONG = 1024 * 1024


@pytest.mark.parametrize(
    ("content", "said"),
    [
        ("\ufeff", ["is empty"]),
        (",,\n", ["no header"]),
        (f"+57 300 123 4567;Ana\n{LUIS};Luis\n", ["first line", "name the columns"]),
        (f"phone, phone\n{ANA},{LUIS}\n", ['more than one column named "phone"']),
        ('"a"b,phone\n', ["line 1", "quotation mark"]),
        (f'phone,name\n{ANA},x\n{ANA},"open\n{LUIS},y\n', ["line 3", "quotation mark"]),
        (f'phone,name\n"{ANA}" ,x\n{LUIS},y\n', ["line 2", "quotation mark"]),
        (f'phone,name\n{ANA},"Ana "la reina" Ruiz"\n{LUIS},y\n', ["line 2", "quotation mark"]),
        (f'phone,name\n{ANA},"open\n' + f"{LUIS},y\n" * 100_000, ["line 2", "quotation mark"]),
        (f'phone,name\n{ANA},"' + 'x\n","' * (LONG // 3) + 'x"\n', ["line 2", "quotation mark", "longer than"]),
        (f"phone,name\n{ANA},{'x' * LONG}\n", ["line 2", "longer than"]),
        ('{"phone": "1", "x ": "1", "x": "2"}', ['more than one column named "x"']),
        (f'{{"phone": "{ANA}", "x": "{"x" * LONG}"}}', ["line 1", "longer than"]),
        ("\x1b]0;title\x07,\u202e\n", ["\\x1b]0", "\\u202e"]),
    ],
)
def test_a_file_is_refused_as_a_whole(content: str, said: list[str]) -> None:
    message = refused(content)
    assert [words for words in said if words not in message] == []
    assert len(message) < 700


@pytest.mark.parametrize("name", ["", " "])
def test_a_column_without_a_name_holds_no_phones(name: str) -> None:
    assert "no column" in refused(f"name,,\nAna,{ANA},\n", name)


# --- any file


@given(content=st.binary() | st.text(st.sampled_from('phone,;\t\r\n"{}[]:123456é\x1b')).map(str.encode))
def test_any_bytes_have_rows_or_an_error_that_can_be_shown(content: bytes) -> None:
    for prefix in (b"", b"phone,name\n", b'{"phone": "57300"}\n'):
        found, said = everything_from(prefix + content)
        assert not any(map(UNSHOWN.search, said))
        faults = [fault for fault in found if isinstance(fault, InvalidRow)]
        assert not any(UNSHOWN.search(fault.phone + fault.reason) for fault in faults)
        assert all(len(fault.phone) <= 40 and len(fault.reason) < 200 for fault in faults)


def everything_from(content: bytes) -> tuple[list[Row | InvalidRow], list[str]]:
    """Return the rows of a file, or what is said about it."""
    try:
        return read(content).found, []
    except UsageError as error:
        return [], [error.message, error.hint or ""]
