"""Make requests: dry runs, the history, and the outcome of each recipient."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from msgctl import recipients
from msgctl.errors import ConditionError, ConfigurationError, MsgctlError, OutcomeUnknownError
from msgctl.http import request
from msgctl.http.request import Value
from msgctl.http.response import Response
from msgctl.operations import Effect, Operation
from msgctl.output.result import Document, Format, OwnResult, ServiceResult
from msgctl.recipients import RecipientOutcome
from msgctl.text import clean, timestamp

if TYPE_CHECKING:
    from msgctl.cli.context import Context

Values = Mapping[str, Value]


def run(context: Context, operation: Operation, values: Values, body: bytes | None = None) -> ServiceResult | OwnResult:
    """Make the request of an operation and return its result; in a dry run, describe the request instead."""
    if context.options.dry_run:
        return describe(context, operation, [values], body)
    request.build(operation, values, body)  # usage errors come before those of the profile
    check_fields(context, operation)
    if operation.effect is Effect.READS:
        any_json = context.options.format is Format.JSON
        response = context.client.send(operation, values, body=body, any_json=any_json)
        return ServiceResult([response], values=values)
    result = send(context, operation, values, body)
    result.values = values
    return result


def read(context: Context, operation: Operation, values: Values, timeout: float | None = None) -> Response:
    """Make a request that only reads. With a ``timeout`` in seconds it is not retried."""
    return context.client.send(operation, values, timeout=timeout)


def describe(context: Context, operation: Operation, each: Sequence[Values], body: bytes | None = None) -> OwnResult:
    """Describe the requests of an operation for a dry run, credentials masked."""
    made = [request.build(operation, values, body) for values in each]
    check_fields(context, operation)
    return described([one.described(context.profile.base_url) for one in made])


def described(documents: Sequence[Document]) -> OwnResult:
    """Return descriptions of requests as a result."""
    columns = dict.fromkeys(column for document in documents for column in _dotted(document))
    shown = documents[0] if len(documents) == 1 else documents
    return OwnResult(shown, tuple(columns), view="request", has_fields=False)


def _dotted(document: Document) -> list[str]:
    """Return the columns of a nested document, in its order: ``headers.Accept``, ``form.phone``."""
    columns: list[str] = []
    for name, value in document.items():
        columns.extend([f"{name}.{inner}" for inner in value] if isinstance(value, dict) else [name])
    return columns


def check_fields(context: Context, operation: Operation) -> None:
    """Check --fields before anything is sent. Raises UsageError."""
    if context.options.fields:
        from msgctl.output import fields

        answer = operation.answer
        context.check_fields((*fields.of_record(answer), *(member.name for member in answer.members)))


def judged(operation: Operation, response: Response, phones: Sequence[str | None]) -> ServiceResult:
    """Return the result of a send: the recipients that are refused or not mentioned decide its exit code."""
    found = recipients.outcomes(operation, response.document, phones)
    failures: list[MsgctlError] = []
    if unknown := [each for each in found if each.outcome == recipients.UNKNOWN]:
        what = f"The response does not say whether {_names(unknown)} was accepted"
        failures = [OutcomeUnknownError(what, "Before sending again, check the message's delivery or the balance.")]
    elif refused := [each for each in found if each.outcome == recipients.REFUSED]:
        what = f"The service refused {_names(refused)} ({len(refused)} of {len(found)} recipients)"
        failures = [ConditionError(what)]
    return ServiceResult([response], outcomes=found, failures=failures)


def send(context: Context, operation: Operation, values: Values, body: bytes | None) -> ServiceResult:
    """Make a request that sends or changes something, and record it in the history."""
    from msgctl.history.recorder import COMMANDS, message_of, phones_of, recorded
    from msgctl.history.store import Send

    def warn(error: ConfigurationError) -> None:
        hint = f"\n{error.hint}" if error.hint else ""
        context.warn(f"Not recorded in the history: {error.message}.{hint}")

    client = context.client  # before anything is recorded: there may be no credential
    if operation.name not in COMMANDS:
        response = client.send(operation, values, body=body)
        context.carried_out = True
        return ServiceResult([response])
    profile, phones = context.profile, phones_of(values, body)
    message = message_of(operation, values, body)
    sent = Send(timestamp(context.clock()), profile.name, profile.base_url, COMMANDS[operation.name], message)
    if profile.keep_days is not None:
        from msgctl.cli.retention import delete_old

        delete_old(context)
    with recorded(sent, phones, warn, is_kept=profile.history) as record:
        response = client.send(operation, values, body=body)
        context.carried_out = True
        result = judged(operation, response, phones)
        others = recipients.unclaimed(operation, response.document, phones)
        in_doubt = any(each.outcome == recipients.UNKNOWN for each in result.outcomes)
        record([*result.outcomes, *others], response.body.decode(errors="replace") if in_doubt else "")
    return result


def _names(found: Sequence[RecipientOutcome]) -> str:
    """Return at most five recipients, each with the service's word for it."""
    named = [f"{each.phone or 'the message'}{f' [{clean(each.status)}]' if each.status else ''}" for each in found[:5]]
    return ", ".join(named) + (f" and {len(found) - 5:,} more" if len(found) > 5 else "")
