"""`msgctl history`: messages sent from this machine, and their results."""

import json
import sqlite3
from collections.abc import Callable, Mapping
from datetime import date, datetime, timedelta
from typing import Annotated, Any, TypeVar

import typer

from msgctl import values
from msgctl.cli import prompts
from msgctl.cli.context import Context
from msgctl.cli.inputs import Country, CountryCode, optional
from msgctl.cli.tree import command, group
from msgctl.errors import ConfigurationError, UsageError
from msgctl.history import FIELDS, reading
from msgctl.history import clear as clear_file
from msgctl.history.recorder import message_of
from msgctl.http.response import Number
from msgctl.jobs.schema import LEDGER
from msgctl.jobs.spec import JobSpec
from msgctl.jobs.store import Store
from msgctl.output.result import OwnResult
from msgctl.recipients import ACCEPTED, REFUSED, UNKNOWN
from msgctl.storage import paths
from msgctl.text import plural, timestamp

app = group(
    """Messages sent from this machine, and their results.

    Without a command, list the newest 20 entries, one for each number: messages, calls, recipients of jobs,
    verification messages (never their codes) and blocked numbers. A profile with `history = false` keeps no history.
    """
)

Read = TypeVar("Read")
"""What is read from each job."""

SPARE_COLUMNS = ("job", "credits", "status", "command", "profile")
"""Columns that the table of a narrow terminal leaves out, in this order."""
RESPONSE = "response"
"""The response, if the outcome is unknown; shown only with --fields."""
USUAL_LIMIT = 20
MOST_LISTED = 1_000_000

_NEWEST_OF_JOB = """
    SELECT request.updated, phone, state, recipient.id, status, delivery, credits, parameters, request.body
    FROM recipient JOIN request ON number = recipient.request JOIN message ON message.id = message
    WHERE {} (:state IS NULL OR delivery = :state COLLATE NOCASE)
    ORDER BY number DESC, line DESC LIMIT :limit
"""

Since = Annotated[
    str | None, typer.Option("--since", metavar="DATE", help="First day: YYYY-MM-DD, today, yesterday, or 7d.")
]
Until = Annotated[str | None, typer.Option("--until", metavar="DATE", help="Last day.")]
ToPhone = Annotated[str | None, typer.Option("--phone", metavar="P", help="Only this number.")]
State = Annotated[str | None, typer.Option("--state", metavar="S", help="Only this delivery state.")]
OfCommand = Annotated[str | None, typer.Option("--command", metavar="C", help="Only this command, such as 'sms send'.")]
OfJob = Annotated[str | None, typer.Option("--job", metavar="J", help="Only this job's recipients: its ID or name.")]
Limit = Annotated[
    str | None, typer.Option("--limit", metavar="N", help=f"Only the newest N entries. [default: {USUAL_LIMIT}]")
]


@app.callback(invoke_without_command=True)
def history(
    ctx: typer.Context,
    since: Since = None,
    until: Until = None,
    phone: ToPhone = None,
    country_code: CountryCode = None,
    state: State = None,
    command: OfCommand = None,
    job: OfJob = None,
    limit: Limit = None,
) -> OwnResult | None:
    given = (since, until, phone, country_code, state, command, job, limit)
    if ctx.invoked_subcommand is None:
        return list_(ctx, *given)
    if any(each is not None for each in given):
        raise UsageError(
            f"{ctx.command_path} {ctx.invoked_subcommand} takes its options after its name",
            f"See: {ctx.command_path} {ctx.invoked_subcommand} --help",
        )
    return None


@command(
    app,
    "list",
    "msgctl history",
    "msgctl history list --since 7d",
    "msgctl history --phone 573001234567 --limit 5",
    "msgctl -p main history --json",
)
def list_(
    ctx: typer.Context,
    since: Since = None,
    until: Until = None,
    phone: ToPhone = None,
    country_code: CountryCode = None,
    state: State = None,
    command: OfCommand = None,
    job: OfJob = None,
    limit: Limit = None,
) -> OwnResult:
    """List what was sent, the newest last. `msgctl history` does the same.

    The outcome is accepted, refused, not sent, or unknown: the request was sent, but it is not known whether the
    service carried it out. With -p, only what was sent with that profile.

    Days begin at midnight of this machine's time zone.
    """
    context = Context.of(ctx)
    most = USUAL_LIMIT if limit is None else values.whole_number(limit, "--limit", 1, MOST_LISTED)
    today = context.today()
    filters = {
        **period(since, until, today),
        "phone": None if phone is None else Country(country_code).any(context, phone),
        "state": optional(state, "--state"),
        "command": optional(command, "--command"),
        "profile": context.options.profile,
    }
    context.check_fields((*FIELDS, RESPONSE))
    found: list[dict[str, Any]] = []
    if job is None:
        with reading() as history:
            found = [] if history is None else history.entries(most, **filters)
    if paths.state("jobs").exists() or job is not None:
        found += _of_jobs(most, job, filters, context.warn)
        found = sorted(found, key=lambda entry: str(entry["time"]))[-most:]
    is_filtered = job is not None or any(value is not None for value in filters.values())
    empty = "No matching messages in the history." if is_filtered else "The history is empty."
    if RESPONSE not in context.options.fields:
        found = [{name: entry[name] for name in FIELDS} for entry in found]
    return OwnResult(found, FIELDS, (RESPONSE,), SPARE_COLUMNS, view="history", empty=empty)


