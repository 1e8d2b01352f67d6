"""One request of a command: its dry run, its history, and sending it at most once per key."""

from collections.abc import Sequence
from typing import TYPE_CHECKING

from msgctl import operations, phones
from msgctl import values as checks
from msgctl.cli.options.send import Numbers, SendOptions, WaitOptions
from msgctl.cli.runs import single
from msgctl.cli.shell.context import Context
from msgctl.errors import ConditionError, MsgctlError, OutcomeUnknownError, UsageError
from msgctl.http.request import Request
from msgctl.http.response import Response, check, details_of, word_of
from msgctl.http.response import read as read_response
from msgctl.jsontext import ShapeError, load_json
from msgctl.operations import Effect, Operation
from msgctl.outcomes.judge import ACCEPTED, REFUSED, UNKNOWN, Outcome
from msgctl.outcomes.record import MAX_QUOTE, service_message
from msgctl.output.fields import flat
from msgctl.output.result import Format, Layout, OwnResult, Result, ServiceResult
from msgctl.text import clean, plural, shorten, some_of

if TYPE_CHECKING:
    from msgctl.store.once import Key
    from msgctl.store.once import Result as StoredResult

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

    ``numbers`` are the options with which the phones were read. Raises UsageError for numbers that have opted out.
    """
    if options.resend_unknown and options.once is None:
        raise UsageError("--resend-unknown needs --once KEY")
    for name, value in (("--max-wait", wait.max_wait), ("--until", wait.until)):
        if value and not wait.wait:
            raise UsageError(f"{name} needs --wait")
    people = request.phones
    if request.is_own_body:
        reader = phones.Reader(numbers.known(context))
        people = [phone and reader.international(phone) for phone in people]
    request = request._replace(people=people)
    check_fields(context, request.operation)
    if context.options.dry_run:
        return dry_run(context, request)
    key = None
    if options.once is not None:
        key = single.key_of(context, request, options.once, resend_unknown=options.resend_unknown)
    channel = None if options.ignore_optout else request.operation.channel
    try:
        result = perform(context, request, key=key, channel=channel)
    except MsgctlError as error:
        result = _printed(context, error)
    if not wait.wait:
        return result
    from msgctl.cli.runs.wait import track_sent

    context.printer.print(result._replace(is_tracked=True))
    tracked = track_sent(context, result.outcomes, wait.max_wait or USUAL_WAIT, wait.until)
    return tracked._replace(failures=[*result.failures, *tracked.failures])


def run(context: Context, request: Request) -> ServiceResult | OwnResult:
    """Make a request and return its result; in a dry run, describe the request instead."""
    check_fields(context, request.operation)
    if context.options.dry_run:
        return dry_run(context, request)
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
    context: Context,
    request: Request,
    *,
    key: "Key | None" = None,
    channel: str | None = None,
    may_repeat: bool = False,
) -> ServiceResult:
    """Make a request. If it sends something or blocks a number, store its intent and its outcome.

    It is sent at most once under ``key``. People who have opted out of ``channel`` are refused. Later jobs count the
    same message to these people as a repeat, unless ``may_repeat``.
    """
    operation = request.operation
    if operation.effect is Effect.SENDS or operation is operations.BLOCK_PHONE:
        return _perform_recorded(context, request, key, channel, may_repeat=may_repeat)
    response = context.client.send(request)
    context.carried_out |= operation.effect is not Effect.READS
    return ServiceResult([response], values=request.values)


def _perform_recorded(
    context: Context, request: Request, key: "Key | None", channel: str | None, *, may_repeat: bool
) -> ServiceResult:
    from msgctl.store.once import Result as StoredResult

    context.warns_without_store = False  # `single.begin` reports a store that cannot be used
    if key and (earlier := single.earlier(context, key)):
        return _earlier(context, request, earlier, key)
    client = context.client  # before the intent, because it fails without a credential
    begun = single.begin(context, request, key=key, channel=channel, may_repeat=may_repeat)
    if isinstance(begun, StoredResult):
        return _earlier(context, request, begun, key)
    try:
        response = client.send(request)
        context.carried_out = True
        result = judged(request, response)
    except MsgctlError as error:
        single.fail(context, begun, error)
        raise
    except KeyboardInterrupt:  # before or after the request, since the client raises Interrupted
        if not context.carried_out:
            single.undo(context, begun)
        raise
    code = result.failures[0].exit_code if result.failures else 0
    body = response.body.decode(errors="replace") if code == 5 else ""
    stored = StoredResult(code, response.http_status, response.body)
    single.end(context, begun, result.outcomes, stored, body=body)
    return result


def dry_run(context: Context, *requests: Request) -> OwnResult:
    """Return descriptions of requests as a result, with columns such as ``headers.Accept`` and ``form.phone``."""
    documents = [request.described(context.profile.base_url) for request in requests]
    columns: dict[str, None] = {}
    for document in documents:
        columns |= dict.fromkeys(flat(document))
    return OwnResult(documents[0] if len(documents) == 1 else documents, tuple(columns), Layout.REQUEST)


def check_fields(context: Context, operation: Operation) -> None:
    """Check --fields before anything is sent. Raises UsageError."""
    if context.options.fields:
        from msgctl.output import fields

        context.check_fields(fields.of_record(operation.record))


def judged(request: Request, response: Response) -> ServiceResult:
    """Return the result of a send. Recipients that are refused or not mentioned determine its exit code."""
    outcomes, failures = response.outcomes, []
    if any(outcome.outcome != ACCEPTED for outcome in outcomes):
        failures = [_failure(request, response)]
    return ServiceResult([response], outcomes, request.values, failures)


def _failure(request: Request, response: Response) -> MsgctlError:
    """Return the error for recipients that are unknown, or else for those that are refused."""
    outcomes = response.outcomes
    message = next((outcome.error for outcome in outcomes if outcome.error), None)
    message = message or service_message(response.content)
    quoted = f": {shorten(message, MAX_QUOTE)}" if message else ""
    if unknown := _names(outcomes, UNKNOWN):
        verb = "was" if len(unknown) == 1 else "were"
        return OutcomeUnknownError(
            f"The response does not show whether {some_of(unknown)} {verb} accepted{quoted}",
            check(request),
            word=word_of(outcomes),
            recipients=outcomes,
            details=response.details,
        )
    refused = _names(outcomes, REFUSED)
    number = f"{len(refused)} of {plural(len(outcomes), 'recipient')}"
    return ConditionError(
        f"The service refused {some_of(refused)} ({number}){quoted}",
        reason="not_accepted",
        nothing_sent=len(refused) == len(outcomes),
        recipients=outcomes,
        details=response.details,
    )


def _names(outcomes: Sequence[Outcome], kind: str) -> list[str]:
    """Return the recipients with an outcome, each with the status that the service gave it."""
    names = []
    for outcome in outcomes:
        if outcome.outcome == kind:
            status = f" [{clean(outcome.status)}]" if outcome.status else ""
            names.append((outcome.phone or "the message") + status)
    return names


def _earlier(context: Context, request: Request, earlier: "StoredResult", key: "Key | None") -> ServiceResult:
    """Return the stored result of an earlier run. Raises OutcomeUnknownError if it is unknown."""
    content, name = earlier.body or b"", checks.quote(key.key if key else "")
    if not earlier.message and earlier.http_status is not None:
        context.note(f"This is the result of the first run with --once {name}.")
        result = judged(request, read_response(request, content, earlier.http_status))
        for failure in result.failures:
            failure.nothing_sent = failure.replayed = True  # by this run
        return result
    try:
        document = load_json(content)
    except ShapeError:
        document = None
    details = None if earlier.http_status is None else details_of(earlier.http_status, content, document)
    hint = "\n".join(filter(None, (f"The first run: {earlier.message}", earlier.hint)))
    error = OutcomeUnknownError(
        f"The first run with --once {name} may have sent the message",
        hint,
        details=details,
        recipients=[Outcome(phone, UNKNOWN) for phone in request.phones],
    )
    error.nothing_sent = error.replayed = True
    raise error
