"""A job before it is sent: its summary, and the question whether to send it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

from msgctl import operations as ops
from msgctl import values
from msgctl.cli import prompts, requests
from msgctl.cli.context import Context
from msgctl.cli.process import is_terminal
from msgctl.errors import MsgctlError, NotReachedError, OutcomeUnknownError, ServiceError, UsageError
from msgctl.http.response import credits_left
from msgctl.output.result import Format, OwnResult
from msgctl.text import clean, plural, shorten

if TYPE_CHECKING:
    from decimal import Decimal

    from msgctl.cli.bulk import Source
    from msgctl.jobs.importer import Tally
    from msgctl.jobs.spec import JobSpec
    from msgctl.jobs.template import Message

LONGEST_EXAMPLE = 200

SUMMARY = (
    *("command", "file", "recipients", "invalid", "duplicate", "excluded", "blank"),
    *("messages", "segments", "credits", "balance", "first"),
)


def approve(context: Context, source: Source, spec: JobSpec, tally: Tally, test_to: str | None = None) -> OwnResult:
    """Show a job's summary and ask whether to send it. Return the summary, for a dry run.

    The message of the first row is sent to ``test_to`` before the question.

    Raises UsageError, or Cancelled if the answer is not yes.
    """
    if not tally.recipients:
        raise UsageError(f"{values.quote(source.file)} has no recipients, only a header", "Add one line per recipient.")
    invalid = _invalid(source, tally, is_quiet=context.options.quiet)
    is_free = spec.performs is ops.BLOCK_PHONE
    balance = None if invalid or is_free else _balance(context)
    document = _summary(spec, tally, balance)
    is_unread = context.options.yes and (context.options.quiet or context.options.format is Format.JSON)
    if not context.options.dry_run and not is_unread:
        _show(context, document, will_send=not invalid)
    _list_rows(context, tally)
    failures: list[MsgctlError] = [invalid] if invalid else []
    if not context.options.dry_run:
        if invalid:
            raise invalid
        _ask(context, spec, tally, test_to)
    if balance is not None and balance < tally.credits and (context.options.quiet or context.options.dry_run):
        context.warn(f"about {tally.credits:,} credits needed, {balance:,} left")
    columns = [name for name in SUMMARY if name != "blank" or tally.blank]
    return OwnResult(document, columns, view="job summary", failures=failures)


def _ask(context: Context, spec: JobSpec, tally: Tally, test_to: str | None) -> None:
    otherwise = "nothing was sent"
    if test_to and tally.first:
        prompts.require_terminal(context, otherwise)
        _send_test(context, spec, tally.first, test_to)
        otherwise = "only the test message was sent"
    numbers = f"{tally.messages:,} {'number' if tally.messages == 1 else 'numbers'}"
    messages = f"{tally.messages:,} {'message' if tally.messages == 1 else 'messages'}"
    cost = f" for about {tally.credits:,} {'credit' if tally.credits == 1 else 'credits'}" if tally.credits else ""
    is_block = spec.performs is ops.BLOCK_PHONE
    prompts.confirm(context, f"Block {numbers}?" if is_block else f"Send {messages}{cost}?", otherwise)


def _send_test(context: Context, spec: JobSpec, message: Message, phone: str) -> None:
    """Send a message to one phone. Raises what keeps it from being accepted."""
    operation = spec.performs
    to = [phone] if operation.field("phone").several else phone
    result = requests.perform(context, operation, {**spec.fixed, **message.parameters, "phone": to})
    for failure in result.failures:
        failure.hint = "The job was not started."
        raise failure
    context.note(f"Test message sent to {phone}.")


def _invalid(source: Source, tally: Tally, *, is_quiet: bool) -> UsageError | None:
    """Return why a file cannot be sent to as it is."""
    file = values.quote(source.file)
    if tally.invalid and not source.skip_invalid:
        line, _, reason = tally.invalid_rows[0]
        rows = f"{tally.invalid:,} of {tally.recipients:,} rows of {file} {'is' if tally.invalid == 1 else 'are'}"
        where = " To list them: --dry-run --json." if is_quiet else ""
        return UsageError(
            f"{rows} invalid, starting with line {line}: {reason}",
            f"Fix them, or skip them with --skip-invalid.{where}",
            consequence="nothing was sent",
        )
    if tally.excluded and not tally.messages:
        return UsageError(f"All recipients in {file} are excluded", consequence="nothing was sent")
    if not tally.messages:
        return UsageError(f"{file} has no valid rows", "Fix the rows.", consequence="nothing was sent")
    return None


def _summary(spec: JobSpec, tally: Tally, balance: Decimal | None) -> dict[str, Any]:
    """Return what is about to be sent, in numbers; segments if the service charges by them."""
    return {
        "command": spec.command,
        "file": spec.file,
        "recipients": tally.recipients,
        "invalid": tally.invalid,
        "duplicate": tally.duplicate,
        "excluded": tally.excluded,
        "blank": tally.blank,
        "messages": tally.messages,
        "segments": tally.segments if spec.performs is ops.SEND_SMS else None,
        "credits": tally.credits,
        "balance": None if balance is None else _number(balance),
        "first": dict(tally.first.parameters) if tally.first else None,
        "countries": dict(tally.countries.most_common()) if tally.credits else {},
        "most_expensive": _most_expensive(tally),
        "invalid_rows": [row._asdict() for row in tally.invalid_rows],
        "duplicate_rows": [row._asdict() for row in tally.duplicate_rows],
        "excluded_rows": [row._asdict() for row in tally.excluded_rows],
    }


def _most_expensive(tally: Tally) -> dict[str, Any] | None:
    if tally.most_expensive is None:
        return None
    row, message = tally.most_expensive
    values = dict(message.parameters)
    return {"line": row.line, "phone": row.phone, "segments": message.segments, "credits": message.cost, **values}


def _show(context: Context, document: Mapping[str, Any], *, will_send: bool) -> None:
    """Show the summary: drawn on a terminal, in plain lines elsewhere."""
    if not is_terminal(context.stderr):
        context.say("\n".join(_lines(document, left_out=will_send)))
        return
    if not will_send:
        return
    from msgctl.output import jobs

    host = urlsplit(context.profile.base_url).hostname or ""
    context.printer.explain(jobs.plan_parts(document, (context.profile.name, host)))


def _lines(document: Mapping[str, Any], *, left_out: bool) -> Iterator[str]:
    """Write the summary for a person to read before saying yes."""
    rows = [("recipients", f"{document['recipients']:,} in {clean(document['file'])}")]
    if document["invalid"]:
        rows.append(("invalid", f"{document['invalid']:,}{', left out' if left_out else ''}"))
    if document["duplicate"]:
        rows.append(("duplicate", f"{document['duplicate']:,}, left out"))
    if document["excluded"]:
        rows.append(("excluded", f"{document['excluded']:,}, left out"))
    if document["blank"]:
        rows.append(("blank rows", f"{document['blank']:,}, ignored"))
    rows.append(("messages", f"{document['messages']:,}"))
    if document["segments"] is not None:
        rows.append(("segments", f"{document['segments']:,}"))
    if document["command"] != "block bulk":
        rows.append(("credits", f"about {document['credits']:,}{_against(document)}"))
        if len(document["countries"]) > 1:
            rows.append(("by country", ", ".join(f"{name} {count:,}" for name, count in document["countries"].items())))
    if document["first"]:
        rows.append(("first", shorten(_text(document["first"]), LONGEST_EXAMPLE)))
    if costly := document["most_expensive"]:
        told = f"line {costly['line']}, {costly['phone']}: {plural(costly['credits'], 'credit')}"
        rows.append(("most costly", told))
    for name, value in rows:
        yield f"{name:<11} {value}"


def _against(document: Mapping[str, Any]) -> str:
    """Return how the estimate compares with the balance."""
    balance = document["balance"]
    if balance is None:
        return "; balance not checked"
    return f" of {balance:,} left{'' if balance >= document['credits'] else ', which is NOT enough'}"


def _text(parameters: Mapping[str, Any]) -> str:
    """Return what the first recipient gets."""
    return "; ".join(", ".join(value) if isinstance(value, list) else str(value) for value in parameters.values())


def _list_rows(context: Context, tally: Tally) -> None:
    for number, rows in (
        (tally.invalid, tally.invalid_rows),
        (tally.duplicate, tally.duplicate_rows),
        (tally.excluded, tally.excluded_rows),
    ):
        for row in rows:
            context.note(f"Line {row.line}: {row.phone + ': ' if row.phone else ''}{row.reason}")
        if number > len(rows):
            context.note(f"… and {number - len(rows):,} more")


def _balance(context: Context) -> Decimal | None:
    """Return the credits left; None, with a note, if the service does not say. Raises NotReachedError."""
    try:
        return credits_left(context.client.send(ops.BALANCE, {}))
    except (NotReachedError, ServiceError, OutcomeUnknownError) as error:
        if isinstance(error, NotReachedError) and not context.options.dry_run:
            raise
        context.note(f"Balance not checked: {error.message}")
        return None


def _number(number: Decimal) -> int | float:
    return int(number) if number == number.to_integral_value() else float(number)
