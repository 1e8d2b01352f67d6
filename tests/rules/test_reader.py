"""A file of recipients becomes rows with line numbers, or an error that explains why it cannot be used."""

from __future__ import annotations

import io
import json
import re
from collections.abc import Iterable, Sequence
from itertools import permutations
from pathlib import Path

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from msgctl.errors import UsageError
from msgctl.lists.header import Reading, has_phone_word, is_phone_word
from msgctl.lists.reader import opened
from msgctl.lists.rows import InvalidRow, PhoneCells, Recipient
from rules.reading import ANA, EVA, LUIS, UNSHOWN, Broken, left_out, read, read_from, refused, source

TWO = "300 123 4567 / 310 987 6543"

# --- round trips

ENDS = ("\n", "\r\n", "\r")
letters = "abzÁéñÑü€ “”'\t,;{}#=\\"
cells = st.text(st.sampled_from(letters + '"\r\n'), max_size=8).filter(
    lambda cell: not cell.startswith(("'=", "'\t", "'\r", '="'))  # marks that a spreadsheet added
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
        ("name;phone;born, year", ("name", "phone", "born, year")),
        ('"a;b;c;d",phone', ("a;b;c;d", "phone")),
        ('a;"x,phone,y";phone', ("a", "x,phone,y", "phone")),
        ('"5"" disk";phone', ('5" disk', "phone")),
        (" phone , name ,,", ("phone", "name", "", "")),
    ],
)
def test_columns_come_from_the_header(header: str, columns: tuple[str, ...]) -> None:
    assert read(header).columns == columns


@pytest.mark.parametrize(
    ("header", "asked", "column"),
    [
        ("phone,Phone", "phone", "phone"),
        ("PHONE,name", " phone ", "PHONE"),
        ("name,Mo\u0301vil", "M\u00d3VIL", "Mo\u0301vil"),
        ("Phone,phone,PHONE", None, "phone"),
    ],
)
def test_the_phone_column_is_found_by_its_exact_name_or_in_another_case(
    header: str, asked: str | None, column: str
) -> None:
    assert read(header, asked).phone_column == column


def test_a_heading_is_or_contains_a_word_for_phones() -> None:
    words = (
        "Tel.",
        "Tel/Cel",
        "WHATSAPP",
        "numeroTelefono",
        "Nro. celular",
        "N.º de móvil",
        "Téléphone portable",
        "Handynummer",
        "Telemóvel",
        "phonenumber",
        "numerocelular",
    )
    parts = ("Celular 1", "Teléfono fijo", "telefonoCliente", "Phone 1 - Value", "Celular codeudor", "smartphone")
    others = ("Contacto", "Cancelado", "Telegrama", "Excel", "Motel", "Número", "", "2026")
    assert [name for name in words if not is_phone_word(name)] == []
    assert [name for name in parts if is_phone_word(name) or not has_phone_word(name)] == []
    assert [name for name in others if has_phone_word(name)] == []


TITLES = "Tienda La Esquina;\n2026-11-27;\n;\n"


@pytest.mark.parametrize(
    ("content", "source"),
    [
        (f"{TITLES}Nombre;Celular\nAna;{ANA}\n", "header in row 4"),
        (f"Nombre;Celular\n;\nAna;{ANA}\n", "header in row 1"),
        (f"Celulares de clientes\nNombre;Celular\nAna;{ANA}\n", "header in row 2"),
        (f'"Nombre\ncompleto";"Número\nde celular"\nAna;{ANA}\n', "header in row 1"),
        (f"celular\n{ANA}\n", "header in row 1"),
        (f"sep=|\nNombre|Celular\nAna|{ANA}\n", "header in row 2"),
        (f'{{"nombre": "Ana", "celular": "{ANA}"}}\n', "column"),
    ],
)
def test_the_header_is_found_below_titles(content: str, source: str) -> None:
    outcome = read(content, None)
    assert outcome.source.startswith(source)
    assert [row.phone for row in outcome.rows] == [ANA]


def test_the_columns_may_have_any_order() -> None:
    people = {"Nombre": "Ana", "Celular": ANA, "Cédula": "1020304050", "Nota": "llamar al celular 3009999999"}
    for names in permutations(people):
        outcome = read(f"{';'.join(names)}\n{';'.join(people[name] for name in names)}\n", None, "CO")
        assert (outcome.phone_column, [row.phone for row in outcome.rows]) == ("Celular", [ANA])


def test_a_title_with_a_number_that_is_not_a_phone_does_no_harm() -> None:
    several = f"Ana, {ANA}, {LUIS}"
    for title in ("NIT 900.123.456-7", "27-11-2026", "1295000", "9001234567", "2026-11-27 10:00:00", several):
        assert read(f"{title};\nNombre;Celular\nAna;{ANA}\n", None, "CO").source.startswith("header in row 2")


def test_the_phone_column_is_found_by_its_name() -> None:
    """The other columns have digits, too."""
    english = ("Phone", "phone_number", "Mobile Number", "MOBILE", "cell phone", "WhatsApp", "msisdn")
    for name in (*english, "Celular", "Teléfono móvil", "telefono", "Número de celular"):
        assert read(f"id,{name},document\n10000001,{ANA},1020304050\n", None).phone_column == name


