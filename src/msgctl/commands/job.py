"""`msgctl job`: check, resume, cancel and report on bulk sends."""

from __future__ import annotations

import shlex
from collections.abc import Iterable
from dataclasses import replace
from datetime import date
from pathlib import Path
from typing import Annotated, NamedTuple

import typer

from msgctl import operations as ops
from msgctl.cli.options.bulk import options_of
from msgctl.cli.options.which_job import JobName, JobNames, Which, job_named
from msgctl.cli.shell import prompts
from msgctl.cli.shell.context import Context
from msgctl.cli.shell.options import (
    Choice,
    Choices,
    Chosen,
    choice_option,
    date_option,
    max_wait_option,
    save_option,
    until_option,
)
from msgctl.cli.shell.tree import command, group
from msgctl.config import profiles
from msgctl.credits import as_credits
from msgctl.errors import NOTHING_SENT, Hint, UsageError
from msgctl.jobs.limits import Budget, budget_of, canary_left
from msgctl.jobs.report import (
    DELIVERIES,
    JOB_FIELDS,
    LIST_FIELDS,
    REPORT_COLUMNS,
    ROW_OUTCOMES,
    UNDELIVERED,
    report_rows,
    selected,
    summary,
    with_columns_of_file,
)
from msgctl.jobs.settings import OPTIONS, Settings
from msgctl.outcomes.delivery import Delivery, classify
from msgctl.outcomes.outcome import REFUSED, UNKNOWN
from msgctl.outcomes.words import NO_WORDS
from msgctl.output.result import Layout, OwnResult, RawResult, StoredRows
from msgctl.store import jobs, owners, recipients
from msgctl.store.jobs import Job
from msgctl.store.lifecycle import check_allowed
from msgctl.store.owners import Resendable
from msgctl.store.schema import ENDED
from msgctl.text import clean, plural
from msgctl.values import quote

app = group("Check, resume, cancel and report on bulk sends.")

POLL = 0.1
"""Seconds between two checks of a job that another process is stopping."""


@command(
    app, "list", "msgctl job list", "msgctl job list -o csv --fields job,state,pending", output=LIST_FIELDS, json="list"
)
def list_jobs(context: Context) -> OwnResult:
    """List the jobs in the order they were created."""
    summaries = [summary(job) for job in jobs.listed(context.store)]
    return OwnResult(summaries, LIST_FIELDS, Layout.JOBS, empty="No jobs")


@command(app, "show", "msgctl job show 20261121-3f9a2c", "msgctl job show 20261121-3f9a2c --json", output=JOB_FIELDS)
def show(context: Context, which: Which) -> OwnResult:
    """Show a job's status: accepted, refused and unknown counts."""
    from msgctl.cli.runs import running

    job = which.resolve(context)
    return running.result(context, job)


class ChangedOptions(
    options_of((name for name, option in OPTIONS.items() if option.is_changeable), is_change=True),  # type: ignore[misc]
):
    """The options that change a job when it is resumed."""


@command(
    app,
    "resume",
    "msgctl job resume 20261121-3f9a2c",
    "msgctl job resume 20261121-3f9a2c --max-credits 500",
    effect=ops.Effect.SENDS,
    asks=True,
    dry_run_help="Print the job and what it would send, and send nothing.",
    output=JOB_FIELDS,
)
def resume(context: Context, which: Which, *, options: ChangedOptions) -> OwnResult:
    """Resume a job without sending to anyone twice.

    It sends the pending messages. If a scheduled job is not due yet, msgctl asks first. If the window is closed, it
    schedules the job for the time when the window opens.
    """
    from msgctl.cli.runs import running

    job = which.resolve(context)
    running.check_account(context, job)
    check_allowed(job, "resume")
    before = Settings.load(job.settings)
    settings = replace(before, **options.values())
    opens = settings.hours(context.store.clock).closed_until(context.store.clock())
    if not job.pending and not job.sending:
        context.note(f'Job "{job.reference}" has nothing pending: there is nothing to resume.')
    if context.options.dry_run:
        if job.pending:
            _preview(context, job, settings, is_open=opens is None)
        job.settings = settings.dump()
        return running.result(context, job)
    if canary_left(context.store, settings, job) == 0:
        settings = replace(settings, is_past_canary=True)
    if opens is not None and job.pending:
        owners.schedule(context.store, job.number, settings.dump(), max(int(opens * 1000), job.due or 0))
        return running.scheduled(context, jobs.get(context.store, job.number))
    pending = _pending(context, job, settings)
    if job.state == "scheduled" and (job.due or 0) > context.store.now():
        when = context.time_in_words((job.due or 0) / 1000)
        context.warn(f'The job "{job.reference}" is scheduled for {when}')
        question = f"Send {pending.in_words} now?{pending.remarks}"
        prompts.confirm(context, question, "nothing was sent, and it remains scheduled")
    elif job.pending and not pending.limit:
        context.note(f"Sending {pending.in_words}.{pending.remarks}")
    changed = settings.dump() if settings != before else None
    return running.send_pending(context, job, "resume", changed)


