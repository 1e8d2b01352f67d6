"""Report on a job: its counts, and the outcome of each recipient."""

from __future__ import annotations

import json
from collections.abc import Callable, Collection, Iterator
from contextlib import closing, suppress
from typing import Any

from msgctl.errors import ConfigurationError
from msgctl.jobs import schema
from msgctl.jobs.ledger import ENDED_EARLY, Ledger
from msgctl.jobs.schedule import SendingHours, described
from msgctl.jobs.schema import LEDGER, Recipient
from msgctl.jobs.states import IN_FLIGHT, Outcome, State, outcome
from msgctl.jobs.store import Store
from msgctl.outcomes.judge import is_delivered, is_final
from msgctl.text import timestamp

COLUMNS = ("line", "phone", "outcome", "id", "status", "state", "credits", "error")
JOB_FIELDS = (
    *("job", "name", "command", "file", "profile", "state", "until", "window", "opens", "at_most"),
    *("recipients", *map(str, Outcome), "opted_out", "over_limit", "requests", "credits", "states"),
    *("created", "updated"),
)
"""The fields of a job's summary."""

SCHEDULED, WAITING, RUNNING, PAUSED, DONE = "scheduled", "waiting", "running", "paused", "done"

UNDELIVERED = "undelivered"
"""Recipients whose message was ultimately not delivered."""


def summary(job: str, ledger: Ledger, *, running: bool) -> dict[str, Any]:
    """Return a job in numbers, as ``job show`` prints it."""
    outcomes = ledger.totals.outcomes(running=running)
    with LEDGER.reading(ledger.path):
        states, updated = schema.deliveries(ledger.db), schema.updated(ledger.db)
        reasons = {"opted_out": schema.OPTED_OUT}
        if ledger.spec.at_most is not None:
            reasons["over_limit"] = ledger.spec.over_limit
        excluded = outcomes[Outcome.EXCLUDED]
        left_out = {name: schema.left_out(ledger.db, reason) for name, reason in reasons.items()} if excluded else {}
    is_pending, window = bool(outcomes[Outcome.PENDING]), ledger.spec.window
    opens = _opens(ledger) if is_pending else None
    state, until = _state(ledger, opens, running=running, is_pending=is_pending)
    return {
        "job": job,
        "name": ledger.spec.name,
        "command": ledger.spec.command,
        "file": ledger.spec.file,
        "profile": ledger.spec.profile,
        "state": state,
        **({"until": timestamp(until)} if until is not None else {}),
        **({"window": described(window, ledger.spec.days)} if window is not None else {}),
        **({"opens": timestamp(opens)} if opens is not None else {}),
        **({"at_most": ledger.spec.at_most} if ledger.spec.at_most is not None else {}),
        "recipients": ledger.totals.recipients,
        **{str(name): number for name, number in outcomes.items()},
        **{name: number for name, number in left_out.items() if number},
        "requests": ledger.totals.requests,
        "credits": ledger.totals.credits,
        **({"states": states} if states else {}),
        "created": timestamp(ledger.created),
        "updated": timestamp(max(updated, ledger.created)),
    }


def finished(store: Store, before: float, clock: Callable[[], float]) -> Iterator[dict[str, Any]]:
    """Yield the summaries of finished jobs created before a time, except damaged jobs."""
    old: list[str] = []
    with store.index() as index:
        for job in index.jobs:
            with suppress(ConfigurationError):
                if index.facts(job).created < before:
                    old.append(job)
    for job in old:
        with suppress(ConfigurationError):
            if not store.is_running(job):
                with closing(Ledger(store.path(job), clock=clock, read_only=True)) as ledger:
                    document = summary(job, ledger, running=False)
                if document["state"] == DONE:
                    yield document


def _state(ledger: Ledger, opens: float | None, *, running: bool, is_pending: bool) -> tuple[str, float | None]:
    """Return the state of a job and, if it waits, until when, in seconds since 1970."""
    due = ledger.due if is_pending else None
    if not running:
        return (SCHEDULED, due) if due is not None else (PAUSED if is_pending else DONE, None)
    if due is not None and ledger.clock() < due:
        return WAITING, due
    return (RUNNING, None) if opens is None else (WAITING, opens)


def _opens(ledger: Ledger) -> float | None:
    """Return when the window of a job opens; None if it is open for some pending recipients, or always.

    Before a scheduled job is due, its window matters at that time.
    """
    due = ledger.due or 0.0
    try:
        hours = SendingHours.of(ledger.spec, lambda: max(ledger.clock(), due))
    except ConfigurationError:  # the holidays are not installed any more
        return None
    if hours is None:
        return None
    with LEDGER.reading(ledger.path):
        zones = schema.pending_zones(ledger.db, ledger.spec.zones)
    return hours.closed_until(zones) if zones else None


class Report:
    """Every row of the file with its outcome, in the order of the file; each iteration reads the ledger again.

    ``only`` limits it to some outcomes, or `UNDELIVERED`.
    """

    def __init__(self, ledger: Ledger, only: Collection[str] = (), *, running: bool) -> None:
        self._ledger = ledger
        self._running = running
        self._only = {*only} or {*Outcome}
        self._is_filtered = not self._only <= {*Outcome}
        self._states = [each for each in State if outcome(each, running=running) in self._only or self._is_filtered]
        self.columns: tuple[str, ...] = COLUMNS
        self.first_of_file = len(self.columns)
        """The index of the file's first own column."""
        for name in ledger.spec.columns:
            while name in self.columns:
                name = f"file.{name}"  # noqa: PLW2901
            self.columns += (name,)

    def __len__(self) -> int:
        if self._is_filtered:
            return sum(1 for _ in self)
        return sum(self._ledger.totals.states[state] for state in self._states)

    def __iter__(self) -> Iterator[dict[str, Any]]:
        with LEDGER.reading(self._ledger.path):
            for recipient in schema.recipients(self._ledger.db, self._states):
                if self._is_wanted(recipient):
                    yield self._row(recipient)

    def _is_wanted(self, recipient: Recipient) -> bool:
        return outcome(recipient.state, running=self._running) in self._only or (
            UNDELIVERED in self._only and recipient.state is State.ACCEPTED and is_undelivered(recipient.delivery)
        )

    def _row(self, recipient: Recipient) -> dict[str, Any]:
        found = outcome(recipient.state, running=self._running)
        own = json.loads(recipient.cells) if recipient.cells else [None] * len(self._ledger.spec.columns)
        values = (
            *(recipient.line, recipient.phone, str(found), recipient.id, recipient.status, recipient.delivery),
            *(recipient.credits, _error(recipient, found)),
            *own,
        )
        return dict(zip(self.columns, values, strict=True))


def is_undelivered(state: str | None) -> bool:
    """Return whether a delivery state is final but not delivered."""
    return state is not None and is_final(state) and not is_delivered(state)


def _error(recipient: Recipient, found: Outcome) -> str | None:
    if found in (Outcome.ACCEPTED, Outcome.PENDING):
        return None
    if recipient.state in IN_FLIGHT:
        return ENDED_EARLY
    if recipient.error:
        return recipient.error
    if found is Outcome.REFUSED:
        return f"the service responded {recipient.status}" if recipient.status else "the service refused this number"
    return "the response does not show whether this number was accepted"
