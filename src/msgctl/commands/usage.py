"""`msgctl usage`: messages and credits, summed over single sends and jobs."""

from datetime import date
from typing import Annotated

import typer

from msgctl.cli.context import Context
from msgctl.cli.parsers import Choice
from msgctl.cli.tree import command, group
from msgctl.commands.history import Period
from msgctl.errors import MsgctlError
from msgctl.history.store import GROUPINGS
from msgctl.history.usage import totals
from msgctl.output.result import OwnResult

app = group("Messages and credits by day, month, command, job, country or profile.")

_GROUPING = Choice(GROUPINGS, "grouping")
MAX_DAYS = 31
"""The longest period that is summed by day unless --by says otherwise."""


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
        str | None,
        typer.Option(
            "--by",
            metavar="GROUP",
            help=f"One of {', '.join(GROUPINGS)}. The default is day or month.",
            parser=_GROUPING,
            autocompletion=_GROUPING.complete,
        ),
    ] = None,
) -> OwnResult:
    """Show messages and credits by day, month, country and more.

    Only accepted messages are counted: single sends, recipients of jobs and verification messages. With -p, only
    messages of that profile. Without --by, a period of up to 31 days is shown by day, and a longer one by month.
    """
    grouping = by or _default(period, context.today())
    columns = (grouping, "messages", "credits")
    context.check_fields(columns)
    filters = {**period.times(context.today()), "profile": context.options.profile}

    failures: list[MsgctlError] = []
    rows = [
        {grouping: name, "messages": messages, "credits": _plain(charged)}
        for name, messages, charged in totals(grouping, filters, failures)
        if messages or charged
    ]
    return OwnResult(rows, columns, empty="No messages were sent in this period.", failures=failures)


def _default(period: Period, today: date) -> str:
    if period.since is None:
        return "month"
    return "day" if ((period.until or today) - period.since).days < MAX_DAYS else "month"


def _plain(number: float) -> int | float:
    return int(number) if number == int(number) else round(number, 6)
