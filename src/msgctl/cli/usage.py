"""`msgctl usage`: messages and credits, summed over single sends and jobs."""

import sqlite3
from collections import defaultdict
from datetime import date
from typing import Annotated

import typer

from msgctl import values
from msgctl.cli.context import Context
from msgctl.cli.history import Period, read_jobs
from msgctl.cli.tree import command, group
from msgctl.history.store import GROUPINGS, Sum, reading, sums
from msgctl.jobs.spec import JobSpec
from msgctl.output.result import OwnResult

app = group("Messages and credits by day, month, command, job, country or profile.")

MOST_DAYS = 31
"""The longest period that is summed by day unless --by says otherwise."""

_OF_JOB = """
    SELECT strftime('%Y-%m-%dT%H:%M:%SZ', ended, 'unixepoch') AS time, :of AS profile, :by AS command, :job AS job,
    phone, result.state AS outcome, coalesce(CAST(credits AS NUMERIC), 0) + spent AS credits
    FROM recipient JOIN result USING (line) JOIN request ON number = request
"""


@command(
    app,
    "usage",
    "msgctl usage",
    "msgctl usage --since 30d --by country",
    "msgctl -p main usage --by month --json",
)
def usage(
    context: Context,
    period: Period,
    by: Annotated[
        str | None,
        typer.Option("--by", metavar="GROUP", help=f"One of {', '.join(GROUPINGS)}. The default is day or month."),
    ] = None,
) -> OwnResult:
    """Show how many messages were sent from this machine, and the credits charged for them.

    Only accepted messages are counted: single sends, recipients of jobs and verification messages. With -p, only those
    of that profile. Without --by, a period of up to 31 days is shown by day, a longer one by month.
    """
    grouping = _default(period, context.today()) if by is None else values.choice(by, GROUPINGS, "grouping")
    columns = (grouping, "messages", "credits")
    context.check_fields(columns)
    filters = {**period.times(context.today()), "profile": context.options.profile}

    def of_job(job: str, spec: JobSpec, db: sqlite3.Connection) -> list[Sum]:
        return sums(db, _OF_JOB, grouping, {**filters, "of": spec.profile, "by": spec.command, "job": job})

    with reading() as history:
        found = [] if history is None else history.sums(grouping, filters)
    found += read_jobs(None, filters["profile"], of_job, context.warn)
    totals: dict[str | None, list[float]] = defaultdict(lambda: [0, 0])
    for each in found:
        totals[each.group][0] += each.messages
        totals[each.group][1] += each.credits
    rows = [
        {grouping: name, "messages": messages, "credits": _plain(charged)}
        for name, (messages, charged) in sorted(totals.items(), key=lambda item: item[0] or "")
    ]
    return OwnResult(rows, columns, empty="No messages were sent in this period.")


def _default(period: Period, today: date) -> str:
    if period.since is None:
        return "month"
    last = today if period.until is None else values.day(period.until, today)
    return "day" if (last - values.day(period.since, today)).days < MOST_DAYS else "month"


def _plain(number: float) -> int | float:
    return int(number) if number == int(number) else round(number, 6)
