"""`msgctl job`: bulk sends, after they were begun."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing, contextmanager, suppress
from dataclasses import replace
from operator import itemgetter
from typing import TYPE_CHECKING, Annotated, Any

import typer

from msgctl import operations as ops
from msgctl import values
from msgctl.cli.bulk import Limits, MaxCredits, OtherConcurrency, Rate
from msgctl.cli.context import Context
from msgctl.cli.errors import report as report_error
from msgctl.cli.terminal import is_terminal
from msgctl.cli.tree import command, group
from msgctl.config import profiles
from msgctl.errors import ConfigurationError, MsgctlError, UsageError
from msgctl.storage import paths
from msgctl.text import clean

if TYPE_CHECKING:
    from msgctl.jobs.ledger import Ledger
    from msgctl.jobs.spec import JobSpec
    from msgctl.jobs.store import Store

app = group("Bulk sends: how they stand, and how they go on.")

Job = Annotated[str, typer.Argument(metavar="JOB", help="Identifier of the job.")]

LISTED = ("job", "command", "state", "recipients", "accepted", "unknown", "pending")
OUTCOMES = ("accepted", "refused", "unknown", "pending", "invalid", "duplicate")


@command(app, "list", "msgctl job list", "msgctl job list -o csv --fields job,state,pending")
def list_jobs(ctx: typer.Context) -> None:
    """List the jobs, the oldest first."""
    from msgctl.jobs.report import SUMMARY

    context = Context.of(ctx)
    context.refuse_dry_run("job list")
    context.check_own_fields(SUMMARY)
    jobs: list[dict[str, Any]] = []
    failures: list[MsgctlError] = []
    store = _store()
    for job in store.ids():
        try:
            jobs.append(_summary(context, store, job))
        except ConfigurationError as error:  # one broken file does not hide the others
            failures.append(error)
    context.show(
        sorted(jobs, key=itemgetter("created")), LISTED, SUMMARY, empty="" if failures else "there are no jobs"
    )
    for failure in failures:
        report_error(failure, context)
    if failures:
        raise typer.Exit(failures[0].exit_code)


@command(app, "show", "msgctl job show 20261121-3f9a2c", "msgctl job show 20261121-3f9a2c --json")
def show(ctx: typer.Context, job: Job) -> None:
    """Show how a job stands: what was accepted, refused, or is unknown."""
    from msgctl.cli import job_progress
    from msgctl.jobs.report import SUMMARY

    context = Context.of(ctx)
    context.refuse_dry_run("job show")
    context.check_own_fields(SUMMARY)
    job_progress.show(context, _summary(context, _store(), job))


@command(
    app,
    "resume",
    "msgctl job resume 20261121-3f9a2c",
    "msgctl job resume 20261121-3f9a2c --resend-refused --max-credits 500",
)
def resume(
    ctx: typer.Context,
    job: Job,
    resend_unknown: Annotated[
        bool,
        typer.Option("--resend-unknown", help="Send again what may have arrived already: some may get it twice."),
    ] = False,
    resend_refused: Annotated[
        bool, typer.Option("--resend-refused", help="Send again what the service refused.")
    ] = False,
    concurrency: OtherConcurrency = None,
    rate: Rate = None,
    max_credits: MaxCredits = None,
) -> None:
    """Go on with a job, and send to nobody twice.

    What is pending is sent. What is unknown or was refused is sent again only if an option asks for it.
    """
    from msgctl.cli import job_progress
    from msgctl.jobs.report import SUMMARY, summary
    from msgctl.jobs.states import Outcome, State

    context = Context.of(ctx)
    context.check_own_fields(SUMMARY)
    with _at_work(context, job) as ledger:
        _check_account(context, ledger)
        spec = _limited(ledger.spec, concurrency, rate, max_credits)
        if context.options.dry_run:
            job_progress.show(context, summary(job, ledger, running=False))
            return
        ledger.check()
        ledger.change(spec)
        ledger.recover()
        if resend_unknown and (unknown := ledger.totals.states[State.UNKNOWN]):
            context.confirm(_warning(unknown), "nothing was sent")
        asked = {Outcome.UNKNOWN: resend_unknown, Outcome.REFUSED: resend_refused}
        ledger.resend(*(outcome for outcome, is_asked in asked.items() if is_asked))
        if not ledger.totals.unsent:
            context.note(f"job {job} has nothing pending")
        job_progress.send(context, job, ledger)


@command(
    app,
    "report",
    "msgctl job report 20261121-3f9a2c -o csv > report.csv",
    "msgctl job report 20261121-3f9a2c --only unknown",
)
def report(
    ctx: typer.Context,
    job: Job,
    only: Annotated[
        str | None,
        typer.Option("--only", metavar="OUTCOME", help=f"Only recipients with this outcome: {', '.join(OUTCOMES)}."),
    ] = None,
) -> None:
    """List every recipient with what became of it, in the order of the file."""
    from msgctl.jobs.report import COLUMNS, Report
    from msgctl.jobs.states import Outcome

    context = Context.of(ctx)
    context.refuse_dry_run("job report")
    context.check_own_fields(COLUMNS)
    outcome = None if only is None else Outcome(values.choice(only, OUTCOMES, "outcome"))
    store = _store()
    with _opened(context, store, job) as ledger:
        told = Report(ledger, outcome, running=store.is_running(job))
        context.show(told, COLUMNS, empty=f"no recipient of job {job} is {outcome or 'listed'}")


@command(app, "states", "msgctl job states 20261121-3f9a2c")
def states(ctx: typer.Context, job: Job, concurrency: OtherConcurrency = None, rate: Rate = None) -> None:
    """Ask for the delivery states of what was accepted.

    Stop and repeat it as you like. A state that is final, such as delivered, is not asked for again.
    """
    from msgctl.cli import job_progress
    from msgctl.jobs.report import SUMMARY, summary

    context = Context.of(ctx)
    context.check_own_fields(SUMMARY)
    with _at_work(context, job) as ledger:
        _check_account(context, ledger)
        if ledger.spec.performs not in (ops.SEND_SMS, ops.SEND_CALL):
            raise UsageError(
                f"the messages of a job of {ledger.spec.command} have no delivery states", "SMS and calls do."
            )
        spec = _limited(ledger.spec, concurrency, rate, None)
        if context.options.dry_run:
            job_progress.show(context, summary(job, ledger, running=False))
            return
        ledger.check()
        ledger.change(spec)
        ledger.recover()
        job_progress.poll_states(context, job, ledger)


@command(app, "remove", "msgctl job remove 20261121-3f9a2c --yes")
def remove(ctx: typer.Context, job: Job) -> None:
    """Forget a job: its recipients, and what became of them."""
    context = Context.of(ctx)
    context.refuse_dry_run("job remove")
    store = _store()
    store.find(job)
    if not (context.options.yes or is_terminal(context.stdin)):
        raise UsageError(f"what is known of job {job} would be lost, and nobody can be asked", "Say so with --yes.")
    context.confirm(f"Forget job {job}, and to whom it sent?{_open_ends(context, store, job)}")
    store.remove(job)
    context.note(f"job {job} is forgotten")


def _open_ends(context: Context, store: Store, job: str) -> str:
    """What would never be known of a job that is forgotten."""
    with suppress(ConfigurationError):  # a broken one can be forgotten, too
        document = _summary(context, store, job)
        ends = [f"{document[name]:,} {name}" for name in ("unknown", "pending") if document[name]]
        return f" {' and '.join(ends)} of its recipients." if ends else ""
    return ""


def _store() -> Store:
    from msgctl.jobs.store import Store

    return Store(paths.jobs_folder())


@contextmanager
def _opened(context: Context, store: Store, job: str) -> Iterator[Ledger]:
    """The ledger of a job, to look at. Raises UsageError where there is none, and ConfigurationError."""
    from msgctl.jobs.ledger import Ledger

    context.enable_gc()
    with closing(Ledger(store.find(job), clock=context.clock)) as ledger:
        yield ledger


@contextmanager
def _at_work(context: Context, job: str) -> Iterator[Ledger]:
    """The ledger of a job, with nobody else at work on it. Raises ConfigurationError where somebody is."""
    store = _store()
    store.find(job)
    with store.locked(job), _opened(context, store, job) as ledger:
        yield ledger


def _summary(context: Context, store: Store, job: str) -> dict[str, Any]:
    from msgctl.jobs.report import summary

    running = store.is_running(job)
    with _opened(context, store, job) as ledger:
        document = summary(job, ledger, running=running)
    if running and not store.is_running(job):  # it ended meanwhile, and what was under way is known now
        return _summary(context, store, job)
    return document


def _check_account(context: Context, ledger: Ledger) -> None:
    """Use the profile that the job was begun with, and see that it leads to the same service.

    Raises ConfigurationError where it does not.
    """
    if context.options.profile is None and ledger.spec.profile != profiles.ENVIRONMENT:
        context.options.profile = ledger.spec.profile
    if context.profile.base_url != ledger.spec.base_url:
        raise ConfigurationError(
            f"the job was begun with {clean(ledger.spec.base_url)}, and profile {clean(context.profile.name)} uses "
            f"{clean(context.profile.base_url)}",
            f"Name the profile of the job ({clean(ledger.spec.profile)}) with -p.",
        )


def _limited(spec: JobSpec, concurrency: str | None, rate: str | None, max_credits: str | None) -> JobSpec:
    """An order with the limits that were given anew. Raises UsageError."""
    given = Limits.of(concurrency=concurrency or str(spec.concurrency), rate=rate, max_credits=max_credits)
    return replace(
        spec,
        concurrency=given.concurrency,
        rate=spec.rate if rate is None else given.rate,
        max_credits=spec.max_credits if max_credits is None else given.max_credits,
    )


def _warning(unknown: int) -> str:
    recipients = "recipient" if unknown == 1 else "recipients"
    return f"{unknown:,} {recipients} may have got the message already. Send it again?"
