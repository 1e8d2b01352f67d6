"""Recipients in Excel workbooks: rows, numbers, exclusions, and what is refused."""

from __future__ import annotations

import io
import os
import re
import signal
import subprocess
import sys
import time
from collections.abc import Collection
from pathlib import Path
from subprocess import PIPE
from typing import cast

import pytest

from msgctl.errors import UsageError
from msgctl.lists import workbook_process
from msgctl.lists.header import Reading
from msgctl.lists.rows import InvalidRow
from rules.reading import ANA, EVA, LUIS, Broken, left_out, read, read_from, refused, source
from support import PATIENCE
from support.runs import ended_well
from support.terminal import RUN
from support.tool import started
from support.workbooks import TARGET, Sheet, archive, bomb, of_rows, of_sheets, workbook

pytest.importorskip("python_calamine")


def test_a_sheet_is_read_like_a_csv_file_with_the_rows_of_the_sheet() -> None:
    outcome = read(
        workbook(
            ["Name", "Mobile", "Amount"],
            ["Ana\nMaría", int(ANA), 12.5],
            [],
            ["Luis", f"+57 300 {LUIS[5:]}", True],
            ["Eva", "x", 0],
            ["Zoe", int(LUIS) + 1, False],
        ),
        None,
    )
    assert (outcome.columns, outcome.phone_column, outcome.blank) == (("Name", "Mobile", "Amount"), "Mobile", 1)
    ana, luis, eva, zoe = outcome.all_rows
    assert ana == (2, ANA, ("Ana\nMaría", ANA, "12.5"))
    assert luis == (4, LUIS, ("Luis", f"+57 300 {LUIS[5:]}", "true"))
    assert (eva.line, eva.phone) == (5, "x")
    assert zoe == (6, str(int(LUIS) + 1), ("Zoe", str(int(LUIS) + 1), "false"))


def test_without_the_package_the_error_explains_how_to_install_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "python_calamine", None)
    assert "the package python-calamine, which reads them, is not installed" in refused(workbook(["phone"], [ANA]))


def test_the_numbers_of_a_workbook_can_be_excluded() -> None:
    content = workbook(["phone"], [int(ANA)], [LUIS])
    assert left_out(content) == [ANA, LUIS]


# --- files that are not workbooks

OLE = b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1" + bytes(504)
PAGE = "<!DOCTYPE html><table><tr><td>573001234567"
SHEET_XML = '<?xml version="1.0"?><Workbook xmlns="urn:schemas-microsoft-com:office:spreadsheet">'


