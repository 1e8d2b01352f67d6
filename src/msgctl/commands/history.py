"""`msgctl history`: messages sent from this machine, and their results."""

import json
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from datetime import date, datetime, timedelta
from operator import itemgetter
from typing import Annotated, Any

import typer

from msgctl import values
from msgctl.cli import prompts
from msgctl.cli.context import Context
from msgctl.cli.options import Country, CountryCode, optional
from msgctl.cli.tree import command, expanded, group
from msgctl.errors import ConfigurationError, UsageError
from msgctl.history.store import HISTORY_FIELDS, SECONDS, message_of, number, reading, same_state
from msgctl.jobs.ledger import JobFacts, facts
from msgctl.jobs.model import JobSpec
from msgctl.jobs.schema import LEDGER
from msgctl.jobs.states import State
from msgctl.jobs.store import Store
from msgctl.output.result import OwnResult
from msgctl.recipients import ACCEPTED, REFUSED, UNKNOWN
from msgctl.storage import files
from msgctl.text import plural, timestamp

app = group(
    """Messages sent from this machine, and their results.

    Without a command, list the newest 20 entries, one for each number: messages, calls, recipients of jobs,
    verification messages (never their codes) and blocked numbers. A profile with `history = false` keeps no history.
    """
)

RESPONSE = "response"
"""The response, if the outcome is unknown; shown only with --fields."""
USUAL_LIMIT = 20
DAY = 86400
MAX_LISTED = 1_000_000

_COLUMNS = ("time", "phone", "outcome", "id", "status", "state", "credits", "parameters", RESPONSE)
_WANTED = """time >= coalesce(:since, '') AND time < coalesce(:until, '9')
    AND (:state IS NULL OR is_same(delivery, :state)) {}"""
_OF_JOB = f"""
    SELECT strftime('%Y-%m-%dT%H:%M:%fZ', ended, 'unixepoch') AS time, phone, result.state, result.id, status,
    delivery, credits, parameters, body
    FROM recipient JOIN result USING (line) JOIN request ON number = request JOIN message ON message.id = message
    WHERE {_WANTED} AND (:running OR line NOT IN in_flight)
    ORDER BY number DESC, line DESC LIMIT :limit
"""  # noqa: S608
# What a killed process left in flight. Its last write was this intent, so the time of the file is used.
_LOST = f"""
    SELECT :written AS time, phone, outcome.state, outcome.id, status, delivery, credits, parameters, NULL
    FROM outcome JOIN message ON message.id = message
    WHERE {_WANTED} AND NOT :running AND line IN in_flight ORDER BY line LIMIT :limit
"""  # noqa: S608
_OUTCOMES = {State.ACCEPTED: ACCEPTED, State.REFUSED: REFUSED, State.PENDING: REFUSED, State.EXCLUDED: REFUSED}
"""The outcome of a recipient's newest request, by state: pending or excluded ones had been refused."""
_TO_PHONE = "AND phone = :phone AND message NOTNULL"  # as in the index


@dataclass(frozen=True)
class Period:
    """The days that are wanted."""

    since: Annotated[
        str | None, typer.Option("--since", metavar="DATE", help="First day: YYYY-MM-DD, today, yesterday, or 7d.")
    ] = None
    until: Annotated[str | None, typer.Option("--until", metavar="DATE", help="Last day.")] = None

    def times(self, today: date) -> dict[str, str | None]:
        """Return the times since and until which entries are wanted, the latter excluded. Raises UsageError."""
        if self.since is not None:
            values.days(self.since, self.until, today)
        return {
            "since": None if self.since is None else _start(values.day(self.since, today)),
            "until": None if self.until is None else _start(values.day(self.until, today) + timedelta(days=1)),
        }


