"""What a response of the service means: the record that was asked for, read without losing a digit, or an error."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from itertools import chain
from typing import TYPE_CHECKING, Any, NamedTuple

from msgctl import operations
from msgctl.http.failure import Failure
from msgctl.jsontext import ShapeError, load_json
from msgctl.operations import Effect, Kind, Member, Operation, Record
from msgctl.recipients import FAILURE_WORDS, words

if TYPE_CHECKING:
    from decimal import Decimal

    import httpx

    from msgctl.http.request import Request

MOST_DIGITS = 18
"""The most digits that a number of credits may have."""


class Response(NamedTuple):
    """A record as the service sent it (``body``) and as it was read (``document``; numbers are `Number`)."""

    operation: Operation
    http_status: int
    body: bytes
    document: Mapping[str, Any]


def read(operation: Operation, body: bytes, http_status: int) -> Response:
    """Return the response to an operation. Raises ShapeError if the body does not hold the operation's record.

    The record is the JSON object itself, or what its ``data`` holds. Where the record has entries in ``data``, they
    are an array in the response's ``document``, although the service may send a single object.
    """
    return Response(operation, http_status, body, _record(operation.answer, load_json(body)))


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


def _record(record: Record, document: Any) -> Mapping[str, Any]:
    """Return the record that a JSON object is or holds. Raises ShapeError."""
    if not isinstance(document, dict):
        raise ShapeError("it is JSON, but not an object")
    found: dict[str, Any] = document
    data = found.get("data")
    if record.entries and isinstance(data, dict) and "data" not in data:
        found = {**found, "data": [data]}
    elif isinstance(data, dict) and not _has_members(record, found, besides=("data",)):
        found = data
    elif not record.entries and isinstance(data, list) and len(data) == 1 and not _has_members(record, found):
        found = data[0] if isinstance(data[0], dict) else {}
    if not _has_members(record, found):
        names = ", ".join(member.name for member in record.members)
        raise ShapeError(f"it has none of the fields of {record.name} ({names})")
    if found.get("error") and len(record.members) > 1 and not _has_members(record, found, besides=("status",)):
        raise ShapeError(f"it has an error and no {record.name}")
    _check_members(found, record.members)
    return found


def _has_members(record: Record, document: Mapping[str, Any], besides: Sequence[str] = ()) -> bool:
    """Return whether an object has a field of a record; null says nothing, and ``msg`` may be the error record's."""
    return any(document.get(each.name) is not None for each in record.members if each.name not in ("msg", *besides))


def _check_members(document: Mapping[str, Any], members: Sequence[Member]) -> None:
    """Check that fields are arrays of objects, objects or plain values, as they should be; null is always allowed.

    A plain value may be a number or a string: it is shown as it came.
    """
    for member in members:
        value = document.get(member.name)
        if value is None:
            continue
        if member.kind is Kind.ARRAY:
            if not isinstance(value, list) or not {dict}.issuperset(map(type, value)):
                raise ShapeError(f"its field {member.name} is not an array of objects")
            _check_entries(value, member.of)
        elif member.kind is Kind.OBJECT:
            if not isinstance(value, dict):
                raise ShapeError(f"its field {member.name} is not an object")
            _check_members(value, member.of)
        elif isinstance(value, (dict, list)):
            raise ShapeError(f"its field {member.name} is not a plain value")


def _check_entries(entries: list[dict[str, Any]], members: Sequence[Member]) -> None:
    """Check the objects of an array. There can be very many, so plain values are checked all at once."""
    are_plain = {Kind.ARRAY, Kind.OBJECT}.isdisjoint(member.kind for member in members)
    values = chain.from_iterable(map(dict.values, entries))
    if not (are_plain and {dict, list}.isdisjoint(map(type, values))):
        for entry in entries:
            _check_members(entry, members)


_NOT_VERIFIED = FAILURE_WORDS | frozenset(
    "no not non false falso pending pendiente incorrect incorrecto incorrecta wrong unverified mismatch".split()
)


def parse(
    request: Request, response: httpx.Response, base_url: str, *, is_sandbox: bool = False, any_json: bool = False
) -> Response:
    """Return what a response to a request means. Raises RefusedError, UnreadableError and OutcomeUnknownError.

    ``any_json`` accepts any JSON document of a 2xx response to a request that only reads, and a record without fields
    any body; the ``document`` is then empty unless it is a JSON object.
    """
    operation, status = request.operation, response.status_code
    document, fault = None, str(response.extensions.get("fault", ""))
    try:
        document = None if fault else load_json(response.content)
    except ShapeError as error:
        fault = str(error)
    failure = Failure(request, response, document, base_url, is_sandbox)
    if not response.is_success:
        raise failure.of_status()
    if response.extensions.get("lost"):
        raise failure.in_doubt(fault)
    found = Response(operation, status, response.content, document if isinstance(document, dict) else {})
    if not operation.answer.members and "fault" not in response.extensions:
        return found
    reason = fault
    try:
        found = found if fault else found._replace(document=_record(operation.answer, document))
    except ShapeError as error:
        reason = str(error)
    if reason:
        # A status may be that of the error.
        is_error = found.document.get("error") and not _has_members(operation.answer, found.document, ("status",))
        if operation is operations.VERIFY_2FA or is_error:
            raise failure.refused()
        if any_json and operation.effect is Effect.READS and not fault:
            return found
        raise failure.unusable(reason)
    if operation is operations.VERIFY_2FA and not is_verified(found.document):
        raise failure.refused("The code was not verified")
    return found


def is_verified(document: Mapping[str, Any]) -> bool:
    """Return whether the response to a code says that it is right.

    Its ``status`` must be true, a number other than 0, or a word that is not one for failure; an ``error`` refuses it.
    """
    status = document.get("status")
    if document.get("error") or status is None or isinstance(status, (dict, list)):
        return False
    if isinstance(status, bool):
        return status
    found = words(str(status))
    number = re.fullmatch(r"\s*[-+]?[0-9.]+(?:[eE][-+]?[0-9]+)?\s*", status)
    if number is not None:
        return re.search("[1-9]", re.split("[eE]", status)[0]) is not None
    return bool(found) and _NOT_VERIFIED.isdisjoint(found)