def test_blank_rows_are_skipped_and_counted() -> None:
    outcome = read(f"\n \nphone,name\n\n{ANA},\n,\n , \n{LUIS},\n\n")
    assert [row.line for row in outcome.rows] == [5, 8]
    assert outcome.blank == 2


def test_missing_cells_of_a_row_are_empty_and_only_the_phone_is_normalised() -> None:
    content = f"phone,name,city\n+57 (300) 123-4567\n{LUIS},+57 (300)\n"
    assert read(content).rows == [
        Recipient(2, ANA, ("+57 (300) 123-4567", "", "")),
        Recipient(3, LUIS, (LUIS, "+57 (300)", "")),
    ]


# --- JSON Lines


def test_numbers_in_json_keep_every_digit_and_objects_stay_json() -> None:
    line = (
        f'{{"phone": {ANA}, "price": 12345678901234567890.10, "paid": true, "note": null, "a": {{"b": 1}}, "c": [1]}}'
    )
    assert read(line).rows == [Recipient(1, ANA, (ANA, "12345678901234567890.10", "true", "", '{"b":1}', "[1]"))]


def test_columns_are_the_fields_of_the_first_object() -> None:
    lines = f'\n{{"phone": "{ANA}", "name": "Ana"}}\n\n{{"city": "Cali", "name": "Luis", "phone": "{LUIS}"}}\n'
    assert read(lines).columns == ("phone", "name")
    assert read(lines).rows == [Recipient(2, ANA, (ANA, "Ana")), Recipient(4, LUIS, (LUIS, "Luis"))]


# --- spreadsheets


def test_a_quotation_mark_that_a_spreadsheet_added_is_not_part_of_a_cell() -> None:
    cells = ["'=1+1", "'+57", "'-5", "'@ana", "'\t", "'tis", "''=", "'", "a'=b"]
    (row,) = read("phone;" + ";".join(f"'=c{n}" for n in range(9)) + f"\n'+{ANA};" + ";".join(cells)).rows
    assert row.values == (f"+{ANA}", "=1+1", "+57", "-5", "@ana", "\t", "'tis", "''=", "'", "a'=b")
    assert left_out(f"'+{ANA}\n'+{LUIS}\n") == [ANA, LUIS]
    people = read(f'"=""phone""";"=""name"""\n{ANA};"=""Ana"""\n')
    assert (people.columns, people.rows[0].values) == (("phone", "name"), (ANA, "Ana"))


def test_more_than_1000_columns_are_refused() -> None:
    row = ",".join(["phone", *(f"c{number}" for number in range(999))])
    assert len(read(f"{row}\n{ANA}\n").columns) == 1000
    assert "has 1,001 columns; the limit is 1,000" in refused(f"{row},x\n{ANA}\n")


# --- people to leave out


def test_every_number_of_a_file_of_people_to_leave_out_counts() -> None:
    assert left_out("300 123 4567\n601 234 5678\n", "CO") == [ANA, "576012345678"]
    assert left_out("+57 300 123 4567\n\n+57 300 765 4321\n") == [ANA, LUIS]
    two = "name;celular;Teléfono fijo\nAna;300 123 4567 / 300 765 4321;no tiene\nEva;;(601) 234 5678 ext 2\n"
    assert left_out(two, "CO") == [ANA, LUIS, "576012345678"]
    assert left_out("office,mobile\n,300 123 4567\n1,601 234 5678\n", "CO", "mobile") == [ANA, "576012345678"]
    assert left_out("phone\n(Anna) 611 1234\n611 1235 x\n", "IS") == ["3546111234", "3546111235"], (
        "7 digits are the fewest"
    )
    with pytest.raises(UsageError, match="no column"):
        left_out("office,number\n1,300 123 4567\n", "CO", "mobile")


# --- several numbers in a cell


def cell(text: str) -> str:
    return PhoneCells("CO", sms=True).read(text)


def test_one_number_in_a_cell_may_have_separators() -> None:
    for one in ("300 123 4567", "300.123.4567 ", "(300) 123-4567", "+57 (300) 123 - 4567", "57 - 3001234567"):
        assert cell(one) == ANA
    for wrong in ("300 123 4567 / 68", "300,123,4567", "300 123 4567 / Ana"):
        with pytest.raises(UsageError, match="it contains"):
            cell(wrong)


NOTE = "llamar al "


