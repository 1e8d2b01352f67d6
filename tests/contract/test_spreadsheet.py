"""Files for spreadsheets: csv and Excel workbooks."""

from __future__ import annotations

import os
import re
import tracemalloc
import zipfile
from collections.abc import Iterator, Sequence
from datetime import UTC, date, datetime
from itertools import repeat
from pathlib import Path
from typing import Any

import pytest
from python_calamine import CalamineWorkbook

from msgctl.errors import ConfigurationError, UsageError
from msgctl.output import spreadsheet

INJECTED = '<r></r></is></c><c r="Z9"><f>HYPERLINK("http://198.51.100.1")</f></c><c t="inlineStr"><is><r></r>'
FORMULAS = ("=1+1", "+57-300", "-1+2", "@SUM(1)", "\t=1+1", INJECTED)
ROWS: list[dict[str, Any]] = [
    {"line": 2, "phone": "573001234567", "id": "12e45678", "credits": 1, "name": "María José Ñandú"},
    {"line": 3, "phone": "003", "id": None, "credits": 1.5, "name": "two; parts,\nand lines\x1b"},
]
COLUMNS = tuple(ROWS[0])


@pytest.fixture
def book(tmp_path: Path) -> Path:
    return tmp_path / "report.xlsx"


def cells(path: Path) -> list[list[Any]]:
    """Return the cells of a workbook."""
    return CalamineWorkbook.from_path(str(path)).get_sheet_by_index(0).to_python()


def sheet(path: Path) -> str:
    with zipfile.ZipFile(path) as archive:
        return archive.read("xl/worksheets/sheet1.xml").decode()


def form(path: Path, cell: str) -> str:
    """Return the number format of a cell."""
    with zipfile.ZipFile(path) as archive:
        styles = archive.read("xl/styles.xml").decode()
    (style,) = re.findall(rf'r="{cell}" s="(\d+)"', sheet(path))
    number = re.findall(r'<xf numFmtId="(\d+)"', styles.partition("<cellXfs")[2])[int(style)]
    (code,) = re.findall(rf'numFmtId="{number}" formatCode="(.*?)"', styles)
    return str(code)


def saved(path: Path, *texts: str) -> Path:
    """Write a file with these texts in one column."""
    assert spreadsheet.save(path, ("name",), ({"name": text} for text in texts)) == len(texts)
    return path


def test_a_workbook_has_text_numbers_and_times(book: Path) -> None:
    times = {"day": "2026-12-01", "moment": "2026-12-01 09:05:00", "time": "2026-12-01T09:05:00Z"}
    times |= {"none": "2026-02-30", "early": "1900-01-01", "message": "2026-12-01"}
    assert spreadsheet.save(book, (*COLUMNS, *times), [{**ROWS[0], **times}, ROWS[1]], zone=UTC) == 2
    header, first, second = cells(book)
    assert header == [*COLUMNS, *times]
    assert first[:5] == [2, "573001234567", "12e45678", 1, "María José Ñandú"]
    assert first[5:] == [
        date(2026, 12, 1),
        *[datetime(2026, 12, 1, 9, 5)] * 2,
        "2026-02-30",
        "1900-01-01",
        "2026-12-01",
    ]
    assert [form(book, cell) for cell in ("F2", "G2", "H2")] == ["yyyy-mm-dd", *["yyyy-mm-dd hh:mm:ss"] * 2]
    assert second[:5] == [3, "003", "", 1.5, "two; parts,\nand lines\\x1b"]


def test_people_can_read_the_messages_of_a_workbook_and_filter_it(book: Path) -> None:
    spreadsheet.save(book, ("line", "message"), [{"line": 2, "message": "Hola"}])
    assert re.search(r'<col min="2" max="2" width="60.', sheet(book))
    assert '<autoFilter ref="A1:B2"/>' in sheet(book)


