"""`msgctl job`: check, resume and report on bulk sends."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from contextlib import closing, contextmanager, suppress
from dataclasses import replace
from datetime import date, datetime, time
from functools import partial
from itertools import count
from operator import itemgetter
from pathlib import Path
from typing import Annotated, Any

import typer

from msgctl import operations as ops
from msgctl import values
from msgctl.cli import prompts
from msgctl.cli.completion import job_names
from msgctl.cli.context import Context
from msgctl.cli.option_group import OptionGroup
from msgctl.cli.options import LimitsOfJob, Numbers, PaceOfJob, Rules
from msgctl.cli.parsers import Choice, Choices, Chosen, date_option, max_wait_option, until_option
from msgctl.cli.tree import command, group
from msgctl.config import file as config
from msgctl.errors import ConfigurationError, MsgctlError, UsageError
from msgctl.history import contacts
from msgctl.jobs import resends
from msgctl.jobs.ledger import Ledger, facts
from msgctl.jobs.report import COLUMNS, JOB_FIELDS, UNDELIVERED, Report, finished, summary
from msgctl.jobs.schedule import time_in
from msgctl.jobs.states import Outcome, State
from msgctl.jobs.store import AlreadyRunningError, Store
from msgctl.output.result import OwnResult
from msgctl.storage import files
from msgctl.storage.records import RECORD_ERRORS
from msgctl.text import plural

app = group("Check, resume and report on bulk sends.")

OUTCOMES = tuple(map(str, Outcome))
JobNames = Annotated[
    list[str] | None, typer.Argument(metavar="[JOB]...", help="Job IDs or names.", autocompletion=job_names)
]


class Which(OptionGroup):
    """The job to use."""

    job: Annotated[str | None, typer.Argument(metavar="[JOB]", help="Job ID or name.", autocompletion=job_names)] = None
    last: Annotated[bool, typer.Option("--last", help="Use the newest job that has begun.")] = False

    def found(self, store: Store) -> str:
        """Return the id of the job. Raises UsageError."""
        if (self.job is None) is not self.last:
            raise UsageError(
                "JOB is missing" if self.job is None else "Use either --last or JOB, not both",
                "Give a job ID or name, or --last.",
            )
        return store.find(self.job)


@command(app, "list", "msgctl job list", "msgctl job list -o csv --fields job,state,pending", output=JOB_FIELDS)
def list_jobs(context: Context) -> OwnResult:
    """List the jobs, oldest first."""
    context.check_fields(JOB_FIELDS)
    jobs: list[tuple[float, dict[str, Any]]] = []
    failures: list[MsgctlError] = []
    store = _store()
    for job in store.ids():
        try:
            jobs.append((facts(store.path(job))[1], _summary(context, store, job)))
        except ConfigurationError as error:  # the other jobs are still listed
            failures.append(error)
    documents = [document for _, document in sorted(jobs, key=itemgetter(0))]
    return OwnResult(documents, JOB_FIELDS, view="jobs", empty="" if failures else "No jobs", failures=failures)


@command(
    app,
    "show",
    "msgctl job show 20261121-3f9a2c",
    "msgctl job show 20261121-3f9a2c --json",
    output=JOB_FIELDS,
)
def show(context: Context, which: Which) -> OwnResult:
    """Show a job's status: accepted, refused and unknown counts."""
    from msgctl.cli import foreground

    context.check_fields(JOB_FIELDS)
    store = _store()
    job = which.found(store)
    found = _summary(context, store, job)
    reference = foreground.reference(store, job, found["name"])
    return foreground.result(found, reference=reference)


