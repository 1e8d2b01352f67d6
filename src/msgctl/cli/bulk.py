"""What the bulk commands share: they make a job from a file of recipients and send it."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import closing, contextmanager
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from msgctl import operations as ops
from msgctl import values
from msgctl.cli import campaign, inputs
from msgctl.cli.campaign import Rules
from msgctl.cli.context import Context
from msgctl.errors import MsgctlError, UsageError
from msgctl.http.request import Value
from msgctl.operations import Operation
from msgctl.output.result import OwnResult
from msgctl.storage import paths

if TYPE_CHECKING:
    from msgctl.jobs.exclusions import Exclusions
    from msgctl.jobs.importer import Importer
    from msgctl.jobs.reader import PhoneCells, RecipientReader
    from msgctl.jobs.sending_hours import ZoneFinder
    from msgctl.jobs.spec import JobSpec
    from msgctl.jobs.store import Store

MOST_CONCURRENCY = 256
MOST_BATCH = 1000
LEAST_RATE, MOST_RATE = 0.001, 100_000.0
MOST_CREDITS = 10**15
MOST_CANARY = 10**9

File = Annotated[
    str,
    typer.Argument(metavar="FILE", help="Recipients: CSV with a header, JSON Lines, or .xlsx; - is standard input."),
]
PhoneColumn = Annotated[
    str | None,
    typer.Option("--phone-column", metavar="NAME", help="Column with the phone numbers; detected if omitted."),
]
SkipInvalid = Annotated[bool, typer.Option("--skip-invalid", help="Skip invalid rows.")]
BatchSize = Annotated[
    str,
    typer.Option("--batch-size", metavar="N", help="Maximum numbers per request, for recipients of the same text."),
]
Concurrency = Annotated[str, typer.Option("--concurrency", metavar="N", help="Maximum simultaneous requests.")]
OtherConcurrency = Annotated[
    str | None, typer.Option("--concurrency", metavar="N", help="Maximum simultaneous requests.")
]
Rate = Annotated[str | None, typer.Option("--rate", metavar="N", help="Maximum recipients per second.")]
Name = Annotated[
    str | None, typer.Option("--name", metavar="NAME", help="Name for the job, to use in place of its ID.")
]
MaxCredits = Annotated[
    str | None, typer.Option("--max-credits", metavar="N", help="Stop before the job costs more than N credits.")
]


NO_RULES = Rules()


@dataclass(frozen=True, slots=True)
class Limits:
    """Limits of a job, as typed. Raises UsageError."""

    batch_size: int
    concurrency: int
    rate: float | None
    max_credits: int | None

    @classmethod
    def of(
        cls, batch_size: str = "1", concurrency: str = "8", rate: str | None = None, max_credits: str | None = None
    ) -> Limits:
        return cls(
            values.whole_number(batch_size, "--batch-size", 1, MOST_BATCH),
            values.whole_number(concurrency, "--concurrency", 1, MOST_CONCURRENCY),
            None if rate is None else values.decimal(rate, "--rate", LEAST_RATE, MOST_RATE),
            None if max_credits is None else values.whole_number(max_credits, "--max-credits", 0, MOST_CREDITS),
        )


@dataclass(frozen=True, slots=True)
class Source:
    """Where the recipients are and what the job is called, as typed."""

    file: str
    phone_column: str | None
    skip_invalid: bool
    name: str | None = None
    country_code: str | None = None
    no_number_check: bool = False


@dataclass(frozen=True, slots=True)
class Messages:
    """What recipients get: templates by wire name (see `MessageRenderer`), and how their text is checked."""

    texts: Mapping[str, str | Sequence[str]]
    check: Callable[[str], str] = values.message
    by_segments: bool = False
    cost: int = 1


def start(
    context: Context,
    command: str,
    operation: Operation,
    source: Source,
    limits: Limits,
    fixed: Mapping[str, Value],
    messages: Messages,
    rules: Rules = NO_RULES,
) -> OwnResult:
    """Make a job from a file, show its summary, ask, send it, and return the job as ``job show`` does.

    ``fixed`` are the parameters that all requests have. Raises UsageError if something is wrong with the file.
    """
    from msgctl.jobs.decode import WINDOWS_1252  # only jobs need this: 20 ms
    from msgctl.jobs.reader import PhoneCells
    from msgctl.jobs.spec import JobSpec
    from msgctl.jobs.template import MessageRenderer

    spec = JobSpec(
        command=command,
        operation=operation.name,
        file=source.file,
        name=None if source.name is None else values.words(source.name, "--name"),
        profile=context.profile.name,
        base_url=context.profile.base_url,
        fixed={name: value for name, value in fixed.items() if value is not None},
        client=context.profile.client,
        window=rules.window,
        days=rules.days,
        at=rules.due(context),
        canary=None if rules.canary is None else values.whole_number(rules.canary, "--canary", 1, MOST_CANARY),
        **asdict(limits),
    )

    country = inputs.Country(source.country_code).code(context)
    cells = PhoneCells(country, sms=operation is ops.SEND_SMS, check=not source.no_number_check)

    def read(importer: Importer) -> None:
        with _opened(context, source, cells) as reader:
            if reader.encoding == WINDOWS_1252:
                context.note(f"{values.quote(source.file)} is not UTF-8; reading it as {reader.encoding}")
            renderer = MessageRenderer(
                reader, messages.texts, messages.check, by_segments=messages.by_segments, cost=messages.cost
            )
            importer.read(reader, renderer)

    return make(context, source, spec, read, rules)


def make(context: Context, source: Source, spec: JobSpec, read: Callable[[Importer], None], rules: Rules) -> OwnResult:
    """Make a job of the recipients that ``read`` imports, show its summary, ask, and send it."""
    from msgctl.cli import confirmation, job_progress, retention
    from msgctl.jobs.ledger import Ledger
    from msgctl.jobs.report import SUMMARY
    from msgctl.jobs.store import Store

    context.enable_gc()
    context.check_fields(confirmation.SUMMARY if context.options.dry_run else SUMMARY)
    zones = campaign.zone_finder(context, rules.hours())
    country = inputs.Country(source.country_code).code(context)
    test_to = None if rules.test_to is None else _test_phone(context, source, spec, rules.test_to)
    store = Store(paths.state("jobs"))
    job = store.new_id(context.clock())
    with _exclusions(spec, rules, country) as found, store.locked(job):
        store.tidy()
        with _importer(context, store, job, spec, found, zones) as importer:
            read(importer)
            campaign.refuse_repeat(context, store, importer, rules)
            summary = confirmation.approve(context, source, spec, importer.tally, test_to)
            if context.options.dry_run:
                return summary
            with store.starting():
                campaign.refuse_repeat(context, store, importer, rules)  # another job may have begun meanwhile
                importer.finish()
        retention.delete_old(context)
        with closing(Ledger(store.path(job), clock=context.clock)) as ledger:
            context.note(f"Job {job}. Check it with: msgctl job show {job}")
            if spec.at is not None:
                if not rules.foreground:
                    return campaign.scheduled(context, job, ledger)
                campaign.wait_until(context, job, spec.at)
            return job_progress.send(context, job, ledger)


def _test_phone(context: Context, source: Source, spec: JobSpec, typed: str) -> str:
    is_sms = spec.performs is ops.SEND_SMS
    return inputs.Numbers(source.country_code, source.no_number_check).one(context, typed, sms=is_sms)


@contextmanager
def _exclusions(spec: JobSpec, rules: Rules, country: str | None) -> Iterator[Exclusions | None]:
    """Yield the numbers that a job leaves out. Everyone can be blocked."""
    if spec.performs is ops.BLOCK_PHONE:
        yield None
        return
    with campaign.exclusions(rules, country) as found:
        yield found


@contextmanager
def _importer(
    context: Context,
    store: Store,
    job: str,
    spec: JobSpec,
    exclusions: Exclusions | None,
    zones: ZoneFinder | None,
) -> Iterator[Importer]:
    """Yield a new ledger, which is deleted unless the block finishes it."""
    from msgctl.jobs.importer import Importer

    importer = Importer(store.path(job), spec, created=context.clock(), exclusions=exclusions, zones=zones)
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


@contextmanager
def _opened(context: Context, source: Source, cells: PhoneCells) -> Iterator[RecipientReader]:
    from msgctl.jobs.reader import opened

    if source.file == "-":
        with opened(context.stdin.buffer, "standard input", source.phone_column, cells) as reader:
            yield reader
        return
    try:
        file = Path(source.file).open("rb")  # noqa: SIM115 (closed below)
    except (OSError, ValueError) as error:
        raise UsageError(
            f"Cannot read {values.quote(source.file)}: {getattr(error, 'strerror', None) or 'invalid file name'}",
            "Give a CSV, JSON Lines or .xlsx file, or - for standard input.",
        ) from None
    with file, opened(file, values.quote(source.file), source.phone_column, cells) as reader:
        yield reader
