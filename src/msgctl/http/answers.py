"""What the service answered, read without losing a digit, and held against the record that the operation promises."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from itertools import chain
from typing import TYPE_CHECKING, Any, NamedTuple, NoReturn

from msgctl.operations import Kind, Member, Operation

if TYPE_CHECKING:
    from decimal import Decimal

MOST_BYTES = 16 * 1024 * 1024
"""The largest answer that is read, in bytes."""
MOST_DIGITS = 18
"""The longest number of credits that is taken for one."""


class Number(str):
    """A JSON number, kept as the text that was sent: no digit is lost to a float, none is added."""

    __slots__ = ()


class ShapeError(ValueError):
    """A body is not JSON, or is JSON of another shape than the record; the text says which."""


class Answer(NamedTuple):
    """A record as the service sent it (``body``) and as it was read (``document``; numbers are `Number`)."""

    operation: Operation
    body: bytes
    document: Mapping[str, Any]


def load(body: bytes) -> Any:
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


def read(operation: Operation, body: bytes) -> Answer:
    """The answer to an operation, its body held against the operation's record. Raises ShapeError."""
    document = load(body)
    if not isinstance(document, dict):
        raise ShapeError("it is JSON, but not an object")
    members = operation.answer.members
    # `msg` alone may be the error record; null says nothing.
    if not any(document.get(member.name) is not None for member in members if member.name != "msg"):
        names = ", ".join(member.name for member in members)
        raise ShapeError(f"it has none of the members of {operation.answer.name} ({names})")
    _check_members(document, members)
    return Answer(operation, body, document)


def credits_left(answer: Answer) -> Decimal | None:
    """The credits of a ResponseBalance, which are in its ``status``; None where that is not a number."""
    from decimal import Decimal, InvalidOperation  # a short command does without

    text = str(answer.document.get("status"))
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
