"""Create a job from a file of recipients: show its summary, ask whether to send it, and start it."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import ExitStack, closing, suppress
from decimal import Decimal
from typing import Any
from urllib.parse import urlsplit

from msgctl import operations as ops
from msgctl import phones, values
from msgctl.cli import foreground, prompts
from msgctl.cli.context import Context
from msgctl.cli.options import Numbers, Pace, Rules, Source, note_of_left_out
from msgctl.cli.send import perform
from msgctl.errors import (
    ConditionError,
    ConfigurationError,
    MsgctlError,
    NotReachedError,
    OutcomeUnknownError,
    RefusedError,
    ServiceError,
    UsageError,
)
from msgctl.history import contacts, once
from msgctl.http.request import Value, build
from msgctl.jobs import report
from msgctl.jobs.formats import FileError
from msgctl.jobs.importer import Importer, Tally
from msgctl.jobs.ledger import Ledger
from msgctl.jobs.model import JobSpec
from msgctl.jobs.reader import PhoneCells, name_of, numbers_in, opened
from msgctl.jobs.repeats import Repeats
from msgctl.jobs.schedule import Window, ZoneFinder, described, time_in
from msgctl.jobs.schema import OPTED_OUT
from msgctl.jobs.states import State
from msgctl.jobs.store import Store
from msgctl.jobs.template import Message, Renderer
from msgctl.operations import Operation
from msgctl.output.result import Format, OwnResult
from msgctl.storage import files
from msgctl.storage.records import RECORD_ERRORS
from msgctl.store import people
from msgctl.text import clean, plural, shorten, some_of, timestamp

PLAN_FIELDS = (
    "command",
    "file",
    "profile",
    "recipients",
    "invalid",
    "duplicate",
    "excluded",
    "opted_out",
    "over_limit",
    "blank",
    "repeats",
    "window",
    "opens",
    "at_most",
    "messages",
    "segments",
    "credits",
    "countries",
    "balance",
    "first",
    "most_expensive",
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
    *,
    gsm7: bool = False,
) -> OwnResult:
    """Create a job from a file, show its summary, ask, send it, and return the job as ``job show`` does.

    ``fixed`` are the parameters that all requests have. ``templates``, ``check`` and ``gsm7`` are arguments of
    `Renderer`. Raises UsageError if something is wrong with the file.
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
    cost = None if is_sms else 1

    def read(importer: Importer) -> None:
        with opened(
            source.file,
            context.stdin.buffer,
            source.phone_column,
            cells,
            skip_hidden=source.skip_hidden,
            note=context.note,
        ) as found:
            renderer = Renderer(found, templates, check, cost, gsm7=gsm7)
            importer.read(found, renderer)
        if renderer.would_save:
            context.note("Some messages would need fewer segments with --gsm7")
        importer.tally.without_country = cells.without_country

    content = json.dumps([operation.name, spec.fixed, templates, gsm7])
    return make(context, spec, read, rules, numbers, skip_invalid=source.skip_invalid, content=content)


