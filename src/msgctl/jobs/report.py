"""What became of a job: in numbers, and recipient by recipient."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from heapq import merge
from operator import itemgetter
from typing import Any

from msgctl.jobs import reading, rounds
from msgctl.jobs.ledger import Ledger
from msgctl.jobs.reading import Recipient
from msgctl.jobs.records import Totals
from msgctl.jobs.schema import LEDGER
from msgctl.jobs.states import OUTCOMES, Outcome, State
from msgctl.times import timestamp

COLUMNS = ("line", "phone", "outcome", "id", "status", "credits", "error")

SHOWN = (
    *("job", "command", "file", "profile", "state", "recipients", *map(str, Outcome)),
    *("requests", "credits", "states", "created", "updated"),
)
"""The members of a job's summary."""

UNHEARD = "no answer was heard before msgctl ended"
RUNNING, PAUSED, DONE = "running", "paused", "done"


def summary(job: str, ledger: Ledger, *, running: bool) -> dict[str, Any]:
    """A job in numbers, as ``job show`` prints it."""
    totals = settled(ledger.totals, running=running)
    states = rounds.counts(ledger)
    with LEDGER.understood(ledger.path):
        created, updated = timestamp(ledger.created), timestamp(ledger.updated())
    return {
        "job": job,
        "command": ledger.order.command,
        "file": ledger.order.file,
        "profile": ledger.order.profile,
        "state": RUNNING if running else PAUSED if totals.pending else DONE,
        "recipients": totals.recipients,
        **totals.outcomes(),
        "requests": totals.requests,
        "credits": totals.credits,
        **({"states": states} if states else {}),
        "created": created,
        "updated": updated,
    }


def settled(totals: Totals, *, running: bool) -> Totals:
    """Totals in which nothing is under way that nobody waits for: what became of that is unknown."""
    if running or not totals.under_way:
        return totals
    lost = totals.under_way
    return replace(totals, pending=totals.pending - lost, unknown=totals.unknown + lost, under_way=0)


class Report:
    """Every row of the file with what became of it, in the order of the file; read as a stream at every walk.

    ``only`` narrows it to one outcome.
    """

    def __init__(self, ledger: Ledger, only: Outcome | None = None, *, running: bool) -> None:
        self._ledger = ledger
        self._only = only
        self._running = running

    def __len__(self) -> int:
        totals = settled(self._ledger.totals, running=self._running)
        return totals.recipients if self._only is None else int(getattr(totals, self._only))

    def __iter__(self) -> Iterator[dict[str, Any]]:
        rows = merge(self._sendable(), self._excluded(), key=itemgetter("line"))
        return (row for row in rows if self._only in (None, row["outcome"]))

    def __contains__(self, row: object) -> bool:
        return any(row == each for each in self)

    def _excluded(self) -> Iterator[dict[str, Any]]:
        for line, phone, outcome, reason in reading.excluded(self._ledger):
            yield _row(line, phone, outcome, reason)

    def _sendable(self) -> Iterator[dict[str, Any]]:
        if self._only in (Outcome.INVALID, Outcome.DUPLICATE):
            return
        yield from map(self._told, reading.recipients(self._ledger))

    def _told(self, recipient: Recipient) -> dict[str, Any]:
        line, phone, fate, entry, state = recipient
        if fate is None:
            return _row(line, phone, Outcome.PENDING)
        if fate.state is State.UNDER_WAY:
            return _row(line, phone, Outcome.PENDING) if self._running else _row(line, phone, Outcome.UNKNOWN, UNHEARD)
        if fate.state in (State.AGAIN, State.UNDER_WAY_AGAIN):
            return _row(line, phone, Outcome.UNKNOWN, fate.error or UNHEARD)
        if fate.state is not State.ACCEPTED:
            return _row(line, phone, OUTCOMES[fate.state], fate.error)
        if entry is None:
            return _row(line, phone, Outcome.UNKNOWN, "the answer says nothing of this number")
        charged = entry.credits if entry.charged is None else entry.charged
        return _row(line, phone, Outcome.ACCEPTED, None, entry.id, state or entry.status, charged)


def _row(
    line: int,
    phone: str,
    outcome: str,
    error: str | None = None,
    id: str | None = None,
    status: str | None = None,
    credits: int | str | None = None,
) -> dict[str, Any]:
    return dict(zip(COLUMNS, (line, phone, str(outcome), id, status, credits, error), strict=True))