@dataclass(frozen=True)
class Listing(Period):
    """Which entries of the history are wanted."""

    phone: Annotated[str | None, typer.Option("--phone", metavar="P", help="Only this number.")] = None
    country_code: CountryCode = None
    state: Annotated[str | None, typer.Option("--state", metavar="S", help="Only this delivery state.")] = None
    command: Annotated[
        str | None, typer.Option("--command", metavar="C", help="Only this command, such as 'sms send'.")
    ] = None
    job: Annotated[
        str | None, typer.Option("--job", metavar="J", help="Only this job's recipients: its ID or name.")
    ] = None
    limit: Annotated[
        str | None, typer.Option("--limit", metavar="N", help=f"Only the newest N entries. [default: {USUAL_LIMIT}]")
    ] = None

    def filters(self, context: Context) -> dict[str, str | None]:
        """Return what entries must have, by column; None for anything. Raises UsageError."""
        return {
            **self.times(context.today()),
            "phone": None if self.phone is None else Country(self.country_code).any(context, self.phone),
            "state": optional(self.state, "--state"),
            "command": optional(self.command, "--command"),
            "profile": context.options.profile,
        }


def history(ctx: typer.Context, listing: Listing) -> OwnResult | None:
    if ctx.invoked_subcommand is None:
        return list_(ctx.obj, listing)
    if listing != Listing():
        raise UsageError(
            f"{ctx.command_path} {ctx.invoked_subcommand} takes its options after its name",
            f"See: {ctx.command_path} {ctx.invoked_subcommand} --help",
        )
    return None


app.callback(invoke_without_command=True)(expanded(history))


@command(
    app,
    "list",
    "msgctl history",
    "msgctl history list --since 7d",
    "msgctl history --phone 573001234567 --limit 5",
    "msgctl -p main history --json",
)
def list_(context: Context, listing: Listing) -> OwnResult:
    """List what was sent, the newest last. `msgctl history` does the same.

    The outcome is accepted, refused, not sent, or unknown: the request was sent, but it is not known whether the
    service carried it out. With -p, only what was sent with that profile.

    Days begin at midnight of this machine's time zone.
    """
    most = USUAL_LIMIT if listing.limit is None else values.whole_number(listing.limit, "--limit", 1, MAX_LISTED)
    filters = listing.filters(context)
    context.check_fields((*HISTORY_FIELDS, RESPONSE))
    found: list[dict[str, Any]] = []
    store = Store(files.state("jobs"))
    if listing.job is not None:
        job = store.find(listing.job)
        found = _of_job(store, job, facts(store.path(job)).spec, most + 1, filters)
    else:
        with reading() as history:
            found = [] if history is None else history.entries(most + 1, **filters)
        found += _of_jobs(store, most + 1, filters, found, context.warn)
    if len(found) > most and listing.limit is None:
        context.note(f"The newest {most} entries. To list more: msgctl history --limit 1000")
    found = sorted(found, key=itemgetter("time"))[-most:]
    for entry in found:
        entry["time"] = f"{entry['time'][:SECONDS]}Z"
    is_whole = listing == Listing() and context.options.profile is None
    empty = "The history is empty." if is_whole else "No matching messages in the history."
    if RESPONSE not in context.options.fields:
        found = [{name: entry[name] for name in HISTORY_FIELDS} for entry in found]
    return OwnResult(found, HISTORY_FIELDS, view="history", empty=empty)


def _start(day: date) -> str:
    """Return when a day begins in this machine's time zone, as the beginning of an entry's time."""
    begins = 0 if day.year < 1970 else datetime(day.year, day.month, day.day).timestamp()
    return timestamp(begins)[:SECONDS]


