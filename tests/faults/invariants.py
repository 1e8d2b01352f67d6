"""Invariants after a simulated history: queries in `invariants.sql` that compare the store with the facts.

The facts (arrivals at the service, and actions of people) are recorded without msgctl. They are in temporary tables
beside the tables of the store. Times are seconds since the history began.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any, NamedTuple

from faults.machine import WrongError
from msgctl.store.store import Store

LATEST = 1.0
"""Seconds after which an opt-out, a pause or a take-over counts: the promise, independent of msgctl's code."""


class Arrival(NamedTuple):
    """A message that the service accepted, with its job, or 0 for the key.

    ``epoch`` is the epoch of the job in the process that sent it. ``sent`` is when its request was sent; ``by_clock``
    is the same time by the clock of its machine, in milliseconds since 1970, and ``second`` in seconds since midnight.
    """

    id: str
    job: int
    attempt: int
    epoch: int
    phone: str
    text: str
    credits: int
    sent: float
    by_clock: int
    second: int


class Plan(NamedTuple):
    """The rules of a job. Credits and times of the window (seconds since midnight) are -1 if there is no limit."""

    job: int
    name: str
    again: int
    at_most: int
    canary: int
    credits: int
    opens: int
    closes: int


class Event(NamedTuple):
    """An event that had certainly happened at this time.

    A phone ``opted out``; a job was ``cancelled``, ``removed``, ``paused``, ``resumed``, ``continued`` after --canary,
    without its limit of credits (``unlimited``), or ``taken`` with an epoch.
    """

    what: str
    time: float
    job: int = 0
    phone: str = ""


class Question(NamedTuple):
    """The question of a resend: its attempt, the outcome of the people in it, and their number."""

    job: int
    attempt: int
    outcome: str
    number: int


class Facts(NamedTuple):
    """The facts of a history."""

    arrivals: list[Arrival]
    plans: list[Plan]
    events: list[Event]
    questions: list[Question]


TABLES = """
CREATE TEMPORARY TABLE arrival (id TEXT, job INTEGER, attempt INTEGER, epoch INTEGER, phone TEXT, text TEXT,
    credits INTEGER, sent DOUBLE PRECISION, by_clock BIGINT, second INTEGER);
CREATE TEMPORARY TABLE plan (job INTEGER, name TEXT, again INTEGER, at_most INTEGER, canary INTEGER, credits INTEGER,
    opens INTEGER, closes INTEGER);
CREATE TEMPORARY TABLE event (what TEXT, time DOUBLE PRECISION, job INTEGER, phone TEXT);
CREATE TEMPORARY TABLE question (job INTEGER, attempt INTEGER, outcome TEXT, number INTEGER)
"""

LIFE = f"{LATEST} + 0.001"
INVARIANTS = dict(
    query.removeprefix("-- ").split("\n", 1)
    for query in Path(__file__).with_suffix(".sql").read_text(encoding="utf-8").split("\n\n")
)
"""Queries that must return no row after a history, by their titles; ``{life}`` is `LIFE`."""


def check(store: Store, facts: Facts) -> None:
    """Compare the store with the facts. Raises WrongError."""
    tables: dict[str, Sequence[tuple[Any, ...]]] = {
        "arrival": facts.arrivals,
        "plan": facts.plans,
        "event": facts.events,
        "question": facts.questions,
    }
    with store.db.transaction():
        for table, rows in tables.items():
            store.db.change(f"DELETE FROM {table}")
            store.db.insert(f"INSERT INTO {table}", rows)
    for wrong, query in INVARIANTS.items():
        if violations := store.db.rows(query.replace("{life}", LIFE)):
            raise WrongError(f"{wrong}: {violations}")


def prepare(store: Store) -> None:
    """Create the temporary tables of the facts in the session of a store."""
    for statement in TABLES.split(";"):
        store.db.change(statement)
