"""Report on a job: in numbers, and recipient by recipient."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from msgctl.jobs import queries
from msgctl.jobs.ledger import ENDED_EARLY, Ledger
from msgctl.jobs.queries import Recipient
from msgctl.jobs.schema import LEDGER
from msgctl.jobs.states import Outcome, State, outcome
from msgctl.times import timestamp

COLUMNS = ("line", "phone", "outcome", "id", "status", "credits", "error")

SUMMARY = (
    *("job", "command", "file", "profile", "state", "recipients", *map(str, Outcome)),
    *("requests", "credits", "states", "created", "updated"),
)
"""The fields of a job's summary."""

RUNNING, PAUSED, DONE = "running", "paused", "done"


def summary(job: str, ledger: Ledger, *, running: bool) -> dict[str, Any]:
    """Return a job in numbers, as ``job show`` prints it."""
    outcomes = ledger.totals.outcomes(running=running)
    with LEDGER.explained(ledger.path):
        states, updated = queries.deliveries(ledger.db), queries.updated(ledger.db)
    return {
        "job": job,
        "command": ledger.spec.command,
        "file": ledger.spec.file,
        "profile": ledger.spec.profile,
        "state": RUNNING if running else PAUSED if outcomes[Outcome.PENDING] else DONE,
        "recipients": ledger.totals.recipients,
        **{str(name): number for name, number in outcomes.items()},
        "requests": ledger.totals.requests,
        "credits": ledger.totals.credits,
        **({"states": states} if states else {}),
        "created": timestamp(ledger.created),
        "updated": timestamp(max(updated, ledger.created)),
    }


class Report:
    """Every row of the file with its outcome, in the order of the file; read again at every iteration.

    ``only`` narrows it to one outcome.
    """

    def __init__(self, ledger: Ledger, only: Outcome | None = None, *, running: bool) -> None:
        self._ledger = ledger
        self._running = running
        self._states = [each for each in State if only in (None, outcome(each, running=running))]

    def __len__(self) -> int:
        return sum(self._ledger.totals.states[state] for state in self._states)

    def __iter__(self) -> Iterator[dict[str, Any]]:
        with LEDGER.explained(self._ledger.path):
            yield from map(self._row, queries.recipients(self._ledger.db, self._states))

    def __contains__(self, row: object) -> bool:
        return any(row == each for each in self)

    def _row(self, recipient: Recipient) -> dict[str, Any]:
        found = outcome(recipient.state, running=self._running)
        values = (
            *(recipient.line, recipient.phone, str(found), recipient.id, recipient.delivery or recipient.status),
            *(recipient.credits, _error(recipient, found)),
        )
        return dict(zip(COLUMNS, values, strict=True))


def _error(recipient: Recipient, found: Outcome) -> str | None:
    if found in (Outcome.ACCEPTED, Outcome.PENDING):
        return None
    if recipient.error:
        return recipient.error
    if recipient.state in (State.SENDING, State.SENDING_AGAIN):
        return ENDED_EARLY
    if found is Outcome.REFUSED:
        return f"the service said {recipient.status}"
    return "the response does not mention this number"
