"""`msgctl usage`: messages and credits, summed over single sends and jobs."""

from typing import Annotated

from msgctl.cli.shell.context import Context
from msgctl.cli.shell.options import Choice, choice_option
from msgctl.cli.shell.tree import command, group
from msgctl.commands.history import Period
from msgctl.credits import as_credits
from msgctl.output.result import Format, OwnResult
from msgctl.store import history, jobs
from msgctl.store.history import GROUPINGS

app = group("Messages and credits by day, month, command, job, country or profile.")

_GROUPING = Choice(GROUPINGS, "grouping")


@command(
    app,
    "usage",
    "msgctl usage",
    "msgctl usage --since 30d --by country",
    "msgctl -p main usage --by month --json",
    output=("day", "messages", "credits"),
    has_more_columns=True,
    json="list",
)
def usage(
    context: Context,
    period: Period,
    by: Annotated[str, choice_option("--by", "GROUP", f"One of {', '.join(GROUPINGS)}.", _GROUPING)] = "day",
) -> OwnResult:
    """Show messages and credits by day, month, country and more.

    It counts only accepted messages: single sends, recipients of jobs and verification messages. The credits are the
    charges in all responses. With -p, it counts only messages of that profile. Days and months are in the profile's
    time zone, or else this machine's. It does not count messages that `job remove` or `history clear` has deleted.
    """
    columns = (by, "messages", "credits")
    context.check_fields(columns)
    times = period.times(context)
    names: dict[str | None, str | None] = {}
    if by == "job" and context.format is Format.TABLE:
        names = {None: "(no job)", **{job.id: job.name for job in jobs.listed(context.store)}}
    rows = [
        {
            by: names.get(total.group) or total.group,
            "messages": total.messages,
            "credits": as_credits(total.credits),
        }
        for total in history.usage(context.store, by, context.zone, **times, profile=context.options.profile)
    ]
    return OwnResult(rows, columns, empty="No messages were sent in this period.")
