"""`msgctl usage`: messages and credits, summed over single sends and jobs."""

from typing import Annotated

import typer

from msgctl.cli.context import Context
from msgctl.cli.parsers import Choice
from msgctl.cli.tree import command, group
from msgctl.commands.history import Period
from msgctl.errors import MsgctlError
from msgctl.history.usage import totals
from msgctl.output.result import OwnResult
from msgctl.store.history import GROUPINGS

app = group("Messages and credits by day, month, command, job, country or profile.")

_GROUPING = Choice(GROUPINGS, "grouping")


@command(
    app,
    "usage",
    "msgctl usage",
    "msgctl usage --since 30d --by country",
    "msgctl -p main usage --by month --json",
    output=(*GROUPINGS, "messages", "credits"),
)
def usage(
    context: Context,
    period: Period,
    by: Annotated[
        str,
        typer.Option(
            "--by",
            metavar="GROUP",
            help=f"One of {', '.join(GROUPINGS)}.",
            parser=_GROUPING,
            autocompletion=_GROUPING.complete,
        ),
    ] = "day",
) -> OwnResult:
    """Show messages and credits by day, month, country and more.

    Only accepted messages are counted: single sends, recipients of jobs and verification messages. With -p, only
    messages of that profile.
    """
    columns = (by, "messages", "credits")
    context.check_fields(columns)
    times = period.times(context.today())

    failures: list[MsgctlError] = []
    rows = [
        {by: name, "messages": messages, "credits": _plain(charged)}
        for name, messages, charged in totals(context.store, by, times, context.options.profile, failures)
        if messages or charged
    ]
    return OwnResult(rows, columns, empty="No messages were sent in this period.", failures=failures)


def _plain(number: float) -> int | float:
    return int(number) if number == int(number) else round(number, 6)
