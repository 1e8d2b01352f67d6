"""`msgctl history`: the messages in the store, and their results."""

from collections.abc import Sequence
from datetime import date, timedelta
from pathlib import Path
from typing import Annotated, Any

import typer

from msgctl import values
from msgctl.cli.options.send import StoredNumbers
from msgctl.cli.options.which_job import job_named
from msgctl.cli.shell import prompts
from msgctl.cli.shell.completion import job_names
from msgctl.cli.shell.context import Context
from msgctl.cli.shell.options import OptionGroup, date_option, number_option, save_option, value_option
from msgctl.cli.shell.tree import command, group
from msgctl.credits import as_credits
from msgctl.errors import Hint, UsageError
from msgctl.output.result import Document, Format, Layout, OwnResult, StoredRows, TextResult
from msgctl.phones import InvalidPhoneError, parse_number, with_country
from msgctl.store import history as entries
from msgctl.store import people
from msgctl.store.history import Entry
from msgctl.text import plural, timestamp

HISTORY_FIELDS = (
    *("time", "profile", "command", "job", "phone", "outcome", "id", "status", "state", "credits"),
    "message",
)
SHOWN = 20
"""Entries that a terminal shows without --limit."""
MAX_LIMIT = 1_000_000

app = group(
    """Show messages that were sent, and their results.

    Without a command, list messages, calls, recipients of jobs, verification messages (never their codes) and blocked
    numbers, the newest last. A terminal shows the newest 20. A PostgreSQL store contains the entries of all machines.

    The outcome is accepted, refused or unknown. Unknown means that the service may have carried out the request. With
    -p, list only the entries of that profile. Days begin at midnight in the profile's time zone, or
    else this machine's.
    """
)


class Period(OptionGroup):
    """The days to show."""

    since: Annotated[
        date | None, date_option("--since", "First day: YYYY-MM-DD, today, yesterday, or 7d for seven days ago.")
    ] = None
    until: Annotated[date | None, date_option("--until", "Last day.")] = None

    def times(self, context: Context) -> dict[str, int | None]:
        """Return the beginning of the days and the time after them, in milliseconds since 1970. Raises UsageError."""
        if self.since is not None:
            values.last_day(self.since, self.until, context.now().date())
        until = self.until and min(self.until, date.max - timedelta(days=1))
        return {
            "since": None if self.since is None else context.start_of(self.since),
            "until": None if until is None else context.start_of(until + timedelta(days=1)),
        }


class Listing(StoredNumbers, Period):
    """Filters for entries of the history."""

    phone: Annotated[str | None, value_option("--phone", "P", "Only this number.")] = None
    job: Annotated[
        str | None, value_option("--job", "J", "Only recipients of this job (ID or name).", complete=job_names)
    ] = None
    limit: Annotated[
        int | None,
        number_option("--limit", "Only the newest N entries. [default: all; on a terminal 20]", 1, MAX_LIMIT),
    ] = None
    save: Annotated[Path | None, save_option()] = None


@command(
    app,
    None,
    "msgctl history",
    "msgctl history --since 7d",
    "msgctl history --phone 573001234567 --limit 5",
    "msgctl -p main history --json",
    output=HISTORY_FIELDS,
    json="list",
)
def history(ctx: typer.Context, listing: Listing) -> OwnResult | None:
    if ctx.invoked_subcommand is None:
        ctx.obj.check_fields(HISTORY_FIELDS)
        return _listed(ctx.obj, listing)
    if not listing.is_empty:
        raise UsageError(
            f"Put options after `{ctx.invoked_subcommand}`",
            f"See: {ctx.command_path} {ctx.invoked_subcommand} --help",
        )
    return None