def make(
    context: Context,
    spec: JobSpec,
    read: Callable[[Importer], None],
    rules: Rules,
    numbers: Numbers,
    *,
    international: Callable[[str], str] | None = None,
    skip_invalid: bool = False,
    hand_over: Callable[[str, Sequence[int]], None] | None = None,
    content: str = "",
) -> OwnResult:
    """Create a job from the recipients that ``read`` imports, show its summary, ask, and send it.

    ``international`` returns the international form of an unchecked number; by default, ``numbers`` decides how the
    number is read. ``hand_over`` is called with the new job and its lines before the job exists. Its exceptions stop
    the job. ``content`` is everything that the messages have in common, to recognize them with --once.
    """
    context.check_fields(PLAN_FIELDS if context.options.dry_run else report.JOB_FIELDS)
    is_sms = spec.performs is ops.SEND_SMS
    test_to = numbers.all(context, rules.test_to or (), sms=is_sms)
    _refuse_opted_out(context, spec.performs, numbers, test_to)
    zones = None
    if spec.window is not None:
        zones = ZoneFinder(Window.parse(spec.window, spec.days), context.profile.timezone, context.clock())
    once_key = None if context.options.dry_run else rules.once
    store = Store(files.state("jobs"))
    job = store.new_id(context.clock())
    with ExitStack() as held, store.locked(job):
        store.tidy()
        if international is None and numbers.no_number_check:
            international = phones.Reader(numbers.code(context)).international
        importer = Importer(
            store.path(job),
            spec,
            created=context.clock(),
            zones=zones,
            international=international,
            may_exclude_repeats=rules.exclude_repeats,
        )
        try:
            _exclude(context, importer, spec, rules.exclude or (), numbers.code(context))
            read(importer)
            reservation = None
            if once_key is not None:
                account, wanted = context.profile.account, importer.fingerprint(content)
                reservation = held.enter_context(
                    once.reserved(context.records, account, once_key, wanted, now=context.clock())
                )
                if earlier := _earlier_job(context, store, reservation):
                    return _earlier_result(context, store, once_key, earlier, reservation)
                held.callback(_free, importer, reservation)
            _check_repeats(context, store, importer, spec, rules)
            opens = None if zones is None else zones.closed_until(spec.at or context.clock())
            summary = _approve(context, spec, importer.tally, numbers, test_to, opens, skip_invalid=skip_invalid)
            if context.options.dry_run:
                return summary
            with store.starting():
                with contacts.exclusive(context.records):
                    # Another job may have begun meanwhile.
                    _check_repeats(context, store, importer, spec, rules, has_warned=True)
                    if invalid := _invalid(spec, importer.tally, skip_invalid=skip_invalid):
                        raise invalid
                    if hand_over:
                        hand_over(job, importer.lines())
                    _plan(context, importer, job, spec, opens)
                _finish(context, importer, job, reservation)
            if not context.records.is_shared:  # other runs here wait for the job's own lock instead
                held.close()
        finally:
            if not importer.is_finished:
                importer.discard()
                store.remove_lock(job)
        return _begin(context, store, job, spec)


def _plan(context: Context, importer: Importer, job: str, spec: JobSpec, opens: float | None) -> None:
    """Tell other machines who will get the job's messages."""
    account, now = context.profile.account, context.clock()
    contacts.plan(context.records, account, job, importer.messages(), at=opens or spec.at or now, now=now)


def _begin(context: Context, store: Store, job: str, spec: JobSpec) -> OwnResult:
    """Send a new job, or report when it will be sent."""
    with closing(Ledger(store.path(job), clock=context.clock)) as ledger:
        named = foreground.reference(store, job, spec.name)
        context.note(f"Job {job}. Check it with: msgctl job show {named}")
        if spec.at is None:
            return foreground.send(context, job, ledger)
        at = _scheduled(context, spec)
        context.note(f"Scheduled for {at}. To send it, run `msgctl job run-due` from cron every minute.")
        document = report.summary(job, ledger, running=False)
        with once.running(context.records, context.profile.account, job) as finish:
            finish(once.StoredResult(0), json.dumps(document))
        return foreground.result(document)


# --- once


def _earlier_job(context: Context, store: Store, reservation: once.Reservation) -> str | None:
    """Return the job that was created under the key; None if nothing was sent under the key."""
    earlier = reservation.earlier
    if earlier is None or earlier.body is None:  # a process that was killed before it created the job
        return None
    job, is_ours = earlier.body.decode(), reservation.owner == context.records.owner
    if is_ours and earlier.what == once.BEING_CREATED and not store.path(job).exists():
        contacts.delete_plan(context.records, job)
        return None
    return job


def _finish(context: Context, importer: Importer, job: str, reservation: once.Reservation | None) -> None:
    """Create the job, and store it with its key if it has one."""
    try:
        if reservation:
            reservation.settle(once.StoredResult(0, body=job.encode(), what=once.BEING_CREATED))
        importer.finish()
    except BaseException:
        with suppress(*RECORD_ERRORS):
            contacts.delete_plan(context.records, job)
        raise
    if reservation:
        reservation.settle(once.StoredResult(0, body=job.encode()))