@pytest.mark.parametrize(
    ("text", "country", "problem", "inside", "first"),
    [
        ("", "CO", "no phone number", [], ""),
        ("#N/A", "CO", "the phone is the error value #N/A", [], ""),
        ("5,73E+11", "CO", "the phone is in scientific notation", [], ""),
        ("573001234567.5", "CO", "the phone is not a whole number", [ANA], ""),
        ("573001234567.0", "CO", None, [ANA], ANA),
        ("300 123 4567 / 300 765 4321", "CO", "two numbers in one cell", [ANA, LUIS], ANA),
        ("300 123 4567, 300 765 4321, 300 999 9999", "CO", "3 numbers in one cell", [ANA, LUIS, EVA], ANA),
        ("300 123 4567 300 765 4321", "CO", "two numbers in one cell", [ANA, LUIS], ANA),
        ("6111234,6111235", "IS", "two numbers in one cell", ["3546111234", "3546111235"], "3546111234"),
        ("6111234 / 6111235", "IS", "two numbers in one cell", ["3546111234", "3546111235"], "3546111234"),
        ("6111234 6111235", "IS", "two numbers in one cell", ["3546111234", "3546111235"], "3546111234"),
        ("611123", "IS", "not a valid phone number: too short for Iceland", [], ""),
        (NOTE.ljust(190) + ANA[2:], "CO", 'not a valid phone number: it contains "l"', [ANA], ANA),
        (NOTE.ljust(191) + ANA[2:], "CO", 'not a valid phone number: it contains "l"', [], ""),
        ("12025550123", "CO", "valid only in the United States; if that is right, write it with +", [], ""),
        ("3001234567 cc 10203", "CO", 'not a valid phone number: it contains "c"', [ANA], ANA),
        ("+57 300 123 4567 /", "CO", 'not a valid phone number: it contains "/"', [ANA], ANA),
        ("ref3001234567x", "CO", 'not a valid phone number: it contains "r"', [ANA], ""),
        ("2026-11-27", "CO", "not a valid phone number: too short for Colombia", [], ""),
    ],
)
def test_a_cell_has_its_numbers_and_the_reason_why_it_is_not_one(
    text: str, country: str, problem: str | None, inside: list[str], first: str
) -> None:
    cells = PhoneCells(country)
    assert (cells.numbers(text), cells.first_within(text)) == (inside, first)
    if problem is None:
        assert [cells.read(text)] == inside
    else:
        with pytest.raises(UsageError, match=f"^{re.escape(problem)}"):
            cells.read(text)


# --- a file that cannot be used

LONG = 1024 * 1024


def test_a_record_of_1_048_576_characters_is_too_long() -> None:
    row = f'{{"phone": "{ANA}", "name": "Ana"}}\n'
    longest = row.replace("Ana", "a" * (LONG - 1 - len(row) + len("Ana")))
    assert [row.line for row in read(row + longest).rows] == [1, 2]
    assert "Line 2 of standard input begins a record longer than" in refused(row + longest.replace("aa", "aaa", 1))


# --- encodings and sources


@pytest.mark.parametrize("codec", ["utf-16", "cp1252"])
def test_the_whole_file_has_one_encoding(codec: str) -> None:
    rows = [f"{ANA},Ana {number}" for number in range(20_000)]
    outcome = read("\n".join(["phone,señal", *rows, f"{LUIS},Íñigo €5"]).encode(codec))
    assert outcome.notes == ["standard input is not UTF-8; reading it as Windows-1252"] * (codec == "cp1252")
    assert outcome.columns == ("phone", "señal")
    assert outcome.rows[-1] == Recipient(20_002, LUIS, (LUIS, "Íñigo €5"))


def test_a_file_that_ends_within_its_only_utf8_character_is_read_as_windows_1252() -> None:
    outcome = read(b"phone,name\n%s,Se\xf1al \x80\n%s,\xc3" % (ANA.encode(), LUIS.encode()))
    assert [row.values[1] for row in outcome.rows] == ["Señal €", "Ã"]


@pytest.mark.parametrize("good", [0, 10_000, 100_000])
def test_a_failed_read_refuses_the_file(good: int) -> None:
    content = b"phone,name\n" + b"57300,%s\n" % (b"x" * 500) * 250
    with pytest.raises(UsageError, match=r"Cannot read standard input: Input/output error"):
        read_from(io.BufferedReader(Broken(content, good)))


def test_a_file_name_cannot_control_the_terminal(tmp_path: Path) -> None:
    path = tmp_path / "a\x1b[2Jb"
    path.touch()
    for name, message in ((str(path), r"a\\x1b\[2Jb is empty"), ("a\0b", r'Cannot read "a\\x00b"')):
        with pytest.raises(UsageError, match=message), opened(name, source(b""), Reading()):
            pass


def test_an_endless_device_is_refused() -> None:
    with Path("/dev/zero").open("rb") as source, pytest.raises(UsageError, match="not text"):
        read_from(source)


# --- any file


@given(content=st.binary() | st.text(st.sampled_from('phone,;\t\r\n"{}[]:123456é\x1b')).map(str.encode))
def test_any_bytes_have_rows_or_an_error_that_can_be_shown(content: bytes) -> None:
    for prefix in (b"", b"phone,name\n", b'{"phone": "57300"}\n'):
        shown, rows = "", []
        try:
            rows = read(prefix + content).all_rows
        except UsageError as error:
            shown = f"{error.message} {error.hint}"
        assert not UNSHOWN.search(shown)
        for fault in (row for row in rows if isinstance(row, InvalidRow)):
            assert not UNSHOWN.search(fault.phone + fault.reason)
            assert len(fault.phone) <= 40
            assert len(fault.reason) < 200
