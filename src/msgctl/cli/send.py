"""One request of a command: its dry run, its history, and sending it at most once per key."""

import json
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

from msgctl import operations, phones
from msgctl import values as checks
from msgctl.cli.context import Context
from msgctl.cli.options import Numbers, SendOptions, WaitOptions
from msgctl.errors import ConditionError, MsgctlError, OutcomeUnknownError, UsageError
from msgctl.http.request import Request
from msgctl.http.response import Response, attached, check, listed, word_of
from msgctl.http.response import read as read_response
from msgctl.jsontext import ShapeError, load_json
from msgctl.operations import Effect, Operation
from msgctl.outcomes.judge import ACCEPTED, REFUSED, UNKNOWN, RecipientOutcome
from msgctl.outcomes.record import MAX_QUOTE, service_message
from msgctl.output.result import Document, Format, OwnResult, Result, ServiceResult
from msgctl.storage.records import LOCAL, RECORD_ERRORS
from msgctl.text import clean, plural, shorten, some_of, timestamp

if TYPE_CHECKING:
    from msgctl.history import once

NO_WAIT = WaitOptions()
USUAL_WAIT = 300.0
"""Seconds that --wait waits if --max-wait is omitted."""


def send_message(
    context: Context,
    request: Request,
    options: SendOptions,
    wait: WaitOptions = NO_WAIT,
    *,
    numbers: Numbers,
) -> Result:
    """Make a request that sends, at most once per key; with --wait, also track its messages.

    The phones were read like ``numbers``. Raises UsageError for numbers that have opted out.
    """
    if options.resend_unknown and options.once is None:
        raise UsageError("--resend-unknown needs --once KEY")
    for name, value in (("--max-wait", wait.max_wait), ("--until", wait.until)):
        if value and not wait.wait:
            raise UsageError(f"{name} needs --wait")
    to = people = request.phones
    if request.is_own_body or numbers.no_number_check:
        reader = phones.Reader(numbers.known(context))
        people = [phone and reader.international(phone) for phone in to]
    if not options.ignore_optout:
        _refuse_optouts(context, request.operation.channel, [phone for phone in (*to, *people) if phone])
    request = request._replace(people=people)
    if options.once is None or context.options.dry_run:
        result = run(context, request)
    else:
        try:
            result = _send_once(context, request, options)
        except MsgctlError as error:
            result = _printed(context, error)
    if not wait.wait or not isinstance(result, ServiceResult):
        return result
    from msgctl.cli.tracking import undelivered

    context.printer.print(result)
    late = undelivered(context, result.outcomes, wait.max_wait or USUAL_WAIT, (wait.until,) if wait.until else ())
    return ServiceResult([], failures=[*result.failures, *late])


def run(context: Context, request: Request) -> ServiceResult | OwnResult:
    """Make a request and return its result; in a dry run, describe the request instead."""
    check_fields(context, request.operation)
    if context.options.dry_run:
        return described([request.described(context.profile.base_url)])
    try:
        return perform(context, request)
    except MsgctlError as error:
        return _printed(context, error)


def _printed(context: Context, error: MsgctlError) -> ServiceResult:
    """Return the 2xx response that --json prints beside an error, or raise the error."""
    if error.response is None or context.options.format is not Format.JSON or context.options.fields:
        raise error
    return ServiceResult([error.response], failures=[error])


def perform(
    context: Context, request: Request, *, begin: Callable[[], None] = lambda: None, may_repeat: bool = False
) -> ServiceResult:
    """Make a request; if it sends something or blocks a number, record it in the history.

    ``begin`` is called immediately before the request. Later jobs count the same message to these people as a repeat,
    unless ``may_repeat``.
    """
    if request.people:
        context.warns_without_store = False  # a lost store stops these sends, with an error of `recorded`
    client = context.client  # first, because it fails without a credential
    operation = request.operation
    if operation.effect is Effect.READS:
        return ServiceResult([client.send(request)], values=request.values)
    if operation.effect is Effect.CHANGES and operation is not operations.BLOCK_PHONE:
        response = client.send(request)
        context.carried_out = True
        return ServiceResult([response], values=request.values)
    from msgctl.history.store import CONTACT_SECONDS, Contact, Send, message_of, recorded

    def warn(error: MsgctlError) -> None:
        context.warn(f"Not recorded in the history: {error.what}." + (f"\n{error.hint}" if error.hint else ""))

    profile, to = context.profile, request.phones
    message = message_of(operation, request.values, request.own_body)
    sent = Send(timestamp(context.clock(), "milliseconds"), profile.name, profile.base_url, operation.name, message)
    contact = None
    if request.people:
        since = timestamp(max(0, context.clock() - CONTACT_SECONDS), "milliseconds")
        contact = Contact(profile.account, None if may_repeat else _digest(request), request.people, since)
    records = context.records if contact else LOCAL  # codes are sent even without a shared store
    with recorded(records, sent, to, warn, is_kept=True, contact=contact) as kept:
        begin()
        response = client.send(request)
        context.carried_out = True
        result = judged(request, response)
        kept.entries = [*response.outcomes, *response.unclaimed]
        if any(each.outcome == UNKNOWN for each in response.outcomes):
            kept.response = response.body.decode(errors="replace")
    return result