def _free(importer: Importer, reservation: once.Reservation) -> None:
    """Let the key be used again if no job was created."""
    if not importer.is_finished:
        reservation.release()


def _earlier_result(context: Context, store: Store, key: str, job: str, reservation: once.Reservation) -> OwnResult:
    """Return the job that was created under a key, with its result. Raises OutcomeUnknownError if it was deleted."""
    is_here = store.path(job).exists()
    where = f" on {clean(reservation.owner)}" if reservation.owner and not is_here else ""
    context.note(f"This time nothing was sent. --once {values.quote(key)} created job {job}{where} before.")
    if where:
        return _result_elsewhere(context, job, where, reservation)
    if not is_here:
        raise OutcomeUnknownError(
            f"Job {job}, which --once {values.quote(key)} created, was deleted: its result is not known",
            "To send to these recipients again, use another key.",
        )
    with closing(Ledger(store.path(job), clock=context.clock, read_only=True)) as ledger:
        document = report.summary(job, ledger, running=store.is_running(job))
        failure = foreground.ended(job, ledger)
    if document["state"] in (report.RUNNING, report.WAITING):
        hint = f"Check it: msgctl job show {job}"
        failure = ConditionError(f"Job {job} is in progress", hint, reason="not_accepted")
    elif document["state"] == report.SCHEDULED:
        context.note(f"`msgctl job run-due` sends it at its time; to send it now: msgctl job resume {job}")
    elif document["state"] == report.PAUSED and failure is None:
        context.note(f"It is paused. Resume it: msgctl job resume {job}")
    return foreground.result(document, failure, reference=foreground.reference(store, job, document["name"]))


def _result_elsewhere(context: Context, job: str, where: str, reservation: once.Reservation) -> OwnResult:
    """Return the summary of a job on another machine, ``where``. Raises ConditionError while it is running there."""
    if not reservation.is_held:
        hint = f"Check it there: msgctl job show {job}"
        raise ConditionError(f"Job {job}{where} is running", hint, reason="running_elsewhere")
    if reservation.summary is None or reservation.earlier is None:
        raise OutcomeUnknownError(
            f"Job {job}{where} stopped before it was complete",
            f"Resume it there: msgctl job resume {job}\n"
            "If its ledger is lost, only the service knows who got the message. To send to the others, use another key "
            "and --exclude.",
        )
    document, ended = json.loads(reservation.summary), reservation.earlier
    failure: MsgctlError | None = None
    next_step = f"Run this{where}:\n{ended.hint}" if ended.hint else None
    if ended.exit_code == 1:
        failure = RefusedError(ended.what, next_step)
    elif ended.exit_code:
        failure = ConditionError(ended.what, next_step, reason="not_accepted")
    if document["state"] in (report.SCHEDULED, report.PAUSED):
        context.note(f"Job {job}{where} is {document['state']}. It can be sent and resumed only there.")
    return foreground.result(document, failure)


# --- recipients


def _exclude(context: Context, importer: Importer, spec: JobSpec, excluded: Iterable[str], country: str | None) -> None:
    """Leave out numbers that opted out or have reached the limit, and the ``excluded`` files. Raises UsageError."""
    limit = foreground.limit_of(context, spec)
    importer.exclude(foreground.opted_out(context, spec.performs.channel), OPTED_OUT)
    if limit is not None:
        window = None if spec.window is None else Window.parse(spec.window, spec.days)
        over = contacts.reached(context.records, context.profile.account, limit, spec.at or context.clock(), window)
        importer.exclude(over, spec.over_limit)
    for file in excluded:
        importer.exclude(numbers_in(file, context.stdin.buffer, country), f"excluded by {name_of(file)}")


