"""The view of each result on a terminal: the verdict above it, its columns, and what to do next."""

from __future__ import annotations

import shlex
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from datetime import datetime, timedelta
from functools import partial
from itertools import islice
from typing import TYPE_CHECKING, Any, NamedTuple

from rich.console import Group
from rich.text import Text

from msgctl import operations as ops
from msgctl.output import fields
from msgctl.output.fields import Rows, cell, reach
from msgctl.output.result import ServiceResult
from msgctl.output.tables import GAP, LEAST_TEXT, Column, Listing, card, record, shown, table
from msgctl.recipients import ACCEPTED, is_failure
from msgctl.text import clean, plural

if TYPE_CHECKING:
    from rich.console import RenderableType

    from msgctl.http.response import Response
    from msgctl.output.result import OwnResult, StreamResult

TITLES = {
    "id": "ID",
    "dispatch.id": "Dispatch",
    "dispatch_id": "Dispatch",
    "sms": "Message",
    "msg": "Message",
    "urlShort": "Short URL",
    "urlLong": "Leads to",
    "minutes_to_expire": "Expires in (min)",
    "base_url": "Base URL",
    "not_gsm7": "Not in GSM-7",
}
KINDS = {
    **dict.fromkeys(("status", "state", "outcome"), "state"),
    **dict.fromkeys(("id", "dispatch.id", "dispatch_id", "client"), "id"),
    **dict.fromkeys(("sms", "message", "text", "error", "found"), "text"),
    **dict.fromkeys(("time", "created_at", "updated"), "time"),
    "code": "strong",
}
UNITS = {"credits": "credit", "messages": "message", "clicks": "click"}
KINDS.update(dict.fromkeys(UNITS, "number"))

DELIVERY_HINT = "Follow the delivery: msgctl state watch --last"


class View(NamedTuple):
    """How rows are shown: the columns in order, and the spare ones in the order in which they are left out."""

    columns: tuple[str, ...]
    spare: tuple[str, ...] = ()
    titles: Mapping[str, str] = {}
    kinds: Mapping[str, str] = {}


_ENTRIES = {
    ops.RESPONSE_SMS.name: View(("phone", "status", "credits", "id", "sms")),
    ops.RESPONSE_CALL.name: View(("phone", "state", "credits", "voice", "id", "message"), ("voice",)),
    ops.RESPONSE_SMS_2FA.name: View(("phone", "status", "credits", "id", "sms")),
    ops.RESPONSE_CALL_2FA.name: View(("phone", "state", "credits", "voice", "id"), ("voice",)),
    ops.RESPONSE_STATE.name: View(
        ("id", "state", "phone", "created", "credits", "dispatch_id", "sms"), ("dispatch_id", "credits")
    ),
}
_RECORDS = {
    ops.RESPONSE_SECURITY.name: ("phone", "name", "id"),
    ops.RESPONSE_URL_SHORT.name: ("urlShort", "urlLong"),
    ops.RESPONSE_CHATAPP.name: ("phone", "status", "name", "id"),
}
_OWN = {
    "history": View(
        ("time", "ago", "phone", "shown", "command", "credits", "profile", "id", "message"),
        ("credits", "ago", "profile", "command", "id"),
        {"time": "Sent", "ago": "", "shown": "Status"},
        {"ago": "ago", "shown": "state"},
    ),
    "inbox": View(
        ("time", "ago", "kind", "phone", "code", "text"),
        ("kind", "ago"),
        {"time": "Received", "ago": ""},
        {"ago": "ago"},
    ),
    "job report": View(
        ("line", "phone", "outcome", "shown", "credits", "id", "error"),
        ("credits", "shown", "id"),
        {"shown": "Status", "error": "Why"},
        {"line": "number", "shown": "state"},
    ),
    "profiles": View(("shown", "base_url", "client", "key"), ("client",), {"shown": "Profile"}),
}
_STREAM_WIDTHS = {"time": 12, "kind": 7, "phone": 15, "code": 6}
"""Widths of columns whose rows are shown as they come."""
_COUNTED = {
    ops.SEND_SMS.name: "message",
    ops.SEND_CALL.name: "call",
    ops.CHATAPP_SEND.name: "message",
    ops.CHATAPP_ORDER.name: "message",
}
_CODES = (ops.SMS_2FA.name, ops.CALL_2FA.name, ops.CHATAPP_2FA.name)


_TOLD = {(ops.RESPONSE_SECURITY.name, "blocked"), (ops.RESPONSE_SUCCESS.name, "verified")}


class Verdict(NamedTuple):
    """One line above a result: the kind of its sign, and what to say in parts."""

    kind: str
    parts: tuple[str, ...]


