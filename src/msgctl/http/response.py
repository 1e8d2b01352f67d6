"""What a response of the service means: the record that was asked for, read without losing a digit, or an error."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from itertools import chain
from typing import TYPE_CHECKING, Any, NamedTuple, NoReturn
from urllib.parse import urljoin, urlsplit

from msgctl import operations
from msgctl.errors import RETRYABLE_STATUSES, MsgctlError, OutcomeUnknownError, RefusedError, UnreadableError
from msgctl.operations import Effect, Kind, Member, Operation
from msgctl.text import shorten

if TYPE_CHECKING:
    from decimal import Decimal

    from msgctl.http.exchange import Reply
    from msgctl.http.request import Request

MOST_BYTES = 16 * 1024 * 1024
"""The largest answer that is read, in bytes."""
MOST_DIGITS = 18
"""The longest number of credits that is taken for one."""


class Number(str):
    """A JSON number, kept as the text that was sent: no digit is lost to a float, none is added."""

    __slots__ = ()


class ShapeError(ValueError):
    """A body is not JSON, or is JSON of another shape than the record; the text says which."""


class Response(NamedTuple):
    """A record as the service sent it (``body``) and as it was read (``document``; numbers are `Number`)."""

    operation: Operation
    http_status: int
    body: bytes
    document: Mapping[str, Any]


def load_json(body: bytes) -> Any:
    """Read JSON (RFC 8259) of unknown origin; numbers become `Number`. Raises ShapeError."""
    try:
        text = body.decode("utf-8-sig")
        return _DECODER.decode(text)
    except UnicodeDecodeError:  # which holds the body, as the other errors do
        raise ShapeError("it is not UTF-8 text") from None
    except RecursionError:
        raise ShapeError("its JSON is nested too deeply") from None
    except ShapeError:
        raise
    except ValueError:
        raise ShapeError("it is not JSON") from None


def read(operation: Operation, body: bytes, http_status: int = 200) -> Response:
    """The answer to an operation, its body held against the operation's record. Raises ShapeError."""
    document = load_json(body)
    if not isinstance(document, dict):
        raise ShapeError("it is JSON, but not an object")
    members = operation.answer.members
    # `msg` alone may be the error record; null says nothing.
    if not any(document.get(member.name) is not None for member in members if member.name != "msg"):
        names = ", ".join(member.name for member in members)
        raise ShapeError(f"it has none of the members of {operation.answer.name} ({names})")
    _check_members(document, members)
    return Response(operation, http_status, body, document)


def credits_left(response: Response) -> Decimal | None:
    """The credits of a ResponseBalance, which are in its ``status``; None where that is not a number."""
    from decimal import Decimal, InvalidOperation  # a short command does without

    text = str(response.document.get("status"))
    try:
        left = Decimal(text)
    except InvalidOperation:
        return None
    # An exponent of a billion would be written out, and so would ten thousand decimals.
    is_sane = left.is_finite() and abs(left.adjusted()) < MOST_DIGITS and len(text) < 2 * MOST_DIGITS
    return left if is_sane else None


def _refuse_constant(name: str) -> NoReturn:
    raise ShapeError(f"it holds {name}, which is not JSON")


_SHORT = {text: Number(text) for text in map(str, range(100))}


def _number(text: str) -> Number:
    """A whole number; short ones are made once, since an answer can hold eight million of them."""
    return _SHORT.get(text) or Number(text)


_DECODER = json.JSONDecoder(parse_int=_number, parse_float=Number, parse_constant=_refuse_constant)


