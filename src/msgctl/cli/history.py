"""`msgctl history`: what was sent from this machine."""

from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Annotated, Any

import typer

from msgctl import values
from msgctl.cli.context import Context
from msgctl.cli.tree import command, group
from msgctl.config import profiles
from msgctl.errors import UsageError
from msgctl.storage import paths
from msgctl.times import timestamp

app = group(
    """What was sent from this machine, and what came of it.

    Alone, `msgctl history` lists the newest 20 entries. Times are UTC; the day of --since begins at midnight of this
    machine's time zone.

    It has each `sms send`, `call send`, `chatapp send` and `chatapp order`, with its text. It never has verification
    codes, and the recipients of a file are in their job. A profile with `history = false` keeps no history.
    """
)

COLUMNS = ("time", "profile", "command", "phone", "outcome", "id", "status", "credits", "message")
SPARE_COLUMNS = ("credits", "status", "command", "profile")
"""What the table of a narrow terminal does without, the first one first: it says the least of what was sent."""
USUAL_LIMIT = 20
MOST_LISTED = 1_000_000

Since = Annotated[
    str | None, typer.Option("--since", metavar="DATE", help="First day: YYYY-MM-DD, today, yesterday, or 7d.")
]
ToPhone = Annotated[str | None, typer.Option("--phone", metavar="P", help="Only what was sent to this number.")]
Limit = Annotated[
    str | None, typer.Option("--limit", metavar="N", help=f"Only the newest N entries. [default: {USUAL_LIMIT}]")
]


@app.callback(invoke_without_command=True)
def history(ctx: typer.Context, since: Since = None, phone: ToPhone = None, limit: Limit = None) -> None:
    if ctx.invoked_subcommand is None:
        _list(Context.of(ctx), since, phone, limit)
    elif any(each is not None for each in (since, phone, limit)):
        raise UsageError(
            "--since, --phone and --limit are options of the list",
            f"See: {ctx.command_path} {ctx.invoked_subcommand} --help",
        )


@command(
    app,
    "list",
    "msgctl history",
    "msgctl history list --since 7d",
    "msgctl history --phone 573001234567 --limit 5",
    "msgctl -p main history --json",
)
def list_(ctx: typer.Context, since: Since = None, phone: ToPhone = None, limit: Limit = None) -> None:
    """List what was sent, the newest last.

    So does `msgctl history` alone. There is a row for each number. The outcome is accepted, refused, not-sent, or
    unknown: the request was on its way, and may have been carried out. With -p, only what was sent with that profile.

    Times are UTC; the day of --since begins at midnight of this machine's time zone. Where a terminal is narrow, the
    table leaves out credits, then status, command and profile; csv, tsv and JSON have them all.
    """
    _list(Context.of(ctx), since, phone, limit)


def _list(context: Context, since: str | None, phone: str | None, limit: str | None) -> None:
    most = USUAL_LIMIT if limit is None else values.whole_number(limit, "--limit", 1, MOST_LISTED)
    first = None if since is None else _start_of_day(context, since)
    number = None if phone is None else values.phone(phone)
    context.check_own_fields(COLUMNS)
    from msgctl.history import reading

    with reading(paths.history_file()) as notes:
        found = [] if notes is None else notes.entries(most, first, number, context.options.profile)
    context.show(found, COLUMNS, spare=SPARE_COLUMNS, empty=_emptiness(context, is_narrowed=bool(since or phone)))


def _emptiness(context: Context, *, is_narrowed: bool) -> str:
    """What there is to say of a list without entries."""
    such = "such " if is_narrowed else ""
    profile = context.options.profile
    if profile is not None:
        return f"the history has no {such}entry of profile {values.quote(profile)}"
    return f"the history has no {such}entry" if such else "the history is empty"


def _start_of_day(context: Context, text: str) -> str:
    """When a day of this machine's calendar begins, as the time of an entry."""
    day = values.day(text, context.today())
    if day.year < 1970:
        return timestamp(0)
    return timestamp(datetime(day.year, day.month, day.day).timestamp())


@command(app, "clear", "msgctl history clear", "msgctl history clear --yes")
def clear(ctx: typer.Context) -> None:
    """Forget what was sent. With -p, only what was sent with that profile."""
    from msgctl.history import clear as forget

    context = Context.of(ctx)
    context.refuse_dry_run("history clear")
    profile = context.options.profile
    whose = "" if profile is None else f" of profile {values.quote(profile)}"
    context.confirm(f"Forget the history{whose}?")
    forgotten = forget(paths.history_file(), profile)
    if forgotten is None:
        context.note("the history was broken; it is empty now")
    elif forgotten:
        context.note(f"forgot {forgotten:,} {'entry' if forgotten == 1 else 'entries'}{whose}")
    else:
        context.note(f"there was nothing to forget: the history has no entry{whose}")


def last_ids(context: Context) -> list[str]:
    """The identifiers of the newest dispatch of the profile in use. Raises UsageError where there are none."""
    profile = context.profile
    if not profile.history:
        raise UsageError(
            f"--last: profile {profile.name} keeps no history (history = false)", "Give the ID of each message."
        )
    from msgctl.history import reading

    with reading(paths.history_file()) as notes:
        entries = [] if notes is None else notes.last(profile.name, profile.base_url)
        others = [] if notes is None or entries else notes.entries(1)
    if not entries:
        raise UsageError(
            f"--last: the history holds nothing that was sent with profile {profile.name}",
            f"Give the ID of each message.{_of_another(others, profile.name)}",
        )
    if ids := [entry["id"] for entry in entries if entry["id"]]:
        return ids
    newest = entries[0]
    raise UsageError(
        f"--last: the newest dispatch ({newest['command']}, {newest['time']}) has no identifiers; "
        f"its outcome is {newest['outcome']}",
        "Give the ID of each message; msgctl history lists earlier ones.",
    )


def _of_another(entries: Sequence[Mapping[str, Any]], in_use: str) -> str:
    """What to type where the newest entry is of another profile than the one in use; the file may hold any name."""
    name = entries[0]["profile"] if entries else None
    if name in (None, in_use, profiles.ENVIRONMENT) or (name != profiles.SANDBOX and profiles.name_fault(name)):
        return ""
    return f" Or look at what profile {name} sent last: msgctl -p {name} state get --last"