def _preview(context: Context, job: Job, settings: Settings, *, is_open: bool) -> None:
    """Print what a resume would send. Warn if the limit of credits allows no message."""
    pending = _pending(context, job, settings)
    if pending.limit:
        context.warn(
            f"The job would send no messages. {pending.limit}: raise the limit with --max-credits N, the new total."
        )
        return
    when = ""
    if not is_open:
        when = " when its window opens"
    context.note(f"The job would send {pending.in_words}{when}.{pending.remarks}")


class _Pending(NamedTuple):
    """The pending messages of a job and their estimate: ``2 pending messages for about 2 credits (20 of 22 used)``.

    ``limit`` reports that the limit of credits allows none of them. ``remarks`` are about people who opted out, and
    about --canary. Each may be empty.
    """

    in_words: str
    limit: str
    remarks: str


def _pending(context: Context, job: Job, settings: Settings) -> _Pending:
    budget, limit, remarks = budget_of(context.store, settings, job), "", ""
    pending = recipients.pending_messages(context.store, job.number, settings.performs.channel)
    if budget is not None and pending.messages and budget.allows(1, pending.least) == 0:
        limit = budget.reached().what
    if pending.opted_out:
        remarks = f" {plural(pending.opted_out, 'recipient')} opted out and will get nothing."
    canary = canary_left(context.store, settings, job)
    if canary and canary < pending.messages:
        remarks += f" The job pauses after {plural(canary, 'recipient')}."
    cost = _cost(pending.segments, settings, budget)
    return _Pending(f"{plural(pending.messages, 'pending message')}{cost}", limit, remarks)


def _cost(segments: int, settings: Settings, budget: Budget | None) -> str:
    """Return the estimate for a question: `` for about 2 credits (20 of 22 used)``.

    If the limit does not cover all segments: ``, up to the limit of 22 credits (20 used)``.
    """
    cost = f" for about {plural(segments, 'credit')}"
    if budget is None or settings.max_credits is None:
        return cost
    if budget.covers(segments):
        return f"{cost} ({budget.used:,} of {settings.max_credits:,} used)"
    return f", up to the limit of {plural(settings.max_credits, 'credit')} ({budget.used:,} used)"


@command(
    app,
    "run-due",
    "msgctl job run-due",
    "msgctl -p main job run-due --quiet",
    effect=ops.Effect.SENDS,
    has_dry_run=False,
    output=(),
    json="lines",
)
def run_due(context: Context) -> RawResult | None:
    """Send the scheduled jobs that are due, for all profiles.

    Only `msgctl -p sandbox job run-due` sends the jobs of the sandbox.

    Run it from cron: `msgctl help recipes` has the line of the crontab. It prints nothing if no job is due, and
    overlapping runs never send a job twice. A job stays scheduled if its window is closed, the service cannot be
    reached, or the process is killed. Ctrl-C pauses it. A `run-due` pauses a job that is more than 12 hours late
    and has sent nothing.
    """
    from msgctl.cli.runs import due

    if context.options.dry_run:
        raise UsageError("job run-due has no dry run", Hint("See what is scheduled: ", "job list"))
    return due.send_due(context)


class _Outcome(Choice):
    """The parser of an outcome. Its error for a delivery state, such as "rejected", shows the outcome to use."""

    def __call__(self, text: str) -> str:
        try:
            return super().__call__(text)
        except UsageError as error:
            is_undelivered = classify(text, NO_WORDS) in (Delivery.FAILED, Delivery.NOT_ANSWERED)
            if text.lower() in ROW_OUTCOMES or not is_undelivered:
                raise
            raise error.replaced(hint=f"{quote(text)} is a delivery state: use --only {UNDELIVERED}") from None


class _Outcomes(Choices, _Outcome):
    """The parser of several outcomes."""


