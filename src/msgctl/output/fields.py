"""``--fields``: the columns that were asked for, checked before a request is sent, and found in an answer after it."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from msgctl.errors import UsageError
from msgctl.operations import Record
from msgctl.output.cells import reach
from msgctl.text import shorten

_ENTRIES = "data"

Finder = Callable[[Mapping[str, Any], Mapping[str, Any]], Any]
"""Finds a value in an entry and the record around it."""


def check_fields(fields: Sequence[str], record: Record) -> None:
    """Raise UsageError for a field that neither the record nor its ``data`` entries have.

    The first part of a dotted name counts, and after ``data.`` the second, unless it is an index.
    """
    entries = [member.name for member in record.entries]
    members = [member.name for member in record.members]
    for field in fields:
        head, _, rest = field.partition(".")
        second = rest.partition(".")[0]
        if entries and head == _ENTRIES and rest and not second.isdecimal():
            _check(field, second, entries)
        else:
            _check(field, head, list(dict.fromkeys([*entries, *members])))


def check_own_fields(fields: Sequence[str], columns: Sequence[str]) -> None:
    """Raise UsageError for a field that is not among the columns of one of msgctl's own documents."""
    for field in fields:
        _check(field, field.partition(".")[0], columns)


def finder(field: str, record: Record) -> Finder:
    """How a field is found: a member of the entries in the entry, any other in the record.

    An entry without its ``id`` does not get the dispatch's.
    """
    entries = {member.name for member in record.entries}
    head, _, rest = field.partition(".")
    if head == _ENTRIES and rest.partition(".")[0] in entries:
        return lambda entry, _document: reach(entry, rest)
    if head in entries or not entries:
        return lambda entry, _document: reach(entry, field)
    return lambda _entry, document: reach(document, field)


def _check(field: str, name: str, allowed: Sequence[str]) -> None:
    if name in allowed:
        return
    if not allowed:
        raise UsageError("--fields: what this command prints has no columns", "Leave --fields out.")
    import difflib  # for a mistake alone

    near = difflib.get_close_matches(name, allowed, n=1)
    raise UsageError(
        f'--fields: there is no field "{shorten(field)}"; the fields are {", ".join(allowed)}.',
        f"Did you mean {near[0]}?" if near else None,
    )