def _check_members(document: Mapping[str, Any], members: Sequence[Member]) -> None:
    """Arrays must be arrays of objects, objects objects, and everything else a plain value; null is always allowed.

    Whether a plain value is a number or a string is not held against the service: it is shown as it came.
    """
    for member in members:
        value = document.get(member.name)
        if value is None:
            continue
        if member.kind is Kind.ARRAY:
            if not isinstance(value, list) or not {dict}.issuperset(map(type, value)):
                raise ShapeError(f"its member {member.name} is not an array of objects")
            _check_entries(value, member.of)
        elif member.kind is Kind.OBJECT:
            if not isinstance(value, dict):
                raise ShapeError(f"its member {member.name} is not an object")
            _check_members(value, member.of)
        elif isinstance(value, (dict, list)):
            raise ShapeError(f"its member {member.name} is not a plain value")


def _check_entries(entries: list[dict[str, Any]], members: Sequence[Member]) -> None:
    """Check the objects of an array, which can be very many: at one glance where all of their values are plain."""
    are_plain = {Kind.ARRAY, Kind.OBJECT}.isdisjoint(member.kind for member in members)
    values = chain.from_iterable(map(dict.values, entries))
    if not (are_plain and {dict, list}.isdisjoint(map(type, values))):
        for entry in entries:
            _check_members(entry, members)


ALLOW_ADDRESS = (
    "If nothing is wrong with the values: calls from an address that is not allowed get this answer, too. "
    "Allow this machine's public address in the security menu of the account."
)
CHECK_BEFORE_REPEATING = {
    operations.BLOCK_PHONE: "Block the number again: that changes nothing where it is blocked already.",
    operations.URL_SHORT: "Before making it again, look whether it is there: msgctl url stats NAME --since today",
    operations.VERIFY_2FA: "The code may be used up: where in doubt, send a new one.",
}
"""What to do where it is not known whether a request was carried out; every other one sends."""
CHECK_A_SEND = "Before sending again, check the delivery state, the balance, or the phone itself."
CHECK_CREDENTIALS = (
    "Check client and key, and whether this machine's address is allowed in the account's security menu."
)


def parse(request: Request, reply: Reply, base_url: str, *, is_local: bool) -> Response:
    """Return the response to a request. Raises RefusedError, UnreadableError and OutcomeUnknownError.

    ``is_local`` is true for the sandbox in this process.
    """
    if reply.status != 200:
        raise _refused(request, reply, base_url, is_local=is_local)
    try:
        return read(request.operation, reply.whole_body(), reply.status)
    except ShapeError as error:
        raise _unreadable(request, reply, error) from None


def accept(request: Request, reply: Reply, base_url: str, *, is_local: bool) -> None:
    """Accept any whole response with a status of success. Raises as `parse` does."""
    if not reply.is_success:
        raise _refused(request, reply, base_url, is_local=is_local)
    try:
        reply.whole_body()
    except ShapeError as error:
        raise _unreadable(request, reply, error) from None


def _refused(request: Request, reply: Reply, base_url: str, *, is_local: bool) -> RefusedError:
    record = _error_record(reply.body)
    said = ": ".join(_said(value) for value in (record or {}).values() if value)
    if reply.status == 520 and record is not None:
        consequence = {Effect.SENDS: "nothing was sent", Effect.CHANGES: "nothing was changed"}
        return RefusedError(
            f"the service refused the request ({reply.status}){': ' + said if said else ''}",
            None if is_local else ALLOW_ADDRESS,
            consequence=consequence.get(request.operation.effect, ""),
            http_status=reply.status,
            record=record,
        )
    return RefusedError(
        f"the answer is {_described(reply, said)}",
        _advice(request, reply, base_url),
        consequence=_consequence(request.operation.effect, reply.status),
        http_status=reply.status,
        record=record,
        certain=_is_certain(request.operation.effect, reply.status),
    )


def _advice(request: Request, reply: Reply, base_url: str) -> str | None:
    if 300 <= reply.status < 400:
        location = reply.header("location")
        where = _origin(base_url, location) if location else "nowhere"
        return (
            f"Redirects are not followed, since the key would travel along; it points to {shorten(where)}. "
            "Check the base URL, and before sending again the delivery state or the balance."
        )
    if reply.status in (404, 405):
        return "Check the base URL: it ends in the version segment, /api/v1."
    if reply.status == 520:
        return ALLOW_ADDRESS
    if reply.status in (401, 403):
        return CHECK_CREDENTIALS
    if reply.status == 429 or (
        reply.status in RETRYABLE_STATUSES and request.operation.effect is Effect.READS
    ):  # RFC 6585, 4
        return "Try again a little later."
    return check(request) if reply.status >= 500 else "Check the values and the base URL."


