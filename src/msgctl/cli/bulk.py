"""Make a job from a file of recipients: its summary, the question whether to send it, and its start."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import closing
from decimal import Decimal
from functools import partial
from typing import Any
from urllib.parse import urlsplit

from msgctl import operations as ops
from msgctl import phones, values
from msgctl.cli import job_progress, prompts, requests
from msgctl.cli.bulk_options import Pace, Rules, Source
from msgctl.cli.context import Context
from msgctl.cli.requests import Numbers
from msgctl.errors import Interrupted, MsgctlError, NotReachedError, OutcomeUnknownError, ServiceError, UsageError
from msgctl.history import optouts
from msgctl.http.request import Value
from msgctl.http.response import credits_left
from msgctl.jobs import report
from msgctl.jobs.importer import Importer, Tally
from msgctl.jobs.ledger import Ledger
from msgctl.jobs.reader import PhoneCells, name_of, numbers_in, opened
from msgctl.jobs.schedule import Window, ZoneFinder
from msgctl.jobs.spec import JobSpec
from msgctl.jobs.states import State
from msgctl.jobs.store import Store
from msgctl.jobs.template import Message, renderer
from msgctl.operations import Operation
from msgctl.output.result import Format, OwnResult
from msgctl.storage import files
from msgctl.text import plural, shorten

SUMMARY = (
    *("command", "file", "recipients", "invalid", "duplicate", "excluded", "blank"),
    *("messages", "segments", "credits", "countries", "balance", "first", "most_expensive"),
)
NO_RULES = Rules()


def start(
    context: Context,
    operation: Operation,
    source: Source,
    numbers: Numbers,
    limits: Pace,
    fixed: Mapping[str, Value],
    templates: Mapping[str, str | Sequence[str]],
    check: Callable[[str], str] = values.prose,
    rules: Rules = NO_RULES,
) -> OwnResult:
    """Make a job from a file, show its summary, ask, send it, and return the job as ``job show`` does.

    ``fixed`` are the parameters that all requests have, ``templates`` and ``check`` those of `renderer`. Raises
    UsageError if something is wrong with the file.
    """
    is_sms = operation is ops.SEND_SMS
    spec = JobSpec(
        command=f"{operation.name.split()[0]} bulk",
        operation=operation.name,
        file=source.file,
        profile=context.profile.name,
        base_url=context.profile.base_url,
        fixed={name: value for name, value in fixed.items() if value is not None},
        batch_size=1,
        client=context.profile.client,
    )
    spec = rules.apply(context, limits.apply(spec))
    cells = PhoneCells(numbers.code(context), sms=is_sms, check=not numbers.no_number_check)
    cost = None if is_sms else 0 if operation is ops.BLOCK_PHONE else 1

    def read(importer: Importer) -> None:
        with opened(source.file, context.stdin.buffer, source.phone_column, cells, note=context.note) as found:
            importer.read(found, renderer(found, templates, check, cost))

    return make(context, spec, read, rules, numbers, skip_invalid=source.skip_invalid)


def make(
    context: Context,
    spec: JobSpec,
    read: Callable[[Importer], None],
    rules: Rules,
    numbers: Numbers,
    *,
    skip_invalid: bool = False,
) -> OwnResult:
    """Make a job of the recipients that ``read`` imports, show its summary, ask, and send it."""
    context.check_fields(SUMMARY if context.options.dry_run else report.SUMMARY)
    is_sms = spec.performs is ops.SEND_SMS
    test_to = None if rules.test_to is None else numbers.one(context, rules.test_to, sms=is_sms)
    if test_to and (found := optouts.among([test_to, phones.meant(test_to, numbers.code(context))])):
        fix = f"Choose another number for --test-to, or run: msgctl optout remove {found[0]}"
        raise UsageError(f"{found[0]} has opted out of messages", fix)
    zones = None
    if spec.window is not None:
        zones = ZoneFinder(Window.parse(spec.window, spec.days), context.profile.timezone, context.clock())
    store = Store(files.state("jobs"))
    job = store.new_id(context.clock())
    with store.locked(job):
        store.tidy()
        meant = partial(phones.meant, country=numbers.code(context)) if numbers.no_number_check else None
        importer = Importer(store.path(job), spec, created=context.clock(), zones=zones, meant=meant)
        try:
            if spec.performs is not ops.BLOCK_PHONE:  # everyone can be blocked
                _exclude(context, importer, rules.exclude or (), numbers.code(context))
            read(importer)
            if not rules.again:
                _refuse_repeat(context, store, importer)
            summary = _approve(context, spec, importer.tally, test_to, skip_invalid=skip_invalid)
            if context.options.dry_run:
                return summary
            with store.starting():
                if not rules.again:
                    _refuse_repeat(context, store, importer)  # another job may have begun meanwhile
                importer.finish()
        finally:
            if not importer.is_finished:
                importer.discard()
                store.remove_lock(job)
        with closing(Ledger(store.path(job), clock=context.clock)) as ledger:
            context.note(f"Job {job}. Check it with: msgctl job show {job}")
            if spec.at is not None:
                time = job_progress.local_time(spec.at)
                if not rules.foreground:
                    context.note(
                        f"Scheduled for {time}. `msgctl job run-due` sends it; run that from cron every minute."
                    )
                    return job_progress.result(report.summary(job, ledger, running=False))
                context.note(f"Waiting until {time}. Ctrl-C leaves the job to `msgctl job run-due`.")
                _wait_until(context, job, spec.at)
                job_progress.respect_optouts(context, ledger)
            return job_progress.send(context, job, ledger)


def _exclude(context: Context, importer: Importer, excluded: Iterable[str], country: str | None) -> None:
    """Leave out the numbers that opted out, and those in the ``excluded`` files. Raises UsageError."""
    if files.has_optouts():
        importer.exclude((each.phone for each in optouts.every()), "opted out")
    for file in excluded:
        importer.exclude(numbers_in(file, context.stdin.buffer, country), f"excluded by {name_of(file)}")


def _refuse_repeat(context: Context, store: Store, importer: Importer) -> None:
    """Raise UsageError if another job sends, or has just sent, the same message to most of the same people."""
    repeat = importer.repeat(store, context.clock())
    if repeat is None:
        return
    people = f"{repeat.recipients:,} of {plural(importer.tally.messages, 'recipient')}"
    if repeat.is_finished:
        raise UsageError(
            f"Job {repeat.job} sent this message to {people} in the last 24 hours",
            f"If some were refused: msgctl job resume {repeat.job} --resend-refused. "
            "To send the message again, add --again.",
        )
    raise UsageError(
        f"Job {repeat.job} already sends this message to {people}, and is not finished",
        f"Resume it: msgctl job resume {repeat.job}. To send the message again, add --again.",
    )


def _wait_until(context: Context, job: str, due: float) -> None:
    """Wait here until a job is due. Raises Interrupted at Ctrl-C."""
    try:
        while (rest := due - context.clock()) > 0:
            context.sleep(min(rest, 1.0))  # the clock may be set
    except KeyboardInterrupt:
        raise Interrupted(
            f"Job {job} remains scheduled", "Send it now: msgctl job resume " + job, consequence="nothing was sent"
        ) from None


# --- before it is sent


def _approve(
    context: Context, spec: JobSpec, tally: Tally, test_to: str | None = None, *, skip_invalid: bool = False
) -> OwnResult:
    """Show a job's summary and ask whether to send it. Return the summary, for a dry run.

    The message of the first row is sent to ``test_to`` before the question. Raises UsageError, or Cancelled if the
    answer is not yes.
    """
    options = context.options
    file = "standard input" if spec.file == "-" else shorten(spec.file, 60)
    invalid = _invalid(file, tally, skip_invalid=skip_invalid)
    balance = None if invalid or spec.performs is ops.BLOCK_PHONE else _balance(context)
    document = _summary(spec, tally, balance)
    for state, rows in tally.examples.items():
        for row in rows:
            context.note(f"Line {row.line}: {row.phone + ': ' if row.phone else ''}{row.reason}")
        if (more := tally.counts[state] - len(rows)) > 0:
            context.note(f"… and {more:,} more")
    if tally.saved:
        context.note(f"--gsm7 would save {plural(tally.saved, 'credit')}")
    if not options.dry_run:
        if invalid:
            raise invalid
        is_asked = not options.yes and context.stdin.isatty()
        if is_asked or not (options.quiet or options.format is Format.JSON):
            from msgctl.output import jobs  # Rich

            host = urlsplit(context.profile.base_url).hostname or ""
            context.printer.explain(jobs.plan_parts(document, (context.profile.name, host)))
        _ask(context, spec, tally, test_to)
    if balance is not None and balance < tally.credits and (options.quiet or options.dry_run):
        context.warn(f"about {plural(tally.credits, 'credit')} needed, {balance:,} left")
    columns = [name for name in SUMMARY if document[name] or name not in ("blank", "countries", "most_expensive")]
    return OwnResult(document, columns, view="job summary", failures=[invalid] if invalid else [])


def _ask(context: Context, spec: JobSpec, tally: Tally, test_to: str | None) -> None:
    otherwise = "nothing was sent"
    if test_to and tally.first:
        prompts.require_terminal(context, otherwise)
        _send_test(context, spec, tally.first, test_to)
        otherwise = "only the test message was sent"
    cost = f" for about {plural(tally.credits, 'credit')}" if tally.credits else ""
    is_block = spec.performs is ops.BLOCK_PHONE
    question = f"Block {plural(tally.messages, 'number')}" if is_block else f"Send {plural(tally.messages, 'message')}"
    prompts.confirm(context, f"{question}{cost}?", otherwise)


def _send_test(context: Context, spec: JobSpec, message: Message, phone: str) -> None:
    """Send a message to one phone. Raises what keeps it from being accepted."""
    operation = spec.performs
    to = [phone] if operation.field("phone").several else phone
    result = requests.perform(context, operation, {**spec.fixed, **message.parameters, "phone": to})
    for failure in result.failures:
        failure.hint = "The job was not started."
        raise failure
    context.note(f"Test message sent to {phone}.")


def _invalid(file: str, tally: Tally, *, skip_invalid: bool) -> MsgctlError | None:
    """Return why a file cannot be sent to as it is. Raises UsageError if it has no rows."""
    if not tally.recipients:
        raise UsageError(f"{file} has no recipients, only a header", "Add one line per recipient.")
    invalid = tally.counts[State.INVALID]
    if invalid and not skip_invalid:
        first = tally.examples[State.INVALID][0]
        rows = f"{invalid:,} of {plural(tally.recipients, 'row')} of {file} {'is' if invalid == 1 else 'are'}"
        return UsageError(
            f"{rows} invalid, {'starting with ' * (invalid > 1)}line {first.line}: {first.reason}",
            f"{'Fix it, or skip it' if invalid == 1 else 'Fix them, or skip them'} with --skip-invalid.",
            consequence="nothing was sent",
        )
    if tally.messages:
        return None
    if tally.counts[State.EXCLUDED]:
        return UsageError(f"All recipients in {file} are excluded", consequence="nothing was sent")
    first = tally.examples[State.INVALID][0]
    what = f"{file} has no valid rows: line {first.line}: {first.reason}"
    return UsageError(what, consequence="nothing was sent")


def _summary(spec: JobSpec, tally: Tally, balance: Decimal | None) -> dict[str, Any]:
    """Return what is about to be sent, in numbers; segments if the service charges by them."""
    whole = balance is not None and balance == balance.to_integral_value()
    costly = None
    if tally.most_expensive is not None:
        row, message = tally.most_expensive
        costly = {"line": row.line, "phone": row.phone, "segments": message.segments, "credits": message.cost}
        costly |= message.parameters
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
        "most_expensive": costly,
        **{
            f"{state}_rows": [{"line": row.line, "phone": row.phone, "reason": row.reason} for row in rows]
            for state, rows in tally.examples.items()
        },
    }


def _balance(context: Context) -> Decimal | None:
    """Return the credits left; None, with a note, if the service does not say. Raises NotReachedError."""
    try:
        return credits_left(context.client.send(ops.BALANCE, {}))
    except (NotReachedError, ServiceError, OutcomeUnknownError) as error:
        if isinstance(error, NotReachedError) and not context.options.dry_run:
            raise
        context.note(f"Balance not checked: {error.message}")
        return None
