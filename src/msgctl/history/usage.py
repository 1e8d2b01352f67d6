"""Messages and credits of single sends and jobs, summed over a period."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping
from datetime import datetime

from msgctl.errors import ConfigurationError, MsgctlError
from msgctl.history.store import SECONDS, GroupSum, reading
from msgctl.jobs.index import MinuteSum
from msgctl.jobs.model import JobSpec
from msgctl.jobs.store import Store
from msgctl.storage import files
from msgctl.text import timestamp


def totals(grouping: str, filters: Mapping[str, str | None], failures: list[MsgctlError]) -> list[GroupSum]:
    """Return the sums of each group, in the order of their names.

    `History.sums` describes ``grouping`` and ``filters``. An error is added to ``failures`` for each job that cannot
    be read.
    """
    found: dict[str | None, list[float]] = defaultdict(lambda: [0, 0])
    with reading() as history:
        for each in [] if history is None else history.sums(grouping, filters):
            found[each.group][0] += each.messages
            found[each.group][1] += each.credits
    with Store(files.state("jobs")).index() as index:
        for job in index.jobs:
            try:
                spec = index.facts(job).spec
                if filters["profile"] in (None, spec.profile):
                    for one in index.sums(job):
                        if (filters["since"] or "") <= timestamp(one.minute)[:SECONDS] < (filters["until"] or "9"):
                            group = _group(grouping, job, spec, one)
                            found[group][0] += one.messages
                            found[group][1] += one.credits
            except ConfigurationError as error:
                failures.append(error.within(f"Job {job} is not included"))
    return [
        GroupSum(name, int(messages), charged)
        for name, (messages, charged) in sorted(found.items(), key=lambda item: item[0] or "")
    ]


def _group(grouping: str, job: str, spec: JobSpec, found: MinuteSum) -> str | None:
    """Return the group of messages of a job; days begin at midnight of this machine's time zone."""
    if grouping in ("day", "month"):
        day = datetime.fromtimestamp(found.minute).astimezone().date().isoformat()
        return day if grouping == "day" else day[: len("2026-12")]
    groups = {"command": spec.command, "job": job, "country": found.country, "profile": spec.profile}
    return groups[grouping]
