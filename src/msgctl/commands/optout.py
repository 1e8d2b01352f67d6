"""`msgctl optout`: the list of people who must not get messages."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING, Annotated

import typer

from msgctl.cli.options.bulk import Source
from msgctl.cli.options.send import Phones, StoredNumbers
from msgctl.cli.shell.context import Context
from msgctl.cli.shell.options import Choice, choice_option
from msgctl.cli.shell.tree import command, group
from msgctl.errors import UsageError
from msgctl.operations import CHANNELS
from msgctl.output.result import Document, Layout, OwnResult, StoredRows, TextResult
from msgctl.phones import with_country
from msgctl.text import plural, some_of, timestamp

if TYPE_CHECKING:
    from msgctl.lists.faults import Faults
    from msgctl.lists.rows import InvalidRow, Recipient
    from msgctl.lists.table import Recipients

app = group(
    """Manage numbers that must not get your messages.

    The list is in the store, for all accounts that use it. The sandbox has a separate list, and so does a profile with
    another store. Jobs leave these numbers out, even jobs in progress. `sms send`, `call send` and `chatapp` refuse
    them without --ignore-optout. Verification codes are not affected. With --channel, an opt-out is
    only for SMS, calls or chat-app messages.

    To let the service block a number for the whole account, use `msgctl block`.
    """
)

OPTOUT_COLUMNS = ("phone", "channel", "added")
CORRECT = "Fix the file, or add only the valid numbers with --skip-invalid."
IMPORTED = ("line", "phone", "outcome", "reason")
"""The columns of the rows of a file, in a dry run."""

channel_parser = Choice((*CHANNELS, "all"), "channel")
Channel = Annotated[
    str, choice_option("--channel", "CHANNEL", "Only this channel: sms, call, chatapp, or all of them.", channel_parser)
]


@command(
    app,
    "add",
    "msgctl optout add 573005550100",
    "msgctl optout add '300 555 0100' --country-code CO",
    "msgctl optout add 573005550100 --channel call",
)
def add(context: Context, phone: Phones, country: StoredNumbers, channel: Channel = "all") -> TextResult:
    """Add numbers to the opt-out list."""
    from msgctl.store import people

    context.note_sandbox()
    wanted = country.digits_of_all(context, phone)
    _, new = people.add_optouts(context.store, [(number, channel) for number in wanted])
    of_channel = "" if channel == "all" else f" of {CHANNELS[channel]}"
    context.note(f"Opted out{of_channel}: {some_of([with_country(number) for number in wanted])}.")
    _note_added(context, len(wanted), new)
    return TextResult("", {"phones": [*wanted], "channel": channel, "added": new})


@command(
    app, "list", "msgctl optout list", "msgctl optout list -o csv > optouts.csv", output=OPTOUT_COLUMNS, json="list"
)
def list_(context: Context, channel: Channel = "all") -> OwnResult:
    """List the numbers that opted out.

    The channel is sms, call or chatapp, or all for an opt-out of every channel. With --channel, it lists only
    the opt-outs that apply to this channel.
    """
    from msgctl.store import people

    context.note_sandbox()
    store = context.store

    def rows() -> Iterator[Document]:
        for optout in people.optouts(store):
            if channel == "all" or optout.channel in (channel, "all"):
                yield {"phone": optout.phone, "channel": optout.channel, "added": timestamp(optout.time // 1000)}

    return OwnResult(StoredRows(rows), OPTOUT_COLUMNS, Layout.OPTOUTS, empty="The opt-out list is empty.")


@command(app, "remove", "msgctl optout remove 573005550100")
def remove(context: Context, phone: Phones, country: StoredNumbers, channel: Channel = "all") -> TextResult:
    """Remove numbers from the opt-out list.

    With --channel, a number that has opted out of all channels stays on the list for the others.
    """
    from msgctl.store import people

    context.note_sandbox()
    wanted = country.digits_of_all(context, phone)
    removed = people.remove_optouts(context.store, wanted, channel)
    context.note(f"Removed {plural(len(removed), 'number')}.")
    if others := [number for number in wanted if number not in removed]:
        context.note(f"Not on the list: {', '.join(others)}")
    return TextResult("", {"phones": removed, "channel": channel, "removed": len(removed)})


class OptOutFile(Source):
    """A file of people who opted out."""

    file: Annotated[
        str, typer.Argument(metavar="FILE", help="One number per line, CSV, JSON Lines or .xlsx; - is standard input.")
    ]


@command(
    app,
    "import",
    "msgctl optout import unsubscribed.txt --country-code CO",
    "msgctl optout import unsubscribed.txt --country-code CO --dry-run",
    dry_run_help="List every row, and add nothing.",
    has_more_columns=True,
)
def import_(
    context: Context,
    source: OptOutFile,
    numbers: StoredNumbers,
    *,
    channel: Channel = "all",
) -> OwnResult | TextResult:
    """Add the numbers of a file to the opt-out list, all or none.

    `man msgctl-job` explains which columns and numbers it reads. If the file has a column "channel", it contains the
    channel of each number: sms, call, chatapp or all. --channel applies to empty cells, and to files without this
    column.
    """
    from msgctl.lists.faults import rows_left_out
    from msgctl.lists.reader import name_of
    from msgctl.store import people

    context.note_sandbox()
    name = name_of(source.file)
    with source.opened(context, leaves_out=True, phones=numbers.cells(context)) as recipients:
        faults = recipients.faults
        rows = _with_channels(recipients, channel)
        columns = IMPORTED if context.options.dry_run else ()
        context.check_fields(columns)
        if context.options.dry_run:
            listed = [_listed(row) for row in rows]
            failures = [faults.error(CORRECT, list_all="")] if faults.invalid and not source.skip_invalid else []
            return OwnResult(listed, IMPORTED, failures=failures)
        count, new = people.add_optouts(context.store, _entries(rows, faults, skip_invalid=source.skip_invalid))
    context.note(f"Numbers in {name}: {recipients.source}")
    if faults.invalid:
        context.note(rows_left_out(faults.invalid, "invalid", name))
    if faults.blank:
        context.note(rows_left_out(faults.blank, "blank", name))
    _note_added(context, count, new)
    return TextResult(
        "", {"file": source.file, "numbers": count, "added": new, "phone_column": recipients.source.column}
    )


def _with_channels(recipients: Recipients, default: str) -> Iterator[Recipient | InvalidRow]:
    """Yield the rows, each with its channel as its only value. A row without a valid channel is a fault."""
    from msgctl.lists.header import find_column
    from msgctl.lists.rows import InvalidRow

    index = find_column("channel", recipients.columns)
    for row in recipients.counted():
        if isinstance(row, InvalidRow):
            yield row
            continue
        text = "" if index is None else row.values[index].strip()
        try:
            channel = channel_parser(text) if text else default
        except UsageError as error:
            invalid = InvalidRow(row.line, row.phone, error.message)
            recipients.faults.add(invalid)
            yield invalid
        else:
            yield row._replace(values=(channel,))


def _entries(
    rows: Iterable[Recipient | InvalidRow], faults: Faults, *, skip_invalid: bool
) -> Iterator[tuple[str, str]]:
    """Yield the number and the channel of each valid row. Raises UsageError at the end, so that none is added."""
    from msgctl.lists.rows import Recipient

    for row in rows:
        if isinstance(row, Recipient):
            yield row.phone, row.values[0]
    if faults.invalid and not skip_invalid:
        raise faults.error(CORRECT)


def _listed(row: Recipient | InvalidRow) -> dict[str, object]:
    """Return a row of a file as a dry run lists it."""
    reason = getattr(row, "reason", "")
    outcome = "invalid" if reason else "valid"
    return {"line": row.line, "phone": row.phone, "outcome": outcome, "reason": reason}


def _note_added(context: Context, count: int, new: int) -> None:
    context.note(f"Added {plural(new, 'number')}.")
    if known := count - new:
        verb = "was" if known == 1 else "were"
        context.note(f"{known:,} {verb} already on the list.")