@command(
    app,
    "report",
    "msgctl job report 20261121-3f9a2c -o csv > report.csv",
    "msgctl job report 20261121-3f9a2c --only unknown",
    "msgctl job report --last --save report.xlsx",
    output=REPORT_COLUMNS,
    has_more_columns=True,
    json="list",
)
def report(
    context: Context,
    which: Which,
    only: Annotated[
        list[Chosen] | None,
        typer.Option(
            "--only",
            metavar="OUTCOME",
            help=f"Only recipients with these outcomes ({', '.join(ROW_OUTCOMES)}), or accepted ones with these "
            f"delivery states ({', '.join(DELIVERIES)}). Repeatable, or separated by commas.",
            parser=_Outcomes((*ROW_OUTCOMES, *DELIVERIES), "outcome"),
        ),
    ] = None,
    save: Annotated[Path | None, save_option()] = None,
) -> OwnResult:
    """List every recipient with the result, in the order of the file, even excluded, invalid and duplicate ones.

    A bulk command can read the report. To send to some of the recipients, use --only.
    """
    wanted = [outcome for chosen in only or () for outcome in chosen]
    job = which.resolve(context)
    words = context.words_of(job.profile)
    columns = with_columns_of_file(REPORT_COLUMNS, Settings.shown(job.settings).columns)
    context.check_fields(columns)
    if job.attempt > 1 and job.credits:
        cost = plural(as_credits(job.credits) or 0, "credit")
        context.note(f"The report has the credits of each recipient's last attempt. All attempts cost {cost}.")
    kind = f"{' or '.join(wanted)} " if wanted else ""
    empty = f'Job "{job.reference}" has no {kind}recipients'
    listing = StoredRows(lambda: report_rows(context.store, job, words, wanted))
    return OwnResult(listing, columns, Layout.REPORT, words=words, empty=empty, save=save)


@command(
    app,
    "states",
    "msgctl job states 20261121-3f9a2c",
    "msgctl job states --last --follow",
    effect=ops.Effect.READS,
    output=JOB_FIELDS,
)
def states(
    context: Context,
    which: Which,
    follow: Annotated[bool, typer.Option("--follow", help="Check again until every state is final.")] = False,
    until: Annotated[str | None, until_option("With --follow: wait for this state, sent or delivered.")] = None,
    max_wait: Annotated[
        float | None, max_wait_option("With --follow: maximum seconds to wait. [default: 3600]")
    ] = None,
) -> OwnResult:
    """Check the delivery state of accepted messages.

    You can interrupt it and run it again. It does not check messages in a final state again. With --follow, it exits
    with 6 if the time runs out: after an hour, or after --max-wait.
    """
    from msgctl.cli.runs import job_states, running

    for name, value in (("--until", until), ("--max-wait", max_wait)):
        if value and not follow:
            raise UsageError(f"{name} needs --follow")
    job = which.resolve(context)
    running.check_account(context, job)
    if job.command not in ("sms bulk", "call bulk"):
        raise UsageError(f"{job.command} has no delivery states", "Only SMS and calls have delivery states.")
    if context.options.dry_run:
        return running.result(context, job)
    return job_states.poll_states(context, job, follow=follow, until=until, max_wait=max_wait or job_states.MAX_FOLLOW)


@command(
    app,
    "resend",
    "msgctl job resend 20261121-3f9a2c --only undelivered --dry-run",
    effect=ops.Effect.SENDS,
    asks=True,
    dry_run_help="Print the job and what it would resend, and send nothing.",
    output=JOB_FIELDS,
)
def resend(
    context: Context,
    name: JobName,
    only: Annotated[
        str,
        choice_option(
            "--only",
            "OUTCOME",
            "Recipients to resend to: refused, undelivered or unknown.",
            _Outcome((REFUSED, UNDELIVERED, UNKNOWN), "outcome"),
        ),
    ],
) -> OwnResult:
    """Resend to a job's refused, undelivered or unknown recipients, as another attempt in the same job.

    Check the delivery states first: msgctl job states. msgctl selects the recipients before it asks you to confirm.
    Refused recipients get one request each, so that one bad number does not affect the others. If the run is
    interrupted, `msgctl job resume` continues it.
    """
    from msgctl.cli.runs import running

    job = job_named(context, name)
    context.run.job = job.id
    running.check_account(context, job)
    check_allowed(job, "resend", only)
    store = context.store
    outcomes, has_state = selected([only], context.words_of(job.profile))
    chosen = owners.resendable(store, job.number, outcomes, has_state)
    count = chosen.recipients
    if not count:
        context.note(f'Job "{job.reference}" has no {only} recipients; nothing was sent.')
        return running.result(context, job)
    cost = _resend_cost(context, job, chosen)
    if context.options.dry_run:
        context.note(f"The message would be resent to {plural(count, 'recipient')}{cost}.")
        return running.result(context, job)
    risk = " Some people may get it twice." if only == UNKNOWN else ""
    question = f"Resend the message to {plural(count, f'{only} recipient')}{cost}?{risk}"
    prompts.confirm(context, question, NOTHING_SENT)
    context.client  # noqa: B018 (without a credential, the recipients keep their outcomes)
    owners.resend(store, job.number, outcomes, has_state, expected=count)
    return running.send_pending(context, jobs.get(store, job.number), "resend")


