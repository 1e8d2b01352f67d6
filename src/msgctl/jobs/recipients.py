"""A file of recipients, opened: its format and encoding found out, its columns known, its rows read as a stream."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import BinaryIO

from msgctl.errors import UsageError
from msgctl.jobs.decoding import Text, decoded
from msgctl.jobs.jsonlines import JsonLines
from msgctl.jobs.rows import Fault, Recipients, Row
from msgctl.jobs.tables import Table
from msgctl.text import shorten

__all__ = ["Fault", "Recipients", "Row", "opened"]


@contextmanager
def opened(source: BinaryIO, name: str, phone_column: str) -> Iterator[Recipients]:
    """The recipients in a source, which stays open; ``name`` is what messages call it.

    Formats and encodings are those of the contract ("Jobs"). Raises UsageError for what is wrong with the file as a
    whole: no text, no header, no column of phones.
    """
    with decoded(source, shorten(name)) as text:
        first = _first_filled_line(text)
        reader = JsonLines if first.lstrip().startswith("{") else Table
        yield reader(text, phone_column)


def _first_filled_line(text: Text) -> str:
    for line in text.lines():
        if not line.isspace():
            return line
    raise UsageError(
        f"{text.name} is empty", "It should hold recipients: CSV with a header, or JSON Lines with one object a line."
    )
