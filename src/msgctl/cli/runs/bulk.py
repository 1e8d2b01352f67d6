"""Create a job from a file of recipients: show its summary, ask whether to send it, and start it."""

from __future__ import annotations

import json
import shlex
from collections import deque
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from decimal import Decimal
from urllib.parse import urlsplit

from msgctl import operations as ops
from msgctl import values
from msgctl.cli.options.bulk import JobOptions, JobRules, Source
from msgctl.cli.options.message import note_of_left_out
from msgctl.cli.options.send import Numbers
from msgctl.cli.runs import running
from msgctl.cli.runs.single import dry_run, perform
from msgctl.cli.shell import prompts
from msgctl.cli.shell.context import Context
from msgctl.errors import ConditionError, Hint, NotReachedError, OutcomeUnknownError, ServiceError, UsageError
from msgctl.http.request import Value, build
from msgctl.jobs.importer import Importer
from msgctl.jobs.limits import canary_left, limits_of
from msgctl.jobs.plan import PLAN_FIELDS, ROW_COLUMNS, Plan, planned_rows
from msgctl.jobs.report import JOB_FIELDS, with_columns_of_file
from msgctl.jobs.schedule import machine_zone, parse_at
from msgctl.jobs.settings import DEFAULTS, OPTIONS, Settings
from msgctl.jobs.tally import Tally
from msgctl.lists.faults import MAX_LISTED, Faults, rows_left_out
from msgctl.lists.formats import FileError
from msgctl.lists.header import Reading, find_column
from msgctl.lists.reader import name_of, opened
from msgctl.lists.rows import Recipient
from msgctl.lists.table import Recipients
from msgctl.lists.template import Renderer
from msgctl.operations import Operation
from msgctl.output.result import Format, Layout, OwnResult, Result, StoredRows
from msgctl.store import jobs, people, recipients, removal
from msgctl.store.jobs import Job
from msgctl.store.lifecycle import replayed_ending
from msgctl.store.schema import ENDED
from msgctl.text import plural, shorten


