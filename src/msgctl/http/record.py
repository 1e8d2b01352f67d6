"""Convert a response of any form into the operation's record, before any other code reads it.

The API documents one form of each response. Services in use wrap the record in ``data`` or in an array, send one entry
as an object, key entries by number, and call the credits ``balance``. No other module knows that forms differ.

The result is the documented record, with these guarantees:

- ``data`` of a dispatch is a list of entries. An entry without an id has the id of the dispatch, and its ``status`` and
  ``state`` are one field.
- ``data`` of messages-state is the list of messages. A message has a ``state`` if the service sent one.
- ``status`` of a balance is the number of credits left.
- ``metrics`` of click statistics is a list of objects, each with one object per category.
- The record contains a failure that the response reports outside it.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import islice
from typing import TYPE_CHECKING, Any

from msgctl import operations, recipients
from msgctl.delivery import contradicts_success, is_failure, words
from msgctl.http.request import MAX_SHARED
from msgctl.jsontext import ShapeError
from msgctl.operations import Effect, Operation, Record
from msgctl.recipients import ERROR_STATUS, has_error, hints_at_failure, is_one, is_zero, reports_failure

if TYPE_CHECKING:
    from msgctl.http.request import Request

Object = Mapping[str, Any]

MAX_ENTRIES = 10
"""Maximum entries that are kept for each recipient of a request."""
MAX_METRICS = 20_000
"""Maximum metrics of click statistics; it would take seconds to print more."""
_METRIC_FIELDS = {
    name.name
    for field in operations.RESPONSE_STATISTIC.fields
    if field.name == "metrics"
    for category in field.of
    for name in category.of
}
MAX_OTHER_FIELDS = 64
"""Maximum fields of an object that the API does not document and that are kept."""
MAX_NESTED = 10_000
"""Maximum values in arrays and objects that are kept as fields of a record and its entries."""
MAX_ID = 256
MAX_STATE = 4096
"""Maximum characters of an id, and of a status or state, which may be stored with each recipient."""
CUT = "…"
"""The end of a value that was cut, and the substitute for an array or object with too many values."""
RESULTS = ("status", "verified", "valid")
"""Fields that contain the result of a code check."""
MAX_LEVELS = 3
"""Maximum levels of ``data`` or arrays around the record."""
CREDITS = ("balance", "credits", "saldo")
"""Names of the field with the credits left; it has precedence over ``status``."""

_PLAIN = ("id", "phone", "status", "state")
_OF_ENTRIES = frozenset({"phone", "state", "credits", "sms", "message", "voice"})
_OF_MESSAGES = frozenset({"id", "phone", "created", "sms", "dispatch_id", "credits"})
_ERROR_WORDS = frozenset("error errors fail failed failure fallo fallido".split())
_FAILURE = ("error", "status", "msg", "message")
_PLACE = re.compile("0|[1-9][0-9]{0,3}", re.ASCII)
"""A key that is a position in the request, instead of a phone number."""
_NUMBER = re.compile("[+]?[0-9]{5,15}", re.ASCII)
"""A key that is a phone number; its value may be the status of the message, instead of an object."""


def convert(request: Request, document: Any) -> Object:
    """Return the record in the JSON ``document`` of a response. Raises ShapeError if it has no record.

    The record has a limited size: a response can contain a million fields, or a field with a million values.
    """
    record, limit = _converted(request, document), _Limit()
    if isinstance(metrics := record.get("metrics"), list) and request.operation is operations.URL_STATISTIC:
        kept = [{category: limit(values) for category, values in metric.items()} for metric in metrics]
        return {**limit({**record, "metrics": None}), "metrics": kept}
    if isinstance(entries := record.get("data"), list) and request.operation.record in _WITH_ENTRIES:
        return {**limit({**record, "data": None}), "data": [limit(entry) for entry in entries]}
    return limit(record)


def _converted(request: Request, document: Any) -> Object:
    """Return the record in a document, whatever its size."""
    record = request.operation.record
    phones = [phone for phone in request.phones if phone]
    if record is operations.RESPONSE_STATE:
        return _states(document, dict(request.query).get("id"))
    if record.entries:
        return _dispatch(record, document, phones)
    if record is operations.RESPONSE_CHATAPP:
        return _chatapp(record, document, phones)
    if record is operations.RESPONSE_BALANCE:
        return _balance(document)
    if record is operations.RESPONSE_SUCCESS:
        return _verification(document)
    found = _single(record, document)
    if record is operations.RESPONSE_STATISTIC:
        metrics = list(islice(_metrics(found.get("metrics")), MAX_METRICS + 1))
        if len(metrics) > MAX_METRICS:
            raise ShapeError(f"it contains more than {MAX_METRICS:,} metrics")
        return {**found, "metrics": metrics}
    return found


def is_refusal(operation: Operation, record: Object) -> bool:
    """Return whether a record reports that the request was refused, in a response with status 200."""
    status = record.get("status")
    if operation is operations.BALANCE:
        if any(record.get(name) is not None for name in CREDITS):
            return False
        texts = [record[name] for name in ("msg", "message") if record.get(name)]
        is_error_status = ERROR_STATUS.fullmatch(str(status)) and any(contradicts_success(str(text)) for text in texts)
        is_failed = has_error(record) or hints_at_failure({**record, "status": None})
        return is_failed or is_failure(str(status)) or bool((is_zero(status) and texts) or is_error_status)
    if operation is operations.MESSAGES_STATE:
        messages = record["data"]
        has_state = any(message.get("state") is not None for message in messages)
        is_failed = _is_error(record) or any(is_zero(each.get("status")) for each in (record, *messages))
        return not has_state and is_failed
    return operation.effect is not Effect.READS and recipients.is_refusal(operation, record)


def _is_error(document: Object) -> bool:
    """Return whether a response to messages-state is an error: a text, a failed status, and no field of a message."""
    status = str(document.get("status"))
    found = set(words(status))
    is_error = ERROR_STATUS.fullmatch(status) is not None or (bool(found) and found <= _ERROR_WORDS)
    is_message = _count(_OF_MESSAGES | {"state"}, document) > 0
    return is_error and bool(document.get("msg") or document.get("message")) and not is_message


def levels(document: Any) -> Iterator[Object]:
    """Yield the objects that may be the record: the document, its ``data``, or the only element of such an array."""
    for _ in range(MAX_LEVELS):
        if isinstance(document, list) and len(document) == 1:
            document = document[0]
        if not isinstance(document, dict):
            return
        yield document
        document = document.get("data")


# --- records without entries


def _single(record: Record, document: Any) -> Object:
    """Return the level with the most fields of a record; of equal levels, the outer one."""
    names = {field.name for field in record.fields} - {"msg"}  # an error has one too
    found = list(levels(document))
    best = max(found, key=lambda level: _count(names, level), default={})
    if not _count(names, best):
        raise _no_record(record, document)
    if len(record.fields) > 1 and has_error(best) and not _count(names - {"status"}, best):
        raise ShapeError(f"it contains an error instead of a {record.name}")
    return {
        name: value
        for name, value in _with_failures(best, found, of_block=record is operations.RESPONSE_SECURITY).items()
        if not _is_odd(name, value)
    }


def _balance(document: Any) -> Object:
    found = list(levels(document))
    for level in found:
        for name in CREDITS:
            if level.get(name) is not None:
                return {**level, "status": level[name]}
    for level in found:
        if _is_plain(level.get("status")):
            return _with_failures(level, found)
    raise _no_record(operations.RESPONSE_BALANCE, document)


def _verification(document: Any) -> Object:
    for level in levels(document):
        for name in RESULTS:
            if level.get(name) is not None:
                return {**level, "status": level[name]}
    raise _no_record(operations.RESPONSE_SUCCESS, document)


def _metrics(metrics: Any) -> Iterator[Object]:
    """Yield the metrics. They may be keyed by category; a category contains one object or a list of objects.

    An object may also contain the clicks of each property: ``{"CO": 5, "ES": 2}``.
    """
    if metrics is None:
        return
    listed = [metrics] if isinstance(metrics, dict) else metrics
    if not isinstance(listed, list) or not {dict}.issuperset(map(type, listed)):
        raise ShapeError("its field metrics is not an array of objects")
    for metric in listed:
        for category, values in metric.items():
            for each in values if isinstance(values, list) else [values]:
                if isinstance(each, dict) and _are_clicks(each):
                    yield from ({category: {"property": name, "clicks": clicks}} for name, clicks in each.items())
                elif isinstance(each, dict):
                    yield {category: each}
                elif each is not None:
                    raise ShapeError("its field metrics contains a category that is not an object")


def _are_clicks(metric: Object) -> bool:
    """Return whether an object has no field of a metric, and its values are numbers."""
    return (
        bool(metric)
        and _METRIC_FIELDS.isdisjoint(metric)
        and all(not isinstance(each, (bool, dict, list)) and str(each).isdecimal() for each in metric.values())
    )


# --- dispatches


def _dispatch(record: Record, document: Any, phones: Sequence[str]) -> Object:
    if isinstance(document, list):
        return {"data": _entries(record, document, None, phones)}
    if not isinstance(document, dict):
        raise _no_record(record, document)
    names = {field.name for field in record.fields} - {"data"}
    outer, data = _without_data(document), document.get("data")
    if isinstance(data, dict) and _is_record(data, names, has_own=_count(names, outer) > 0):
        outer, data = _with_failures({**outer, **_without_data(data)}, [document, data]), data.get("data")
    if not isinstance(data, (dict, list)) and not _count(names, outer):
        raise _no_record(record, document)
    if data is None:
        return outer
    return {**outer, "data": _entries(record, data, outer.get("id"), phones)}


def _is_record(data: Object, names: set[str], *, has_own: bool) -> bool:
    """Return whether the ``data`` of a document is the record itself, not its only entry."""
    if isinstance(data.get("data"), (dict, list)):
        return True
    return not has_own and _OF_ENTRIES.isdisjoint(data) and (_count(names, data) > 0 or has_error(data))


def _chatapp(record: Record, document: Any, phones: Sequence[str]) -> Object:
    """Return the record of a chat-app send: its own entry, unless its ``data`` contains entries."""
    found = _single(record, document)
    inner = found.get("data")
    outer = _without_data(found)
    if not (isinstance(inner, dict) and inner) and not (isinstance(inner, list) and inner):
        return _entry(outer, "status", "state", None)
    return {**outer, "data": _entries(record, inner, outer.get("id"), phones)}


def _entries(record: Record, data: Any, dispatch: Any, phones: Sequence[str]) -> list[Object]:
    """Return the entries in ``data``: a list, one object, or an object of objects. Raises ShapeError.

    One object without a phone applies to all ``phones``. The keys of an object of objects are phone numbers, or
    positions in the request.
    """
    most = MAX_ENTRIES * max(len(phones), 1)
    found = _listed(data, most, phones)
    applies_to_all = found == [data] and ("phone" not in data or isinstance(data["phone"], (dict, list)))
    if applies_to_all and phones:
        found = [{**data, "phone": ",".join(phones)}]
    is_call = any(field.name == "state" for field in record.entries)
    own, other = ("state", "status") if is_call else ("status", "state")
    return [_entry(each, own, other, dispatch) for each in found]


def _listed(data: Any, most: int, phones: Sequence[str] = ()) -> list[Object]:
    """Return the first objects in a list or in an object of objects, or the object itself."""
    if isinstance(data, list):
        if not {dict}.issuperset(map(type, data)):
            raise ShapeError("its entries are not objects")
        return data[:most]
    if not isinstance(data, dict):
        return []
    if data and all(map(_NUMBER.fullmatch, data)) and not any(isinstance(each, (dict, list)) for each in data.values()):
        return [{"phone": key, "status": each} for key, each in islice(data.items(), most)]
    if not all(isinstance(each, dict) for each in data.values()):
        return [data]
    first = list(islice(data.items(), most))
    if not all(map(_PLACE.fullmatch, data)):
        return [{"phone": key, **each} for key, each in first]
    if any("phone" in each for each in data.values()):
        return [each for _, each in first]
    places = {str(place): phone for place, phone in enumerate(phones)}
    return [{**each, "phone": places[key]} if key in places else each for key, each in first]


def _entry(entry: Object, own: str, other: str, dispatch: Any) -> Object:
    """Return an entry with an id, and with its status or state in the field ``own``.

    A field that contains an object or array counts as missing.
    """
    if not {dict, list}.isdisjoint(map(type, map(entry.get, _PLAIN))):
        entry = {name: value for name, value in entry.items() if not _is_odd(name, value)}
    if entry.get(own) is None and entry.get(other) is not None:
        entry = {own if name == other else name: value for name, value in entry.items() if name != own}
    if entry and entry.get("id") in (None, "") and _is_plain(dispatch):
        entry = {**entry, "id": dispatch}
    return entry


# --- delivery states


def _states(document: Any, requested: str | None) -> Object:
    """Return the record of messages-state: its ``data`` is the list of messages, empty if there is no state yet."""
    outer = _without_data(document) if isinstance(document, dict) else {}
    messages = _messages(document, MAX_LEVELS)
    if messages is None:
        raise _no_record(operations.RESPONSE_STATE, document)
    return {**outer, "data": [_message(each, requested) for each in messages]}


def _messages(document: Any, depth: int) -> list[Object] | None:
    """Return the messages in a document; None if it is not the record of messages-state."""
    most = MAX_ENTRIES * MAX_SHARED
    if isinstance(document, list):
        return _listed(document, most)
    if not isinstance(document, dict) or not depth:
        return None
    if _is_error(document):
        return []
    data, has_own = document.get("data"), _count(_OF_MESSAGES | {"state"}, document) > 0
    if isinstance(data, (dict, list)) and not (has_own and _state(document) is not None):
        inner = None if isinstance(data, list) else _messages(data, depth - 1)
        found = _listed(data, most) if inner is None else inner
        if isinstance(data, list) or _state(document) is None or any(_state(each) is not None for each in found):
            return found
    if _state(document) is not None or _count(_OF_MESSAGES, document):
        return [document]
    return [] if _is_plain(document.get("status")) or "data" in document else None


def _state(message: Object) -> Any:
    """Return the state of a message, which may be in ``status``; a status of 0, 1, true or false is not one."""
    for name in ("state", "status"):
        value = message.get(name)
        if _is_plain(value) and not (name == "status" and (is_zero(value) or is_one(value))):
            return value
    return None


def _message(message: Object, requested: str | None) -> Object:
    """Return a message with its state and id."""
    kept = {name: value for name, value in message.items() if name not in _PLAIN or _is_plain(value)}
    state = _state(message)
    if state is not None and "state" not in kept:
        kept = {"state" if name == "status" else name: value for name, value in kept.items()}
    if not kept.get("id"):
        kept["id"] = message["dispatch_id"] if _is_plain(message.get("dispatch_id")) else requested
    return kept


# --- limits

_WITH_ENTRIES = frozenset(
    operation.record
    for operation in operations.OPERATIONS
    if operation.record.entries or operation.record in (operations.RESPONSE_STATE, operations.RESPONSE_CHATAPP)
)
_KNOWN = frozenset({*CREDITS, *RESULTS, *_PLAIN, *_FAILURE, *_OF_ENTRIES, *_OF_MESSAGES}).union(
    field.name for operation in operations.OPERATIONS for field in operation.record.fields
)

_MAX_CHARACTERS = {"id": MAX_ID, "dispatch_id": MAX_ID, "status": MAX_STATE, "state": MAX_STATE}


class _Limit:
    """Limits the objects of one record: the number of other fields, long ids and states, and nested values."""

    def __init__(self) -> None:
        self._left = MAX_NESTED

    def __call__(self, found: Object) -> Object:
        if len(found) <= MAX_OTHER_FIELDS and all(map(_is_short, found.values())):
            return found
        others = [name for name in found if name not in _KNOWN]
        left_out = set(others[MAX_OTHER_FIELDS:])
        return {name: self._limited(name, value) for name, value in found.items() if name not in left_out}

    def _limited(self, name: str, value: Any) -> Any:
        if isinstance(value, (dict, list)):
            self._left -= _size(value, self._left)
            return value if self._left >= 0 else CUT
        most = _MAX_CHARACTERS.get(name)
        return value[:most] + CUT if most and isinstance(value, str) and len(value) > most else value


def _is_short(value: Any) -> bool:
    return len(value) <= MAX_ID if isinstance(value, str) else not isinstance(value, (dict, list))


def _size(value: Any, most: int) -> int:
    """Return the number of values in an array or object, at any depth; counting ends soon after ``most``."""
    count, inner = 0, [value]
    while inner and count <= most:
        each = inner.pop()
        count += len(each) + 1
        inner += [
            part for part in (each.values() if isinstance(each, dict) else each) if isinstance(part, (dict, list))
        ]
    return count


# --- helpers


def _count(names: Iterable[str], level: Object) -> int:
    return sum(_is_there(name, level.get(name)) for name in names)


def _is_there(name: str, value: Any) -> bool:
    """Return whether a field has a value of its type: any value for ``metrics``, a plain one for other fields."""
    return value is not None and (name == "metrics" or not isinstance(value, (dict, list)))


def _is_plain(value: Any) -> bool:
    return value is not None and value != "" and not isinstance(value, (dict, list))


def _without_data(level: Object) -> Object:
    """Return a level without its entries and without fields that count as missing."""
    return {name: value for name, value in level.items() if name != "data" and not _is_odd(name, value)}


def _is_odd(name: str, value: Any) -> bool:
    """Return whether a field counts as missing: an object or array in place of an id, phone, status or state.

    A status or state that contains a word for failure is kept, since the outcome depends on it.
    """
    return name in _PLAIN and isinstance(value, (dict, list)) and not hints_at_failure({name: value})


def _with_failures(found: Object, around: Iterable[Object], *, of_block: bool = False) -> Object:
    """Return a record with the failure that a level around it reports."""
    for level in [each for each in around if each is not found]:
        if reports_failure(level, of_block=of_block):
            found = {**found, **{name: level[name] for name in _FAILURE if level.get(name) is not None}}
        hints = {name: value for name, value in level.items() if hints_at_failure({name: value}, of_block=of_block)}
        found = {**found, **hints}
    return found


def _no_record(record: Record, document: Any) -> ShapeError:
    if not isinstance(document, dict):
        return ShapeError("it is JSON, but not an object")
    names = ", ".join(field.name for field in record.fields if field.name != "msg")
    return ShapeError(f"it has none of the fields of {record.name} ({names})")