def _check_repeats(
    context: Context, store: Store, importer: Importer, spec: JobSpec, rules: Rules, *, has_warned: bool = False
) -> None:
    """Report how many recipients got the message in the last 24 hours, or will get it.

    With --exclude-repeats, they are left out. Raises UsageError if most recipients are repeats, except with --again.
    ``has_warned``: an earlier check has printed the warning about files that cannot be read.
    """
    if spec.resend_of is not None:
        return
    known, number, now = importer.tally.repeats, importer.tally.messages, context.clock()
    try:
        repeats = importer.repeats(store, contacts.recent(context.records, context.profile.account, now), now)
    except ConfigurationError as error:
        if not rules.again:
            raise
        if not has_warned:
            context.warn(f"{error.message}.")
        return
    if repeats.people and rules.exclude_repeats:
        importer.exclude_repeats()
        context.note(f"Left out: {_repeated(repeats, number)}")
    elif repeats.people * 2 > number and not rules.again:
        raise UsageError(_repeated(repeats, number), _repeat_hint(repeats))
    elif repeats.people > known:
        tell = context.note if rules.again else context.warn
        tell(f"{_repeated(repeats, number)}. To leave them out, use --exclude-repeats.")


def _repeated(repeats: Repeats, recipients: int) -> str:
    """Return a sentence about the jobs that have sent or will send the message, and the number of repeats."""
    unfinished = [job for job, is_finished in repeats.jobs.items() if not is_finished]
    every = [*repeats.jobs, *repeats.elsewhere]
    jobs = f"job{'s' * (len(every) > 1)} {some_of(every)}" if every else ""
    who = " and ".join(filter(None, (jobs, "single sends" * repeats.has_singles)))
    who, to = who[0].upper() + who[1:], f"this message to {repeats.people:,} of {plural(recipients, 'recipient')}"
    if repeats.elsewhere:  # only its ledger shows the progress of a job on another machine
        return f"{who} sent or will send {to}"
    if not unfinished:
        return f"{who} sent {to} in the last 24 hours"
    if who.removeprefix("Job ") == unfinished[0]:
        return f"{who} already sends {to}, and is not finished"
    return f"{who} already send {to}; not finished: {some_of(unfinished)}"


def _repeat_hint(repeats: Repeats) -> str:
    unfinished = [job for job, is_finished in repeats.jobs.items() if not is_finished]
    hints = [f"Resume it: msgctl job resume {job}." for job in unfinished[:1]]
    if repeats.jobs and not unfinished:
        hints = [f"If some were refused: msgctl job resume {next(iter(repeats.jobs))} --resend-refused."]
    return " ".join(
        (*hints, "To leave these people out, add --exclude-repeats. To send the message again, add --again.")
    )


# --- before the job is sent


def _approve(
    context: Context,
    spec: JobSpec,
    tally: Tally,
    numbers: Numbers,
    test_to: Sequence[str],
    opens: float | None,
    *,
    skip_invalid: bool,
) -> OwnResult:
    """Show a job's summary and ask whether to send it. Return the summary, for a dry run.

    ``opens`` is the time until which the window is closed when the job would begin.
    The message of the first row is sent to ``test_to`` before the question. Raises UsageError, or Cancelled if the
    answer is not yes.
    """
    options = context.options
    invalid = _invalid(spec, tally, skip_invalid=skip_invalid)
    balance = None if invalid else _balance(context)
    document = _summary(spec, tally, balance, opens)
    _note_schedule(context, spec, opens)
    no_country = _no_country(tally)
    if no_country and not invalid:
        context.note(f"{no_country}, and no country is known: add --country-code CC")
    for state, rows in tally.examples.items():
        if no_country and state is State.INVALID:  # the reasons of single rows would mislead
            continue
        for row in rows:
            context.note(f"Line {row.line}: {row.phone + ': ' if row.phone else ''}{row.reason}")
        if (more := tally.counts[state] - len(rows)) > 0:
            context.note(f"… and {more:,} more")
    if tally.left_out:
        context.note(note_of_left_out([*tally.left_out]))
    if not options.dry_run:
        if invalid:
            raise invalid
        is_asked = not options.yes and context.stdin.isatty()
        if is_asked or not (options.quiet or options.format is Format.JSON):
            from msgctl.output import jobs  # Rich

            host = urlsplit(context.profile.base_url).hostname or ""
            context.printer.explain(jobs.plan_parts(document, host, _scheduled(context, spec)))
        _ask(context, spec, tally, numbers, test_to)
    if balance is not None and balance < tally.credits and (options.quiet or options.dry_run):
        context.warn(f"about {plural(tally.credits, 'credit')} needed, {balance:,} left")
    optional = (
        *("opted_out", "over_limit", "blank", "repeats", "window", "opens", "at_most", "countries", "most_expensive"),
    )
    columns = [name for name in PLAN_FIELDS if document.get(name) or name not in optional]
    return OwnResult(document, columns, view="job summary", failures=[invalid] if invalid else [])


