"""Write Excel workbooks."""

from __future__ import annotations

import io
import zipfile
import zlib
from collections.abc import Sequence
from datetime import datetime
from xml.sax.saxutils import escape

_MAIN = 'xmlns="http://schemas.openxmlformats.org/spreadsheetml/2006/main"'
_TO = "http://schemas.openxmlformats.org/officeDocument/2006/relationships"
_RELATIONS = 'xmlns="http://schemas.openxmlformats.org/package/2006/relationships"'


def workbook(*rows: Sequence[str | float | datetime]) -> bytes:
    """Return a workbook with one sheet. An empty row is left out, as Excel does."""
    return of_rows("".join(f'<row r="{n}">{"".join(map(_cell, row))}</row>' for n, row in enumerate(rows, 1) if row))


def of_rows(rows: str) -> bytes:
    """Return a workbook whose sheet has these rows, in XML."""
    return _packed(f"<worksheet {_MAIN}><sheetData>{rows}</sheetData></worksheet>")


def bomb(part: str, begin: bytes, piece: bytes, number: int, *, size: int) -> bytes:
    """Return a small workbook with a part that unpacks to many equal pieces; ``size`` is the size that it states."""
    compressor = zlib.compressobj(wbits=-15)
    packed = compressor.compress(begin) + compressor.flush(zlib.Z_FULL_FLUSH)
    block = compressor.compress(piece) + compressor.flush(zlib.Z_FULL_FLUSH)
    content = io.BytesIO(_packed(""))
    with zipfile.ZipFile(content, "a") as archive:
        info = zipfile.ZipInfo(part)
        archive.writestr(info, packed + block * number + compressor.flush())
        info.compress_type, info.file_size = zipfile.ZIP_DEFLATED, size
    return content.getvalue()


def _packed(sheet: str) -> bytes:
    files = {
        "_rels/.rels": f'<Relationships {_RELATIONS}><Relationship Id="r1" Type="{_TO}/officeDocument" '
        'Target="xl/workbook.xml"/></Relationships>',
        "xl/workbook.xml": f'<workbook {_MAIN} xmlns:r="{_TO}"><sheets><sheet name="People" sheetId="1" r:id="r1"/>'
        "</sheets></workbook>",
        "xl/_rels/workbook.xml.rels": f'<Relationships {_RELATIONS}><Relationship Id="r1" Type="{_TO}/worksheet" '
        'Target="worksheets/sheet1.xml"/></Relationships>',
        "xl/worksheets/sheet1.xml": sheet,
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