def _error_record(body: bytes) -> dict[str, Any] | None:
    """``error`` and ``msg`` of the service's error record; None where the body is no record."""
    try:
        document = load_json(body)
    except ShapeError:
        return None
    if not isinstance(document, dict) or (document and not document.keys() & {"error", "msg"}):
        return None
    return {name: document[name] for name in ("error", "msg") if name in document}


def _unreadable(request: Request, reply: Reply, error: ShapeError) -> MsgctlError:
    """The error for an answer that says success and cannot be read."""
    if request.operation.effect is not Effect.READS:
        return outcome_unknown(request, f"the answer cannot be read: {error}", reply.status)
    return UnreadableError(
        f"the answer to {request.operation.name} cannot be read: {error}",
        "Check the base URL; -v shows what was asked for.",
        http_status=reply.status,
    )


def _said(value: Any) -> str:
    """A member of an error record in a message; the interface knows strings, but who can tell."""
    return shorten(value if isinstance(value, str) else json.dumps(value, ensure_ascii=False))


def _origin(base_url: str, location: str) -> str:
    """Scheme, host and port of where a redirect leads: the rest may repeat the request, and with it the key."""
    try:
        parts = urlsplit(urljoin(base_url, location))
        port = parts.port
    except ValueError:
        return "a malformed URL"
    if not parts.hostname:
        return "a malformed URL"
    return f"{parts.scheme}://{parts.hostname}" + (f":{port}" if port else "")


def _described(reply: Reply, said: str) -> str:
    if said:
        return f"status {reply.status}: {said}"
    if reply.fault:
        return f"status {reply.status}, and {reply.fault}"
    if not reply.body.strip():
        return f"status {reply.status} with an empty body"
    return f"status {reply.status} with {_kind_of(reply.body)} instead of the service's record"


def _kind_of(body: bytes) -> str:
    """What a body is that is no record, in words."""
    start = body[:2000].lower()
    if b"<html" in start or b"<!doctype" in start:
        return "an HTML page, perhaps of a proxy,"
    try:
        load_json(body)
    except ShapeError:
        return "a text"
    return "other JSON"


def _is_certain(effect: Effect, status: int) -> bool:
    """Whether a request with such an answer, which is not the service's own, was surely not carried out.

    A 4xx lays the fault on the request, and 301, 307 and 308 ask for it at another place (RFC 9110, 15.4 and 15.5). A
    302 or 303 may be the answer to one that was carried out, and the others may come from a proxy that has passed it
    on.
    """
    return effect is Effect.READS or status in (301, 307, 308) or 400 <= status < 500


def _consequence(effect: Effect, status: int) -> str:
    """What an answer other than the service's own means for the request, as the end of a message."""
    if effect is Effect.READS:
        return ""
    if _is_certain(effect, status):
        return "nothing was sent" if effect is Effect.SENDS else "nothing was changed"
    return "the request may have been carried out all the same"


def check(request: Request) -> str:
    """What to look at before a request is made again."""
    if request.operation.effect is Effect.READS:
        return "Try again."
    return CHECK_BEFORE_REPEATING.get(request.operation, CHECK_A_SEND)


def outcome_unknown(request: Request, why: str, status: int | None = None) -> OutcomeUnknownError:
    if request.operation.effect is Effect.READS:
        return OutcomeUnknownError(
            f"{request.operation.name} was asked for, and {why}", "Try again.", http_status=status
        )
    return OutcomeUnknownError(
        f"the request was sent, and {why}",
        check(request),
        consequence="it may have been carried out",
        http_status=status,
    )