def verdict_of(result: ServiceResult, now: float) -> Verdict | None:
    """Return the verdict on an operation that sends or changes something; None for one that reads."""
    response = result.responses[0]
    name, document = response.operation.name, response.document
    rows = list(fields.rows_of(response))
    phone = cell(rows[0].get("phone")) if rows else ""
    if name in _COUNTED:
        return _sent(result, rows, _COUNTED[name])
    if name in _CODES:
        if result.failures:  # the error says what happened
            return None
        return Verdict("ok", (f"Code sent to {phone}", *_validity(document, now), *_charged(rows)))
    if response.operation is ops.BLOCK_PHONE:
        return Verdict("ok", (f"Blocked {phone}",))
    if response.operation is ops.VERIFY_2FA:
        return None if result.failures else Verdict("ok", (f"{cell(result.values.get('phone'))} is verified",))
    if response.operation is ops.URL_SHORT:
        return Verdict("ok", ("Short URL created",))
    return None


def hints_of(result: ServiceResult) -> list[str]:
    """Return what to do next."""
    operation = result.responses[0].operation
    if operation in (ops.SEND_SMS, ops.SEND_CALL):
        return [DELIVERY_HINT]
    if operation.name in _CODES and result.values.get("app-name"):
        phone, name = str(result.values["phone"]), shlex.quote(str(result.values["app-name"]))
        return [f"Check a code: msgctl 2fa verify {phone} --app-name {name} --code -"]
    return []


def parts_of(responses: Sequence[Response], now: float, width: int) -> Iterator[RenderableType]:
    """Return the responses to one operation as a table, a record, or a chart."""
    answer = responses[0].operation.answer
    if answer is ops.RESPONSE_BALANCE:
        yield from (_balance(each) for each in responses)
    elif answer is ops.RESPONSE_STATISTIC:
        from msgctl.output import charts

        for each in responses:
            yield from charts.statistics(each.document, width)
    elif answer.name in _ENTRIES:
        rows = [row for each in responses for row in fields.rows_of(each)]
        known = {*fields.columns_of(answer, []), "data"}
        unknown = [name for name in fields.columns_of(answer, rows) if name not in known]
        view = _ENTRIES[answer.name]
        yield from Listing(_columns(view, [*view.columns, *unknown], rows), rows, now, width=width).parts()
    else:
        for each in responses:
            names = fields.columns_of(answer, [each.document])
            first = _RECORDS.get(answer.name, ())
            others = [
                name for name in names if name not in first and not _is_told(answer, name, each.document.get(name))
            ]
            if shown_names := [name for name in (*first, *others) if each.document.get(name) not in (None, "")]:
                yield record_of(each.document, shown_names, now)


def own_parts(result: OwnResult, now: float, width: int) -> Iterator[RenderableType]:
    """Return a document of msgctl's own as a record, or several as a table."""
    if isinstance(result.documents, Mapping):
        yield from _own_record(result.view, result.documents, result.columns, now, width)
        return
    if result.view == "jobs":
        from msgctl.output import jobs

        yield from jobs.list_parts(result.documents, now, width)
        return
    rows: Collection[Mapping[str, Any]] = result.documents
    view = _OWN.get(result.view, View(tuple(result.columns), tuple(result.spare)))
    if result.view == "job report":
        own = tuple(name for name in result.columns if name not in (*view.columns, "status", "state"))
        view = view._replace(columns=(*view.columns, *own), spare=(*own, *view.spare))
    if result.view in _OWN:
        rows = Rows(rows, partial(_own_row, result.view))
    yield from Listing(_columns(view, view.columns, rows), rows, now, width=width).parts()


def stream_parts(result: StreamResult, clock: Callable[[], float], width: int) -> Iterator[RenderableType]:
    """Return rows as they come: in a table whose widths are known beforehand, or as cards if it does not fit."""
    view = _OWN[result.view]
    columns = [each for each in _columns(view, view.columns, []) if each.kind != "ago"]
    room = width - sum(_STREAM_WIDTHS.values()) - GAP * len(_STREAM_WIDTHS)
    widths = {column: _STREAM_WIDTHS.get(column.name, room) for column in columns}
    if room >= LEAST_TEXT:
        yield table(widths, [], clock())
    for document in result.documents:
        if room >= LEAST_TEXT:
            yield table(widths, [document], clock(), header=False)
        else:
            yield Group(card(columns, document, clock()), "")


def own_verdict(result: OwnResult) -> tuple[Verdict | None, list[str]]:
    """Return the verdict on a job, and what to do next; nothing for other documents, or if something failed."""
    if result.view not in ("job", "job end") or result.failures or not isinstance(result.documents, Mapping):
        return None, []
    from msgctl.output import jobs

    job = result.documents
    return Verdict("ok", jobs.told(job)) if result.view == "job end" else None, jobs.hints(job)


