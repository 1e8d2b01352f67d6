"""A file of recipients gives its rows, with the lines they begin on."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Sequence

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from jobs.reading import ANA, LUIS, read
from msgctl.errors import UsageError
from msgctl.jobs.reader import Row
from msgctl.jobs.template import Template

# --- round trips

ENDS = ("\n", "\r\n", "\r")
letters = "abzÁéñÑü€ “”'\t,;{}#=\\"
cells = st.text(st.sampled_from(letters + '"\r\n'), max_size=8)
phones = st.integers(0, 9_999_999).map(lambda number: f"57300{number:07}")


def as_csv(records: Iterable[Sequence[str]], delimiter: str, end: str, always: bool) -> list[str]:
    """Each record as RFC 4180 writes it, with its line end; in quotation marks always, or where they are needed."""
    special = re.compile('[,;\t\r\n"]')
    return [
        delimiter.join(
            '"' + cell.replace('"', '""') + '"' if always or special.search(cell) else cell for cell in record
        )
        + end
        for record in records
    ]


@given(
    table=st.lists(st.tuples(cells, phones, cells), max_size=6),
    delimiter=st.sampled_from(",;\t"),
    end=st.sampled_from(ENDS),
    always=st.booleans(),
    codec=st.sampled_from(["utf-8", "utf-8-sig", "utf-16", "cp1252"]),
    last_end=st.booleans(),
)
def test_csv_round_trips(
    table: list[tuple[str, str, str]],
    delimiter: str,
    end: str,
    always: bool,
    codec: str,
    last_end: bool,
) -> None:
    pieces = as_csv([("first, name", "phone", "note;\n1"), *table], delimiter, end, always)
    text = "".join(pieces)
    content = (text if last_end else text.removesuffix(end)).encode(codec)
    begins = [1 + len(re.findall("\r\n|\r|\n", "".join(pieces[:index]))) for index in range(len(pieces))]

    # Some Windows-1252 text happens to be UTF-8, too.
    assume(codec != "cp1252" or not re.search(rb"[\xc2-\xdf][\x80-\xbf]|[\xe0-\xef][\x80-\xbf]{2}", content))

    outcome = read(content)

    assert outcome.columns == ("first, name", "phone", "note;\n1")
    assert [row.values for row in outcome.rows] == table
    assert [row.phone for row in outcome.rows] == [phone for _, phone, _ in table]
    assert [row.line for row in outcome.rows] == begins[len(begins) - len(table) :]


plain = st.text(max_size=8) | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False)


@given(
    table=st.lists(st.tuples(phones, plain | st.none()), min_size=1, max_size=5),
    ascii=st.booleans(),
    end=st.sampled_from(ENDS),
)
def test_json_lines_round_trip(table: list[tuple[str, object]], ascii: bool, end: str) -> None:
    lines = [json.dumps({"value": value, "phone": phone}, ensure_ascii=ascii) for phone, value in table]
    outcome = read(end.join(lines))
    as_written = ["" if value is None else value if isinstance(value, str) else json.dumps(value) for _, value in table]
    assert outcome.columns == ("value", "phone")
    assert [row.values for row in outcome.rows] == list(zip(as_written, [phone for phone, _ in table], strict=True))
    assert [row.line for row in outcome.rows] == list(range(1, len(table) + 1))


@pytest.mark.parametrize("end", ENDS)
def test_line_ends_across_buffers_count_once(end: str) -> None:
    for length in range(8180, 8200):
        text = f"phone,note{end}{ANA},{'x' * length}{end}{LUIS},y{end}"
        assert [row.line for row in read(text).rows] == [2, 3]


# --- CSV


@pytest.mark.parametrize(
    ("header", "columns"),
    [
        ("phone", ("phone",)),
        ("phone,name", ("phone", "name")),
        ("phone;name", ("phone", "name")),
        ("phone\tname", ("phone", "name")),
        ("name;phone;born, year", ("name", "phone", "born, year")),
        ("phone;born, city, state", ("phone", "born, city, state")),
        ('"a;b;c;d",phone', ("a;b;c;d", "phone")),
        ('"a,phone,b";phone', ("a,phone,b", "phone")),
        ('a;"x,phone,y";phone', ("a", "x,phone,y", "phone")),
        ('"5"" disk";phone', ('5" disk', "phone")),
        (" phone , name ", ("phone", "name")),
        ("phone,name,,", ("phone", "name", "", "")),
    ],
)
def test_columns_come_from_the_header(header: str, columns: tuple[str, ...]) -> None:
    assert read(header).columns == columns


@pytest.mark.parametrize(
    ("header", "asked", "found"),
    [
        ("phone,Phone", "phone", "phone"),
        ("PHONE,name", "phone", "PHONE"),
        ("name,Móvil", "MÓVIL", "Móvil"),
        ("name,Mo\u0301vil", "m\u00f3vil", "Mo\u0301vil"),
        ("phone,name", " phone ", "phone"),
    ],
)
def test_the_phone_column_is_found_exactly_or_else_in_any_case(header: str, asked: str, found: str) -> None:
    assert read(header, asked).phone_column == found


@pytest.mark.parametrize(
    ("content", "found"),
    [
        (f"name,Celular\nAna,{ANA}\n", "Celular"),
        (f"name;número\nAna;{ANA}\nLuis;300 765 43 21\n", "número"),
        (f"phone,mobile\n{ANA},{LUIS}\n", "phone"),
        (f'{{"who": "Ana", "contact": {ANA}}}\n', "contact"),
        (f"id,contact\n12,{ANA}\n", "contact"),
    ],
)
def test_the_phone_column_is_found_by_its_name_or_content(content: str, found: str) -> None:
    assert read(content, None).phone_column == found


@pytest.mark.parametrize(
    "content", [f"a,b\n{ANA},{LUIS}\n", f"tel,mobile\n{ANA},{LUIS}\n", f"name,number\nAna,{ANA}\nLuis,unknown\n"]
)
def test_a_phone_column_that_is_not_certain_must_be_named(content: str) -> None:
    with pytest.raises(UsageError, match="no column"):
        read(content, None)


def test_blank_rows_are_skipped_and_counted() -> None:
    found = read(f"\n \nphone,name\n\n{ANA},\n,\n , \n{LUIS},\n\n")
    assert [row.line for row in found.rows] == [5, 8]
    assert found.blank == 2


def test_phones_are_normalised_and_values_are_not() -> None:
    assert read("phone\n+57 (300) 123-4567\n").rows == [Row(2, ANA, ("+57 (300) 123-4567",))]


# --- JSON Lines


def test_numbers_keep_every_digit() -> None:
    line = f'{{"phone": {ANA}, "price": 12345678901234567890.10, "paid": true, "note": null}}'
    assert read(line).rows == [Row(1, ANA, (ANA, "12345678901234567890.10", "true", ""))]


def test_columns_are_the_fields_of_the_first_object() -> None:
    lines = f'\n{{"phone": "{ANA}", "name": "Ana"}}\n\n{{"city": "Cali", "name": "Luis", "phone": "{LUIS}"}}\n'
    assert read(lines).columns == ("phone", "name")
    assert read(lines).rows == [Row(2, ANA, (ANA, "Ana")), Row(4, LUIS, (LUIS, "Luis"))]


@pytest.mark.parametrize("value", ["{}", "[]", '{"street": "Calle 1"}', '["a"]'])
def test_a_nested_value_is_not_text(value: str) -> None:
    (row,) = read(f'{{"phone": "{ANA}", "address": {value}}}').rows
    with pytest.raises(UsageError, match="column address is empty"):
        Template.parse("{address}", ["phone", "address"]).fill(row)