def _listed(context: Context, listing: Listing) -> OwnResult:
    most = listing.limit
    is_table = context.format is Format.TABLE and listing.save is None
    if most is None and is_table and context.stdout.isatty():
        most = SHOWN
    filters: dict[str, Any] = {**listing.times(context), "phone": None, "profile": context.options.profile}
    if listing.phone is not None:
        filters["phone"] = listing.digits_to_find(context, listing.phone)
    if listing.job is not None:
        filters["job"] = job_named(context, listing.job).number
    document = _document_for_people if is_table else _document
    documents: Sequence[Document] | StoredRows
    if most is None:
        documents = StoredRows(lambda: map(document, entries.all_entries(context.store, **filters)))
    else:
        newest = entries.entries(context.store, most + 1, **filters)
        if len(newest) > most and listing.limit is None:
            context.note(Hint(f"The newest {most:,} entries. To list more: ", "history --limit 1000"))
        documents = [document(entry) for entry in newest[-most:]]
    empty = "No matching messages in the history."
    if listing.is_empty and filters["profile"] is None:
        empty = "The history is empty."
    about = []
    if filters["phone"] is not None:
        optouts = _optouts(context, filters["phone"])
        zone = str(context.zone or context.now().astimezone().tzname())
        named = _named(filters["phone"])
        if named == filters["phone"]:
            empty += f" {named} is not a full phone number."
        about = [("Phone", named), ("Opted out", optouts or "no"), ("Time zone", zone)]
        if optouts and not is_table:
            context.note(f"{filters['phone']} has opted out: {optouts}.")
    return OwnResult(documents, HISTORY_FIELDS, Layout.HISTORY, empty=empty, about=about, save=listing.save)


def _document(entry: Entry) -> dict[str, Any]:
    document = {name: getattr(entry, name) for name in HISTORY_FIELDS}
    return document | {"time": timestamp(entry.time / 1000), "credits": as_credits(entry.credits)}


def _document_for_people(entry: Entry) -> Document:
    """Return an entry with the name of its job instead of the ID."""
    return _document(entry) | {"job": entry.name or entry.job}


def _named(phone: str) -> str:
    """Return a number with its country; only the digits if it is not a valid number there."""
    try:
        return with_country(parse_number(f"+{phone}").digits)
    except InvalidPhoneError:
        return phone


def _optouts(context: Context, phone: str) -> str:
    """Return the channels that a number has opted out of, each with its time."""
    optouts = []
    for optout in people.optouts_of(context.store, phone):
        channel = "all channels" if optout.channel == people.ALL else optout.channel
        optouts.append(f"{channel} since {context.time_in_words(optout.time / 1000)}")
    return ", ".join(optouts)


@command(app, "clear", "msgctl history clear", "msgctl history clear --before 90d --yes", asks=True)
def clear(
    context: Context,
    before: Annotated[
        date | None, date_option("--before", "Only single sends before this day, and jobs created before it.")
    ] = None,
) -> TextResult:
    """Delete the history of the profile's account: single sends, and jobs that are done or cancelled.

    For 90 days, the store keeps the data that prevents repeats: each --once key with its result, the name and digest of
    each job, and the number, digest and time of each message. A result may quote the message. Opt-outs stay until you
    remove them.
    """
    profile = context.profile
    start = None if before is None else context.start_of(before)
    old = entries.clearable(context.store, profile.account, start)
    if not old.numbers:
        context.note("There is nothing to delete.")
        return TextResult("", {"profile": profile.name, "account": profile.account, "deleted": 0})
    parts = []
    if old.entries:
        parts.append(plural(old.entries, "entry", "entries"))
    if old.jobs:
        parts.append(plural(old.jobs, "job"))
    records = " and ".join(parts)
    when = "" if before is None else f", before {before}"
    question = f"Delete {records} of {prompts.account_in_words(profile)}{when}?"
    done = f"Deleted {records} of profile {values.quote(profile.name)}."
    prompts.delete_sent(context, old.numbers, "single sends and jobs", question, done)
    return TextResult("", {"profile": profile.name, "account": profile.account, "deleted": old.entries})
