"""A file of recipients gives its rows, with the lines they begin on."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Sequence

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from msgctl.errors import UsageError
from msgctl.jobs.reader import numbers_in, values_in
from msgctl.jobs.rows import InvalidRow, PhoneCells, Row
from rules.reading import ANA, LUIS, UNSHOWN, read, refused, source

# --- round trips

ENDS = ("\n", "\r\n", "\r")
letters = "abzÁéñÑü€ “”'\t,;{}#=\\"
cells = st.text(st.sampled_from(letters + '"\r\n'), max_size=8).filter(
    lambda cell: not cell.startswith(("'=", "'\t", "'\r"))  # a quotation mark that a spreadsheet added
)
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
    utf_8 = rb"[\xc2-\xdf][\x80-\xbf]|[\xe0-\xef][\x80-\xbf]{2}|[\xf0-\xf4][\x80-\xbf]{3}"
    assume(codec != "cp1252" or not re.search(utf_8, content))

    outcome = read(content)

    assert outcome.columns == ("first, name", "phone", "note;\n1")
    assert [row.values for row in outcome.rows] == table
    assert [row.phone for row in outcome.rows] == [phone for _, phone, _ in table]
    assert [row.line for row in outcome.rows] == begins[len(begins) - len(table) :]


plain = (
    st.text(max_size=8).filter(lambda text: not text.startswith("'"))
    | st.booleans()
    | st.integers()
    | st.floats(allow_nan=False, allow_infinity=False)
)


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
        ("Phone,phone,PHONE", None, "phone"),
    ],
)
def test_the_phone_column_is_found_exactly_or_else_in_any_case(header: str, asked: str | None, found: str) -> None:
    assert read(header, asked).phone_column == found


@pytest.mark.parametrize(
    ("content", "found"),
    [
        (f"name,Celular\nAna,{ANA}\n", "Celular"),
        (f"name;número\nAna;{ANA}\nLuis;300 765 43 21\n", "número"),
        (f"phone,mobile\n{ANA},{LUIS}\n", "phone"),
        (f'{{"who": "Ana", "contact": {ANA}}}\n', "contact"),
        (f"id,contact\n12,{ANA}\n", "contact"),
        (f"name,contact\nAna,{ANA}\nLuis\n", "contact"),
        ("name,contact\nAna,1234567\n", "contact"),
    ],
)
def test_the_phone_column_is_found_by_its_name_or_content(content: str, found: str) -> None:
    assert read(content, None).phone_column == found


@pytest.mark.parametrize(
    "content", [f"a,b\n{ANA},{LUIS}\n", f"tel,mobile\n{ANA},{LUIS}\n", f"name,number\nAna,{ANA}\nLuis,unknown\n"]
)
def test_an_ambiguous_phone_column_must_be_specified(content: str) -> None:
    with pytest.raises(UsageError, match="no column"):
        read(content, None)


@pytest.mark.parametrize(
    "content", [f"{ANA}\n{LUIS}\n", f"{ANA},1\n{LUIS},2\n", f"Ana;+57 300 123 4567\nLuis;{LUIS}\n"]
)
def test_the_first_number_in_a_list_is_not_a_header(content: str) -> None:
    with pytest.raises(UsageError, match=r"The first line of .* contains a phone number instead of column names"):
        read(content, None)


@pytest.mark.parametrize(
    "name",
    [
        *("Phone", "phone_number", "Mobile Number", "MOBILE", "cell phone", "WhatsApp", "msisdn"),
        *("Celular", "Teléfono móvil", "telefono", "Número de celular"),
    ],
)
def test_the_phone_column_is_found_by_its_name(name: str) -> None:
    """The other columns have digits, too."""
    assert read(f"id,{name},document\n10000001,{ANA},1020304050\n", None).phone_column == name


@pytest.mark.parametrize("names", ["id,phone type", "mobile,whatsapp", "phone_number\tmobile", "number;telltale"])
def test_columns_with_other_names_are_not_the_phone_column(names: str) -> None:
    with pytest.raises(UsageError, match="has no column"):
        read(f"{names}\n{ANA},{LUIS}\n".replace(",", re.sub(r"[\w ]", "", names)), None)


def test_blank_rows_are_skipped_and_counted() -> None:
    found = read(f"\n \nphone,name\n\n{ANA},\n,\n , \n{LUIS},\n\n")
    assert [row.line for row in found.rows] == [5, 8]
    assert found.blank == 2


def test_missing_cells_of_a_row_are_empty() -> None:
    assert read(f"phone,name,city\n{ANA}\n{LUIS},Luis\n").rows == [
        Row(2, ANA, (ANA, "", "")),
        Row(3, LUIS, (LUIS, "Luis", "")),
    ]


def test_phones_are_normalised_and_values_are_not() -> None:
    assert read("phone\n+57 (300) 123-4567\n").rows == [Row(2, ANA, ("+57 (300) 123-4567",))]


# --- JSON Lines


def test_numbers_keep_every_digit() -> None:
    line = f'{{"phone": {ANA}, "price": 12345678901234567890.10, "paid": true, "sent": false, "note": null}}'
    assert read(line).rows == [Row(1, ANA, (ANA, "12345678901234567890.10", "true", "false", ""))]


def test_columns_are_the_fields_of_the_first_object() -> None:
    lines = f'\n{{"phone": "{ANA}", "name": "Ana"}}\n\n{{"city": "Cali", "name": "Luis", "phone": "{LUIS}"}}\n'
    assert read(lines).columns == ("phone", "name")
    assert read(lines).rows == [Row(2, ANA, (ANA, "Ana")), Row(4, LUIS, (LUIS, "Luis"))]


def test_objects_and_lists_in_json_are_abbreviated() -> None:
    (row,) = read(f'{{"phone": "{ANA}", "a": {{"b": 1}}, "c": [1]}}\n'.encode(), None).rows
    assert row.values == (ANA, "{…}", "[…]")


# --- what spreadsheets add


def test_a_quotation_mark_that_a_spreadsheet_added_is_not_part_of_a_cell() -> None:
    cells = ["'=1+1", "'+57", "'-5", "'@ana", "'\t", "'tis", "''=", "'", "a'=b"]
    (row,) = read("phone;" + ";".join(f"'=c{n}" for n in range(9)) + f"\n'+{ANA};" + ";".join(cells)).rows
    assert row.values == (f"+{ANA}", "=1+1", "+57", "-5", "@ana", "\t", "'tis", "''=", "'", "a'=b")
    assert read(f"name,contact\nAna,'+{ANA}\n", None).phone_column == "contact"
    assert [*numbers_in("-", source(f"'+{ANA}\n'+{LUIS}\n"), None)] == [ANA, LUIS]


def test_more_than_1000_columns_are_refused() -> None:
    row = ",".join(["phone", *(f"c{number}" for number in range(999))])
    assert len(read(f"{row}\n{ANA}\n").columns) == 1000
    assert "has 1,001 columns; the limit is 1,000" in refused(f"{row},x\n{ANA}\n")


# --- numbers without messages, for a list of opt-outs or of people who are excluded


def test_numbers_in_a_list_may_be_national_numbers_and_fixed_lines() -> None:
    for content in ("300 123 4567\n601 234 5678\n", "office,mobile\n,300 123 4567\n1,601 234 5678\n"):
        column = "mobile" if "," in content else None
        assert [*numbers_in("-", source(content), "CO", column)] == [ANA, "576012345678"]
    with pytest.raises(UsageError, match="has no column"):
        [*numbers_in("-", source("office,number\n1,300 123 4567\n"), "CO", "mobile")]


def test_the_values_of_a_column_come_with_their_lines_and_numbers() -> None:
    content = f"phone,mobile,Channel\n1,300 123 4567,call\n\n2,{LUIS}\n"
    found = values_in("channel", "-", source(content), "CO", "mobile")
    assert [*found] == [(2, ANA, "call"), (4, LUIS, "")]
    assert [value for *_, value in values_in("other", "-", source(content), "CO", "mobile")] == ["", ""]


# --- several numbers in a cell

TWO = "300 123 4567 / 310 987 6543"


def cell(text: str) -> str:
    """Return the number in a cell."""
    return PhoneCells("CO", sms=True).read(text)


@pytest.mark.parametrize(
    "text",
    [
        *(
            TWO,
            "3001234567,3109876543",
            "300-123-4567; (310) 987-6543",
            "3001234567|3109876543",
            "3001234567 o 3109876543",
        ),
        *("300 123 4567\n310 987 6543", "+57 300 123 4567 +57 310 987 6543", "300 123 4567 - 310 987 6543"),
        *("601 234 5678 y 300 123 4567", "1234567 & 300 123 4567", "3001234567 / 3001234567"),
    ],
)
def test_the_error_for_several_numbers_in_a_cell_reports_them(text: str) -> None:
    with pytest.raises(UsageError, match=r"^two numbers in one cell$"):
        cell(text)
    with pytest.raises(UsageError, match=r"^3 numbers in one cell$"):
        cell(f"{text} / 320 111 2233")


def test_a_number_that_is_valid_only_in_another_country_is_an_invalid_row() -> None:
    with pytest.raises(UsageError, match=r"^valid only in Spain; if that is right, write it with \+$"):
        PhoneCells("CO").read("34612345678")
    assert PhoneCells("CO").read("+34612345678") == "34612345678"


def test_one_number_in_a_cell_may_have_separators() -> None:
    for one in ("300 123 4567", "300.123.4567 ", "(300) 123-4567", "+57 (300) 123 - 4567", "57 - 3001234567"):
        assert cell(one) == ANA
    for wrong in ("300 123 4567 / 68", "300,123,4567", "300 123 4567 / Ana"):
        with pytest.raises(UsageError, match="it contains"):
            cell(wrong)


def test_a_column_of_several_numbers_is_a_column_of_phones() -> None:
    assert read(f"contacto,nombre\n{TWO},Ana\n{LUIS},Luis\n", None).phone_column == "contacto"


# --- a file that cannot be used

LONG = 1024 * 1024


@pytest.mark.parametrize(
    ("content", "expected"),
    [
        (f"+57 300 123 4567;Ana\n{LUIS};Luis\n", ["The first line", "instead of column names"]),
        ('"a"b,phone\n', ["Line 1", "quotation mark"]),
        (f'phone,name\n"{ANA}" ,x\n{LUIS},y\n', ["Line 2", "quotation mark"]),
        (f'phone,name\n{ANA},"Ana "la reina" Ruiz"\n{LUIS},y\n', ["Line 2", "quotation mark"]),
        (f'phone,name\n{ANA},"open\n' + f"{LUIS},y\n" * 100_000, ["Line 2", "quotation mark"]),
        (f'phone,name\n{ANA},"' + 'x\n","' * (LONG // 3) + 'x"\n', ["Line 2", "quotation mark", "longer than"]),
        (f"phone,name\n{ANA},{'x' * LONG}\n", ["Line 2", "longer than"]),
        ('{"phone": "1", "x ": "1", "x": "2"}', ['more than one column named "x"']),
        (f'{{"phone": "{ANA}", "x": "{"x" * LONG}"}}', ["Line 1", "longer than"]),
        ("\x1b]0;title\x07,\u202e\n", ["\\x1b]0", "\\u202e"]),
    ],
)
def test_an_invalid_file_is_refused(content: str, expected: list[str]) -> None:
    message = refused(content)
    assert [part for part in expected if part not in message] == []
    assert len(message) < 700


@pytest.mark.parametrize("name", ["", " "])
def test_a_column_without_a_name_is_not_the_phone_column(name: str) -> None:
    assert "no column" in refused(f"name,,\nAna,{ANA},\n", name)


# --- any file


@given(content=st.binary() | st.text(st.sampled_from('phone,;\t\r\n"{}[]:123456é\x1b')).map(str.encode))
def test_any_bytes_have_rows_or_an_error_that_can_be_shown(content: bytes) -> None:
    for prefix in (b"", b"phone,name\n", b'{"phone": "57300"}\n'):
        found, expected = everything_from(prefix + content)
        assert not any(map(UNSHOWN.search, expected))
        faults = [fault for fault in found if isinstance(fault, InvalidRow)]
        assert not any(UNSHOWN.search(fault.phone + fault.reason) for fault in faults)
        assert all(len(fault.phone) <= 40 and len(fault.reason) < 200 for fault in faults)


def everything_from(content: bytes) -> tuple[list[Row | InvalidRow], list[str]]:
    """Return the rows of a file, or the error for it."""
    try:
        return read(content).found, []
    except UsageError as error:
        return [], [error.message, error.hint or ""]
