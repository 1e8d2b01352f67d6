"""A job before it is sent: summed up, read against the balance, and agreed to by a person."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any

from msgctl import operations as ops
from msgctl import values
from msgctl.cli.context import Context
from msgctl.cli.terminal import is_terminal
from msgctl.errors import MsgctlError, NotReachedError, OutcomeUnknownError, ServiceError, UsageError
from msgctl.http.response import credits_left
from msgctl.text import clean, shorten

if TYPE_CHECKING:
    from decimal import Decimal

    from msgctl.cli.bulk import Source
    from msgctl.jobs.importer import Tally
    from msgctl.jobs.spec import JobSpec

LONGEST_EXAMPLE = 200

SUMMARY = (
    "command",
    "file",
    "recipients",
    "invalid",
    "duplicate",
    "messages",
    "segments",
    "credits",
    "balance",
    "first",
)


def require_answer(context: Context) -> None:
    """Nobody can be asked without a terminal. Raises UsageError."""
    if context.options.yes or context.options.dry_run or is_terminal(context.stdin):
        return
    raise UsageError(
        "without a terminal nobody can be asked whether to send",
        "Look at the summary with --dry-run, then send with --yes.",
    )


def approve(context: Context, source: Source, spec: JobSpec, tally: Tally) -> None:
    """Sum a job up and ask whether to send it. Raises UsageError, or Interrupted where the answer is not yes."""
    if not tally.recipients:
        raise UsageError(f"{values.quote(source.file)} has no recipients, only a header", "Add a line a recipient.")
    fault = _fault(source, tally, is_quiet=context.options.quiet)
    balance = None if fault or spec.performs is ops.BLOCK_PHONE else _balance(context)  # blocking costs nothing
    document = _summary(spec, tally, balance)
    if context.options.dry_run:
        context.show(document, SUMMARY)
    elif not (context.options.quiet and context.options.yes):
        context.say("\n".join(_lines(document, context, left_out=source.skip_invalid)))
    _name_rows(context, tally)
    if fault:
        raise fault
    if balance is not None and balance < tally.credits and (context.options.quiet or context.options.dry_run):
        context.say(context.wrapped(f"Warning: {balance:,} credits are left, and about {tally.credits:,} are needed."))
    if not context.options.dry_run:
        context.confirm(_question(spec, tally), "nothing was sent")


def _fault(source: Source, tally: Tally, *, is_quiet: bool) -> UsageError | None:
    """Why a file cannot be sent to as it is. Its rows are named before that, unless --quiet is given."""
    if tally.invalid and not source.skip_invalid:
        line, _, reason = tally.invalid_rows[0]
        where = "; --dry-run --json has them in invalid_rows" if is_quiet else ""
        return UsageError(
            f"{tally.invalid:,} of {tally.recipients:,} rows of {values.quote(source.file)} cannot be sent to; the "
            f"first is line {line}: {reason}",
            f"Mend them, or leave them out with --skip-invalid{where}.",
        )
    if not tally.messages:
        return UsageError(f"no row of {values.quote(source.file)} can be sent to", "Mend the rows.")
    return None


def _summary(spec: JobSpec, tally: Tally, balance: Decimal | None) -> dict[str, Any]:
    """What is about to be sent, in numbers; segments where the service charges by them."""
    sends_sms = spec.operation == ops.SEND_SMS.name
    return {
        "command": spec.command,
        "file": spec.file,
        "recipients": tally.recipients,
        "invalid": tally.invalid,
        "duplicate": tally.duplicate,
        "messages": tally.messages,
        "segments": tally.segments if sends_sms else None,
        "credits": tally.credits,
        "balance": None if balance is None else _whole(balance),
        "first": dict(tally.first.parameters) if tally.first else None,
        "invalid_rows": [row._asdict() for row in tally.invalid_rows],
        "duplicate_rows": [row._asdict() for row in tally.duplicate_rows],
    }


def _lines(document: Mapping[str, Any], context: Context, *, left_out: bool) -> Iterator[str]:
    """The summary as a person reads it before saying yes."""
    rows = [("recipients", f"{document['recipients']:,} in {clean(document['file'])}")]
    if document["invalid"]:
        rows.append(("invalid", f"{document['invalid']:,}{', left out' if left_out else ''}"))
    if document["duplicate"]:
        rows.append(("repeated", f"{document['duplicate']:,}, sent to once"))
    rows.append(("messages", f"{document['messages']:,}"))
    if document["segments"] is not None:
        rows.append(("segments", f"{document['segments']:,}"))
    if document["command"] != "block bulk":
        rows.append(("credits", f"about {document['credits']:,}{_against(document)}"))
    if document["first"]:
        rows.append(("first", shorten(_text(document["first"]), LONGEST_EXAMPLE)))
    for name, value in rows:
        yield context.wrapped(f"{name:<11} {value}")


def _against(document: Mapping[str, Any]) -> str:
    """The estimate read against the balance."""
    balance = document["balance"]
    if balance is None:
        return "; credits left are not known"
    enough = "" if balance >= document["credits"] else ", which is NOT enough"
    return f" of {balance:,} left{enough}"


def _text(parameters: Mapping[str, Any]) -> str:
    """What the first recipient gets."""
    return "; ".join(", ".join(value) if isinstance(value, list) else str(value) for value in parameters.values())


def _name_rows(context: Context, tally: Tally) -> None:
    for number, rows in ((tally.invalid, tally.invalid_rows), (tally.duplicate, tally.duplicate_rows)):
        for row in rows:
            context.note(f"line {row.line}: {row.phone + ': ' if row.phone else ''}{row.reason}")
        if number > len(rows):
            context.note(f"… and {number - len(rows):,} more")


def _question(spec: JobSpec, tally: Tally) -> str:
    if spec.command == "block bulk":
        return f"Block {tally.messages:,} numbers?"
    return f"Send {tally.messages:,} {'message' if tally.messages == 1 else 'messages'}?"


def _balance(context: Context) -> Decimal | None:
    """Credits left; None, and a note, where the service does not say. Raises NotReachedError, but in a dry run."""
    try:
        return credits_left(context.client.send(ops.BALANCE, {}))
    except NotReachedError as error:
        if not context.options.dry_run:
            raise
        fault: MsgctlError = error
    except (ServiceError, OutcomeUnknownError) as error:
        fault = error
    context.note(f"the balance cannot be read: {fault.message}")
    return None


def _whole(number: Decimal) -> int | float:
    return int(number) if number == number.to_integral_value() else float(number)
