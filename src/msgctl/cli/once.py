"""Send at most once under a key (--once), and give the same result to every later call."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from msgctl import recipients
from msgctl.cli.requests import SendOptions, Values, check_fields, judged, perform
from msgctl.errors import ConfigurationError, MsgctlError, OutcomeUnknownError, RefusedError
from msgctl.history import once
from msgctl.http import request
from msgctl.http.response import attached
from msgctl.http.response import read as read_response
from msgctl.jsontext import ShapeError, load_json
from msgctl.operations import Operation
from msgctl.output.result import ServiceResult

if TYPE_CHECKING:
    from msgctl.cli.context import Context


def send(
    context: Context,
    operation: Operation,
    values: Values,
    body: bytes | None,
    options: SendOptions,
    people: Sequence[str | None],
) -> ServiceResult:
    """Send unless it was done under the key. The key is free again if nothing can have been sent.

    ``people`` are those of `perform`.
    """
    request.build(operation, values, body)  # usage errors come before those of the profile
    check_fields(context, operation)
    wanted = once.fingerprint(operation.name, values, body)
    key = once.check_key(options.once or "")
    account, is_resent = context.profile.account, options.resend_unknown
    with once.reserved(account, key, wanted, now=context.clock(), resend_unknown=is_resent) as reservation:
        if reservation.earlier is not None:
            context.note("Nothing was sent: this key was used before. This is the earlier result.")
            return _earlier(operation, values, body, reservation.earlier)
        try:
            result = perform(context, operation, values, body, people)
        except MsgctlError as error:
            stored = None
            if not (error.nothing_sent or isinstance(error, RefusedError)):
                body_text = error.body.encode() or None
                stored = once.StoredResult(5, error.http_status, body_text, error.message, error.hint or "")
            _settle(context, reservation, stored)
            raise
        except KeyboardInterrupt:  # the client raises Interrupted; this came before its request or after it
            if not context.carried_out:
                _settle(context, reservation, None)
            raise
        sent = result.responses[0]
        stored = once.StoredResult(recipients.exit_code(result.outcomes), sent.http_status, sent.body)
        _settle(context, reservation, stored)
        return result


def _settle(context: Context, reservation: once.Reservation, result: once.StoredResult | None) -> None:
    """Store a result; None frees the key. If that fails, later calls with the key say that the outcome is unknown."""
    try:
        if result is None:
            reservation.release()
        else:
            reservation.settle(result)
    except ConfigurationError as error:
        context.warn(f"The result is not stored under --once: {error.message}.")


def _earlier(operation: Operation, values: Values, body: bytes | None, earlier: once.StoredResult) -> ServiceResult:
    """Return the result of an earlier call as it was. Raises OutcomeUnknownError if it is unknown."""
    content = earlier.body or b""
    if not earlier.what and earlier.http_status is not None:
        sent = request.build(operation, values, body)
        return judged(sent, read_response(sent, content, earlier.http_status), values)
    try:
        document = load_json(content)
    except ShapeError:
        document = None
    said = {} if earlier.http_status is None else attached(earlier.http_status, content, document)
    raise OutcomeUnknownError(earlier.what, earlier.hint or None, **said)
