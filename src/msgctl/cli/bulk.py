"""What the four bulk commands have in common: a file of recipients becomes a job, and is sent."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import closing, contextmanager
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from msgctl import values
from msgctl.cli.context import Context
from msgctl.errors import MsgctlError, UsageError
from msgctl.http.request import Value
from msgctl.operations import Operation
from msgctl.storage import paths

if TYPE_CHECKING:
    from msgctl.jobs.intake import Intake
    from msgctl.jobs.records import Order
    from msgctl.jobs.rows import Recipients
    from msgctl.jobs.store import Store
    from msgctl.jobs.wording import Wording

MOST_CONCURRENCY = 256
MOST_BATCH = 1000
LEAST_RATE, MOST_RATE = 0.001, 100_000.0
MOST_CREDITS = 10**15

File = Annotated[
    str, typer.Argument(metavar="FILE", help="Recipients: CSV with a header, or JSON Lines; - is standard input.")
]
PhoneColumn = Annotated[str, typer.Option("--phone-column", metavar="NAME", help="Column of the phone numbers.")]
SkipInvalid = Annotated[bool, typer.Option("--skip-invalid", help="Leave out rows that cannot be sent to.")]
BatchSize = Annotated[
    str, typer.Option("--batch-size", metavar="N", help="Most numbers in a request, where their text is the same.")
]
Concurrency = Annotated[str, typer.Option("--concurrency", metavar="N", help="Requests under way at once.")]
OtherConcurrency = Annotated[
    str | None, typer.Option("--concurrency", metavar="N", help="Requests under way at once, from now on.")
]
Rate = Annotated[str | None, typer.Option("--rate", metavar="N", help="Recipients a second at most.")]
MaxCredits = Annotated[
    str | None, typer.Option("--max-credits", metavar="N", help="Stop before the job costs more than N credits.")
]


@dataclass(frozen=True, slots=True)
class Limits:
    """What holds a job back, read from what was typed. Raises UsageError."""

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
    """Where the recipients are, as it was typed."""

    file: str
    phone_column: str
    skip_invalid: bool


ALL_COLUMNS = ()
"""Stands for one value a column, but for that of the phones."""


def wording(
    recipients: Recipients,
    texts: Mapping[str, str | Sequence[str]],
    check: Callable[[str], str],
    *,
    in_segments: bool = False,
    cost: int = 1,
) -> Wording:
    """Templates for the parameters that come from the rows, by wire name.

    Raises UsageError for a column that the file does not have, and for a text without columns that ``check`` refuses.
    """
    from msgctl.jobs.template import Template
    from msgctl.jobs.wording import Wording

    def parsed(text: str) -> Template:
        template = Template.parse(text, recipients.columns)
        if template.is_constant:
            check(template.text)
        return template

    def several(given: Sequence[str]) -> list[Template]:
        if given:
            return [parsed(text) for text in given]
        others = [name for name in recipients.columns if name and name != recipients.phone_column]
        return [Template.of_column(name, recipients.columns) for name in others]

    templates = {name: parsed(text) if isinstance(text, str) else several(text) for name, text in texts.items()}
    return Wording(templates, check, in_segments=in_segments, cost=cost)


def start(
    context: Context,
    command: str,
    operation: Operation,
    source: Source,
    limits: Limits,
    fixed: Mapping[str, Value],
    wording: Callable[[Recipients], Wording],
) -> None:
    """Make a job of a file of recipients, sum it up, ask, and send it; print the job as ``job show`` does.

    ``fixed`` are the parameters that all requests have, ``wording`` makes those that come from the rows. Raises
    UsageError for what is wrong with the file, ConditionError where not every recipient was accepted, and whatever
    stopped the job.
    """
    from msgctl.cli import approval, working
    from msgctl.jobs.decoding import UTF8  # jobs are for this command and its like alone: 20 ms
    from msgctl.jobs.ledger import Ledger
    from msgctl.jobs.records import Order
    from msgctl.jobs.report import SHOWN
    from msgctl.jobs.store import Store

    context.enable_gc()
    context.check_own_fields(approval.SUMMARY if context.options.dry_run else SHOWN)
    approval.require_answer(context)
    order = Order(
        command=command,
        operation=operation.name,
        file=source.file,
        profile=context.profile.name,
        base_url=context.profile.base_url,
        fixed={name: value for name, value in fixed.items() if value is not None},
        **asdict(limits),
    )
    store = Store(paths.jobs_folder())
    job = store.new_id(context.clock())
    with store.held(job):
        store.tidy()
        with _intake(context, store, job, order) as intake:
            with _opened(context, source) as recipients:
                if recipients.encoding != UTF8:
                    context.note(f"{values.quote(source.file)} is not UTF-8; it is read as {recipients.encoding}")
                intake.take(recipients, wording(recipients))
            approval.approve(context, source, order, intake.tally)
            if context.options.dry_run:
                return
            intake.finish()
        with closing(Ledger(store.path(job), clock=context.clock)) as ledger:
            context.note(f"job {job}; see it with: msgctl job show {job}")
            working.run_to_the_end(context, job, ledger)


@contextmanager
def _intake(context: Context, store: Store, job: str, order: Order) -> Iterator[Intake]:
    """A ledger that is there when the block finished it, and else is gone."""
    from msgctl.jobs.intake import Intake

    intake = Intake(store.path(job), order, created=context.clock())
    try:
        yield intake
    except MsgctlError as error:
        if intake.is_finished:
            error.consequence = f"job {job} is there and has sent nothing"
        raise
    finally:
        if not intake.is_finished:
            intake.discard()
            store.forget_lock(job)


@contextmanager
def _opened(context: Context, source: Source) -> Iterator[Recipients]:
    from msgctl.jobs.recipients import opened

    if source.file == "-":
        with opened(context.stdin.buffer, "standard input", source.phone_column) as recipients:
            yield recipients
        return
    try:
        file = Path(source.file).open("rb")  # noqa: SIM115 (closed below)
    except (OSError, ValueError) as error:
        raise UsageError(
            f"{values.quote(source.file)} cannot be read: {getattr(error, 'strerror', None) or 'no such name'}",
            "Give a CSV or JSON Lines file, or - for standard input.",
        ) from None
    with file, opened(file, values.quote(source.file), source.phone_column) as recipients:
        yield recipients
