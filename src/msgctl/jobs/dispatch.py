"""One request of a job: an intent goes in, what became of it comes out."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any

from msgctl import recipients as attribution
from msgctl import values
from msgctl.errors import ConfigurationError, MsgctlError, NotReachedError, RefusedError, UsageError, unexpected
from msgctl.http.client import Client
from msgctl.http.response import Number, Response
from msgctl.jobs.records import Entry, Intent, Order, Result
from msgctl.jobs.states import Event
from msgctl.operations import Operation

LONGEST_ATTEMPT = 3600.0
"""Seconds; the client's own limit, --timeout, is never longer."""

_PHONES = re.compile("[0-9]{5,15}(,[0-9]{5,15})*", re.ASCII)


def dispatch(client: Client, order: Order, intent: Intent) -> Result:
    """Make the request of an intent once, and tell what became of it; nothing is raised."""
    try:
        values_ = parameters(order, intent)
        # One attempt: what does not leave comes back for another turn, at the job's pace.
        answer = client.send(order.performs, values_, timeout=LONGEST_ATTEMPT)
        return Result(intent.number, Event.ANSWERED, entries(answer, intent.phones))
    except MsgctlError as error:
        return Result(intent.number, _event(error), fault=error)
    except Exception as error:  # noqa: BLE001 (its recipients must not stay under way)
        return Result(intent.number, Event.LOSS, fault=unexpected(error))


def parameters(order: Order, intent: Intent) -> dict[str, Any]:
    """Return the parameters of an intent's request. Raises UsageError where nobody could have typed it."""
    operation = order.performs
    given = {**order.fixed, **intent.parameters}
    if not _PHONES.fullmatch(",".join(intent.phones)) or not _could_be_typed(operation, given):
        raise UsageError(
            "the ledger holds a request that msgctl never put there", "Begin a job anew from the file of recipients."
        )
    phone = intent.phones if operation.field("phone").several else intent.phones[0]
    return {**given, "phone": phone}


def _could_be_typed(operation: Operation, given: Mapping[str, Any]) -> bool:
    """Whether values out of a ledger, which anybody may have changed, are such as the command line takes."""
    fields = {field.name: field for field in operation.fields}
    if not given.keys() <= fields.keys() - {"phone"}:
        return False
    if "audio-code" in fields and (given.get("audio-code") is None) == (given.get("message") is None):
        return False  # interface, "Limits": one of them; a voice goes with the message
    if given.get("audio-code") is not None and given.get("voice") is not None:
        return False
    return all(value is None or values.is_typed(value, fields[name]) for name, value in given.items())


def entries(answer: Response, phones: Sequence[str]) -> tuple[Entry | None, ...]:
    """What an answer says of each phone; None where it says nothing."""
    if not answer.operation.answer.entries:
        return (_entry(answer.document),) * len(phones)
    found = answer.document.get("data") or []
    meant = attribution.places(found, phones)
    if isinstance(meant, range):
        return _entries(found)
    return tuple(None if place is None else _entry(found[place]) for place in meant)


def _entries(found: Sequence[Mapping[str, Any]]) -> tuple[Entry, ...]:
    """An entry for each record, column by column: that is three times as fast."""
    ids = [members.get("id") for members in found]
    statuses = [members.get("status", members.get("state")) for members in found]
    prices = [members.get("credits") for members in found]
    return tuple(map(Entry, _texts(ids), _texts(statuses), _texts(prices)))


def _texts(values: list[Any]) -> Sequence[str | None]:
    return values if {str, Number}.issuperset(map(type, values)) else [*map(_text, values)]


def _entry(members: Mapping[str, Any]) -> Entry:
    # The state of a call's entry is called `state`, that of every other one `status`.
    status = members.get("status", members.get("state"))
    return Entry(_text(members.get("id")), _text(status), _text(members.get("credits")))


def _text(value: Any) -> str | None:
    return None if value is None else str(value)


def _event(error: MsgctlError) -> Event:
    """What an error means for the recipients; whatever is not certain is taken for a loss."""
    if isinstance(error, (NotReachedError, ConfigurationError)):
        return Event.NEVER_LEFT
    if isinstance(error, (UsageError, RefusedError)):
        return Event.REFUSAL
    return Event.LOSS
