"""Write Excel workbooks."""

from __future__ import annotations

import io
import zipfile
import zlib
from collections.abc import Collection, Mapping, Sequence
from datetime import datetime
from typing import NamedTuple
from xml.sax.saxutils import escape

_MAIN = 'xmlns="http://schemas.openxmlformats.org/spreadsheetml/2006/main"'
_TO = "http://schemas.openxmlformats.org/officeDocument/2006/relationships"
_RELATIONS = 'xmlns="http://schemas.openxmlformats.org/package/2006/relationships"'
TARGET = "worksheets/sheet{n}.xml"
"""The target of the relationship of a sheet. Some programs write an absolute path."""


Cells = Sequence["str | float | datetime"]


class Sheet(NamedTuple):
    """A sheet: its rows, the numbers of its hidden rows, and its state (visible, hidden, veryHidden)."""

    rows: Sequence[Cells]
    hidden: Collection[int] = ()
    state: str = "visible"


def workbook(*rows: Cells) -> bytes:
    """Return a workbook with one sheet. An empty row is left out, as Excel does."""
    return of_sheets(People=Sheet(rows))


def of_sheets(**sheets: Sheet) -> bytes:
    return _packed({name: _sheet(_rows(sheet)) for name, sheet in sheets.items()}, sheets)


def of_rows(rows: str, target: str = TARGET) -> bytes:
    return _packed({"People": _sheet(rows)}, {}, target)


def of_xml(sheet: str) -> bytes:
    return _packed({"People": sheet}, {})


def _sheet(rows: str) -> str:
    return f"<worksheet {_MAIN}><sheetData>{rows}</sheetData></worksheet>"


def _rows(sheet: Sheet) -> str:
    return "".join(
        f'<row r="{number}" hidden="{number in sheet.hidden:d}">{"".join(map(_cell, row))}</row>'
        for number, row in enumerate(sheet.rows, 1)
        if row
    )


def bomb(part: str, begin: bytes, piece: bytes, number: int, *, size: int) -> bytes:
    """Return a small workbook with a part that unpacks to many equal pieces; ``size`` is the size that it states."""
    compressor = zlib.compressobj(wbits=-15)
    packed = compressor.compress(begin) + compressor.flush(zlib.Z_FULL_FLUSH)
    block = compressor.compress(piece) + compressor.flush(zlib.Z_FULL_FLUSH)
    content = io.BytesIO(_packed({"People": ""}, {}))
    with zipfile.ZipFile(content, "a") as archive:
        info = zipfile.ZipInfo(part)
        archive.writestr(info, packed + block * number + compressor.flush())
        info.compress_type, info.file_size = zipfile.ZIP_DEFLATED, size
    return content.getvalue()


def _packed(sheets: Mapping[str, str], states: Mapping[str, Sheet], target: str = TARGET) -> bytes:
    numbered = [*enumerate(sheets, 1)]
    listed = "".join(
        f'<sheet name="{name}" sheetId="{n}" r:id="r{n}" state="{states[name].state if states else "visible"}"/>'
        for n, name in numbered
    )
    relations = "".join(
        f'<Relationship Id="r{n}" Type="{_TO}/worksheet" Target="{target.format(n=n)}"/>' for n, _ in numbered
    )
    files = {
        "_rels/.rels": f'<Relationships {_RELATIONS}><Relationship Id="r1" Type="{_TO}/officeDocument" '
        'Target="xl/workbook.xml"/></Relationships>',
        "xl/workbook.xml": f'<workbook {_MAIN} xmlns:r="{_TO}"><sheets>{listed}</sheets></workbook>',
        "xl/_rels/workbook.xml.rels": f"<Relationships {_RELATIONS}>{relations}</Relationships>",
        **{f"xl/worksheets/sheet{n}.xml": sheets[name] for n, name in numbered},
    }
    content = io.BytesIO()
    with zipfile.ZipFile(content, "w") as archive:
        for name, text in files.items():
            if text:
                archive.writestr(name, text)
    return content.getvalue()


def _cell(value: str | float | datetime) -> str:
    if isinstance(value, datetime):
        return f'<c t="d"><v>{value.isoformat()}</v></c>'
    if isinstance(value, str):
        return f'<c t="inlineStr"><is><t>{escape(value)}</t></is></c>'
    if isinstance(value, bool):
        return f'<c t="b"><v>{value:d}</v></c>'
    return f"<c><v>{value}</v></c>"


def archive(*names: str) -> bytes:
    """Return an archive with empty files, as another kind of document."""
    content = io.BytesIO()
    with zipfile.ZipFile(content, "w") as file:
        for name in names:
            file.writestr(name, "")
    return content.getvalue()
