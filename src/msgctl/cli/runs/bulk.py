"""A bulk command, from its file to the result of its job.

`bulk_list` reads the file, `bulk_plan` shows the summary and asks, and `bulk_job` starts or continues the job.
"""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import ExitStack

from msgctl.cli.options.bulk import JobOptions, JobRules, Source
from msgctl.cli.options.send import Numbers
from msgctl.cli.runs import bulk_job
from msgctl.cli.runs.bulk_job import Start
from msgctl.cli.runs.bulk_list import BulkList, Content
from msgctl.cli.runs.bulk_plan import PlannedJob
from msgctl.cli.runs.single import dry_run, perform
from msgctl.cli.shell.context import Context
from msgctl.errors import Hint, UsageError
from msgctl.http.request import build
from msgctl.jobs.plan import PLAN_FIELDS
from msgctl.jobs.report import JOB_FIELDS
from msgctl.jobs.settings import Settings
from msgctl.operations import Record
from msgctl.output.fields import of_record
from msgctl.output.result import Format, Result
from msgctl.store import jobs, removal
from msgctl.text import plural


def send_bulk(
    context: Context, content: Content, source: Source, numbers: Numbers, options: JobOptions, rules: JobRules
) -> Result:
    """Create a job, show its summary, ask for confirmation, send it, and return the job as ``job show`` does.

    If there is a job with its name, continue it or return its result. Raises UsageError.
    """
    settings = _settings(context, content, source, options)
    start = Start.from_settings(context, settings)
    lists_rows = _check_output(context, content.operation.record, source, rules)
    bulk_list = BulkList(context, content, source, numbers, rules.exclude or ())
    if rules.test_to is not None:
        start.check_not_past(context)
        return _send_test(bulk_list, settings, rules.test_to)
    store = context.store
    removal.tidy(store)
    job_number = jobs.create(store, context.profile.account, settings.profile, settings.command, settings.dump())
    with ExitStack() as unpublished:
        unpublished.callback(removal.discard, store, job_number)
        rows = bulk_list.import_into(job_number, settings)
        job = None
        if rules.name is not None and not context.options.dry_run:
            job = bulk_job.named(context, rules.name, rows.digest)
        if job is None:
            for note in rows.notes:
                context.note(note)
            start.check_not_past(context)
            planned = PlannedJob(context, rows, start, skip_invalid=source.skip_invalid, lists_rows=lists_rows)
            if lists_rows:
                result = planned.every_row(rules.save)
                context.stack.enter_context(unpublished.pop_all())  # the rows are read when they are printed
                return result
            if context.options.dry_run:
                return planned.summary()
            planned.confirm()
            job = bulk_job.publish(context, job_number, rows.settings, rows.digest, rules.name, start)
            if job.number == job_number:
                unpublished.pop_all()
                return bulk_job.begin(context, job)
        if rules.exclude:
            bulk_job.check_exclude(context, job_number, job, content.operation.channel)
    return bulk_job.continue_earlier(context, job, settings)


def _settings(context: Context, content: Content, source: Source, options: JobOptions) -> Settings:
    profile = context.profile
    return Settings(
        operation=content.operation.name,
        file=source.file,
        profile=profile.name,
        base_url=profile.base_url,
        client=profile.client,
        fixed={name: value for name, value in content.fixed.items() if value is not None},
        timezone=profile.timezone,
        **options.values(),
    )


def _check_output(context: Context, record: Record, source: Source, rules: JobRules) -> bool:
    """Return whether a dry run lists every row instead of the summary. Raises UsageError for --save and --fields."""
    options = context.options
    if rules.save is not None and (rules.test_to is not None or not options.dry_run):
        raise UsageError(
            "--save needs --dry-run, and cannot be combined with --test-to",
            Hint("To save the result of a job: ", "job report JOB --save FILE"),
        )
    source.check_save(rules.save)
    if options.dry_run and (rules.save is not None or options.format in (Format.CSV, Format.TSV, Format.JSONL)):
        return True
    columns: Sequence[str] = PLAN_FIELDS if options.dry_run else JOB_FIELDS
    if rules.test_to is not None:
        columns = of_record(record)  # its result is a single send
    context.check_fields(columns)
    return False


def _send_test(bulk_list: BulkList, settings: Settings, phone: str) -> Result:
    """Send the message of the first row to a phone as a single send. A later message never counts as a repeat of it."""
    context, operation = bulk_list.context, bulk_list.content.operation
    to = bulk_list.numbers.digits_of(context, phone, sms=operation.channel == "sms")
    message = bulk_list.first_message()
    phones = [to] if operation.field("phone").several else to
    request = build(operation, {**settings.fixed, **message.parameters, "phone": phones})
    request = request._replace(contacts=[to])
    if context.options.dry_run:
        if message.segments:
            cost = plural(message.cost, "credit")
            context.note(f"{plural(message.segments, 'segment')} to 1 number: about {cost}")
        return dry_run(context, request)
    try:
        return perform(context, request, channel=operation.channel, may_repeat=True)
    except UsageError as error:
        if error.reason == "opted_out":  # bulk commands have no --ignore-optout
            fix = f"optout remove {to} --channel {operation.channel} --no-number-check"
            raise error.replaced(hint=Hint("Choose another number for --test-to, or run: ", fix)) from None
        raise
