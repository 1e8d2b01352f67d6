"""Make requests: dry runs, the history, the outcome of each recipient, and the options that all sends share."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Annotated, NamedTuple

import typer

from msgctl import operations, phones, recipients
from msgctl import values as checks
from msgctl.errors import (
    ConditionError,
    ConfigurationError,
    MsgctlError,
    OutcomeUnknownError,
    RefusedError,
    UsageError,
)
from msgctl.http import request
from msgctl.http.request import Value
from msgctl.http.response import Response
from msgctl.http.response import read as read_response
from msgctl.jsontext import ShapeError, load_json
from msgctl.operations import Effect, Operation
from msgctl.output.result import Document, Format, OwnResult, Result, ServiceResult
from msgctl.storage import files
from msgctl.text import clean, plural, timestamp

if TYPE_CHECKING:
    from msgctl.cli.context import Context
    from msgctl.history import once

Values = Mapping[str, Value]


class SendOptions(NamedTuple):
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


class WaitOptions(NamedTuple):
    """Options that follow a message until it is delivered."""

    wait: Annotated[
        bool, typer.Option("--wait", help="Wait until every message is delivered; exit 6 if one is not.")
    ] = False
    max_wait: Annotated[
        str | None, typer.Option("--max-wait", metavar="S", help="With --wait: maximum seconds to wait. [default: 300]")
    ] = None


NO_WAIT = WaitOptions()


def send(
    context: Context,
    operation: Operation,
    values: Values,
    options: SendOptions,
    wait: WaitOptions = NO_WAIT,
    body: bytes | None = None,
) -> Result:
    """Perform an operation that sends, at most once under a key; with --wait, also follow its messages.

    Raises UsageError for numbers that opted out.
    """
    if options.resend_unknown and options.once is None:
        raise UsageError("--resend-unknown needs --once KEY")
    if wait.max_wait is not None and not wait.wait:
        raise UsageError("--max-wait needs --wait")
    seconds = checks.seconds(wait.max_wait or "300", "--max-wait", most=31 * 86400) if wait.wait else 0.0
    if not options.ignore_optout and files.state(files.OPTOUTS).exists():
        _refuse_optouts(values, body)
    if options.once is None or context.options.dry_run:
        result = run(context, operation, values, body)
    else:
        result = _send_once(context, operation, values, body, options.once, resend_unknown=options.resend_unknown)
    if not wait.wait or not isinstance(result, ServiceResult):
        return result
    from msgctl.cli.message_state import undelivered

    context.printer.print(result)
    return ServiceResult([], failures=[*result.failures, *undelivered(context, result.outcomes, seconds)])


def run(context: Context, operation: Operation, values: Values, body: bytes | None = None) -> ServiceResult | OwnResult:
    """Make the request of an operation and return its result; in a dry run, describe the request instead."""
    built = request.build(operation, values, body)  # usage errors come before those of the profile
    check_fields(context, operation)
    if context.options.dry_run:
        return described([built.described(context.profile.base_url)])
    return perform(context, operation, values, body)


def perform(context: Context, operation: Operation, values: Values, body: bytes | None = None) -> ServiceResult:
    """Make a request; if it sends or changes something, record it in the history."""
    client = context.client  # before anything is recorded: there may be no credential
    if operation.effect is Effect.READS:
        any_json = context.options.format is Format.JSON and not context.options.fields
        return ServiceResult([client.send(operation, values, body=body, any_json=any_json)], values=values)
    if operation.effect is Effect.CHANGES and operation is not operations.BLOCK_PHONE:
        response = client.send(operation, values, body=body)
        context.carried_out = True
        return ServiceResult([response], values=values)
    from msgctl.history.store import Send, message_of, phones_of, recorded

    def warn(error: ConfigurationError) -> None:
        context.warn(f"Not recorded in the history: {error.message}." + (f"\n{error.hint}" if error.hint else ""))

    profile, to = context.profile, phones_of(values, body)
    message = message_of(operation, values, body)
    sent = Send(timestamp(context.clock()), profile.name, profile.base_url, operation.name, message)
    if profile.keep_days is not None:
        from msgctl.cli.history import delete_old

        delete_old(context)
    with (
        context.permitted(operation, values, to) as settle,
        recorded(sent, to, warn, is_kept=profile.history) as kept,
    ):
        response = client.send(operation, values, body=body)
        context.carried_out = True
        result = _judged(operation, response, values, to)
        kept.entries = [*result.outcomes, *recipients.unclaimed(operation, response.document, to)]
        if any(each.outcome == recipients.UNKNOWN for each in result.outcomes):
            kept.response = response.body.decode(errors="replace")
        settle(kept.entries)
    return result


def described(documents: Sequence[Document]) -> OwnResult:
    """Return descriptions of requests as a result, with columns such as ``headers.Accept`` and ``form.phone``."""
    columns = dict.fromkeys(
        f"{name}.{inner}" if inner else name
        for document in documents
        for name, value in document.items()
        for inner in (value if isinstance(value, dict) else [""])
    )
    shown = documents[0] if len(documents) == 1 else documents
    return OwnResult(shown, tuple(columns), view="request")


def check_fields(context: Context, operation: Operation) -> None:
    """Check --fields before anything is sent. Raises UsageError."""
    if context.options.fields:
        from msgctl.output import fields

        answer = operation.answer
        context.check_fields((*fields.of_record(answer), *(member.name for member in answer.members)))


def _judged(operation: Operation, response: Response, values: Values, to: Sequence[str | None]) -> ServiceResult:
    """Return the result of a send: the recipients that are refused or not mentioned decide its exit code."""
    found = recipients.outcomes(operation, response.document, to)
    named: dict[str, list[str]] = {}
    for each in found:
        status = f" [{clean(each.status)}]" if each.status else ""
        named.setdefault(each.outcome, []).append((each.phone or "the message") + status)
    failures: list[MsgctlError] = []
    if unknown := named.get(recipients.UNKNOWN):
        what = f"The response does not say whether {some_of(unknown)} was accepted"
        failures = [OutcomeUnknownError(what, "Before sending again, check the message's delivery or the balance.")]
    elif refused := named.get(recipients.REFUSED):
        what = f"The service refused {some_of(refused)} ({len(refused)} of {plural(len(found), 'recipient')})"
        failures = [ConditionError(what)]
    return ServiceResult([response], outcomes=found, values=values, failures=failures)


def some_of(names: Sequence[str]) -> str:
    """Return at most five names, and how many more there are."""
    return ", ".join(names[:5]) + (f" and {len(names) - 5:,} more" if len(names) > 5 else "")


def _refuse_optouts(values: Values, body: bytes | None) -> None:
    from msgctl.history import optouts
    from msgctl.history.store import phones_of

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
    context: Context, operation: Operation, values: Values, body: bytes | None, key: str, *, resend_unknown: bool
) -> ServiceResult:
    """Send unless it was done under the key. The key is free again if nothing can have been sent."""
    from msgctl.history import once

    request.build(operation, values, body)  # usage errors come before those of the profile
    check_fields(context, operation)
    account = f"{context.profile.base_url} {context.profile.client}"
    wanted = once.fingerprint(operation.name, values, body)
    key = once.check_key(key)
    with once.reserved(account, key, wanted, now=context.clock(), resend_unknown=resend_unknown) as reservation:
        if reservation.earlier is not None:
            context.note("Nothing was sent: this key was used before. This is the earlier result.")
            return _earlier(operation, values, body, reservation.earlier)
        try:
            result = perform(context, operation, values, body)
        except MsgctlError as error:
            if error.nothing_sent or isinstance(error, RefusedError):
                reservation.release()
            else:
                body_text = error.body.encode() or None
                stored = once.StoredResult(5, error.http_status, body_text, error.message, error.hint or "")
                _settle(context, reservation, stored)
            raise
        sent = result.responses[0]
        stored = once.StoredResult(recipients.exit_code(result.outcomes), sent.http_status, sent.body)
        _settle(context, reservation, stored)
        return result


def _settle(context: Context, reservation: once.Reservation, result: once.StoredResult) -> None:
    """Store a result. If that fails, later calls with the key say that the outcome is unknown."""
    try:
        reservation.settle(result)
    except ConfigurationError as error:
        context.warn(f"The result is not stored under --once: {error.message}.")


def _earlier(operation: Operation, values: Values, body: bytes | None, earlier: once.StoredResult) -> ServiceResult:
    """Return the result of an earlier call as it was. Raises OutcomeUnknownError if it is unknown."""
    from msgctl.history.store import phones_of

    content = earlier.body or b""
    if not earlier.what and earlier.http_status is not None:
        response = read_response(operation, content, earlier.http_status)
        return _judged(operation, response, values, phones_of(values, body))
    try:
        document = load_json(content)
    except ShapeError:
        document = None
    raise OutcomeUnknownError(
        earlier.what,
        earlier.hint or None,
        http_status=earlier.http_status,
        body=content.decode(errors="replace"),
        document=document,
    )