def _digest(request: Request) -> bytes:
    """Return the digest of a message; it is the same in a job."""
    if request.is_own_body:
        content = {name: value for name, value in json.loads(request.json or b"{}").items() if name != "phone"}
    else:
        content = {name: request.values[name] for name in ("sms", "message", "body") if name in request.values}
    return operations.message_digest(request.operation, request.values, json.dumps(content))


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

        context.check_fields(fields.of_record(operation.record))


def judged(request: Request, response: Response) -> ServiceResult:
    """Return the result of a send: the recipients that are refused or not mentioned decide its exit code."""
    found = response.outcomes
    named: dict[str, list[str]] = {}
    for each in found:
        status = f" [{clean(each.status)}]" if each.status else ""
        named.setdefault(each.outcome, []).append((each.phone or "the message") + status)
    failures: list[MsgctlError] = []
    message = next((each.error for each in found if each.error), None) or service_message(response.document)
    quoted = f": {shorten(message, MAX_QUOTE)}" if message else ""
    if unknown := named.get(UNKNOWN):
        verb = "was" if len(unknown) == 1 else "were"
        what = f"The response does not say whether {some_of(unknown)} {verb} accepted{quoted}"
        failures = [
            OutcomeUnknownError(
                what,
                check(request),
                word=word_of(found),
                recipients=listed(found),
                **response.attached(),
            )
        ]
    elif refused := named.get(REFUSED):
        what = f"The service refused {some_of(refused)} ({len(refused)} of {plural(len(found), 'recipient')}){quoted}"
        error = ConditionError(what, reason="not_accepted", recipients=listed(found), **response.attached())
        error.nothing_sent = all(each.outcome == REFUSED for each in found)
        failures = [error]
    return ServiceResult([response], outcomes=found, values=request.values, failures=failures)


def _refuse_optouts(context: Context, channel: str, numbers: Sequence[str]) -> None:
    from msgctl.history import optouts

    if found := optouts.among(context.records, numbers, channel):
        who = f"{found[0]} has" if len(found) == 1 else f"{', '.join(found)} have"
        fix = f"msgctl optout remove {' '.join(found)} --channel {channel}"
        raise UsageError(
            f"{who} opted out of {operations.CHANNELS[channel]}", f"To send anyway, add --ignore-optout, or run: {fix}"
        )


# --- once


def _send_once(context: Context, request: Request, options: SendOptions) -> ServiceResult:
    """Send unless the key was used before. The key can be used again if nothing was sent."""
    from msgctl.history import once

    check_fields(context, request.operation)
    wanted = once.fingerprint(request)
    key = options.once or ""
    account, is_resent = context.profile.account, options.resend_unknown
    now = context.clock()
    with once.reserved(context.records, account, key, wanted, now=now, resend_unknown=is_resent) as reservation:
        if reservation.earlier is not None:
            return _earlier(context, request, reservation.earlier, key)
        try:
            result = perform(context, request, begin=reservation.begin)
        except MsgctlError as error:
            stored = None
            if not error.nothing_sent:
                body_text = error.body.encode() or None
                stored = once.StoredResult(5, error.http_status, body_text, error.message, error.hint or "")
            _settle(context, reservation, stored)
            raise
        except KeyboardInterrupt:  # before or after the request, since the client raises Interrupted
            if not context.carried_out:
                _settle(context, reservation, None)
            raise
        sent = result.responses[0]
        stored = once.StoredResult(_exit_code(result.outcomes), sent.http_status, sent.body)
        _settle(context, reservation, stored)
        return result


def _exit_code(outcomes: Sequence[RecipientOutcome]) -> int:
    """Return the exit code of a send: 5 if an outcome is unknown, else 6 if one is refused, else 0."""
    if any(each.outcome == UNKNOWN for each in outcomes):
        return 5
    return 0 if all(each.outcome == ACCEPTED for each in outcomes) else 6


def _settle(context: Context, reservation: "once.Reservation", result: "once.StoredResult | None") -> None:
    """Store a result; None frees the key. If this fails, later runs with the key report an unknown outcome."""
    try:
        if result is None:
            reservation.release()
        else:
            reservation.settle(result)
    except RECORD_ERRORS as error:
        context.warn(f"The result is not stored under --once: {error.what}.")


def _earlier(context: Context, request: Request, earlier: "once.StoredResult", key: str) -> ServiceResult:
    """Return the stored result of an earlier run. Raises OutcomeUnknownError if it is unknown."""
    content, nothing = earlier.body or b"", "This time nothing was sent."
    if not earlier.what and earlier.http_status is not None:
        context.note(f"{nothing} This is the result of the first attempt with --once {checks.quote(key)}.")
        return judged(request, read_response(request, content, earlier.http_status))
    try:
        document = load_json(content)
    except ShapeError:
        document = None
    details = {} if earlier.http_status is None else attached(earlier.http_status, content, document)
    what = f"{nothing} The first attempt with --once {checks.quote(key)} may have been sent"
    hint = "\n".join(filter(None, (f"The first attempt: {earlier.what}", earlier.hint)))
    raise OutcomeUnknownError(what, hint, **details)
