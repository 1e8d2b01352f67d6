"""The record in a response of any form: its entries, messages or metrics.

The API documents one form of each response. Services in use wrap the record in ``data`` or in an array, send one entry
as an object, and key entries by number. No other module knows that forms differ.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from itertools import islice
from typing import Any

from msgctl import operations
from msgctl.jsontext import ShapeError, pieces, values
from msgctl.operations import Operation, Record, Shape
from msgctl.text import storable

Object = Mapping[str, Any]

MAX_ENTRIES = 10
"""Maximum entries kept for each recipient of a request."""
MAX_MESSAGES = 1_000
"""Maximum messages kept of a delivery state."""
MAX_LISTED = 20_000
"""Maximum entries of a list, and metrics of click statistics; it would take seconds to print more."""
MAX_NESTED = 50_000
"""Maximum values, and maximum characters of texts, in the arrays and objects of a record's fields."""
MAX_STORED = 4096
"""Maximum characters of an id, a status or a state, which may be stored with each recipient."""
MAX_LEVELS = 3
"""Maximum levels of ``data`` or arrays around the record."""
MAX_QUOTE = 300
"""Maximum characters quoted from an error."""
MIN_PHONE_KEY = 7
"""Minimum characters of a key that is a phone number."""
RESULTS = ("status", "verified", "valid")
"""Fields that contain the result of a code check."""
ERROR_TEXTS = ("error", "msg", "message", "detail", "errors")
"""Fields in which a service describes an error."""


def convert(operation: Operation, document: Any, phones: Sequence[str] = (), requested: str | None = None) -> Object:
    """Return the record in a document, in the documented form. Raises ShapeError if a read gets no record.

    ``data`` of a dispatch is a list of entries; if it has none, the record itself is the entry. ``data`` of
    messages-state is a list of messages; ``requested`` is their id. ``metrics`` is a list of objects with one category
    each.
    """
    record, limit = operation.record, _Limit()
    if record.shape is Shape.STATES:
        return {"data": [limit(message) for message in messages_of(document, requested)]}
    if record.shape is Shape.STATISTICS:
        return _statistics(document)
    if record.shape is Shape.LIST:
        return _listed(record, document, limit)
    if record.shape is not Shape.DISPATCH:
        return limit(_one_column(_single(operation, document), "status", "state"))
    outer, data = _around_data(document)
    own, other = "status", "state"
    if any(field.name == "state" for field in record.entries):
        own, other = other, own
    entries = [_one_column(entry, own, other) for entry in entries_of(data, phones)]
    if not record.entries:
        entry = entries[0] if entries else {}
        return limit(_one_column({**outer, **entry}, own, other))
    entries = entries or [_one_column(outer, own, other)]
    return {**limit(outer), "data": [limit(_with_id(entry, outer.get("id"))) for entry in entries]}


def entries_of(data: Any, phones: Sequence[str], most: int | None = None) -> list[Object]:
    """Return the entries in ``data``: an array, an object of objects, or one object, which applies to all phones.

    An array without objects contains no entries.
    """
    most = most or MAX_ENTRIES * max(len(phones), 1)
    if isinstance(data, list):
        if not any(isinstance(entry, dict) for entry in data[:most]):
            return []
        return [entry if isinstance(entry, dict) else {"value": entry} for entry in data[:most]]
    if not isinstance(data, dict) or not data:
        return []
    if all(isinstance(entry, dict) for entry in data.values()):
        entries = islice(data.items(), most)
        return [entry if len(key) < MIN_PHONE_KEY else {"phone": key, **entry} for key, entry in entries]
    return [data if "phone" in data or not phones else {**data, "phone": ",".join(phones)}]


def messages_of(document: Any, requested: str | None) -> list[Object]:
    """Return the messages in a response to messages-state, each with its state and id. Raises ShapeError."""
    return [_message(message, requested) for message in _messages(document)]


def levels(document: Any) -> Iterator[Object]:
    """Yield the objects that may be the record: the document and its ``data``, or the only element of an array."""
    for _ in range(MAX_LEVELS):
        if isinstance(document, list) and len(document) == 1:
            document = document[0]
        if not isinstance(document, dict):
            return
        yield document
        document = document.get("data")


def service_message(document: Any) -> str | None:
    """Return the error message in a document, to quote it."""
    for level in levels(document):
        # One character more than is quoted shows a reader that a text was cut.
        if texts := [beginning_of(level[name], MAX_QUOTE + 1) for name in ERROR_TEXTS if level.get(name)]:
            return ": ".join(texts)
    return None


def beginning_of(value: Any, most: int) -> str:
    """Return the first characters of a JSON value: a string unchanged, anything else as JSON."""
    text = value if isinstance(value, str) else "".join(islice(pieces(value), most))
    return text[:most]


def is_plain(value: Any) -> bool:
    """Return whether a value is a text, a number or a boolean."""
    return value is not None and value != "" and not isinstance(value, (dict, list))


def text_to_store(value: Any) -> str | None:
    """Return a value as a string for the database; None for an empty string, null, an object or an array."""
    if isinstance(value, str):
        if len(value) > MAX_STORED:
            value = f"{value[:MAX_STORED]}…"
        return (value if value.isascii() else storable(value)) or None
    return str(value).lower() if isinstance(value, bool) else None


