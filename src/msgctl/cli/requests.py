"""Make requests: record what is sent in the history, and learn the outcome of each recipient."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import nullcontext
from itertools import islice
from typing import TYPE_CHECKING, Any

from msgctl import recipients
from msgctl.errors import ConfigurationError
from msgctl.http.request import Value
from msgctl.http.response import Response
from msgctl.operations import Effect, Operation
from msgctl.storage import paths
from msgctl.times import timestamp

if TYPE_CHECKING:
    from msgctl.cli.context import Context
    from msgctl.history import Entry
    from msgctl.history.recorder import Recorder


def send(
    context: Context,
    operation: Operation,
    values: Mapping[str, Value],
    body: bytes | None = None,
    *,
    timeout: float | None = None,
) -> Response:
    """Make the request of an operation, recorded in the history if it sends or blocks."""
    if operation.effect is Effect.READS:
        return context.client.send(operation, values, body=body, timeout=timeout)
    from msgctl.history.recorder import COMMANDS, phones_of

    phones = phones_of(values, body)
    is_recorded = operation.name in COMMANDS and context.profile.history
    client = context.client  # before anything is recorded: there may be no credential
    with _recorder(context, operation, values, body, phones) if is_recorded else nullcontext() as recorder:
        response = client.send(operation, values, body=body, timeout=timeout)
        context.carried_out = True
        if recorder is not None:
            entries = _entries(response, phones)
            in_doubt = any(entry.outcome == "unknown" for entry in entries)
            recorder.result(entries, response.body.decode(errors="replace") if in_doubt else "")
    return response


def _recorder(
    context: Context,
    operation: Operation,
    values: Mapping[str, Value],
    body: bytes | None,
    phones: Sequence[str | None],
) -> Recorder:
    from msgctl.history import Send
    from msgctl.history.recorder import COMMANDS, Recorder, message_of

    def warn(error: ConfigurationError) -> None:
        hint = f"\n{error.hint}" if error.hint else ""
        context.warn(f"Not recorded in the history: {error.message}.{hint}")

    profile = context.profile
    message = message_of(operation, values, body)
    sent = Send(timestamp(context.clock()), profile.name, profile.base_url, COMMANDS[operation.name], message)
    return Recorder(paths.history_file(), sent, phones, warn)


MOST_UNASKED = 100
"""Entries that are recorded beyond those asked for; a hostile response could hold a million."""


def _entries(response: Response, phones: Sequence[str | None]) -> list[Entry]:
    """Return the outcome of each recipient in order, then entries that belong to no recipient."""
    from msgctl.history import Entry

    if not response.operation.answer.entries:
        pairs: list[tuple[str | None, Mapping[str, Any] | None]] = [(phones[0], response.document)]
    elif told := response.document.get("data"):
        told = list(islice(told, len(phones) + MOST_UNASKED))
        places = recipients.places(told, [phone or "" for phone in phones])
        pairs = [(phone, None if at is None else told[at]) for phone, at in zip(phones, places, strict=True)]
        pairs += [(None, entry) for at, entry in enumerate(told) if at not in set(places)]
    else:
        pairs = [(phone, {}) for phone in phones]
    return [
        Entry(phone)
        if entry is None
        else Entry(
            phone or _text(entry.get("phone")),
            "accepted",
            _text(entry.get("id")),
            _text(entry.get("status", entry.get("state"))),
            _text(entry.get("credits")),
        )
        for phone, entry in pairs
    ]


def _text(value: Any) -> str | None:
    if isinstance(value, bool):
        return "true" if value else "false"
    return str(value) if isinstance(value, str) else None  # a number is a string of digits, too
