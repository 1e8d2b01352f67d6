"""Errors for files that are not lists of people. msgctl recognises the files by their content.

The hint of each error explains how to get a list. No hint suggests CSV, because Excel changes dates and digits when it
saves a workbook as CSV.
"""

from __future__ import annotations

import re
from collections.abc import Collection
from typing import BinaryIO

from msgctl.lists.formats import FileError, unreadable

OLE_MARK = b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1"
"""The beginning of an old Office file, and of a workbook with a password (MS-CFB, section 2.2)."""
_ENCRYPTED = "EncryptedPackage".encode("utf-16-le")

_MAX_SEARCHED = 2**26
"""The bytes of an old Office file in which the names of its streams are searched."""

SAVE_AS_XLSX = "Open it in Excel or LibreOffice and save it as an Excel workbook (.xlsx)."
OWN_PROGRAM = "Use the list from which it was created, as an Excel workbook (.xlsx)."
_MARKS = (
    (b"%PDF-", "a PDF", OWN_PROGRAM),
    (b"\x89PNG", "a picture", OWN_PROGRAM),
    (b"\xff\xd8\xff", "a picture", OWN_PROGRAM),
    (b"GIF8", "a picture", OWN_PROGRAM),
    (b"II*\0", "a picture", OWN_PROGRAM),
    (b"MM\0*", "a picture", OWN_PROGRAM),
    (b"RIFF", "a picture", OWN_PROGRAM),
    (b"{\\rtf", "a text document", OWN_PROGRAM),
    (b"\x1f\x8b", "a compressed file", "Extract it first."),
    (b"7z\xbc\xaf\x27\x1c", "a compressed file", "Extract it first."),
    (b"Rar!", "a compressed file", "Extract it first."),
    (b"BEGIN:VCARD", "a file of contacts (vCard)", "Export the contacts as a table, for example from Google Contacts."),
)
_XML = re.compile(rb"\s*<\?xml|\s*<(?:\w+:)?Workbook", re.IGNORECASE)
_HTML = re.compile(rb"\s*<(?:!doctype|!--|/?[a-z])", re.IGNORECASE)
_EXPORT = f"Export the list as .xlsx from the program that created it. Or: {SAVE_AS_XLSX[0].lower()}{SAVE_AS_XLSX[1:]}"


def refuse(name: str, source: BinaryIO, head: bytes) -> None:
    """Raise FileError if the beginning of a file shows that it is not a list. ``head`` are its first bytes."""
    if head.startswith(OLE_MARK):
        try:
            raise _ole_error(name, source.read(_MAX_SEARCHED))
        except OSError as error:
            raise unreadable(name, error) from None
    for mark, kind, hint in _MARKS:
        if head.startswith(mark):
            raise FileError(f"{name} is {kind}, not a list of recipients", hint)
    if head[4:8] == b"ftyp":
        raise FileError(f"{name} is an image or a video, not a list of recipients", OWN_PROGRAM)
    text = head.removeprefix(b"\xef\xbb\xbf")
    if head.startswith((b"\xff\xfe", b"\xfe\xff")):
        text = head[2:].replace(b"\0", b"")
    if _XML.match(text) and not re.search(rb"<html", text, re.IGNORECASE):
        raise FileError(f"{name} is an XML file, not a workbook", _EXPORT)
    if _HTML.match(text) or _XML.match(text):
        raise FileError(f"{name} is a web page (HTML), not a workbook", _EXPORT)


def _ole_error(name: str, content: bytes) -> FileError:
    """Return the error for an old Office file or a workbook with a password."""
    if _ENCRYPTED in content:
        return FileError(f"{name} is protected with a password", "Open it and save it as .xlsx without a password.")
    if any(stream.encode("utf-16-le") in content for stream in ("Workbook", "Book")):
        return FileError(f"{name} is an old Excel workbook (.xls)", SAVE_AS_XLSX)
    return FileError(f"{name} is an old Office file, not a list of recipients", OWN_PROGRAM)


def in_archive(parts: Collection[str]) -> tuple[str, str] | None:
    """Return the kind of a ZIP archive that is not a workbook in .xlsx, and the hint; None if it may be a workbook.

    ``parts`` are the lowercase names of its parts.
    """
    if "xl/workbook.bin" in parts:
        return "is a binary Excel workbook (.xlsb)", SAVE_AS_XLSX
    if "content.xml" in parts and "mimetype" in parts:
        return "is an OpenDocument spreadsheet (.ods)", SAVE_AS_XLSX
    if any(part.startswith("index") and part.endswith((".iwa", "index.zip")) for part in parts):
        return "is a file of Apple Numbers (.numbers)", "In Numbers, export it to Excel (.xlsx)."
    if "word/document.xml" in parts or "ppt/presentation.xml" in parts:
        return "is an Office document, not a workbook", OWN_PROGRAM
    if "xl/workbook.xml" not in parts:
        return "is a compressed file (ZIP), not a workbook", "Extract it first."
    return None
