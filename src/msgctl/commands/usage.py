"""`msgctl usage`: messages and credits, summed over single sends and jobs."""

from collections import defaultdict
from datetime import date, datetime
from typing import Annotated

import typer

from msgctl import operations as ops
from msgctl import values
from msgctl.cli.context import Context
from msgctl.cli.tree import command, group
from msgctl.commands.history import Period
from msgctl.errors import ConfigurationError
from msgctl.history.store import GROUPINGS, SECONDS, reading
from msgctl.jobs.index import MinuteSum
from msgctl.jobs.model import JobSpec
from msgctl.jobs.store import Store
from msgctl.output.result import OwnResult
from msgctl.storage import files
from msgctl.text import timestamp

app = group("Messages and credits by day, month, command, job, country or profile.")

MAX_DAYS = 31
"""The longest period that is summed by day unless --by says otherwise."""


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

    totals: dict[str | None, list[float]] = defaultdict(lambda: [0, 0])
    with reading() as history:
        for each in [] if history is None else history.sums(grouping, filters):
            totals[each.group][0] += each.messages
            totals[each.group][1] += each.credits
    with Store(files.state("jobs")).index() as index:
        for job in index.jobs:
            try:
                spec = index.facts(job).spec
                if spec.performs is not ops.BLOCK_PHONE and filters["profile"] in (None, spec.profile):
                    for one in index.sums(job):
                        if (filters["since"] or "") <= timestamp(one.minute)[:SECONDS] < (filters["until"] or "9"):
                            group = _group(grouping, job, spec, one)
                            totals[group][0] += one.messages
                            totals[group][1] += one.credits
            except ConfigurationError as error:
                context.warn(f"Job {job} is not included: {error.message}")
    rows = [
        {grouping: name, "messages": messages, "credits": _plain(charged)}
        for name, (messages, charged) in sorted(totals.items(), key=lambda item: item[0] or "")
        if messages or charged
    ]
    return OwnResult(rows, columns, empty="No messages were sent in this period.")


def _group(grouping: str, job: str, spec: JobSpec, found: MinuteSum) -> str | None:
    """Return the group of messages of a job; days begin at midnight of this machine's time zone."""
    if grouping in ("day", "month"):
        day = datetime.fromtimestamp(found.minute).astimezone().date().isoformat()
        return day if grouping == "day" else day[: len("2026-12")]
    groups = {"command": spec.command, "job": job, "country": found.country, "profile": spec.profile}
    return groups[grouping]


def _default(period: Period, today: date) -> str:
    if period.since is None:
        return "month"
    last = today if period.until is None else values.day(period.until, today)
    return "day" if (last - values.day(period.since, today)).days < MAX_DAYS else "month"


def _plain(number: float) -> int | float:
    return int(number) if number == int(number) else round(number, 6)