def _resend_cost(context: Context, job: Job, chosen: Resendable) -> str:
    """Return the estimate for the question of a resend: `` for about 2 credits (20 of 22 used)``.

    Raises ConditionError if the job's limit of credits allows no message.
    """
    settings = Settings.load(job.settings)
    budget = budget_of(context.store, settings, job)
    if budget is not None and budget.allows(1, chosen.least) == 0:
        pending = ""
        if job.pending:
            pending = ", and send the pending messages"
        hint = Hint(f"Raise the limit first{pending} (N is the new total): ", f"job resume {job.typed} --max-credits N")
        raise budget.reached().replaced(consequence=NOTHING_SENT, hint=hint)
    return _cost(chosen.segments, settings, budget)


@command(app, "cancel", "msgctl job cancel 20261121-3f9a2c", asks=True, output=JOB_FIELDS)
def cancel(context: Context, job: JobName) -> OwnResult:
    """End a job: it never sends again.

    A running job is paused first, wherever it runs. Requests in flight finish.
    """
    from msgctl.cli.runs import running

    named = job_named(context, job)
    context.run.job = named.id
    if context.options.profile is not None:  # a job of another account may have the same name
        running.check_account(context, named)
    check_allowed(named, "cancel")
    if named.state != "cancelled" or named.stopping:
        pending = plural(named.pending, "pending message")
        channel = Settings.shown(named.settings).performs.channel
        if opted_out := recipients.pending_messages(context.store, named.number, channel).opted_out:
            pending += f" ({opted_out:,} of them opted out)"
        prompts.confirm(context, f'Cancel job "{named.reference}" and never send its {pending}?')
        named = owners.ask_to_stop(context.store, named.number, "cancelled")
        if named.is_running:
            context.note(f"Waiting for requests in flight on {clean(named.machine)}.")
        while named.is_running:
            context.sleep(POLL)
            named = owners.ask_to_stop(context.store, named.number, "cancelled")
    return running.result(context, named)


@command(app, "remove", "msgctl job remove --before 90d --yes", asks=True, output=LIST_FIELDS)
def remove(
    context: Context,
    job: JobNames = None,
    before: Annotated[
        date | None,
        date_option("--before", "Delete the account's ended jobs created before this date; 90d is 90 days ago."),
    ] = None,
) -> OwnResult:
    """Delete jobs of the profile's account that are done or cancelled, and their recipients.

    For 90 days, the store keeps the data that prevents repeats, as after `msgctl history clear`.
    """
    if job and before is not None:
        raise UsageError("Use either --before or JOBs, not both", "Give JOBs, or --before.")
    if not job and before is None:
        raise UsageError("JOB is missing", "Give JOBs, or --before.")
    removed = _named(context, job or ()) if before is None else _ended_before(context, before)
    if not removed:
        context.note("There is nothing to delete.")
        return OwnResult([], LIST_FIELDS, Layout.JOBS)
    count = plural(len(removed), "job")
    question = f"Delete {count} of {prompts.account_in_words(context.profile)}, with all recipients?"
    summaries = [summary(ended) for ended in removed]
    numbers = [ended.number for ended in removed]
    prompts.delete_sent(context, numbers, "jobs", question, f"Deleted {count}.")
    if len(summaries) == 1:
        return OwnResult(summaries[0], LIST_FIELDS, Layout.JOB)
    return OwnResult(summaries, LIST_FIELDS, Layout.JOBS)


def _named(context: Context, names: Iterable[str]) -> list[Job]:
    """Return the jobs with these names or IDs, each once. Raises UsageError for a job that cannot be removed."""
    account = context.profile.account
    named = {job.number: job for job in (job_named(context, name) for name in names)}
    for job in named.values():
        context.run.job = job.id
        if job.account != account:
            hint = (
                f"Choose a profile of its account: msgctl -p {clean(shlex.quote(job.profile))} job remove {job.typed}"
            )
            if job.profile == profiles.ENVIRONMENT:
                hint = (
                    f"Set {', '.join(profiles.VARIABLES.values())} again, or choose a profile of its account with -p."
                )
            raise UsageError(f'The job "{job.reference}" belongs to another account', hint)
        check_allowed(job, "remove")
    return list(named.values())


def _ended_before(context: Context, day: date) -> list[Job]:
    """Return the account's ended jobs that were created before a day."""
    since = context.start_of(day)
    ended = jobs.listed(context.store, account=context.profile.account, states=ENDED)
    return [job for job in ended if job.created < since and not job.is_running]