def _ask(context: Context, spec: JobSpec, tally: Tally, numbers: Numbers, test_to: Sequence[str]) -> None:
    otherwise = "nothing was sent"
    if test_to and tally.first:
        prompts.require_terminal(context, otherwise)
        _refuse_opted_out(context, spec.performs, numbers, test_to)  # reading the file can take a long time
        _send_test(context, spec, tally.first, numbers, test_to)
        otherwise = "only the test message was sent" if len(test_to) == 1 else "only the test messages were sent"
    cost = f" for about {plural(tally.credits, 'credit')}" if tally.credits else ""
    question = f"Send {plural(tally.messages, 'message')}"
    if at := _scheduled(context, spec):
        question = f"Schedule {plural(tally.messages, 'message')} for {at}{',' * bool(cost)}"
    prompts.confirm(context, f"{question}{cost}?", otherwise)


def _note_schedule(context: Context, spec: JobSpec, opens: float | None) -> None:
    """Report the time of a scheduled job in a dry run, and whether its window is closed then."""
    at = _scheduled(context, spec)
    if at and context.options.dry_run:
        context.note(f"The job would be scheduled for {at}.")
    if at and opens is not None:
        context.warn(
            f"The window is closed at that time ({at}): the job waits until {time_in(context.profile.timezone, opens)}"
        )


def _scheduled(context: Context, spec: JobSpec) -> str:
    """Return the time of a scheduled job; an empty string for a job that begins now."""
    return "" if spec.at is None else time_in(context.profile.timezone, spec.at)


def _refuse_opted_out(context: Context, operation: Operation, numbers: Numbers, to: Sequence[str]) -> None:
    """Raise UsageError if one of the phones of --test-to has opted out."""
    read = phones.Reader(numbers.code(context)).international
    channel = operation.channel
    if to and (found := sorted(people.opted_out(context.store, [*to, *map(read, to)], channel))):
        fix = f"Choose another number for --test-to, or run: msgctl optout remove {found[0]} --channel {channel}"
        raise UsageError(f"{found[0]} has opted out of {ops.CHANNELS[channel]}", fix)


def _send_test(context: Context, spec: JobSpec, message: Message, numbers: Numbers, to: Sequence[str]) -> None:
    """Send a message to some phones. Raises the error if it is not accepted."""
    operation, parameters = spec.performs, message.parameters
    international = phones.Reader(numbers.code(context)).international
    for phone in [to] if operation.field("phone").several else to:
        request = build(operation, {**spec.fixed, **parameters, "phone": phone})
        people = [each and international(each) for each in request.phones]
        result = perform(context, request._replace(people=people), may_repeat=True)
        for failure in result.failures:
            raise failure.replaced(hint="The job was not started.")
    context.note(f"Test message sent to {', '.join(to)}.")


def _shown(file: str) -> str:
    return "standard input" if file == "-" else shorten(file, 60)


