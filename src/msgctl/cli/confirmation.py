"""A job before it is sent: its summary, and the question whether to send it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

from msgctl import operations as ops
from msgctl.cli import prompts, requests
from msgctl.cli.context import Context
from msgctl.errors import MsgctlError, NotReachedError, OutcomeUnknownError, ServiceError, UsageError
from msgctl.http.response import credits_left
from msgctl.output.result import Format, OwnResult
from msgctl.text import plural, shorten

if TYPE_CHECKING:
    from decimal import Decimal

    from msgctl.jobs.importer import Tally
    from msgctl.jobs.spec import JobSpec
    from msgctl.jobs.template import Message

SUMMARY = (
    *("command", "file", "recipients", "invalid", "duplicate", "excluded", "blank"),
    *("messages", "segments", "credits", "balance", "first"),
)


def approve(
    context: Context, spec: JobSpec, tally: Tally, test_to: str | None = None, *, skip_invalid: bool = False
) -> OwnResult:
    """Show a job's summary and ask whether to send it. Return the summary, for a dry run.

    The message of the first row is sent to ``test_to`` before the question. Raises UsageError, or Cancelled if the
    answer is not yes.
    """
    options = context.options
    invalid = _invalid(spec.file, tally, skip_invalid=skip_invalid, is_quiet=options.quiet)
    balance = None if invalid or spec.performs is ops.BLOCK_PHONE else _balance(context)
    document = _summary(spec, tally, balance)
    _list_rows(context, tally)
    if tally.saved:
        context.note(f"--gsm7 would save {plural(tally.saved, 'credit')}")
    if not options.dry_run:
        if invalid:
            raise invalid
        if not (options.yes and (options.quiet or options.format is Format.JSON)):
            from msgctl.output import jobs

            host = urlsplit(context.profile.base_url).hostname or ""
            context.printer.explain(jobs.plan_parts(document, (context.profile.name, host)))
        _ask(context, spec, tally, test_to)
    if balance is not None and balance < tally.credits and (options.quiet or options.dry_run):
        context.warn(f"about {plural(tally.credits, 'credit')} needed, {balance:,} left")
    columns = [name for name in SUMMARY if name != "blank" or tally.blank]
    return OwnResult(document, columns, view="job summary", failures=[invalid] if invalid else [])


def _ask(context: Context, spec: JobSpec, tally: Tally, test_to: str | None) -> None:
    otherwise = "nothing was sent"
    if test_to and tally.first:
        prompts.require_terminal(context, otherwise)
        _send_test(context, spec, tally.first, test_to)
        otherwise = "only the test message was sent"
    cost = f" for about {plural(tally.credits, 'credit')}" if tally.credits else ""
    is_block = spec.performs is ops.BLOCK_PHONE
    question = f"Block {plural(tally.messages, 'number')}?" if is_block else f"Send {plural(tally.messages, 'message')}"
    prompts.confirm(context, question if is_block else f"{question}{cost}?", otherwise)


def _send_test(context: Context, spec: JobSpec, message: Message, phone: str) -> None:
    """Send a message to one phone. Raises what keeps it from being accepted."""
    operation = spec.performs
    to = [phone] if operation.field("phone").several else phone
    result = requests.perform(context, operation, {**spec.fixed, **message.parameters, "phone": to})
    for failure in result.failures:
        failure.hint = "The job was not started."
        raise failure
    context.note(f"Test message sent to {phone}.")


def _invalid(file: str, tally: Tally, *, skip_invalid: bool, is_quiet: bool) -> MsgctlError | None:
    """Return why a file cannot be sent to as it is. Raises UsageError if it has no rows."""
    from msgctl.jobs.states import State

    file = shorten(file, 60)
    if not tally.recipients:
        raise UsageError(f"{file} has no recipients, only a header", "Add one line per recipient.")
    invalid = tally.counts[State.INVALID]
    if invalid and not skip_invalid:
        line, _, reason = tally.examples[State.INVALID][0]
        rows = f"{invalid:,} of {plural(tally.recipients, 'row')} of {file} {'is' if invalid == 1 else 'are'}"
        where = " To list them: --dry-run --json." if is_quiet else ""
        return UsageError(
            f"{rows} invalid, starting with line {line}: {reason}",
            f"{'Fix it, or skip it' if invalid == 1 else 'Fix them, or skip them'} with --skip-invalid.{where}",
            consequence="nothing was sent",
        )
    if tally.messages:
        return None
    what = f"All recipients in {file} are excluded" if tally.counts[State.EXCLUDED] else f"{file} has no valid rows"
    return UsageError(what, consequence="nothing was sent")


def _summary(spec: JobSpec, tally: Tally, balance: Decimal | None) -> dict[str, Any]:
    """Return what is about to be sent, in numbers; segments if the service charges by them."""
    whole = balance is not None and balance == balance.to_integral_value()
    return {
        "command": spec.command,
        "file": spec.file,
        "recipients": tally.recipients,
        **{str(state): tally.counts[state] for state in tally.examples},
        "blank": tally.blank,
        "messages": tally.messages,
        "segments": tally.segments if spec.performs is ops.SEND_SMS else None,
        "credits": tally.credits,
        "balance": None if balance is None else int(balance) if whole else float(balance),
        "first": dict(tally.first.parameters) if tally.first else None,
        "countries": dict(tally.countries.most_common()) if tally.credits else {},
        "most_expensive": _most_expensive(tally),
        **{f"{state}_rows": [row._asdict() for row in rows] for state, rows in tally.examples.items()},
    }


def _most_expensive(tally: Tally) -> dict[str, Any] | None:
    if tally.most_expensive is None:
        return None
    row, message = tally.most_expensive
    about = {"line": row.line, "phone": row.phone, "segments": message.segments, "credits": message.cost}
    return {**about, **message.parameters}


def _list_rows(context: Context, tally: Tally) -> None:
    for state, rows in tally.examples.items():
        for row in rows:
            context.note(f"Line {row.line}: {row.phone + ': ' if row.phone else ''}{row.reason}")
        if (more := tally.counts[state] - len(rows)) > 0:
            context.note(f"… and {more:,} more")


def _balance(context: Context) -> Decimal | None:
    """Return the credits left; None, with a note, if the service does not say. Raises NotReachedError."""
    try:
        return credits_left(context.client.send(ops.BALANCE, {}))
    except (NotReachedError, ServiceError, OutcomeUnknownError) as error:
        if isinstance(error, NotReachedError) and not context.options.dry_run:
            raise
        context.note(f"Balance not checked: {error.message}")
        return None