def test_no_cell_is_a_formula(book: Path) -> None:
    assert "<f>" not in sheet(saved(book, *FORMULAS))
    assert [text.strip() for (text,) in cells(book)[1:]] == [text.replace("\t", "\\t") for text in FORMULAS]


def test_the_header_can_be_omitted(book: Path) -> None:
    assert spreadsheet.save(book, ("line",), ROWS, header=False) == 2
    assert cells(book) == [[2.0], [3.0]]
    assert 'r="A1"' in sheet(book)


def test_a_file_is_written_completely_or_not_at_all(book: Path, tmp_path: Path) -> None:
    def broken() -> Iterator[dict[str, Any]]:
        yield from ROWS
        raise ConfigurationError("The store is damaged")

    for content in (None, "before"):
        if content:
            book.write_text(content)
        with pytest.raises(ConfigurationError):
            spreadsheet.save(book, COLUMNS, broken())
        assert {each.name: each.read_text() for each in tmp_path.iterdir()} == ({book.name: content} if content else {})


def test_the_whole_file_is_on_the_disk_before_it_has_its_name(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    synced: list[int] = []
    monkeypatch.setattr(os, "fsync", lambda descriptor: synced.append(os.fstat(descriptor).st_size))
    path = tmp_path / "report.csv"
    spreadsheet.save(path, COLUMNS, ROWS)
    assert synced == [path.stat().st_size]


def test_a_new_file_follows_the_umask_and_a_replaced_file_keeps_its_permissions(book: Path) -> None:
    before = os.umask(0o027)
    try:
        saved(book, "one")
        assert book.stat().st_mode & 0o777 == 0o640
        book.chmod(0o600)
        saved(book, "two")
        assert book.stat().st_mode & 0o777 == 0o600
    finally:
        os.umask(before)


def test_only_regular_files_are_replaced(tmp_path: Path) -> None:
    other = tmp_path / "other.xlsx"
    other.write_text("mine")
    link, directory, pipe = (tmp_path / f"{name}.xlsx" for name in ("link", "directory", "pipe"))
    link.symlink_to(other)
    directory.mkdir()
    os.mkfifo(pipe)
    for path, kind in ((link, "a symbolic link"), (directory, "a directory"), (pipe, "a device")):
        with pytest.raises(UsageError, match=kind):
            saved(path, "new")
    assert other.read_text() == "mine"
    with pytest.raises(ConfigurationError, match=r"The directory .*/missing does not exist"):
        saved(tmp_path / "missing" / "report.xlsx", "new")


@pytest.mark.parametrize(
    ("columns", "text", "limit"),
    [(("name",), "🎉" * 16_384, "32,767 characters"), ([f"c{n}" for n in range(16_385)], "", "16,384 columns")],
    ids=["cell", "columns"],
)
def test_a_table_that_excel_cannot_read_is_an_error(columns: Sequence[str], text: str, limit: str, book: Path) -> None:
    with pytest.raises(UsageError, match=limit) as error:
        spreadsheet.save(book, columns, [{"name": text}])
    assert (error.value.hint, book.exists()) == ("Use csv: --save FILE.csv", False)


@pytest.mark.slow
def test_a_workbook_has_at_most_as_many_rows_as_excel(book: Path) -> None:
    row = {"line": 1}
    assert spreadsheet.save(book, ("line",), repeat(row, 2**20 - 1)) == 2**20 - 1
    with pytest.raises(UsageError, match="at most 1,048,576 rows"):
        spreadsheet.save(book, ("line",), repeat(row, 2**20))


def test_rows_are_not_kept_in_memory(book: Path) -> None:
    saved(book, "imports")
    tracemalloc.start()
    try:
        saved(book, *map(str, range(10)))
        tracemalloc.reset_peak()
        spreadsheet.save(book, ("name",), ({"name": f"Name {number}"} for number in range(10_000)))
        assert tracemalloc.get_traced_memory()[1] < 2**20
    finally:
        tracemalloc.stop()