@dataclass
class Bulk:
    """A run of a bulk command. ``fixed`` are the parameters that all requests have.

    ``templates``, ``check``, ``gsm7`` and ``max_segments`` are arguments of `Renderer`. Raises UsageError.
    """

    context: Context
    operation: Operation
    source: Source
    numbers: Numbers
    options: JobOptions
    rules: JobRules
    fixed: Mapping[str, Value]
    templates: Mapping[str, str | Sequence[str]]
    check: Callable[[str], str] = values.prose
    gsm7: bool = False
    max_segments: int | None = None

    def __post_init__(self) -> None:
        profile = self.context.profile
        self._settings = Settings(
            operation=self.operation.name,
            file=self.source.file,
            profile=profile.name,
            base_url=profile.base_url,
            client=profile.client,
            fixed={name: value for name, value in self.fixed.items() if value is not None},
            timezone=profile.timezone,
            **self.options.values(),
        )
        self._begins, self._due = self._times()
        self._exclude_notes: list[str] = []  # notes that are only true for a new job
        self._gsm7_saves = False
        self._cells = self.numbers.cells(self.context, sms=self.operation.channel == "sms")

    def run(self) -> Result:
        """Create the job, show its summary, ask for confirmation, send it, and return the job as ``job show`` does."""
        context, settings, rules = self.context, self._settings, self.rules
        if rules.save is not None and (rules.test_to is not None or not context.options.dry_run):
            raise UsageError(
                "--save needs --dry-run, and cannot be combined with --test-to",
                Hint("To save the result of a job: ", "job report JOB --save FILE"),
            )
        self.source.check_save(rules.save)
        if not self._lists_rows:
            columns = PLAN_FIELDS if context.options.dry_run else JOB_FIELDS
            context.check_fields(columns)
        if rules.test_to is not None:
            self._check_time()
            return self._send_test(rules.test_to)
        store, account = context.store, context.profile.account
        removal.tidy(store)
        number = jobs.create(store, account, settings.profile, settings.command, settings.dump())
        with ExitStack() as unpublished:
            unpublished.callback(removal.discard, store, number)
            importer, faults = self._import(number)
            job = None
            if rules.name is not None and not context.options.dry_run:
                job = self._named(rules.name, importer.digest)
            if job is None:
                for note in self._exclude_notes:
                    context.note(note)
                self._check_time()
                if (dry_result := self._approve(number, importer, faults)) is not None:
                    if self._lists_rows:  # they are read when they are printed
                        context.stack.enter_context(unpublished.pop_all())
                    return dry_result
                job = self._publish(number, importer)
                if job.number == number:
                    unpublished.pop_all()
                    return self._begin(job)
            self._check_exclude(number, job)
        return self._earlier(job)

    def _named(self, name: str, digest: bytes) -> Job | None:
        """Return the earlier job with a name. Raises UsageError if it is another job."""
        context = self.context
        store, account = context.store, context.profile.account
        try:
            return jobs.named(store, account, name, digest)
        except UsageError as error:
            with suppress(ConditionError):  # it was removed
                job = jobs.named(store, account, name)
                if job is not None and job.shown_state not in ENDED:
                    raise error.replaced(hint=Hint.joined(self._still_sends(job), error.hint)) from None
            raise

    def _still_sends(self, job: Job) -> str:
        """Return the hint about an earlier job that has not ended."""
        state, verb = job.shown_state, "will"
        if state == "scheduled":
            state = f"scheduled for {self.context.time_in_words((job.due or 0) / 1000)}"
        elif state == "paused":
            verb = "can"
        return Hint(
            f'The job "{job.reference}" is {state}, and {verb} still send the other message.\n'
            "To prevent this, cancel it first: ",
            f"job cancel {job.typed}",
        )

    @property
    def _lists_rows(self) -> bool:
        """Whether a dry run lists every row instead of the summary."""
        formats = (Format.CSV, Format.TSV, Format.JSONL)
        options = self.context.options
        return options.dry_run and (self.rules.save is not None or options.format in formats)

    def _publish(self, number: int, importer: Importer) -> Job:
        """Make the job visible, and return it, or the earlier job with its name."""
        state, due = "active", None
        if self._due is not None:
            state, due = "scheduled", int(self._due * 1000)
        context = self.context
        zone = self._settings.timezone  # stored, because the job may be sent by another machine, or by cron
        if zone is None:
            zone = machine_zone(context.environ.get("TZ"), datetime.fromtimestamp(context.store.clock(), UTC))
        try:
            job = jobs.publish(
                context.store,
                number,
                state=state,
                digest=importer.digest,
                name=self.rules.name,
                due=due,
                settings=replace(self._settings, timezone=zone).dump(),
            )
            context.run.job = job.id
        except KeyboardInterrupt:
            job = jobs.get(context.store, number)
            if job.state != "importing":
                context.run.job = job.id  # the error mentions it
            raise
        return job

    # --- the file

    def _times(self) -> tuple[float | None, float | None]:
        """Return --at, and when the job will begin, in seconds since 1970; None for now. Raises UsageError."""
        settings = self._settings
        if settings.days is not None and settings.window is None:
            raise UsageError("--days needs --window", "For example: --window 08:00-19:00 --days mon-sat")
        if settings.at is None and settings.window is None:
            return None, None
        clock, begins = self.context.store.clock, None
        now = clock()
        if settings.at is not None:
            begins = parse_at(settings.at, settings.zone, datetime.fromtimestamp(now, UTC)).timestamp()
        opens = settings.hours(clock).closed_until(begins or now)
        return begins, begins if opens is None else opens

    def _check_time(self) -> None:
        """Raise UsageError if --at is in the past. Not called if an earlier run of this command created the job."""
        now = self.context.store.clock()
        if self._begins is None or self._begins > now:
            return
        profile = self.context.profile
        hint = "Leave out --at to send now."
        if self._settings.zone is None and profile.by and not profile.is_sandbox:
            hint += f"\nFor times in another zone: msgctl profile set {shlex.quote(profile.name)} --timezone ZONE"
        raise UsageError(f"--at {self._local(self._begins)} is in the past (it is {self._local(now)})", hint)

    def _local(self, seconds: float) -> str:
        """Return a time in seconds since 1970 in the job's time zone: ``2026-12-01 09:00 America/Bogota``."""
        local = datetime.fromtimestamp(seconds, UTC).astimezone(values.zone_of(self._settings.zone))
        return f"{local:%Y-%m-%d %H:%M} {self._settings.zone or local.tzname()}"

    @contextmanager
    def _opened(self) -> Iterator[tuple[Recipients, Renderer]]:
        is_optional = bool(self.rules.exclude)  # --phone-column may be a column of a file of --exclude
        with self.source.opened(self.context, is_optional=is_optional, phones=self._cells) as recipients:
            try:
                renderer = Renderer(
                    recipients, self.templates, self.check, gsm7=self.gsm7, max_segments=self.max_segments
                )
            except UsageError:
                deque(recipients.rows, maxlen=0)  # an error about the whole file, such as its sheet, comes first
                raise
            yield recipients, renderer

    def _import(self, number: int) -> tuple[Importer, Faults]:
        """Write the rows of the file to an invisible job, and leave out the numbers of --exclude."""
        context, settings = self.context, self._settings
        fixed = {name: value for name, value in settings.fixed.items() if name != "country-code"}
        content = json.dumps([settings.operation, fixed, self.templates, self.gsm7])
        importer = Importer(context.store, number, settings, content)
        with self._opened() as (recipients, renderer):
            columns = importer.read(recipients, renderer)
        self._settings = replace(
            settings,
            columns=columns,
            phone_column=recipients.source.column,
            phones=str(recipients.source),
            blank=recipients.faults.blank,
        )
        for placeholder, name in renderer.not_filled.items():
            context.warn(
                f"{shorten(placeholder, 40)} in the message is not a placeholder: everybody would get it as it is. "
                f"For the value in the row, write {{{shorten(name, 40)}}}."
            )
        for word in dict.fromkeys(map(shorten, renderer.in_braces)):
            context.warn(
                f"{{{{{word}}}}} in the message is not a placeholder: everybody would get {{{word}}}. "
                "For the value in the row, write the name of a column in single braces."
            )
        self._gsm7_saves = renderer.would_save
        if renderer.would_save:
            context.note("Some messages would need fewer segments with --gsm7")
        files = [recipients.columns, *(self._exclude(number, file) for file in self.rules.exclude or ())]
        chosen = self.source.phone_column
        if chosen is not None and all(find_column(chosen, names) is None for names in files):
            raise FileError(f"No file has a column {values.quote(chosen)}", "Check --phone-column.")
        return importer, replace(recipients.faults, file=self._file)

    def _exclude(self, number: int, file: str) -> Sequence[str]:
        """Leave out the people in a file, and return its columns. Raises UsageError for its faults."""
        context, column = self.context, self.source.phone_column
        reading = Reading(phone_column=column, is_optional=True, leaves_out=True, phones=self.numbers.cells(context))
        with opened(file, context.stdin.buffer, reading, note=context.note) as listed:
            numbers = (row.phone for row in listed.counted() if isinstance(row, Recipient))
            recipients.exclude(context.store, number, numbers, f"excluded by {name_of(file)}")
        faults = listed.faults
        if faults.invalid:
            listing = f"optout import {shlex.quote(file)} --dry-run -o csv"
            if self.numbers.country_code is not None:
                listing += f" --country-code {self.numbers.country_code}"
            if column is not None and find_column(column, listed.columns) is not None:
                listing += f" --phone-column {shlex.quote(column)}"
            raise faults.error(
                "Fix the file: a person without a number there would get the message.",
                Hint("To list all invalid rows: ", listing),
            )
        self._exclude_notes.append(f"Excluded by {name_of(file)}: {listed.source}")
        if faults.blank:
            self._exclude_notes.append(rows_left_out(faults.blank, "blank", name_of(file)))
        return listed.columns

    def _check_exclude(self, number: int, earlier: Job) -> None:
        """Raise UsageError if the earlier job with this name will send to people whom --exclude leaves out."""
        if not self.rules.exclude or earlier.is_running or earlier.state in ENDED:
            return
        store = self.context.store
        pending = recipients.excluded_later(store, number, earlier.number)
        opted_out = people.opted_out(store, pending, self.operation.channel)
        if number_left := len({*pending} - opted_out):
            raise UsageError(
                f'--exclude cannot change the job "{earlier.reference}": it would send to '
                f"{plural(number_left, 'person', 'people')} in these files",
                Hint(
                    *("Cancel it: ", f"job cancel {earlier.typed}"),
                    ". Then save its pending recipients, and send to them with --exclude and another name: ",
                    f"job report {earlier.typed} --only pending --save rest.csv",
                ),
            )

    def _send_test(self, phone: str) -> Result:
        """Send the message of the first row to a phone as a single send. It never makes a later message a repeat."""
        context, operation = self.context, self.operation
        to = self.numbers.digits_of(context, phone, sms=operation.channel == "sms")
        message = None
        with self._opened() as (recipients, renderer):
            for row in recipients.rows:  # all of them, because a fault may be anywhere in the file
                if message is None and isinstance(row, Recipient):
                    message = renderer(row)
        if message is None:
            raise FileError(f"{self._file} has no valid rows", consequence="nothing was sent")
        phones = [to] if operation.field("phone").several else to
        request = build(operation, {**self._settings.fixed, **message.parameters, "phone": phones})
        request = request._replace(contacts=[to])
        if context.options.dry_run:
            return dry_run(context, request)
        try:
            return perform(context, request, channel=operation.channel, may_repeat=True)
        except UsageError as error:
            if error.reason == "opted_out":  # bulk commands have no --ignore-optout
                fix = f"optout remove {to} --channel {operation.channel} --no-number-check"
                raise error.replaced(hint=Hint("Choose another number for --test-to, or run: ", fix)) from None
            raise

    # --- before the job is sent

    def _approve(self, number: int, importer: Importer, faults: Faults) -> OwnResult | None:
        """Show the summary and ask. Return the result of a dry run. Raises UsageError, or Cancelled."""
        context, settings, options = self.context, self._settings, self.context.options
        limits = limits_of(settings, self._due or context.store.clock())
        tally = Tally.of(context.store, number, context.profile.account, limits)
        plan = Plan(settings, faults, tally, self._due, gsm7_saves=self._gsm7_saves)
        repeated = [jobs.get(context.store, earlier) for earlier in sorted(tally.repeats_of)]
        fault = plan.fault(repeated, skip_invalid=self.source.skip_invalid, is_listed=self._lists_rows)
        if not fault:
            plan = replace(plan, balance=self._balance())
        self._note(plan, importer, is_refused=fault is not None)
        if self._lists_rows:
            account = context.profile.account
            rows = StoredRows(lambda: planned_rows(context.store, number, account, settings, limits))
            return self._rows(rows, plan, fault)
        if options.dry_run:
            return OwnResult(plan, plan.columns, Layout.PLAN, failures=[fault] if fault else [])
        if fault:
            raise fault
        is_asked = not options.yes and context.stdin.isatty()
        if is_asked or context.shows_notes:
            self._explain(plan)
        self._ask(plan)
        return None

    def _rows(self, rows: StoredRows, plan: Plan, fault: UsageError | None) -> OwnResult:
        """Return every row as the result of a dry run. The summary is printed on standard error, or as JSON."""
        context, save = self.context, self.rules.save
        columns = with_columns_of_file(ROW_COLUMNS, self._settings.columns)
        context.check_fields(columns)
        if context.is_json:
            context.printer.print(OwnResult(plan, plan.columns, Layout.PLAN))
        elif context.shows_notes:
            self._explain(plan)
        return OwnResult(rows, columns, failures=[fault] if fault else [], save=save)

    def _explain(self, plan: Plan) -> None:
        from msgctl.output import job_views  # Rich

        host = urlsplit(self.context.profile.base_url).hostname or ""
        self.context.printer.explain(job_views.plan_parts(plan, self.context.now(), host))

    @property
    def _file(self) -> str:
        return "standard input" if self.source.file == "-" else shorten(self.source.file, 60)

    def _ask(self, plan: Plan) -> None:
        tally, balance = plan.tally, plan.balance
        cost = ""
        if plan.is_limited:
            cost = f", up to the limit of {plural(plan.needed, 'credit')}"
        elif tally.credits:
            cost = f" for about {plural(tally.credits, 'credit')}"
        pause = ""
        if self._settings.canary is not None and self._settings.canary < tally.messages:
            pause = f" The job pauses after {plural(self._settings.canary, 'recipient')}."
        question = f"Send {plural(tally.messages, 'message')}{cost}?{pause}"
        if self._due is not None:
            when = self.context.time_in_words(self._due)
            comma = "," if cost.startswith(" ") else ""
            question = f"Schedule {plural(tally.messages, 'message')} for {when}{comma}{cost}?{pause}"
        if balance is not None and balance < plan.needed:
            question = f"You have {plural(balance, 'credit')}. {question}"
        prompts.confirm(self.context, question, "nothing was sent")

    def _note(self, plan: Plan, importer: Importer, *, is_refused: bool) -> None:
        """Print notes about rows that are left out, and about likely mistakes."""
        context, tally, need_of_country = self.context, plan.tally, plan.faults.need_of_country
        if need_of_country and not is_refused:
            context.note(f"{need_of_country}: add --country-code CC")
        for outcome, rows in tally.first_left_out.items():
            if outcome == "invalid" and (need_of_country or not self.source.skip_invalid):
                continue  # without a country, the reasons are misleading; without --skip-invalid, the error lists them
            for row in rows:
                phone = f"{row.phone}: " if row.phone else ""
                context.note(f"Line {row.line}: {phone}{row.reason}")
            if (more := tally.numbers_left_out[outcome] - len(rows)) > 0 and len(rows) == MAX_LISTED:
                context.note(f"… and {more:,} more")
        if plan.settings.blank:
            context.note(rows_left_out(plan.settings.blank, "blank", name_of(self.source.file)))
        if importer.left_out:
            context.note(note_of_left_out([*importer.left_out]))
        if self._begins is not None and self._begins != self._due:
            context.note(f"The window is closed at --at {self._local(self._begins)}: the job waits until it opens.")
        repeats = tally.excluded["repeats"]
        if repeats and tally.messages:
            context.warn(
                f"{plural(repeats, 'recipient')} got the same message in the last 12 hours and will be left out. "
                "To send to them too, add --again."
            )
        if (
            plan.balance is not None
            and plan.balance < plan.needed
            and (context.options.quiet or context.options.dry_run)
        ):
            context.warn(f"about {plural(plan.needed, 'credit')} needed, {plan.balance:,} left")

    def _balance(self) -> int | float | None:
        """Return the credits left; None, with a note, if they are unknown. Raises NotReachedError."""
        context = self.context
        try:
            credits_left = Decimal(context.client.send(build(ops.BALANCE, {})).document["status"])
        except (NotReachedError, ServiceError, OutcomeUnknownError) as error:
            if isinstance(error, NotReachedError) and not context.options.dry_run:
                raise error.replaced(consequence="nothing was sent, and no job was created") from None
            context.note(f"Balance not checked: {error.message}")
            return None
        is_whole = credits_left == credits_left.to_integral_value()
        return int(credits_left) if is_whole else float(credits_left)

    # --- the job

    def _begin(self, job: Job) -> OwnResult:
        """Send a new job, or report when it will be sent."""
        context = self.context
        context.note(Hint(f"Job {job.id}. Check it with: ", f"job show {job.typed}"))
        if self._due is None:
            return running.send_pending(context, job, "bulk")
        return running.scheduled(context, job)

    def _earlier(self, job: Job) -> OwnResult:
        """Continue the paused job with this name, or return the result of its earlier run."""
        context = self.context
        context.run.job = job.id
        settings = Settings.load(job.settings)
        ending = replayed_ending(job, canary_left(context.store, settings, job))
        self._note_options(job)
        if ending is not None:
            return running.replayed(context, job, ending)
        limit = ""
        if settings.max_credits is not None:
            limit = f", up to the limit of {plural(settings.max_credits, 'credit')} for the whole job"
        question = f'Continue job "{job.reference}" and send {plural(job.pending, "message")}{limit}?'
        prompts.confirm(context, question, "nothing was sent")
        return running.send_pending(context, job, "bulk")

    def _note_options(self, job: Job) -> None:
        """Print a note for each option that differs from the job's own setting, because it has no effect."""
        settings = Settings.load(job.settings)
        for name, option in OPTIONS.items():
            wanted = getattr(self._settings, name)
            if wanted == getattr(settings, name):
                continue
            if wanted == DEFAULTS[name]:
                self.context.note(f"The job keeps its own {option.name}.")
                continue
            note = f"{option.name} has no effect: the job keeps its own settings."
            if option.is_changeable and wanted is not None:
                note = Hint(f"{note} To change it: ", f"job resume {job.typed} {option.name} {wanted}")
            elif name == "at" and job.state == "scheduled" and not job.requests:
                note = Hint(f"{note} To change the time, choose another --name after: ", f"job cancel {job.typed}")
            self.context.note(note)
