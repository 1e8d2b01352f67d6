"""The parameters of a call, held against the fields of its operation."""

from __future__ import annotations

import hmac
import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, cast

from msgctl.operations import Field, Kind, Operation, Place
from msgctl.sandbox import formats
from msgctl.sandbox.sources import Source, check_size, source
from msgctl.sandbox.wire import Call, Refusal, invalid, missing, quoted

_CLIENT = re.compile(r"-?[0-9]{1,19}")
_NUMBER = re.compile(r"[0-9]{1,9}")
_BOOLEANS = {"true": True, "false": False}


@dataclass(frozen=True, slots=True)
class Parameters:
    """The parameters that were sent, by their names on the wire, each of its field's kind and within its limits."""

    values: Mapping[str, Any]

    def text(self, name: str) -> str:
        """A required parameter."""
        return cast(str, self.values[name])

    def optional(self, name: str) -> str | None:
        return cast("str | None", self.values.get(name))

    def flag(self, name: str) -> bool:
        """A boolean; false where it was not sent."""
        return bool(self.values.get(name, False))

    def several(self, name: str) -> tuple[str, ...]:
        """The values of a parameter that takes more than one."""
        return cast("tuple[str, ...]", self.values[name])


def read(operation: Operation, call: Call, client: int, key: str) -> Parameters:
    """The parameters of a call to an operation. Raises Refusal, which names the first that breaks a rule."""
    check_size(call)
    sources = {operation.credentials: source(operation.credentials, call)}
    _check_credentials(sources[operation.credentials], operation.credentials, client, key)
    values: dict[str, Any] = {}
    for field in operation.fields:
        if field.place not in sources:
            sources[field.place] = source(field.place, call)
        value = _one(sources[field.place], field.name)
        if value is not None:
            values[field.name] = _checked(field, value)
        elif field.required:
            raise missing(field.name, _where(field.place))
    return Parameters(values)


def _check_credentials(found: Source, place: Place, client: int, key: str) -> None:
    sent_client = _one(found, "client")
    if sent_client is None:
        raise missing("client", _where(place))
    if not _CLIENT.fullmatch(sent_client) or not -(2**63) <= int(sent_client) < 2**63:
        raise invalid("client", "must be an integer of 64 bits")
    sent_key = _one(found, "key")
    if sent_key is None:
        raise missing("key", _where(place))
    if int(sent_client) != client or not hmac.compare_digest(sent_key.encode(), key.encode()):
        raise Refusal("UNAUTHORIZED", "client or key is wrong")


def _where(place: Place) -> str:
    return {Place.QUERY: "in the query string", Place.FORM: "in the form body", Place.JSON: "in the JSON body"}[place]


def _one(found: Source, name: str) -> Any:
    """The value of a parameter; None where it was not sent, or sent empty."""
    values = found.get(name, [])
    if len(values) > 1:
        raise invalid(name, "must not be sent more than once")
    return values[0] if values and values[0] != "" else None


def _checked(field: Field, value: object) -> object:
    if field.kind is Kind.ARRAY:
        return _strings(field.name, value)
    text = _string(field.name, value)
    if field.kind is Kind.BOOLEAN:
        return _boolean(field.name, text)
    if field.choices and text not in field.choices:
        raise invalid(field.name, f"must be one of {', '.join(field.choices)}, not {quoted(text)}")
    if field.least is not None or field.most is not None:
        _check_number(field, text)
    check = formats.BY_NAME.get(field.name)
    if field.several:
        return tuple(check(field.name, part) if check else part for part in text.split(","))
    return check(field.name, text) if check else text


def _string(name: str, value: object) -> str:
    if not isinstance(value, str):
        raise invalid(name, "must be a string")
    try:
        value.encode()
    except UnicodeEncodeError:
        # JSON can spell half of a surrogate pair.
        raise invalid(name, "must be Unicode text") from None
    return value


def _strings(name: str, value: object) -> tuple[str, ...]:
    # An object is a list too, of its pairs.
    if type(value) is not list or not all(isinstance(element, str) for element in value):
        raise invalid(name, "must be an array of strings")
    return tuple(_string(name, element) for element in value)


def _boolean(name: str, text: str) -> bool:
    if text not in _BOOLEANS:
        raise invalid(name, f"must be true or false, not {quoted(text)}")
    return _BOOLEANS[text]


def _check_number(field: Field, text: str) -> None:
    least = field.least or 0
    if not _NUMBER.fullmatch(text) or int(text) < least or (field.most is not None and int(text) > field.most):
        limits = f"{least} or more" if field.most is None else f"{least} to {field.most}"
        raise invalid(field.name, f"must be a whole number, {limits}, not {quoted(text)}")
