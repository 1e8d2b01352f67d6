"""Messages and credits of single sends and jobs, summed over a period."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping
from datetime import datetime

from msgctl.errors import ConfigurationError, MsgctlError
from msgctl.jobs.index import MinuteSum
from msgctl.jobs.model import JobSpec
from msgctl.jobs.store import Store as Ledgers
from msgctl.storage import files
from msgctl.store import history
from msgctl.store.schema import CREDIT
from msgctl.store.store import Store


def totals(
    store: Store, grouping: str, times: Mapping[str, int | None], profile: str | None, failures: list[MsgctlError]
) -> list[tuple[str | None, int, float]]:
    """Return the sums of each group, in the order of their names.

    ``times`` are ``since`` and ``until``. An error is added to ``failures`` for each job that cannot be read.
    """
    found: dict[str | None, list[float]] = defaultdict(lambda: [0, 0])
    for each in history.usage(store, grouping, **times, profile=profile):
        found[each.group][0] += each.messages
        found[each.group][1] += each.credits / CREDIT
    since, until = (times["since"] or 0) / 1000, (times["until"] or 2**62) / 1000
    with Ledgers(files.state("jobs")).index() as index:
        for job in index.jobs:
            try:
                spec = index.facts(job).spec
                if profile in (None, spec.profile):
                    for one in index.sums(job):
                        if since <= one.minute < until:
                            group = _group(grouping, job, spec, one)
                            found[group][0] += one.messages
                            found[group][1] += one.credits
            except ConfigurationError as error:
                failures.append(error.within(f"Job {job} is not included"))
    return [
        (name, int(messages), charged)
        for name, (messages, charged) in sorted(found.items(), key=lambda item: item[0] or "")
    ]


def _group(grouping: str, job: str, spec: JobSpec, found: MinuteSum) -> str | None:
    """Return the group of messages of a job; days begin at midnight of this machine's time zone."""
    if grouping in ("day", "month"):
        day = datetime.fromtimestamp(found.minute).astimezone().date().isoformat()
        return day if grouping == "day" else day[: len("2026-12")]
    groups = {"command": spec.command, "job": job, "country": found.country, "profile": spec.profile}
    return groups[grouping]
