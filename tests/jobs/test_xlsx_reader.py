"""Recipients in Excel workbooks: rows, numbers, exclusions, and what is refused."""

from __future__ import annotations

import sys
from datetime import datetime
from pathlib import Path

import pytest

from jobs.reading import ANA, LUIS, read, refused, source
from msgctl.jobs.reader import numbers_in
from support.jobs import accepting, phones, sends
from support.service import Service
from support.tool import Tool
from support.workbooks import workbook

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
    ("content", "said"),
    [
        (b"PK\x03\x04\x14", "not a workbook"),
        (workbook(["name"], ["Ana"]), 'no column "phone"'),
        (workbook(), "no header"),
    ],
)
def test_a_workbook_without_recipients_is_refused(content: bytes, said: str) -> None:
    assert said in refused(content)


def test_without_the_package_the_error_says_how_to_install_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "python_calamine", None)
    assert "pip install 'msgctl[campaigns]'" in refused(workbook(["phone"], [ANA]))


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