def _invalid(spec: JobSpec, tally: Tally, *, skip_invalid: bool) -> MsgctlError | None:
    """Return the error for a file with invalid rows or without valid ones. Raises UsageError if it has no rows."""
    file = _shown(spec.file)
    if not tally.recipients:
        raise FileError(f"{file} has no recipients, only a header", "Add one line per recipient.")
    invalid = tally.counts[State.INVALID]
    is_refused = (invalid and not skip_invalid) or not tally.messages
    if is_refused and (no_country := _no_country(tally)):
        return FileError(
            f"{no_country} in {file}, and no country is known",
            "Add --country-code CC, for example CO. MSGCTL_COUNTRY_CODE and country_code in the profile do the same.",
            consequence="nothing was sent",
        )
    if invalid and not skip_invalid:
        first = tally.examples[State.INVALID][0]
        rows = f"{invalid:,} of {plural(tally.recipients, 'row')} of {file} {'is' if invalid == 1 else 'are'}"
        return FileError(
            f"{rows} invalid, {'starting with ' * (invalid > 1)}line {first.line}: {first.reason}",
            f"{'Fix it, or skip it' if invalid == 1 else 'Fix them, or skip them'} with --skip-invalid.",
            consequence="nothing was sent",
        )
    if tally.messages:
        return None
    if tally.counts[State.EXCLUDED]:
        are_out = "are excluded"
        if tally.reasons[OPTED_OUT] == tally.recipients:
            are_out = "have opted out"
        elif spec.at_most is not None and tally.reasons[spec.over_limit] == tally.recipients:
            are_out = f"have reached the limit of {spec.at_most}"
        return FileError(f"All recipients in {file} {are_out}", consequence="nothing was sent")
    first = tally.examples[State.INVALID][0]
    what = f"{file} has no valid rows: line {first.line}: {first.reason}"
    return FileError(what, consequence="nothing was sent")


def _no_country(tally: Tally) -> str | None:
    """Return a phrase about rows that need a country, if they are most of the file."""
    if tally.without_country * 2 <= tally.recipients:
        return None
    return f"{tally.without_country:,} of {plural(tally.recipients, 'row')} have national numbers"


def _summary(spec: JobSpec, tally: Tally, balance: Decimal | None, opens: float | None) -> dict[str, Any]:
    """Return the numbers of a job before it is sent, with segments if the service charges by them."""
    whole = balance is not None and balance == balance.to_integral_value()
    opted_out = tally.reasons[OPTED_OUT]
    over_limit = 0 if spec.at_most is None else tally.reasons[spec.over_limit]
    costly = None
    if tally.most_expensive is not None:
        row, message = tally.most_expensive
        costly = {"line": row.line, "phone": row.phone, "segments": message.segments, "credits": message.cost}
        costly |= message.parameters
    return {
        "command": spec.command,
        "file": spec.file,
        "profile": spec.profile,
        "recipients": tally.recipients,
        **{str(state): tally.counts[state] for state in tally.examples},
        **({"opted_out": opted_out} if opted_out else {}),
        **({"over_limit": over_limit} if over_limit else {}),
        "blank": tally.blank,
        **({"repeats": tally.repeats} if tally.repeats else {}),
        **({"window": described(spec.window, spec.days)} if spec.window is not None else {}),
        **({"opens": timestamp(opens)} if opens is not None else {}),
        **({"at_most": spec.at_most} if spec.at_most is not None else {}),
        "messages": tally.messages,
        "segments": tally.segments if spec.performs is ops.SEND_SMS else None,
        "credits": tally.credits,
        "balance": None if balance is None else int(balance) if whole else float(balance),
        "first": tally.first.parameters if tally.first else None,
        "countries": dict(tally.countries.most_common()) if tally.credits else {},
        "most_expensive": costly,
        **{
            f"{state}_rows": [{"line": row.line, "phone": row.phone, "reason": row.reason} for row in rows]
            for state, rows in tally.examples.items()
        },
    }


def _balance(context: Context) -> Decimal | None:
    """Return the credits left; None, with a note, if they are unknown. Raises NotReachedError."""
    try:
        return Decimal(context.client.send(build(ops.BALANCE, {})).document["status"])
    except (NotReachedError, ServiceError, OutcomeUnknownError) as error:
        if isinstance(error, NotReachedError) and not context.options.dry_run:
            raise error.replaced(consequence="nothing was sent, and no job was created") from None
        context.note(f"Balance not checked: {error.message}")
        return None
