"""Report on a job: in numbers, and recipient by recipient."""

from __future__ import annotations

import json
from collections.abc import Collection, Iterator
from typing import Any

from msgctl.delivery_states import folded, is_final
from msgctl.jobs import queries
from msgctl.jobs.ledger import ENDED_EARLY, Ledger
from msgctl.jobs.queries import Recipient
from msgctl.jobs.schema import LEDGER
from msgctl.jobs.states import Outcome, State, outcome
from msgctl.times import timestamp

COLUMNS = ("line", "phone", "outcome", "id", "status", "state", "credits", "error")

SUMMARY = (
    *("job", "name", "command", "file", "profile", "state", "recipients", *map(str, Outcome)),
    *("requests", "credits", "states", "created", "updated"),
)
"""The fields of a job's summary."""

RUNNING, PAUSED, DONE = "running", "paused", "done"

UNDELIVERED = "undelivered"
_DELIVERED = {"delivered", "read", "seen", "answered", "completed"}


def summary(job: str, ledger: Ledger, *, running: bool) -> dict[str, Any]:
    """Return a job in numbers, as ``job show`` prints it."""
    outcomes = ledger.totals.outcomes(running=running)
    with LEDGER.explained(ledger.path):
        states, updated = queries.deliveries(ledger.db), queries.updated(ledger.db)
    return {
        "job": job,
        "name": ledger.spec.name,
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

    ``only`` narrows it to some outcomes and, with `UNDELIVERED`, to accepted messages that were finally not delivered.
    """

    def __init__(self, ledger: Ledger, only: Collection[str] = (), *, running: bool) -> None:
        self._ledger = ledger
        self._running = running
        self._undelivered = UNDELIVERED in only and Outcome.ACCEPTED not in only
        wanted = {*only, *([Outcome.ACCEPTED] if self._undelivered else [])} or {*Outcome}
        self._states = [each for each in State if outcome(each, running=running) in wanted]
        own = ledger.spec.columns
        self.columns = (*COLUMNS, *(f"file.{name}" if name in COLUMNS else name for name in own))

    def __len__(self) -> int:
        if self._undelivered:
            return sum(1 for _ in self)
        return sum(self._ledger.totals.states[state] for state in self._states)

    def __iter__(self) -> Iterator[dict[str, Any]]:
        with LEDGER.explained(self._ledger.path):
            for recipient in queries.recipients(self._ledger.db, self._states):
                is_accepted = recipient.state is State.ACCEPTED
                if not (self._undelivered and is_accepted) or is_undelivered(recipient.delivery):
                    yield self._row(recipient)

    def __contains__(self, row: object) -> bool:
        return any(row == each for each in self)

    def _row(self, recipient: Recipient) -> dict[str, Any]:
        found = outcome(recipient.state, running=self._running)
        own = json.loads(recipient.cells) if recipient.cells else [None] * len(self._ledger.spec.columns)
        values = (
            *(recipient.line, recipient.phone, str(found), recipient.id, recipient.status, recipient.delivery),
            *(recipient.credits, _error(recipient, found), *own),
        )
        return dict(zip(self.columns, values, strict=True))


def is_undelivered(state: str | None) -> bool:
    """Return whether a delivery state is final and not a delivery."""
    return is_final(state or "") and folded(state or "") not in _DELIVERED


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