@command(
    app,
    "resume",
    "msgctl job resume 20261121-3f9a2c",
    "msgctl job resume 20261121-3f9a2c --resend-refused --max-credits 500",
    effect=ops.Effect.SENDS,
    asks=True,
    output=JOB_FIELDS,
)
def resume(
    context: Context,
    which: Which,
    resend_unknown: Annotated[
        bool,
        typer.Option("--resend-unknown", help="Resend messages with unknown outcome; some people may get them twice."),
    ] = False,
    resend_refused: Annotated[
        bool, typer.Option("--resend-refused", help="Resend messages that the service refused.")
    ] = False,
    *,
    limits: LimitsOfJob,
) -> OwnResult:
    """Resume a job without sending to anyone twice.

    Pending messages are sent. Unknown and refused messages are sent again only if you ask for it. Before the time of a
    scheduled job, msgctl asks first; if you then interrupt the job, it remains scheduled.
    """
    from msgctl.cli import foreground

    context.check_fields(JOB_FIELDS)
    store = _store()
    job = which.found(store)
    with _locked(context, job) as ledger:
        foreground.check_account(context, ledger.spec)
        spec = limits.apply(ledger.spec)
        if context.options.dry_run:
            return foreground.result(summary(job, ledger, running=False))
        if spec.canary is not None and ledger.totals.sent >= spec.canary:
            spec = replace(spec, canary=None)
        ledger.recover()
        if ledger.due is not None and ledger.due > context.clock():
            context.warn(f"Job {job} is scheduled for {time_in(context.profile.timezone, ledger.due)}")
            prompts.confirm(context, "Send it now?", "nothing was sent, and it remains scheduled")
        again: dict[Outcome, int] = {}
        if resend_unknown:
            again[Outcome.UNKNOWN] = ledger.totals.states[State.UNKNOWN]
        if resend_refused:
            lines, elsewhere = resends.refused(store, job)
            again[Outcome.REFUSED] = len(lines)
            _note_taken(context, elsewhere)
        if numbers := " and ".join(f"{number:,} {each}" for each, number in again.items() if number):
            risk = " Some people may get it twice." if again.get(Outcome.UNKNOWN) else ""
            prompts.confirm(context, f"Resend the message to {numbers}?{risk}", "nothing was sent")
        ledger.change(spec)
        if again:
            with store.starting():
                lines = resends.refused(store, job)[0] if resend_refused else set()
                resends.take_back(store, job, lines)
                ledger.resend(*again, taken_back=lines)
        foreground.respect_optouts(context, ledger)
        if not ledger.totals.unsent:
            context.note(f"Job {job} has nothing pending: there is nothing to resume.")
        return foreground.send(context, job, ledger)


@command(
    app,
    "run-due",
    "msgctl job run-due",
    "msgctl -p main job run-due --quiet",
    effect=ops.Effect.SENDS,
    has_dry_run=False,
    output=JOB_FIELDS,
)
def run_due(context: Context) -> OwnResult | None:
    """Send the scheduled jobs whose time has come.

    Run it from cron: it prints nothing if nothing is due, and overlapping runs never send a job twice. A job stays due
    outside its sending window, if the service cannot be reached, or if the process is killed. Ctrl-C pauses it.
    """
    from msgctl.cli import foreground

    if context.options.dry_run:
        raise UsageError("job run-due has no dry run", "See what is scheduled: msgctl job list")
    context.check_fields(JOB_FIELDS)
    return foreground.run_due(context, _store())


