"""Recipients in Excel workbooks: rows, numbers, exclusions, and what is refused."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
import time
from datetime import datetime
from pathlib import Path
from subprocess import PIPE

import pytest

from jobs.reading import ANA, LUIS, read, refused, source
from msgctl.errors import UsageError
from msgctl.jobs import workbook as limits
from msgctl.jobs.reader import numbers_in
from support.jobs import accepting, phones, sends
from support.runs import ended_well
from support.service import Service
from support.terminal import PATIENCE, RUN
from support.tool import Tool
from support.workbooks import bomb, of_rows, workbook

pytest.importorskip("python_calamine")


def test_a_sheet_is_read_like_a_csv_file_with_the_rows_of_the_sheet() -> None:
    found = read(
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
    assert (found.columns, found.phone_column, found.blank) == (("Name", "Mobile", "Amount"), "Mobile", 1)
    ana, luis, eva, zoe = found.found
    assert ana == (2, ANA, ("Ana\nMaría", ANA, "12.5"))
    assert luis == (4, LUIS, ("Luis", f"+57 300 {LUIS[5:]}", "true"))
    assert (eva.line, eva.phone) == (5, "x")
    assert zoe == (6, str(int(LUIS) + 1), ("Zoe", str(int(LUIS) + 1), "false"))


@pytest.mark.parametrize(
    ("content", "expected"),
    [
        (b"PK\x03\x04\x14", "not a workbook"),
        (workbook(["name"], ["Ana"]), 'no column "phone"'),
        (workbook(), "no header"),
    ],
)
def test_a_workbook_without_recipients_is_refused(content: bytes, expected: str) -> None:
    assert expected in refused(content)


def test_without_the_package_the_error_explains_how_to_install_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "python_calamine", None)
    assert "[campaigns]'" in refused(workbook(["phone"], [ANA]))


def test_a_date_is_written_like_2026_12_01_and_its_time_is_kept() -> None:
    found = read(workbook(["phone", "day"], [ANA, datetime(2026, 12, 1)], [LUIS, datetime(2026, 12, 1, 9, 30)]), None)
    assert [row.values[1] for row in found.rows] == ["2026-12-01", "2026-12-01 09:30:00"]


def test_the_numbers_of_a_workbook_can_be_excluded() -> None:
    content = workbook(["phone"], [int(ANA)], [LUIS])
    assert [*numbers_in("-", source(content), None)] == [ANA, LUIS]


@pytest.mark.parametrize("from_stdin", [False, True], ids=["file", "standard input"])
def test_a_workbook_is_sent_and_reported(from_stdin: bool, tool: Tool, service: Service, home: Path) -> None:
    service.always(accepting(service))
    people, unwanted = home / "people.xlsx", home / "unwanted.xlsx"
    people.write_bytes(workbook(["phone", "name"], [int(ANA), "Ana"], [int(LUIS), "Luis"]))
    unwanted.write_bytes(workbook(["phone"], [int(LUIS)]))
    line = ("-m", "Hola {name}", "--exclude", str(unwanted), "--yes", "--json")
    done = tool("sms", "bulk", "-" if from_stdin else str(people), *line, stdin=people.read_bytes())
    assert done.code == 0, done.err
    (request,) = sends(service)
    assert (phones(request), dict(request.form)["sms"]) == ([ANA], "Hola Ana")


# --- workbooks that ask for too much

MIB = 2**20


def cell(reference: str) -> str:
    return f'<c r="{reference}"><v>573001234567</v></c>'


@pytest.mark.parametrize(
    ("rows", "expected"),
    [
        (f'<row r="1">{cell("A1")}</row><row r="1048576">{cell("XFD1048576")}</row>', "has 17,179,869,184 cells"),
        (f'<row r="1">{cell("A1")}</row><row>{cell("ZZ900000")}</row>', "has 631,800,000 cells"),
        (
            f'<row r="4294967295">{cell("A4294967295")}</row>',
            "has a row 4,294,967,295; the last row of a sheet is 1,048,576",
        ),
        ("<row r='4294967295'><c><v>1</v></c></row>", "has a row 4,294,967,295"),
        # Without references, only the memory is limited.
        (f"<row>{'<c><v>1</v></c>' * 16384}</row>" + "<row><c><v>1</v></c></row>" * 5000, "needs more than 1,024 MiB"),
        (
            f"<row><c t='inlineStr'><is><t>phone{'x' * MIB}</t></is></c></row>",
            "more than 1,048,576 characters in row 1",
        ),
    ],
    ids=["corners", "wide and long", "row of cells", "row", "no references", "long cell"],
)
def test_a_sheet_that_asks_for_too_much_is_refused(rows: str, expected: str) -> None:
    with pytest.raises(UsageError, match=re.escape(expected)) as caught:
        read(of_rows(rows))
    assert caught.value.hint == "Copy the recipients to a new workbook, or save them as CSV in UTF-8."


def test_cells_are_counted_in_the_whole_sheet(monkeypatch: pytest.MonkeyPatch) -> None:
    for name, value in (("_CHUNK", 64), ("MAX_ROW", 10), ("MAX_CELLS", 100)):
        monkeypatch.setattr(limits, name, value)
    limits.check(source(of_rows(f'<row r="1">{cell("A1") * 90}</row>')))
    with pytest.raises(limits.WorkbookError, match=r"has 1[0-9]{2} cells up to the last row and column; the limit is"):
        limits.check(source(of_rows(f'<row r="1">{cell("A1") * 120}</row>')))
    monkeypatch.setattr(limits, "MAX_UNPACKED", MIB)
    with pytest.raises(limits.WorkbookError, match="unpacks to more than 1 MiB, the limit"):
        limits.check(source(of_rows(" " * MIB)))


@pytest.mark.slow
@pytest.mark.parametrize("size", [2048 * MIB, 1000], ids=["stated", "not stated"])
@pytest.mark.parametrize(
    ("part", "begin", "piece"),
    [
        ("xl/worksheets/sheet1.xml", b"<worksheet><sheetData><row><c t='inlineStr'><is><t>", b"a" * MIB),
        ("xl/sharedStrings.xml", b"<sst>", b"<si><t/></si>" * 2**17),
    ],
    ids=["cell", "shared strings"],
)
def test_a_workbook_that_unpacks_to_too_much_is_refused(part: str, begin: bytes, piece: bytes, size: int) -> None:
    content = bomb(part, begin, piece, 2048, size=size)
    assert len(content) < 10 * MIB
    assert "unpacks to more than 512 MiB, the limit" in refused(content)


def test_a_workbook_on_standard_input_that_does_not_end_is_refused() -> None:
    content = workbook(["phone"], [ANA])
    assert "is larger than 64 MiB, the limit for workbooks" in refused(content + bytes(65 * MIB))


@pytest.mark.slow
def test_a_workbook_of_300_000_rows_is_read() -> None:
    rows = "".join(f'<row r="{n}"><c r="A{n}"><v>{573000000000 + n}</v></c></row>' for n in range(2, 300_002))
    header = '<row r="1"><c r="A1" t="inlineStr"><is><t>phone</t></is></c><c r="XFD1" s="1"/></row>'
    found = read(of_rows(header + rows)).rows
    assert (len(found), found[-1].phone) == (300_000, "573000300001")


@pytest.mark.parametrize(
    ("script", "expected"),
    [
        ("exit 1", "is not a workbook that can be read"),
        ("kill -9 $$", "signal 9 ended the process that reads it"),
        (f"echo '[\"phone\"]'; printf '[\"{ANA}'; kill -ABRT $$", "needs more than 1,024 MiB of memory, the limit"),
        ("kill -XCPU $$", "needs more than 60 seconds of processor time, the limit"),
        (f"echo '[\"phone\"]'; printf '[\"{ANA}'", "is not a workbook that can be read"),
        (None, "does not start: No such file"),
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


def test_ctrl_c_ends_the_process_that_reads_a_workbook() -> None:
    command = [*RUN, "-p", "sandbox", "sms", "bulk", "-", "-m", "x", "--yes"]
    with subprocess.Popen(command, stdin=PIPE, stderr=PIPE, start_new_session=True) as tool:
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
