"""What the commands that send one message share: --once, --resend-unknown, --ignore-optout, --wait."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated

import typer

from msgctl import phones, recipients
from msgctl import values as checks
from msgctl.cli import requests
from msgctl.cli.context import Context
from msgctl.errors import ConfigurationError, MsgctlError, OutcomeUnknownError, RefusedError, UsageError
from msgctl.http import request
from msgctl.operations import Operation
from msgctl.output.result import Result, ServiceResult
from msgctl.storage import paths

if TYPE_CHECKING:
    from msgctl.history import once


@dataclass(frozen=True)
class SendOptions:
    """Options of the commands that send one message."""

    once: Annotated[
        str | None,
        typer.Option(
            "--once", metavar="KEY", help="Send at most once under this key; later calls print the same result."
        ),
    ] = None
    resend_unknown: Annotated[
        bool, typer.Option("--resend-unknown", help="With --once: send again if the earlier outcome is unknown.")
    ] = False
    ignore_optout: Annotated[bool, typer.Option("--ignore-optout", help="Send even to numbers that opted out.")] = False


@dataclass(frozen=True)
class WaitOptions:
    """Options that follow a message until it is delivered."""

    wait: Annotated[
        bool, typer.Option("--wait", help="Then wait until every message is delivered; exit 6 if one is not.")
    ] = False
    max_wait: Annotated[
        str | None, typer.Option("--max-wait", metavar="S", help="With --wait: maximum seconds to wait. [default: 300]")
    ] = None


NO_WAIT = WaitOptions()


def send(
    context: Context,
    operation: Operation,
    values: Mapping[str, request.Value],
    options: SendOptions,
    wait: WaitOptions = NO_WAIT,
    body: bytes | None = None,
) -> Result:
    """Perform an operation that sends, at most once under a key; with --wait, also follow its messages.

    Raises UsageError for numbers that opted out.
    """
    if wait.max_wait is not None and not wait.wait:
        raise UsageError("--max-wait needs --wait")
    seconds = checks.seconds(wait.max_wait or "300", "--max-wait", most=31 * 86400)
    result = _send(context, operation, values, body, options)
    if not wait.wait or not isinstance(result, ServiceResult):
        return result
    from msgctl.cli.message_state import undelivered

    context.printer.print(result)
    return Result(failures=[*result.failures, *undelivered(context, result.outcomes, seconds)])


def _send(
    context: Context,
    operation: Operation,
    values: Mapping[str, request.Value],
    body: bytes | None,
    options: SendOptions,
) -> Result:
    if options.resend_unknown and options.once is None:
        raise UsageError("--resend-unknown needs --once KEY")
    if not options.ignore_optout:
        _refuse_optouts(values, body)
    if options.once is None or context.options.dry_run:
        return requests.run(context, operation, values, body)
    return _send_once(context, operation, values, body, options.once, resend_unknown=options.resend_unknown)


def _refuse_optouts(values: Mapping[str, request.Value], body: bytes | None) -> None:
    if not paths.state(paths.OPTOUTS).exists():
        return
    from msgctl.history import optouts
    from msgctl.history.recorder import phones_of

    country = values.get("country-code")
    numbers = [_international(phone, str(country) if country else None) for phone in phones_of(values, body) if phone]
    if found := optouts.among(numbers):
        who = f"{found[0]} has" if len(found) == 1 else f"{', '.join(found)} have"
        fix = f"msgctl optout remove {' '.join(found)}"
        raise UsageError(f"{who} opted out of messages", f"To send anyway, add --ignore-optout, or run: {fix}")


def _international(phone: str, country: str | None) -> str:
    """Return a phone number as the opt-out list stores it."""
    try:
        return phones.read(phone, country).digits
    except phones.InvalidPhoneError:
        return phone


def _send_once(
    context: Context,
    operation: Operation,
    values: Mapping[str, request.Value],
    body: bytes | None,
    key: str,
    *,
    resend_unknown: bool,
) -> Result:
    from msgctl.history import once

    key = once.check_key(key)
    request.build(operation, values, body)  # usage errors come before those of the profile
    requests.check_fields(context, operation)
    account = f"{context.profile.base_url} {context.profile.client}"
    wanted = once.fingerprint(operation.name, values, body)
    with once.reserved(account, key, wanted, now=context.clock(), resend_unknown=resend_unknown) as reservation:
        if reservation.earlier is not None:
            context.note("Nothing was sent: this key was used before. This is the earlier result.")
            return _again(operation, values, body, reservation.earlier)
        try:
            result = requests.run(context, operation, values, body)
        except MsgctlError as error:
            _end(context, reservation, error)
            raise
        if isinstance(result, ServiceResult):
            _settle(context, reservation, _stored(result))
        return result


def _end(context: Context, reservation: once.Reservation, error: MsgctlError) -> None:
    """Free the key if nothing can have been sent, else store that the outcome is unknown."""
    from msgctl.history.once import StoredResult

    if error.nothing_sent or isinstance(error, RefusedError):
        reservation.release()
        return
    text: str = getattr(error, "body", "")
    stored = StoredResult(
        5, getattr(error, "http_status", None), text.encode() or None, error.message, error.hint or ""
    )
    _settle(context, reservation, stored)


def _settle(context: Context, reservation: once.Reservation, result: once.StoredResult) -> None:
    """Store a result. If that fails, later calls with the key say that the outcome is unknown."""
    try:
        reservation.settle(result)
    except ConfigurationError as error:
        context.warn(f"The result is not stored under --once: {error.message}.")


def _stored(result: ServiceResult) -> once.StoredResult:
    from msgctl.history.once import StoredResult

    response = result.responses[0]
    return StoredResult(recipients.exit_code(result.outcomes), response.http_status, response.body)


def _again(
    operation: Operation, values: Mapping[str, request.Value], body: bytes | None, earlier: once.StoredResult
) -> Result:
    """Return the result of an earlier call as it was. Raises OutcomeUnknownError if it is unknown."""
    from msgctl.history.recorder import phones_of
    from msgctl.http import response

    if earlier.what or earlier.body is None or earlier.http_status is None:
        text = (earlier.body or b"").decode(errors="replace")
        try:
            document = response.load_json(earlier.body or b"")
        except response.ShapeError:
            document = None
        raise OutcomeUnknownError(
            earlier.what, earlier.hint or None, http_status=earlier.http_status, body=text, document=document
        )
    same = response.read(operation, earlier.body, earlier.http_status)
    return requests.judged(operation, same, phones_of(values, body))