@command(app, "clear", "msgctl history clear", "msgctl history clear --before 90d --yes", asks=True)
def clear(
    context: Context,
    before: Annotated[
        str | None, typer.Option("--before", metavar="DATE", help="Only entries before this day.")
    ] = None,
) -> None:
    """Delete the history. With -p, only what was sent with that profile.

    For 24 hours msgctl keeps the numbers of single sends, and a digest of each message, to notice repeats.
    """
    start = None if before is None else _start(values.day(before, context.today()))
    profile = context.options.profile
    whose = "" if profile is None else f" of profile {values.quote(profile)}"
    prompts.confirm(context, f"Delete the history{whose}{'' if before is None else f' before {before}'}?")
    with reading() as history:
        recent = timestamp(context.clock() - DAY)
        deleted = 0 if history is None else history.clear(profile, start, contacts_before=recent)
    context.note(f"Deleted {plural(deleted, 'entry', 'entries')}{whose}.")


def _of_jobs(
    store: Store,
    most: int,
    filters: Mapping[str, str | None],
    others: Iterable[dict[str, Any]],
    warn: Callable[[str], None],
) -> list[dict[str, Any]]:
    """Return the newest entries of all jobs, and perhaps older ones; they are listed together with ``others``.

    Ledgers whose entries are too old to be listed are not opened. ``warn`` is called for each that cannot be read.
    """
    since, until = filters["since"] or "", filters["until"] or "9"
    known: dict[str, JobFacts] = {}
    with store.index() as index:
        for job in index.jobs:
            try:
                known[job] = index.facts(job)
            except ConfigurationError as error:
                warn(f"Job {job} is not included: {error.message}")
    found: dict[str, list[dict[str, Any]]] = {job: [] for job in known}
    newest = sorted(each["time"] for each in others)[-most:]
    for job in sorted(known, key=lambda job: _last(known[job]), reverse=True):
        first, last = known[job].first, _last(known[job])
        if not last or last < since or (len(newest) == most and last <= newest[0]):
            break
        if first is None or timestamp(first) < until:
            try:
                found[job] = _of_job(store, job, known[job].spec, most, filters)
            except ConfigurationError as error:
                warn(f"Job {job} is not included: {error.message}")
            newest = sorted([*newest, *(each["time"] for each in found[job])])[-most:]
    return [entry for entries in found.values() for entry in entries]


def _last(known: JobFacts) -> str:
    """Return the time of a job's newest entry, rounded as SQLite does; a request in flight may be newer than any."""
    if known.is_in_flight:
        return "9"
    return "" if known.last is None else timestamp(int(known.last * 1000 + 0.5) / 1000, "milliseconds")


def _of_job(
    store: Store, job: str, spec: JobSpec, most: int, filters: Mapping[str, str | None]
) -> list[dict[str, Any]]:
    """Return the newest entries of a job. Raises ConfigurationError."""
    if filters["command"] not in (None, spec.command) or filters["profile"] not in (None, spec.profile):
        return []
    ledger = store.path(job)
    log = ledger.with_name(f"{ledger.name}-wal")
    with LEDGER.opened(ledger, read_only=True) as db:
        db.create_function("is_same", 2, same_state)
        written = [each.stat().st_mtime for each in (log, ledger) if each.exists() and each.stat().st_size]
        given = {
            "limit": most,
            "running": store.is_running(job),
            "written": timestamp(written[0], "milliseconds"),
            **filters,
        }
        to_phone = "" if filters["phone"] is None else _TO_PHONE
        rows = db.execute(_OF_JOB.format(to_phone), given).fetchall()[::-1]
        rows += db.execute(_LOST.format(to_phone), given)
        return [_entry(job, spec, row) for row in rows]


def _entry(job: str, spec: JobSpec, row: tuple[Any, ...]) -> dict[str, Any]:
    if bytes in map(type, row):
        raise TypeError("a value is not text")
    found: dict[str, Any] = dict(zip(_COLUMNS, row, strict=True))
    values = {**spec.fixed, **json.loads(found["parameters"])}
    return {
        **found,
        "profile": spec.profile,
        "command": spec.command,
        "job": job,
        "outcome": _OUTCOMES.get(found["outcome"], UNKNOWN),
        "credits": number(found["credits"]),
        "message": message_of(spec.performs, values, None),
    }
