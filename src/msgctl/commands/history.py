"""`msgctl history`: messages sent from this machine, and their results."""

from datetime import date, datetime, timedelta
from operator import itemgetter
from typing import Annotated, Any

import typer

from msgctl import values
from msgctl.cli import prompts
from msgctl.cli.context import Context
from msgctl.cli.option_group import OptionGroup
from msgctl.cli.options import Country, CountryCode
from msgctl.cli.parsers import date_option, number_option
from msgctl.cli.tree import command, default_command, group
from msgctl.errors import MsgctlError, UsageError
from msgctl.history.job_entries import RESPONSE, of_job, of_jobs
from msgctl.history.store import CONTACT_SECONDS, HISTORY_FIELDS, SECONDS, reading
from msgctl.jobs.ledger import facts
from msgctl.jobs.store import Store
from msgctl.output.result import OwnResult
from msgctl.storage import files
from msgctl.text import clean, plural, timestamp

app = group(
    """Messages sent from this machine, and their results.

    Without a command, list the newest 20 entries, one for each number: messages, calls, recipients of jobs,
    verification messages (never their codes) and blocked numbers.

    The outcome is accepted, refused, not sent, or unknown: the request was sent, but it is not known whether the
    service carried it out. With -p, only what was sent with that profile. Days begin at midnight of this machine's
    time zone.
    """
)

USUAL_LIMIT = 20
MAX_LISTED = 1_000_000


class Period(OptionGroup):
    """The days to show."""

    since: Annotated[date | None, date_option("--since", "First day: YYYY-MM-DD, today, yesterday, or 7d.")] = None
    until: Annotated[date | None, date_option("--until", "Last day.")] = None

    def times(self, today: date) -> dict[str, str | None]:
        """Return the first time of the days, and the first time after them. Raises UsageError."""
        if self.since is not None:
            values.last_day(self.since, self.until, today)
        return {
            "since": None if self.since is None else _start(self.since),
            "until": None if self.until is None else _start(self.until + timedelta(days=1)),
        }


class Listing(Period):
    """Filters for entries of the history."""

    phone: Annotated[str | None, typer.Option("--phone", metavar="P", help="Only this number.")] = None
    country_code: CountryCode = None
    job: Annotated[
        str | None, typer.Option("--job", metavar="J", help="Only this job's recipients: its ID or name.")
    ] = None
    limit: Annotated[
        int | None, number_option("--limit", f"Only the newest N entries. [default: {USUAL_LIMIT}]", 1, MAX_LISTED)
    ] = None

    def filters(self, context: Context) -> dict[str, str | None]:
        """Return the filters by column; None matches anything. Raises UsageError."""
        return {
            **self.times(context.today()),
            "phone": None if self.phone is None else Country(self.country_code).any(context, self.phone),
            "profile": context.options.profile,
        }


@default_command(
    app,
    "msgctl history",
    "msgctl history --since 7d",
    "msgctl history --phone 573001234567 --limit 5",
    "msgctl -p main history --json",
    output=HISTORY_FIELDS,
)
def history(ctx: typer.Context, listing: Listing) -> OwnResult | None:
    if ctx.invoked_subcommand is None:
        return _listed(ctx.obj, listing)
    if not listing.is_empty:
        raise UsageError(
            f"Put options after `{ctx.invoked_subcommand}`",
            f"See: {ctx.command_path} {ctx.invoked_subcommand} --help",
        )
    return None


def _listed(context: Context, listing: Listing) -> OwnResult:
    most = listing.limit or USUAL_LIMIT
    filters = listing.filters(context)
    context.check_fields((*HISTORY_FIELDS, RESPONSE))
    found: list[dict[str, Any]] = []
    failures: list[MsgctlError] = []
    store = Store(files.state("jobs"))
    if listing.job is not None:
        job = store.find(listing.job)
        found = of_job(store, job, facts(store.path(job)).spec, most + 1, filters)
    else:
        with reading() as history:
            found = [] if history is None else history.entries(most + 1, **filters)
        found += of_jobs(store, most + 1, filters, found, failures)
    if len(found) > most and listing.limit is None:
        context.note(f"The newest {most} entries. To list more: msgctl history --limit 1000")
    found = sorted(found, key=itemgetter("time"))[-most:]
    for entry in found:
        entry["time"] = f"{entry['time'][:SECONDS]}Z"
    is_whole = listing.is_empty and context.options.profile is None
    empty = "The history is empty." if is_whole else "No matching messages in the history."
    if RESPONSE not in context.options.fields:
        found = [{name: entry[name] for name in HISTORY_FIELDS} for entry in found]
    return OwnResult(found, HISTORY_FIELDS, view="history", empty=empty, failures=failures)


def _start(day: date) -> str:
    """Return when a day begins in this machine's time zone, as the beginning of an entry's time."""
    begins = 0 if day.year < 1970 else datetime(day.year, day.month, day.day).timestamp()
    return timestamp(begins)[:SECONDS]


@command(app, "clear", "msgctl history clear", "msgctl history clear --before 90d --yes", asks=True)
def clear(
    context: Context,
    before: Annotated[date | None, date_option("--before", "Only entries before this day.")] = None,
) -> None:
    """Delete the history of the account.

    msgctl still keeps recent recipients' numbers and a digest of each single send for eight days: --at-most and the
    check for repeats need them.
    """
    start, profile = None if before is None else _start(before), context.profile
    recent = timestamp(max(0, context.clock() - CONTACT_SECONDS))
    with reading() as history:
        number = 0 if history is None else history.count(profile.name, start)
        if history is None or not number:
            context.note("There is nothing to delete.")
            return
        entries = f"{plural(number, 'entry', 'entries')} of profile {values.quote(profile.name)}"
        whose = f"{entries}, client {profile.client} of {clean(profile.base_url)}"
        prompts.confirm(context, f"Delete {whose}{'' if before is None else f', before {before}'}?")
        deleted = history.clear(profile.name, start, contacts_before=recent)
    context.note(f"Deleted {plural(deleted, 'entry', 'entries')} of profile {values.quote(profile.name)}.")