def _own_record(
    view: str, document: Mapping[str, Any], columns: Sequence[str], now: float, width: int
) -> Iterator[RenderableType]:
    if not view.startswith("job"):
        yield record_of(document, columns, now)
        return
    from msgctl.output import jobs

    if view == "job summary":
        yield from jobs.plan_parts(document)
    elif view == "job end":
        yield from jobs.result_parts(document, width)
    else:
        yield from jobs.parts(document, now, width)


def _own_row(view: str, row: Mapping[str, Any]) -> Mapping[str, Any]:
    """Return a row with what a view shows beside its fields."""
    if view == "job report":
        return {**row, "shown": row["state"] or row["status"]}
    if view == "profiles":
        return {**row, "shown": f"{'●' if row['default'] else ' '} {row['name']}"}
    return {**row, "ago": row.get("time"), "shown": _status(row)}


def record_of(document: Mapping[str, Any], names: Sequence[str], now: float) -> RenderableType:
    """Return the fields of a document that are filled, one per line."""
    values = {name: reach(document, name) for name in names}
    return record(
        [
            (title(name), shown(value, KINDS.get(name, _kind(value)), now))
            for name, value in values.items()
            if value != ""
        ]
    )


def title(name: str) -> str:
    """Return the heading of a field; the service may have fields of any name."""
    words = clean(name).replace("_", " ").replace(".", " ")
    return TITLES.get(name) or words[:1].upper() + words[1:]


def _columns(view: View, names: Sequence[str], rows: Collection[Mapping[str, Any]]) -> list[Column]:
    columns = []
    for name in names:
        values = [row.get(name) for row in islice(iter(rows), 20)]
        kind = view.kinds.get(name) or KINDS.get(name) or _kind(*values)
        heading = view.titles.get(name, title(name))
        spare = view.spare.index(name) + 1 if name in view.spare else 0
        columns.append(Column(name, heading, kind, spare, UNITS.get(name, "")))
    return columns


def _kind(*values: Any) -> str:
    """Return number for columns of whole numbers other than identifiers, which the interface has as strings."""
    told = [value for value in values if value not in (None, "")]
    return "number" if told and all(_is_number(value) for value in told) else "plain"


def _is_number(value: Any) -> bool:
    from msgctl.http.response import Number

    return (isinstance(value, int) and not isinstance(value, bool)) or (isinstance(value, Number) and len(value) < 9)


def _status(row: Mapping[str, Any]) -> Any:
    """Return the newest state of an entry of the history."""
    outcome = row.get("outcome")
    return row.get("state") or (row.get("status") if outcome == ACCEPTED else None) or outcome


def _balance(response: Response) -> Text:
    left = cell(response.document.get("status"))
    is_whole = left.isdecimal() and len(left) < 16
    return Text.assemble(
        (f"{int(left):,}" if is_whole else left, "bold"), " credit left" if left == "1" else " credits left"
    )


def _is_told(answer: ops.Record, name: str, value: Any) -> bool:
    """Return whether the verdict already shows a field."""
    if answer is ops.RESPONSE_URL_SHORT:
        return name == "msg"
    return name == "status" and (answer.name, str(value).lower()) in _TOLD


def _sent(result: ServiceResult, rows: Sequence[Mapping[str, Any]], noun: str) -> Verdict:
    outcomes = [each.outcome for each in result.outcomes]
    if not outcomes:
        outcomes = ["refused" if is_failure(str(row.get("status", row.get("state")))) else ACCEPTED for row in rows]
    accepted = outcomes.count(ACCEPTED)
    if accepted == len(outcomes):
        return Verdict("ok", (f"{plural(accepted, noun)} accepted", *_charged(rows)))
    return Verdict("warn", (f"{accepted:,} of {plural(len(outcomes), noun)} accepted", *_charged(rows)))


def _charged(rows: Sequence[Mapping[str, Any]]) -> tuple[str, ...]:
    charged = [str(row.get("credits")) for row in rows if row.get("credits") is not None]
    whole = [int(each) for each in charged if each.isdecimal() and len(each) < 16]
    return (plural(sum(whole), "credit"),) if whole and len(whole) == len(charged) else ()


def _validity(document: Mapping[str, Any], now: float) -> tuple[str, ...]:
    minutes = str(document.get("minutes_to_expire"))
    if not (minutes.isdecimal() and len(minutes) < 6):
        return ()
    end = datetime.fromtimestamp(now).astimezone() + timedelta(minutes=int(minutes))
    return (f"valid until {end:%H:%M} ({minutes} min)",)
