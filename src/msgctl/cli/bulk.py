"""What the bulk commands share: they make a job from a file of recipients and send it."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import closing, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from msgctl import operations as ops
from msgctl import values
from msgctl.cli import bulk_options
from msgctl.cli.bulk_options import Pace, Rules, Source
from msgctl.cli.context import Context
from msgctl.cli.requests import Numbers
from msgctl.errors import Interrupted, MsgctlError, UsageError
from msgctl.http.request import Value
from msgctl.operations import Operation
from msgctl.output.result import OwnResult
from msgctl.storage import files
from msgctl.text import plural

if TYPE_CHECKING:
    from msgctl.jobs.importer import Importer
    from msgctl.jobs.ledger import Ledger
    from msgctl.jobs.schedule import ZoneFinder
    from msgctl.jobs.spec import JobSpec
    from msgctl.jobs.store import Store

NO_RULES = Rules()
OPTED_OUT = "opted out"


@dataclass(frozen=True, slots=True)
class Messages:
    """What recipients get: templates by wire name (see `MessageRenderer`), and how their text is checked."""

    texts: Mapping[str, str | Sequence[str]]
    check: Callable[[str], str] = values.prose
    by_segments: bool = False
    cost: int = 1


def start(
    context: Context,
    command: str,
    operation: Operation,
    source: Source,
    numbers: Numbers,
    limits: Pace,
    fixed: Mapping[str, Value],
    messages: Messages,
    rules: Rules = NO_RULES,
) -> OwnResult:
    """Make a job from a file, show its summary, ask, send it, and return the job as ``job show`` does.

    ``fixed`` are the parameters that all requests have. Raises UsageError if something is wrong with the file.
    """
    from msgctl.jobs.reader import PhoneCells, opened
    from msgctl.jobs.spec import JobSpec
    from msgctl.jobs.template import MessageRenderer

    spec = JobSpec(
        command=command,
        operation=operation.name,
        file=source.file,
        profile=context.profile.name,
        base_url=context.profile.base_url,
        fixed={name: value for name, value in fixed.items() if value is not None},
        batch_size=1,
        client=context.profile.client,
    )
    spec = rules.apply(context, limits.apply(spec))
    cells = PhoneCells(numbers.code(context), sms=operation is ops.SEND_SMS, check=not numbers.no_number_check)

    def read(importer: Importer) -> None:
        with (
            bulk_options.opened(context, source.file) as (file, name),
            opened(file, name, source.phone_column, cells, note=context.note) as reader,
        ):
            renderer = MessageRenderer(
                reader, messages.texts, messages.check, by_segments=messages.by_segments, cost=messages.cost
            )
            importer.read(reader, renderer)

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
    from msgctl.cli import confirmation, history, job_progress
    from msgctl.jobs.ledger import Ledger
    from msgctl.jobs.report import SUMMARY
    from msgctl.jobs.store import Store

    context.enable_gc()
    context.check_fields(confirmation.SUMMARY if context.options.dry_run else SUMMARY)
    is_sms = spec.performs is ops.SEND_SMS
    test_to = None if rules.test_to is None else numbers.one(context, rules.test_to, sms=is_sms)
    store = Store(files.state("jobs"))
    job = store.new_id(context.clock())
    zones = bulk_options.zone_finder(context, spec)
    with store.locked(job):
        store.tidy()
        with _importer(context, store, job, spec, zones) as importer:
            if spec.performs is not ops.BLOCK_PHONE:  # everyone can be blocked
                _exclude(context, importer, rules, numbers.code(context))
            read(importer)
            _refuse_repeat(context, store, importer, rules)
            summary = confirmation.approve(context, spec, importer.tally, test_to, skip_invalid=skip_invalid)
            if context.options.dry_run:
                return summary
            with store.starting():
                _refuse_repeat(context, store, importer, rules)  # another job may have begun meanwhile
                importer.finish()
        history.delete_old(context)
        with closing(Ledger(store.path(job), clock=context.clock)) as ledger:
            context.note(f"Job {job}. Check it with: msgctl job show {job}")
            if spec.at is not None:
                if not rules.foreground:
                    return _scheduled(context, job, ledger)
                _wait_until(context, job, spec.at)
            return job_progress.send(context, job, ledger)


@contextmanager
def _importer(context: Context, store: Store, job: str, spec: JobSpec, zones: ZoneFinder | None) -> Iterator[Importer]:
    """Yield a new ledger, which is deleted unless the block finishes it."""
    from msgctl.jobs.importer import Importer

    importer = Importer(store.path(job), spec, created=context.clock(), zones=zones)
    try:
        yield importer
    except MsgctlError as error:
        if importer.is_finished:
            error.consequence = f"job {job} exists and has sent nothing"
        raise
    finally:
        if not importer.is_finished:
            importer.discard()
            store.remove_lock(job)


def _exclude(context: Context, importer: Importer, rules: Rules, country: str | None) -> None:
    """Leave out the numbers that opted out, and those of --exclude. Raises UsageError."""
    from msgctl.history import optouts
    from msgctl.jobs.reader import numbers_in

    if files.state(files.OPTOUTS).exists():
        importer.exclude((each.phone for each in optouts.every()), OPTED_OUT)
    for file in rules.exclude or []:
        with bulk_options.opened(context, file) as (source, name):
            importer.exclude(numbers_in(source, name, country), f"excluded by {Path(file).name}")


def _refuse_repeat(context: Context, store: Store, importer: Importer, rules: Rules) -> None:
    """Raise UsageError if another job sends, or has just sent, the same message to most of the same people."""
    repeat = None if rules.again else importer.repeat(store, context.clock())
    if repeat is None:
        return
    people = f"{repeat.recipients:,} of {plural(importer.tally.messages, 'recipient')}"
    if repeat.is_finished:
        raise UsageError(
            f"Job {repeat.job} sent this message to {people} in the last 24 hours",
            "To send it again, add --again.",
        )
    raise UsageError(
        f"Job {repeat.job} already sends this message to {people}, and is not finished",
        f"Resume it: msgctl job resume {repeat.job}. To send the message again, add --again.",
    )


def _scheduled(context: Context, job: str, ledger: Ledger) -> OwnResult:
    """Return a job that `msgctl job run-due` is to send."""
    from msgctl.cli import job_progress
    from msgctl.jobs.report import summary

    time = job_progress.local_time(ledger.due or 0)
    context.note(f"Scheduled for {time}. `msgctl job run-due` sends it; run that from cron every minute.")
    return job_progress.result(summary(job, ledger, running=False))


def _wait_until(context: Context, job: str, due: float) -> None:
    """Wait here until a job is due. Raises Interrupted at Ctrl-C."""
    from msgctl.cli.job_progress import local_time

    context.note(f"Waiting until {local_time(due)}. Ctrl-C leaves the job to `msgctl job run-due`.")
    try:
        while (rest := due - context.clock()) > 0:
            context.sleep(min(rest, 1.0))  # the clock may be set
    except KeyboardInterrupt:
        raise Interrupted(
            f"Job {job} remains scheduled", "Send it now: msgctl job resume " + job, consequence="nothing was sent"
        ) from None