def _around_data(document: Any) -> tuple[dict[str, Any], Any]:
    """Return the fields beside ``data``, and ``data``. A document that is not an object is itself the data."""
    if not isinstance(document, dict):
        return {}, document
    outer = {**document}
    return outer, outer.pop("data", None)


def _listed(record: Record, document: Any, limit: _Limit) -> Object:
    outer, data = _around_data(document)
    if not isinstance(data, (list, dict)):
        raise _no_record(record, document)
    return {**limit(outer), "data": [limit(entry) for entry in entries_of(_whole(data, MAX_LISTED), (), MAX_LISTED)]}


def _whole(data: Any, most: int, noun: str = "entries") -> Any:
    """Return a list, or an object of objects. Raises ShapeError if it has more than ``most`` entries."""
    if len(data) > most:
        raise ShapeError(f"it contains more than {most:,} {noun}")
    return data


# --- records without entries


def _single(operation: Operation, document: Any) -> Object:
    """Return the level with the most fields of a record; of equal levels, the outer one."""
    names: Sequence[str] = [field.name for field in operation.record.fields]
    if operation.verifies:
        names = RESULTS
    return max(levels(document), key=lambda level: sum(is_plain(level.get(name)) for name in names), default={})


def _statistics(document: Any) -> Object:
    names = [field.name for field in operations.RESPONSE_STATISTIC.fields]
    for level in levels(document):
        if any(level.get(name) is not None for name in names):
            limit = _Limit()
            metrics = _whole([*islice(_metrics(level.get("metrics")), MAX_LISTED + 1)], MAX_LISTED, "metrics")
            limited = [{category: limit(values)} for category, values in metrics]
            return {**limit({**level, "metrics": None}), "metrics": limited}
    raise _no_record(operations.RESPONSE_STATISTIC, document)


def _metrics(metrics: Any) -> Iterator[tuple[str, Object]]:
    """Yield each metric with its category. Metrics may be keyed by category, which contains one object or a list."""
    for metric in metrics if isinstance(metrics, list) else [metrics]:
        if metric is None:
            continue
        if not isinstance(metric, dict):
            raise ShapeError("its field metrics is not an array of objects")
        for category, content in metric.items():
            for value in content if isinstance(content, list) else [content]:
                if isinstance(value, dict):
                    yield category, value
                elif value is not None:
                    raise ShapeError("its field metrics contains a category that is not an object")


def _no_record(record: Record, document: Any) -> ShapeError:
    if not isinstance(document, dict):
        return ShapeError("it is JSON, but not an object")
    return ShapeError(f"it has none of the expected fields ({', '.join(field.name for field in record.fields)})")


class _Limit:
    """Limits the arrays and objects in the fields of one record: after `MAX_NESTED`, it replaces them with ``…``."""

    def __init__(self) -> None:
        self._left = MAX_NESTED

    def __call__(self, content: Object) -> Object:
        return {name: self._limited(value) for name, value in content.items()}

    def _limited(self, value: Any) -> Any:
        if not isinstance(value, (dict, list)):
            return value
        for inner in values(value):
            self._left -= len(inner) + 1 if isinstance(inner, str) else 1
            if self._left < 0:
                return "…"
        return value


# --- entries and messages


def _with_id(content: Object, *others: Any) -> Object:
    """Return an entry or message; without an id, it gets the first of the other ids."""
    other = next(filter(is_plain, others), None)
    if other is None or is_plain(content.get("id")):
        return content
    return {**content, "id": other}


def _one_column(content: Object, own: str, other: str) -> Object:
    """Return an object with its status or state in the field ``own``."""
    if is_plain(content.get(own)) or not is_plain(content.get(other)):
        return content
    return {own if name == other else name: value for name, value in content.items() if name != own}


def _messages(document: Any, depth: int = MAX_LEVELS) -> Sequence[Object]:
    """Return the messages in a document, which may be a message itself. Raises ShapeError."""
    if isinstance(document, list):
        return [message for message in _whole(document, MAX_MESSAGES) if isinstance(message, dict)]
    if not isinstance(document, dict):
        raise _no_record(operations.RESPONSE_STATE, document)
    data = document.get("data")
    if isinstance(data, dict) and data and all(isinstance(value, dict) for value in data.values()):
        data = entries_of(_whole(data, MAX_MESSAGES), (), MAX_MESSAGES)
    if depth and data != {} and isinstance(data, (dict, list)):
        messages = _messages(data, depth - 1)
        if not is_plain(document.get("state")) or any(_has_state(message) for message in messages):
            return messages
    names = [field.name for field in operations.RESPONSE_STATE.fields]
    if _has_state(document) or any(is_plain(document.get(name)) for name in names):
        return [document]
    raise _no_record(operations.RESPONSE_STATE, document)


def _has_state(message: Object) -> bool:
    return is_plain(message.get("state")) or is_plain(message.get("status"))


def _message(message: Object, requested: str | None) -> Object:
    """Return a message with its state and id."""
    converted = _with_id(_one_column(message, "state", "status"), message.get("dispatch_id"), requested)
    if is_plain(converted.get("state")):
        return converted
    return {name: value for name, value in converted.items() if name != "state"}