@command(
    app,
    "report",
    "msgctl job report 20261121-3f9a2c -o csv > report.csv",
    "msgctl job report 20261121-3f9a2c --only unknown",
    "msgctl job report --last --to report.xlsx",
    output=COLUMNS,
)
def report(
    context: Context,
    which: Which,
    only: Annotated[
        list[Chosen] | None,
        typer.Option(
            "--only",
            metavar="OUTCOME",
            help=f"Only these recipients: {', '.join(OUTCOMES)} or undelivered (repeatable; commas separate several).",
            parser=Choices((*OUTCOMES, UNDELIVERED), "outcome"),
        ),
    ] = None,
    to: Annotated[
        str | None,
        typer.Option("--to", metavar="FILE", help="Write an Excel workbook, FILE.xlsx."),
    ] = None,
) -> OwnResult | None:
    """List every recipient and the result, in the order of the file."""
    path = None if to is None else Path(to)
    if path:
        from msgctl.output import spreadsheet

        spreadsheet.check(path)
    wanted = [each for chosen in only or () for each in chosen]
    store = _store()
    job = which.found(store)
    ledger = context.stack.enter_context(_reading(context, store, job))
    found = Report(ledger, wanted, running=store.is_running(job))
    context.check_fields(found.columns)
    if path:
        columns = context.options.fields or found.columns
        rows = spreadsheet.save(path, columns, found, header=not context.options.no_header)
        context.note(f"Wrote {plural(rows, 'row')} to {files.shown(path)}.")
        return None
    kind = f"{' or '.join(wanted)} " if wanted else ""
    empty = f"Job {job} has no {kind}recipients"
    return OwnResult(found, found.columns, view="job report", empty=empty)


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
    limits: PaceOfJob,
    follow: Annotated[bool, typer.Option("--follow", help="Check again until every state is final.")] = False,
    until: Annotated[
        str | None,
        until_option("With --follow: wait for this state, sent or delivered."),
    ] = None,
    max_wait: Annotated[
        float | None,
        max_wait_option("With --follow: maximum seconds to wait."),
    ] = None,
) -> OwnResult:
    """Check the delivery state of accepted messages.

    You can interrupt it and run it again. Messages in a final state, such as delivered, are not checked again.
    """
    from msgctl.cli import foreground

    context.check_fields(JOB_FIELDS)
    for name, value in (("--until", until), ("--max-wait", max_wait)):
        if value and not follow:
            raise UsageError(f"{name} needs --follow")
    job = which.found(_store())
    with _locked(context, job) as ledger:
        foreground.check_account(context, ledger.spec)
        if ledger.spec.performs not in (ops.SEND_SMS, ops.SEND_CALL):
            raise UsageError(
                f"{ledger.spec.command} has no delivery states", "Only SMS and calls have delivery states."
            )
        spec = limits.apply(ledger.spec)
        if context.options.dry_run:
            return foreground.result(summary(job, ledger, running=False))
        ledger.spec = spec  # only for these checks
        wanted = (until,) if until else ()
        ledger.recover()
        return foreground.poll_states(context, job, ledger, follow=follow, until=wanted, max_wait=max_wait)


@command(
    app,
    "resend",
    "msgctl job resend 20261121-3f9a2c --only undelivered --dry-run",
    effect=ops.Effect.SENDS,
    asks=True,
    output=JOB_FIELDS,
)
def resend(
    context: Context,
    which: Which,
    only: Annotated[
        str,
        typer.Option(
            "--only",
            metavar="OUTCOME",
            help="Recipients to resend to: undelivered or refused.",
            parser=Choice((UNDELIVERED, "refused"), "outcome"),
        ),
    ] = UNDELIVERED,
) -> OwnResult | None:
    """Resend to a job's undelivered or refused recipients.

    It creates a new job with the same messages, and leaves out people to whom an earlier resend has sent or will send.
    Check the delivery states first: msgctl job states.
    """
    from msgctl.cli import bulk, foreground
    from msgctl.jobs.importer import former_message, former_recipients

    store = _store()
    job = which.found(store)
    with _reading(context, store, job) as ledger:
        foreground.check_account(context, ledger.spec)
        found = Report(ledger, [only], running=store.is_running(job))
        elsewhere = resends.taken(store, job)
        left_out = {row["line"]: elsewhere[row["line"]] for row in found if row["line"] in elsewhere}
        _note_taken(context, left_out)
        if len(found) == len(left_out):
            other = " other" if left_out else ""
            context.note(f"Job {job} has no{other} {only} recipients; nothing was sent")
            return None
        if ledger.spec.at_most is not None:
            with suppress(AlreadyRunningError), store.locked(job):
                foreground.correct_contacts(context, job, ledger)
        state = State.REFUSED if only == "refused" else State.ACCEPTED
        name = ledger.spec.name and _next_name(store, ledger.spec.name)
        return bulk.make(
            context,
            replace(ledger.spec, max_credits=None, at=None, canary=None, resend_of=job, name=name),
            lambda importer: importer.read(former_recipients(ledger, found, left_out), partial(former_message, ledger)),
            Rules(again=True),
            Numbers(),
            international=ledger.international,
            hand_over=lambda new, lines: resends.hand_over(store, job, new, state, lines),
        )


