"""The record in a response of any form: its entries, messages or metrics.

The API documents one form of each response. Services in use wrap the record in ``data`` or in an array, send one entry
as an object, and key entries by number. No other module knows that forms differ.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from itertools import islice
from typing import Any

from msgctl import operations
from msgctl.jsontext import ShapeError, pieces
from msgctl.operations import Operation

Object = Mapping[str, Any]

MAX_ENTRIES = 10
"""Maximum entries that are kept for each recipient of a request."""
MAX_MESSAGES = 1_000
"""Maximum messages of a delivery state that are kept."""
MAX_METRICS = 20_000
"""Maximum metrics of click statistics; it would take seconds to print more."""
MAX_OTHER_FIELDS = 64
"""Maximum fields of an object that the API does not document and that are kept."""
MAX_NESTED = 10_000
"""Maximum values in arrays and objects that are kept as fields of a record and its entries."""
MAX_FIELD = 4096
"""Maximum characters of an id, a status or a state, which may be stored with each recipient."""
MAX_LEVELS = 3
"""Maximum levels of ``data`` or arrays around the record."""
MAX_QUOTE = 300
"""Maximum characters of an error that are quoted."""
MIN_PHONE_KEY = 7
"""Minimum characters of a key that is a phone number."""
CUT = "…"
"""The end of a value that was cut, and the substitute for an array or object with too many values."""
RESULTS = ("status", "verified", "valid")
"""Fields that contain the result of a code check."""
ERROR_TEXTS = ("error", "msg", "message", "detail", "errors")
"""Fields in which a service describes an error."""

_KNOWN = frozenset(
    field.name for operation in operations.OPERATIONS for field in (*operation.record.fields, *operation.record.entries)
).union(ERROR_TEXTS, ("status", "state"))
_SHORT = ("id", "dispatch_id", "status", "state")
_OF_MESSAGES = frozenset(field.name for field in operations.RESPONSE_STATE.fields)
_OF_STATISTICS = frozenset(field.name for field in operations.RESPONSE_STATISTIC.fields)


def convert(operation: Operation, document: Any, phones: Sequence[str], requested: str | None = None) -> Object:
    """Return the record in a document, in the documented form. Raises ShapeError if a read gets no record.

    ``data`` of a dispatch is a list of entries, and of messages-state a list of messages; ``requested`` is their id.
    ``metrics`` is a list of objects with one category each.
    """
    record, limit = operation.record, _Limit()
    if record is operations.RESPONSE_STATE:
        return {"data": [limit(message) for message in messages_of(document, requested)]}
    if record is operations.RESPONSE_STATISTIC:
        return _statistics(document)
    if not record.entries and record is not operations.RESPONSE_CHATAPP:
        return limit(_single(operation, document))
    outer = _without_data(document) if isinstance(document, dict) else {}
    data = document if isinstance(document, list) else document.get("data") if isinstance(document, dict) else None
    entries = entries_of(data, phones)
    own, other = ("state", "status") if _has_states(operation) else ("status", "state")
    if not entries:
        return limit(_one_column(outer, own, other) if record is operations.RESPONSE_CHATAPP else outer)
    dispatch = outer.get("id")
    return {**limit(outer), "data": [limit(_entry(entry, own, other, dispatch)) for entry in entries]}


def entries_of(data: Any, phones: Sequence[str]) -> list[Object]:
    """Return the entries in ``data``: an array, an object of objects, or one object, which applies to all phones."""
    most = MAX_ENTRIES * max(len(phones), 1)
    if isinstance(data, list):
        return [entry if isinstance(entry, dict) else {"value": entry} for entry in data[:most]]
    if not isinstance(data, dict) or not data:
        return []
    if not all(isinstance(value, dict) for value in data.values()):
        return [data if "phone" in data or not phones else {**data, "phone": ",".join(phones)}]
    return [entry if len(key) < MIN_PHONE_KEY else {"phone": key, **entry} for key, entry in islice(data.items(), most)]


def messages_of(document: Any, requested: str | None) -> list[Object]:
    """Return the messages in a response to messages-state, each with its state and id. Raises ShapeError."""
    return [_message(message, requested) for message in _messages(document, MAX_LEVELS)]


def levels(document: Any) -> Iterator[Object]:
    """Yield the objects that may be the record: the document, its ``data``, or the only element of such an array."""
    for _ in range(MAX_LEVELS):
        if isinstance(document, list) and len(document) == 1:
            document = document[0]
        if not isinstance(document, dict):
            return
        yield document
        document = document.get("data")


def service_message(document: Any) -> str | None:
    """Return the error that a document describes, for a quotation."""
    for level in levels(document):
        if texts := [_quoted(level[name]) for name in ERROR_TEXTS if level.get(name)]:
            return ": ".join(texts)
    return None


def _quoted(value: Any) -> str:
    most = MAX_QUOTE + 1  # so that a reader sees that it was cut
    return value[:most] if isinstance(value, str) else "".join(islice(pieces(value), most))


# --- records without entries


def _single(operation: Operation, document: Any) -> Object:
    """Return the level with the most fields of a record; of equal levels, the outer one."""
    names = [field.name for field in operation.record.fields]
    if operation is operations.VERIFY_2FA:
        names = [*RESULTS]
    return max(levels(document), key=lambda level: sum(is_plain(level.get(name)) for name in names), default={})


def _statistics(document: Any) -> Object:
    for level in levels(document):
        if any(level.get(name) is not None for name in _OF_STATISTICS):
            metrics = list(islice(_metrics(level.get("metrics")), MAX_METRICS + 1))
            if len(metrics) > MAX_METRICS:
                raise ShapeError(f"it contains more than {MAX_METRICS:,} metrics")
            limit = _Limit()
            kept = [{category: limit(values) for category, values in metric.items()} for metric in metrics]
            return {**limit({**level, "metrics": None}), "metrics": kept}
    raise _no_record(operations.URL_STATISTIC, document)


def _metrics(metrics: Any) -> Iterator[Object]:
    """Yield the metrics. They may be keyed by category; a category contains one object or a list of objects."""
    for metric in metrics if isinstance(metrics, list) else [metrics]:
        if metric is None:
            continue
        if not isinstance(metric, dict):
            raise ShapeError("its field metrics is not an array of objects")
        for category, values in metric.items():
            for value in values if isinstance(values, list) else [values]:
                if isinstance(value, dict):
                    yield {category: value}
                elif value is not None:
                    raise ShapeError("its field metrics contains a category that is not an object")


# --- entries and messages


def _has_states(operation: Operation) -> bool:
    return any(field.name == "state" for field in operation.record.entries)


def _entry(entry: Object, own: str, other: str, dispatch: Any) -> Object:
    """Return an entry with the id of its dispatch if it has none, and with one column for status and state."""
    entry = _one_column(entry, own, other)
    if entry and not is_plain(entry.get("id")) and is_plain(dispatch):
        return {**entry, "id": dispatch}
    return entry


def _one_column(entry: Object, own: str, other: str) -> Object:
    """Return an object with its status or state in the field ``own``."""
    if is_plain(entry.get(own)) or not is_plain(entry.get(other)):
        return entry
    return {own if name == other else name: value for name, value in entry.items() if name != own}


def _messages(document: Any, depth: int) -> list[Object]:
    if isinstance(document, list):
        return [message for message in document[:MAX_MESSAGES] if isinstance(message, dict)]
    if not isinstance(document, dict):
        raise _no_record(operations.MESSAGES_STATE, document)
    data = document.get("data")
    if isinstance(data, dict) and data and all(isinstance(value, dict) for value in data.values()):
        data = entries_of(data, ())
    if depth and isinstance(data, (dict, list)):
        inner = _messages(data, depth - 1) if isinstance(data, list) or data else []
        if not is_plain(document.get("state")) or any(_state(message) is not None for message in inner):
            return inner
    if is_plain(document.get("status")) or any(is_plain(document.get(name)) for name in _OF_MESSAGES):
        return [document]
    raise _no_record(operations.MESSAGES_STATE, document)


def _state(message: Object) -> Any:
    return next((message[name] for name in ("state", "status") if is_plain(message.get(name))), None)


def _message(message: Object, requested: str | None) -> Object:
    """Return a message with its state and id."""
    found = dict(_one_column(message, "state", "status"))
    if not is_plain(found.get("state")):
        found.pop("state", None)
    if not is_plain(found.get("id")):
        dispatch = found.get("dispatch_id")
        found["id"] = dispatch if is_plain(dispatch) else requested
    return found


# --- limits


class _Limit:
    """Limits the objects of one record: the number of other fields, long ids and states, and nested values."""

    def __init__(self) -> None:
        self._left = MAX_NESTED

    def __call__(self, found: Object) -> Object:
        if len(found) <= MAX_OTHER_FIELDS and all(map(_is_short, found.values())):
            return found  # the usual case
        others = [name for name in found if name not in _KNOWN]
        left_out = set(others[MAX_OTHER_FIELDS:])
        return {name: self._limited(name, value) for name, value in found.items() if name not in left_out}

    def _limited(self, name: str, value: Any) -> Any:
        if isinstance(value, (dict, list)):
            self._left -= _size(value, self._left)
            return value if self._left >= 0 else CUT
        if name in _SHORT and isinstance(value, str) and len(value) > MAX_FIELD:
            return value[:MAX_FIELD] + CUT
        return value


def _is_short(value: Any) -> bool:
    return len(value) <= MAX_FIELD if isinstance(value, str) else not isinstance(value, (dict, list))


def _size(value: Any, most: int) -> int:
    """Return the number of values in an array or object, at any depth; counting ends soon after ``most``."""
    count, inner = 0, [value]
    while inner and count <= most:
        part = inner.pop()
        count += len(part) + 1
        inner += [
            each for each in (part.values() if isinstance(part, dict) else part) if isinstance(each, (dict, list))
        ]
    return count


# --- helpers


def is_plain(value: Any) -> bool:
    """Return whether a value is a text, a number or a boolean."""
    return value is not None and value != "" and not isinstance(value, (dict, list))


def _without_data(level: Object) -> Object:
    return {name: value for name, value in level.items() if name != "data"}


def _no_record(operation: Operation, document: Any) -> ShapeError:
    if not isinstance(document, dict):
        return ShapeError("it is JSON, but not an object")
    record = operation.record
    return ShapeError(
        f"it has none of the fields of {record.name} ({', '.join(field.name for field in record.fields)})"
    )