@pytest.mark.parametrize(
    ("content", "kind"),
    [
        *(
            (mark + bytes(20), "a picture")
            for mark in (b"\x89PNG", b"\xff\xd8\xff", b"GIF89a", b"II*\0", b"MM\0*", b"RIFF")
        ),
        (bytes(4) + b"ftypheic", "an image or a video"),
        *((mark + bytes(20), "a compressed file") for mark in (b"\x1f\x8b", b"7z\xbc\xaf\x27\x1c", b"Rar!")),
        (b"%PDF-1.7", "a PDF"),
        (b"{\\rtf1", "a text document"),
        (b"BEGIN:VCARD", "a file of contacts (vCard)"),
        *((OLE + name.encode("utf-16-le"), "an old Excel workbook (.xls)") for name in ("Workbook", "Book")),
        (OLE + "EncryptedPackage".encode("utf-16-le"), "protected with a password"),
        (OLE + "WordDocument".encode("utf-16-le"), "an old Office file"),
        *((PAGE.encode(codec), "a web page (HTML)") for codec in ("utf-8", "utf-8-sig", "utf-16")),
        ("\ufeff".encode("utf-16-be") + PAGE.encode("utf-16-be"), "a web page (HTML)"),
        (f'<?xml version="1.0"?>{PAGE[15:]}<html>'.encode(), "a web page (HTML)"),
        (SHEET_XML.encode(), "an XML file"),
        (SHEET_XML.encode("utf-16"), "an XML file"),
        (archive("xl/workbook.bin"), "a binary Excel workbook (.xlsb)"),
        (archive("mimetype", "content.xml"), "an OpenDocument spreadsheet (.ods)"),
        (archive("Index/Document.iwa"), "a file of Apple Numbers (.numbers)"),
        (archive("index.zip"), "a file of Apple Numbers (.numbers)"),
        (archive("word/document.xml"), "an Office document"),
        (archive("ppt/presentation.xml"), "an Office document"),
        (archive("people.csv"), "a compressed file (ZIP)"),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_each_kind_of_file_has_its_own_error_and_no_advice_that_changes_digits(content: bytes, kind: str) -> None:
    error = refused(content)
    assert error.startswith(f"standard input is {kind}")
    assert "CSV" not in error


# --- workbooks that need too much memory or time

MIB = 2**20


def cell(reference: str) -> str:
    return f'<c r="{reference}"><v>573001234567</v></c>'


def test_a_row_of_1_048_576_characters_is_read() -> None:
    (row,) = read(workbook(["phone", "name"], [ANA, "x" * (MIB - len(ANA))])).rows
    assert len(row.values[1]) == MIB - len(ANA)


@pytest.mark.slow
def test_a_workbook_with_an_attribute_of_400_megabytes_is_refused_at_once() -> None:
    content = bomb(
        "xl/worksheets/sheet1.xml", b"<worksheet><sheetData><row r='1'><c r='A1' x='", b"a" * MIB, 400, size=400 * MIB
    )
    code = "import resource as r, sys; from msgctl.lists.workbook_process import main; main(); "
    code += "print(r.getrusage(r.RUSAGE_SELF).ru_maxrss // 1024)"
    done = subprocess.run([sys.executable, "-c", code], input=content, stdout=PIPE, check=True)
    error, size = done.stdout.splitlines()
    assert b"has a tag or cell larger than the limit of 4 MiB" in error
    assert int(size) < 256


@pytest.mark.slow
def test_a_sheet_of_ten_million_cells_is_read() -> None:
    content = of_rows(f"<row r='1'>{cell('J1')}</row><row r='1000000'>{cell('A1000000')}</row>")
    sizes = (len(rows) for rows in workbook_process.sheets_of(io.BytesIO(content)) if isinstance(rows, list))
    assert sum(sizes) == 1_000_000


@pytest.mark.slow
@pytest.mark.parametrize("size", [2048 * MIB, 1000], ids=["stated", "not stated"])
@pytest.mark.parametrize(
    ("part", "begin", "piece"),
    [
        ("xl/worksheets/sheet1.xml", b"<worksheet><sheetData><row>", b"a" * (MIB - 4) + b"<a/>"),
        ("xl/sharedStrings.xml", b"<sst>", b"<si><t/></si>" * 2**17),
    ],
    ids=["cell", "shared strings"],
)
def test_a_workbook_that_unpacks_to_too_much_is_refused(part: str, begin: bytes, piece: bytes, size: int) -> None:
    content = bomb(part, begin, piece, 2048, size=size)
    assert len(content) < 10 * MIB
    assert "unpacks to more than the limit of 512 MiB" in refused(content)


def test_a_workbook_on_standard_input_that_does_not_end_is_refused() -> None:
    endless = source(workbook(["phone"], [ANA]) + bytes(72 * MIB))
    with pytest.raises(UsageError, match="larger than the limit of 64 MiB for workbooks"):
        read_from(endless)
    assert endless.tell() < 67 * MIB, "the rest is not read"


def test_a_failed_read_refuses_the_workbook() -> None:
    with pytest.raises(UsageError, match=r"^Cannot read standard input: Input/output error$"):
        read_from(io.BufferedReader(Broken(workbook(["phone"], [ANA]) + bytes(MIB), 10_000)))


def test_an_error_value_keeps_its_name() -> None:
    names = "".join(f"<c r='{at}' t='inlineStr'><is><t>{at}</t></is></c>" for at in ("C3", "D3"))
    error = f"<row r='4'>{cell('C4')}<c r='D4' t='e'><f>1/0</f><v>#DIV/0!</v></c></row>"
    assert read(of_rows(f"<row r='3'>{names}</row>{error}"), "C3").rows == [(4, ANA, (ANA, "#DIV/0!"))]


PACKAGE = """
import sys

class Panic(BaseException):
    pass

class CalamineWorkbook:
    sheet_names = ["People"]

    @staticmethod
    def from_filelike(content):
        assert content.read(2) == b"PK"
        return CalamineWorkbook()

    start = (0, 0)

    def get_sheet_by_index(self, index):
        return [self, None][index]

    def iter_rows(self):
        print("a panic in Rust", file=sys.stderr)
        yield ["phone"]
        {then}
"""


@pytest.mark.parametrize(
    ("then", "expected"),
    [
        (f"yield [{ANA}.0]", ""),
        ("raise Panic", "standard input is not a readable workbook Open it in Excel or LibreOffice"),
        ("raise MemoryError", "standard input needs more memory than the limit of 1,024 MiB Copy the recipients to a"),
    ],
    ids=["row", "panic", "memory"],
)
def test_the_child_process_finds_the_same_package_and_reports_its_failures(
    then: str, expected: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "python_calamine.py").write_text(PACKAGE.format(then=then))
    monkeypatch.syspath_prepend(tmp_path)
    if expected:
        assert refused(workbook(["name"])).startswith(expected)
    else:
        assert read(workbook(["name"])).rows == [(2, ANA, (ANA,))]
    assert capfd.readouterr().err == ""


@pytest.mark.slow
def test_a_workbook_of_300_000_rows_is_read() -> None:
    rows = "".join(f'<row r="{n}"><c r="A{n}"><v>{573000000000 + n}</v></c></row>' for n in range(2, 300_002))
    header = '<row r="1"><c r="A1" t="inlineStr"><is><t>phone</t></is></c><c r="XFD1" s="1"/></row>'
    people = read(of_rows(header + rows)).rows
    assert (len(people), people[-1].phone) == (300_000, "573000300001")


HEAD = '{"sheet": "People", "hidden": [], "formulas": 0, "first_formula": ""}'


@pytest.mark.parametrize(
    ("script", "expected"),
    [
        ("exit 1", "is not a readable workbook"),
        ("kill -9 $$", "signal 9 ended the process that reads it"),
        (
            f"echo '{HEAD}'; echo '[[\"phone\"]]'; printf '[\"{ANA}'; kill -ABRT $$",
            "needs more memory than the limit of 1,024 MiB",
        ),
        ("kill -XCPU $$", "needs more processor time than the limit of 60 seconds"),
        (f"echo '{HEAD}'; echo '[[\"phone\"]]'; printf '[\"{ANA}'", "is not a readable workbook"),
        (None, "does not start: No such file or directory"),
    ],
    ids=["error", "kill", "abort", "too slow", "half a line", "missing"],
)
def test_a_child_process_that_fails_is_an_error(
    script: str | None, expected: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    python = tmp_path / "python"
    if script is not None:
        python.write_text(f"#!/bin/sh\ncat > /dev/null\n{script}\n")
        python.chmod(0o700)
    monkeypatch.setattr(sys, "executable", str(python))
    assert expected in refused(workbook(["phone"], [ANA]))


def child_that_ignores_sigint(pid: int) -> Path | None:
    """Return the directory in /proc of the only child of a process, once Ctrl-C by itself does not end it."""
    for child in Path(f"/proc/{pid}/task/{pid}/children").read_text().split():
        (ignored,) = re.findall("SigIgn:\\s*([0-9a-f]+)", Path(f"/proc/{child}/status").read_text())
        if int(ignored, 16) >> (signal.SIGINT - 1) & 1:
            return Path(f"/proc/{child}")
    return None


def test_ctrl_c_ends_the_child_process_of_a_workbook() -> None:
    command = [*RUN, "-p", "sandbox", "sms", "bulk", "-", "-m", "x", "--yes"]
    with started(command, stdin=PIPE, stderr=PIPE, start_new_session=True) as tool:
        assert tool.stdin is not None
        tool.stdin.write(workbook(["phone"], [ANA]))
        tool.stdin.flush()
        deadline = time.monotonic() + PATIENCE
        while not (child := child_that_ignores_sigint(tool.pid)):
            assert time.monotonic() < deadline
            time.sleep(0.01)
        os.killpg(tool.pid, signal.SIGINT)
        assert tool.stderr is not None
        expected = tool.stderr.read().decode()
        assert tool.wait(PATIENCE) == 130
    assert ended_well(130, expected)
    assert "Interrupted" in expected
    assert not child.exists()


# --- cells and sheets


def shop(*, hidden: Collection[int]) -> bytes:
    return of_sheets(Clientes=Sheet([["phone", "name"], [ANA, "Ana"], [LUIS, "Luis"], [], [EVA, "Eva"]], hidden))


def test_hidden_rows_that_are_blank_do_no_harm() -> None:
    assert [row.line for row in read(shop(hidden={4})).rows] == [2, 3, 5]


@pytest.mark.parametrize("target", [TARGET, "/xl/worksheets/sheet{n}.xml"])
@pytest.mark.parametrize(
    "row",
    [
        f"<row hidden='1'><c><v>{ANA}</v></c></row>",
        f"<row hidden='true'><c><v>{ANA}</v></c></row>",
        f"<row hidden='1'><c t='inlineStr'><is><t>{ANA}</t></is></c></row>",
        f"<row r='2' hidden='1'><c r='A2'><v>{ANA}</v></c></row>",
        f"<row hidden='1'><c t='e'><v>#N/A</v></c><c><v>{ANA}</v></c></row>",
    ],
)
def test_a_hidden_row_is_found_in_any_spelling(row: str, target: str) -> None:
    """Few attributes of a row, a cell or a relationship are required, and each program writes others."""
    header = "<row><c t='inlineStr'><is><t>phone</t></is></c></row>"
    content = of_rows(f"{header}{row}<row><c><v>{LUIS}</v></c></row>", target)
    head, rows, _ = workbook_process.sheets_of(io.BytesIO(content))
    assert cast(dict[str, object], head)["hidden"] == [2]
    assert len(cast(list[object], rows)) == 3


@pytest.mark.parametrize(
    ("cells", "formulas"),
    [
        ("<c r='B2'><f>A1</f><v></v></c>", (1, "B2")),
        ("<c><v>1</v></c><c><f>A1</f></c><c><f>A1</f><v/></c>", (2, "B2")),
        ("<c><f>A1</f><v />\n</c><c><v>1</v></c>", (1, "A2")),
        ("<c t='str'><f>A1</f><v></v></c><c><f>A1</f><v>0</v></c>", (0, "")),
    ],
)
def test_formulas_that_another_program_saved_without_a_result_are_counted(
    cells: str, formulas: tuple[int, str]
) -> None:
    header = "<row><c t='inlineStr'><is><t>phone</t></is></c></row>"
    head, *_ = workbook_process.sheets_of(io.BytesIO(of_rows(f"{header}<row>{cells}</row>")))
    head = cast(dict[str, object], head)
    assert (head["formulas"], head["first_formula"]) == formulas


def test_hidden_rows_and_error_values_of_the_second_sheet_are_its_own() -> None:
    notes = Sheet(NOTES.rows, hidden={1, 2})
    people = Sheet([["phone", "name"], [ANA, "Ana"], [LUIS, "Luis"]])
    content = of_sheets(Notas=notes, Clientes=people)
    assert [row.line for row in read_from(source(content), Reading(sheet="clientes")).rows] == [2, 3]
    content = of_sheets(Notas=Sheet(NOTES.rows), Clientes=Sheet(people.rows, hidden={3}))
    assert "1 row that Excel hides" in refused(content)
    read_rows = read_from(source(content), Reading(sheet="Clientes", skip_hidden=True)).rows
    assert [row.line for row in read_rows] == [2]


def test_every_error_value_is_whole_and_in_its_own_cell() -> None:
    """The parser of XML calls back twice for a text at the end of its buffer."""
    header = (
        "<row>" + "".join(f"<c t='inlineStr'><is><t>{name}</t></is></c>" for name in ("phone", "a", "b")) + "</row>"
    )
    row = f"<row><c><v>{ANA}</v></c><c t='e'><v>#N/A</v></c><c t='e'><v>#VALUE!</v></c></row>"
    rows = read(of_rows(header + row * 200)).rows
    assert {row.values for row in rows} == {(ANA, "#N/A", "#VALUE!")}


def test_two_sheets_without_a_heading_for_phones_need_the_options_that_the_error_shows() -> None:
    sheets = {name: Sheet([["Contacto", "Nombre"], [phone, name]]) for name, phone in (("A", ANA), ("B", LUIS))}
    content = of_sheets(**sheets)
    error = refused(content, None)
    assert 'None of the visible sheets of standard input has recipients: "A", "B"' in error
    assert [name for name in sheets if f"--sheet {name} --phone-column Contacto" in error] == ["A", "B"]
    (row,) = read_from(source(content), Reading(sheet="B", phone_column="Contacto")).rows
    assert row.phone == LUIS
    with pytest.raises(UsageError, match='Cannot determine the phone column of sheet "B"'):
        read_from(source(content), Reading(sheet="B"))


PEOPLE = Sheet([["phone", "name"], [ANA, "Ana"]])
NOTES = Sheet([["About this list", "Total"], ["June", 1]])
HEADER = Sheet([["phone", "name"]])


@pytest.mark.parametrize(
    "others",
    [
        {"Notas": NOTES, "Vacía": Sheet([]), "Plantilla": HEADER},
        {"Viejos": Sheet([["phone"], [LUIS]], state="hidden")},
        {"Viejos": Sheet([["phone"], [LUIS]], state="veryHidden")},
        {"Notas": Sheet(NOTES.rows, hidden={2})},
    ],
)
def test_the_only_visible_sheet_with_recipients_is_read(others: dict[str, Sheet]) -> None:
    for sheets in ({"Clientes": PEOPLE, **others}, {**others, "Clientes": PEOPLE}):
        assert read(of_sheets(**sheets)).rows == [(2, ANA, (ANA, "Ana"))]


def test_a_cell_is_read_as_its_value() -> None:
    cells = {
        "<c><v>0.15</v></c>": "0.15",
        "<c><v>41.5</v></c>": "41.5",
        "<c><v>0.30000000000000004</v></c>": "0.3",
        "<c><v>999999999999999</v></c>": "999999999999999",
        '<c t="str"><v>12345678901234567890</v></c>': "12345678901234567890",
        "<c t='inlineStr'><is><t>'+57</t></is></c>": "+57",
        "<c t='inlineStr'><is><t>'tis</t></is></c>": "'tis",
    }
    header = "".join(f"<c t='inlineStr'><is><t>{name}</t></is></c>" for name in ("phone", *range(len(cells))))
    (row,) = read(of_rows(f"<row r='1'>{header}</row><row r='2'><c><v>{ANA}</v></c>{''.join(cells)}</row>")).rows
    assert row.values[1:] == tuple(cells.values())


def test_a_number_has_at_most_15_digits() -> None:
    ana, luis = read(workbook(["phone", "n"], [ANA, 10**15 - 1], [LUIS, 10**15])).all_rows
    assert ana == (2, ANA, (ANA, "999999999999999"))
    assert isinstance(luis, InvalidRow)
    assert "in cell B3 has more than 15 digits" in luis.reason


def test_formats_change_only_dates_times_and_durations() -> None:
    xlsxwriter = pytest.importorskip("xlsxwriter")
    content = io.BytesIO()
    book = xlsxwriter.Workbook(content)
    sheet = book.add_worksheet()
    cells = [
        (0.15, "0 %", "0.15"),
        (41.5, "0.00", "41.5"),
        (46357, "yyyy-mm-dd", "2026-12-01"),
        (46357.5, "d/m/yy h:mm", "2026-12-01 12:00:00"),
        (46357 + 1 / 48, "d/m/yy h:mm", "2026-12-01 00:30:00"),
        (0.5, "h:mm", "12:00:00"),
        (1.5, "[h]:mm", "36:00:00"),
        (0.25, "[h]:mm:ss", "6:00:00"),
        (0, "[h]:mm:ss", "0:00:00"),
        (3599 / 86400, "[h]:mm:ss", "0:59:59"),
        (3661 / 86400, "[h]:mm:ss", "1:01:01"),
        (2 + 71 / 86400, "[h]:mm:ss", "48:01:11"),
    ]
    for column, (value, form, _) in enumerate([(int(ANA), "0", ""), *cells]):
        sheet.write(0, column, f"c{column}" if column else "phone")
        sheet.write_number(1, column, value, book.add_format({"num_format": form}))
    book.close()
    (row,) = read(content.getvalue()).rows
    assert row.values[1:] == tuple(expected for *_, expected in cells)


def test_the_process_that_reads_a_workbook_has_a_memory_limit_and_a_time_limit() -> None:
    limits = "[resource.getrlimit(kind)[0] for kind in (resource.RLIMIT_AS, resource.RLIMIT_CPU)]"
    code = f"import resource; from msgctl.lists.workbook_process import main; main(); print({limits})"
    done = subprocess.run([sys.executable, "-c", code], stdin=subprocess.DEVNULL, stdout=PIPE, check=True)
    assert done.stdout.splitlines()[-1] == b"[1073741824, 60]"