def period(since: str | None, until: str | None, today: date) -> dict[str, str | None]:
    """Return the times since and until which entries are wanted, the latter excluded. Raises UsageError."""
    if since is not None and until is not None:
        values.days(since, until, today)
    return {
        "since": None if since is None else _start(values.day(since, today)),
        "until": None if until is None else _start(values.day(until, today) + timedelta(days=1)),
    }


def _start(day: date) -> str:
    """Return when a day begins in this machine's time zone, as an entry's time."""
    if day.year < 1970:
        return timestamp(0)
    return timestamp(datetime(day.year, day.month, day.day).timestamp())


@command(app, "clear", "msgctl history clear", "msgctl history clear --before 90d --yes")
def clear(
    ctx: typer.Context,
    before: Annotated[
        str | None, typer.Option("--before", metavar="DATE", help="Only entries before this day.")
    ] = None,
) -> None:
    """Delete the history. With -p, only what was sent with that profile."""
    context = Context.of(ctx)
    context.refuse_dry_run("history clear")
    start = None if before is None else _start(values.day(before, context.today()))
    profile = context.options.profile
    whose = "" if profile is None else f" of profile {values.quote(profile)}"
    prompts.confirm(context, f"Delete the history{whose}{'' if before is None else f' before {before}'}?")
    deleted = clear_file(profile, start)
    context.note(
        "The history was damaged; it is empty now."
        if deleted is None
        else f"Deleted {plural(deleted, 'entry', 'entries')}{whose}."
    )


def _of_jobs(
    limit: int, job: str | None, filters: Mapping[str, str | None], warn: Callable[[str], None]
) -> list[dict[str, Any]]:
    """Return the newest entries of one job or of all, the newest last; ``filters`` are those of the history.

    ``warn`` is called for each ledger that cannot be read.
    """
    since, until = filters["since"] or "", filters["until"] or "9"

    def read(job: str, spec: JobSpec, db: sqlite3.Connection) -> list[dict[str, Any]]:
        if filters["command"] not in (None, spec.command):
            return []
        entries = [_entry(job, spec, row) for row in _newest(db, limit, filters)]
        return [entry for entry in entries if since <= entry["time"] < until]

    return sorted(read_jobs(job, filters, read, warn), key=lambda entry: str(entry["time"]))[-limit:]


def read_jobs(
    job: str | None,
    filters: Mapping[str, str | None],
    read: Callable[[str, JobSpec, sqlite3.Connection], list[Read]],
    warn: Callable[[str], None],
) -> list[Read]:
    """Return all that ``read`` finds in the ledger of one job or of all, of the profile in ``filters`` if it names one.

    ``warn`` is called for each ledger that cannot be read.
    """
    store = Store(paths.state("jobs"))
    found: list[Read] = []
    for each in store.ids() if job is None else [store.find(job)]:
        path = store.path(each)
        try:
            with LEDGER.opened(path, read_only=True) as db:
                spec = JobSpec.load(db.execute("SELECT value FROM job WHERE name = 'spec'").fetchone()[0])
                if filters["profile"] in (None, spec.profile):
                    found += read(each, spec, db)
        except ConfigurationError as error:
            if job is not None:
                raise
            warn(f"Job {each} is not included: {error.message}")
    return found


def _newest(db: sqlite3.Connection, limit: int, filters: Mapping[str, str | None]) -> list[tuple[Any, ...]]:
    # Days are compared later, so a limit would cut entries of an earlier day off.
    most = limit if filters["until"] is None else -1
    query = _NEWEST_OF_JOB.format(
        "" if filters["phone"] is None else "phone = :phone AND recipient.message NOTNULL AND"
    )
    rows = db.execute(query, {"phone": filters["phone"], "state": filters["state"], "limit": most}).fetchall()
    return rows[::-1]


def _entry(job: str, spec: JobSpec, row: tuple[Any, ...]) -> dict[str, Any]:
    updated, phone, state, message_id, status, delivery, charged, parameters, body = row
    return {
        "time": timestamp(updated),
        "profile": spec.profile,
        "command": spec.command,
        "job": job,
        "phone": phone,
        "outcome": state if state in (ACCEPTED, REFUSED) else UNKNOWN,
        "id": message_id,
        "status": status,
        "state": delivery,
        "credits": None if charged is None else Number(charged),
        "message": message_of(spec.performs, {**spec.fixed, **json.loads(parameters)}, None),
        "response": body,
    }