def _note_taken(context: Context, taken: Mapping[int, str]) -> None:
    """Report how many recipients are left out because another job sends to them."""
    for job, number in Counter(taken.values()).items():
        context.note(f"Left out {plural(number, 'recipient')} to whom job {job} has sent or will send the message.")


@command(
    app,
    "remove",
    "msgctl job remove 20261121-3f9a2c --yes",
    "msgctl job remove --before 90d --yes",
    asks=True,
)
def remove(
    context: Context,
    job: JobNames = None,
    before: Annotated[
        date | None,
        date_option("--before", "Delete the profile's finished jobs created before this date; 90d is 90 days ago."),
    ] = None,
) -> None:
    """Delete jobs and their recipients.

    With --before, unfinished jobs stay.
    """
    if bool(job) is (before is not None):
        what = "Use either --before or JOBs, not both" if job else "JOB is missing"
        raise UsageError(what, "Give JOBs, or --before.")
    store = _store()
    if before is None:
        old = [*dict.fromkeys(store.find(each) for each in job or ())]
        question = _question(context, store, old)
    else:
        since = datetime.combine(before, time()).astimezone().timestamp()
        documents = finished(store, since, context.clock)
        old = [document["job"] for document in documents if document["profile"] == context.profile.name]
        if not old:
            context.note("There is nothing to delete.")
            return
        lists = "its recipient list" if len(old) == 1 else "their recipient lists"
        question = f"Delete {plural(len(old), 'job')} of profile {values.quote(context.profile.name)} and {lists}?"
    prompts.confirm(context, question)
    for each in old:
        resends.remove(store, each)
        try:
            contacts.delete_plan(context.records, each)
        except RECORD_ERRORS as error:
            context.warn(f"Other machines may still treat its message as a repeat: {error.what}.")
    context.note(f"Deleted job {old[0]}." if len(old) == 1 else f"Deleted {len(old):,} jobs.")


def _question(context: Context, store: Store, jobs: Sequence[str]) -> str:
    """Return the question before jobs are deleted, with the recipients whose outcome would be forgotten."""
    lost: Counter[str] = Counter()
    changed = 0.0
    for job in jobs:
        changed = max(changed, store.changed(job))
        with suppress(ConfigurationError):  # damaged jobs can be deleted
            document = _summary(context, store, job)
            lost += Counter({name: document[name] for name in ("unknown", "pending")})
            changed = datetime.fromisoformat(document["updated"]).timestamp()
            if context.options.profile is None and document["profile"] in config.load(context.config_path).profiles:
                context.options.profile = document["profile"]  # other machines know the job from its shared store
    what = f"job {jobs[0]} and its recipient list"
    if len(jobs) > 1:
        what = f"{len(jobs):,} jobs and their recipient lists"
    ends = f" Recipients include {' and '.join(f'{number:,} {name}' for name, number in lost.items())}." if lost else ""
    if changed > context.clock() - ops.REPEAT_SECONDS:
        ends += " msgctl will no longer notice repeats."
    return f"Delete {what}?{ends}"


def _store() -> Store:
    return Store(files.state("jobs"))


def _next_name(store: Store, name: str) -> str:
    """Return an unused name with a number: ``orders-2`` after ``orders``."""
    names = set()
    with store.index() as index:
        for job in index.jobs:
            with suppress(ConfigurationError):  # a damaged ledger has no name
                names.add(index.facts(job).spec.name)
    return next(each for number in count(2) if (each := f"{name}-{number}") not in names)


def _reading(context: Context, store: Store, job: str) -> closing[Ledger]:
    """Open the ledger of a job. Raises ConfigurationError."""
    ledger = Ledger(store.path(job), clock=context.clock, read_only=True)
    context.use_words_of(ledger.spec.profile)
    return closing(ledger)


@contextmanager
def _locked(context: Context, job: str) -> Iterator[Ledger]:
    """Open the ledger of a job to run it. Raises ConfigurationError if another process runs it."""
    store = _store()
    with store.locked(job), closing(Ledger(store.path(job), clock=context.clock)) as ledger:
        yield ledger


def _summary(context: Context, store: Store, job: str) -> dict[str, Any]:
    running = store.is_running(job)
    with _reading(context, store, job) as ledger:
        return summary(job, ledger, running=running)
