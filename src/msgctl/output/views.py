"""What a table shows of each record, first what a person needs; the names are the interface's."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, NamedTuple

from msgctl import operations
from msgctl.http.response import Response
from msgctl.operations import Record

MOST_UNKNOWN = 64
"""Members beyond the interface's that get a column; a hostile answer could name another one in every entry."""


class View(NamedTuple):
    """How a record is shown.

    ``columns`` are those of its entries (of the record itself where it has none), ``summary`` stands above them,
    ``key`` comes first where several records share a table, ``unit`` is what a lone number counts.
    """

    columns: tuple[str, ...]
    summary: tuple[str, ...] = ()
    key: str = ""
    unit: str = ""


_SMS_COLUMNS = ("phone", "status", "credits", "id", "sms")
_VIEWS = {
    operations.RESPONSE_BALANCE.name: View(("status",), unit="credit"),
    operations.RESPONSE_SECURITY.name: View(("phone", "status", "name", "id")),
    operations.RESPONSE_SMS.name: View(_SMS_COLUMNS, ("id", "status")),
    operations.RESPONSE_CALL.name: View(("phone", "state", "credits", "id", "voice", "message"), ("id", "status")),
    operations.RESPONSE_STATE.name: View(
        ("state", "phone", "credits", "created", "sms", "dispatch_id", "id"), key="id"
    ),
    operations.RESPONSE_SMS_2FA.name: View(_SMS_COLUMNS, ("id", "status", "minutes_to_expire")),
    operations.RESPONSE_CALL_2FA.name: View(
        ("phone", "state", "credits", "id", "voice"), ("id", "status", "minutes_to_expire")
    ),
    operations.RESPONSE_SUCCESS.name: View(("status",)),
    operations.RESPONSE_URL_SHORT.name: View(("urlShort", "urlLong", "msg")),
    operations.RESPONSE_STATISTIC.name: View(("urlShort", "urlLong", "clicksNumber", "metrics")),
    operations.RESPONSE_CHATAPP.name: View(("phone", "status", "name", "id")),
}

_TEXTS = {"sms", "message", "msg", "error", "urlLong", "detail", "hint", "text"}
_NEVER_BROKEN = {"id", "dispatch_id", "phone"}
_STATES = {"state", "status", "outcome"}
_STYLES = {
    "green": ("delivered", "verified", "answered", "accepted", "done", "ok"),
    "red": ("rejected", "undelivered", "failed", "busy", "blocked", "not-answered", "refused", "invalid"),
    "yellow": ("queued", "sent", "ringing", "pending", "unknown", "running", "paused", "warning"),
}
_STYLE_OF_STATE = {state: style for style, states in _STYLES.items() for state in states}


def view_of(record: Record) -> View:
    """How a record is shown; one that is not the interface's has its members in their order."""
    return _VIEWS.get(record.name) or View(names(record))


def names(record: Record) -> tuple[str, ...]:
    """The members of the record's entries, or of the record where it has none, in the interface's order."""
    return tuple(member.name for member in record.entries or record.members)


def with_unknown(known: Sequence[str], documents: Iterable[Mapping[str, Any]]) -> tuple[str, ...]:
    """The known names, and after them what else the documents hold, in the order in which it turns up."""
    unknown: dict[str, None] = {}
    for document in documents:
        for name in document:
            if name not in known and len(unknown) < MOST_UNKNOWN:
                unknown[name] = None
    return (*known, *unknown)


def wrapping_column(columns: Sequence[str]) -> int | None:
    """Which column may go on in a second line: the last one of text, else the last one; never an identifier."""
    last = [name.rpartition(".")[2] for name in columns]
    wrapping = [index for index, name in enumerate(last) if name in _TEXTS]
    if wrapping:
        return wrapping[-1]
    return len(last) - 1 if last and last[-1] not in _NEVER_BROKEN else None


def state_style(column: str, value: str) -> str:
    """The Rich style of a cell: delivery states are green, yellow or red, everything else is plain."""
    if column.rpartition(".")[2] not in _STATES:
        return ""
    return _STYLE_OF_STATE.get(value.lower().replace(" ", "-").replace("_", "-"), "")


def entries(answer: Response) -> Sequence[Mapping[str, Any]]:
    """The ``data`` entries of an answer; the document itself where its record has none."""
    if not answer.operation.answer.entries:
        return [answer.document]
    return answer.document.get("data") or ()


def counted(value: str, unit: str) -> str:
    """A number with what it counts: ``1 credit``, ``250 credits``; what is no number stays as it is."""
    if not (value.isascii() and value.isdecimal()):
        return value
    return f"{value} {unit}" if value == "1" else f"{value} {unit}s"
