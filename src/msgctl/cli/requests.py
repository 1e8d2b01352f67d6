"""Make requests: record what is sent in the history, and learn the outcome of each recipient."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import nullcontext
from typing import TYPE_CHECKING

from msgctl import recipients
from msgctl.errors import ConfigurationError
from msgctl.http.request import Value
from msgctl.http.response import Response
from msgctl.operations import Effect, Operation
from msgctl.storage import paths
from msgctl.times import timestamp

if TYPE_CHECKING:
    from msgctl.cli.context import Context
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
            found = recipients.outcomes(operation, response.document, phones)
            others = recipients.unclaimed(operation, response.document, phones)
            in_doubt = any(each.outcome == recipients.UNKNOWN for each in found)
            recorder.result([*found, *others], response.body.decode(errors="replace") if in_doubt else "")
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
