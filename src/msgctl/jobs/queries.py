"""Read a ledger from its beginning to its end; neither memory nor time grow with what was read before."""

from __future__ import annotations

import sqlite3
from collections.abc import Collection, Iterable, Iterator
from fractions import Fraction
from typing import NamedTuple

from msgctl.jobs.spec import Totals
from msgctl.jobs.states import TRANSITIONS, Event, State
from msgctl.recipients import is_final
from msgctl.storage.database import transaction

CHARGED = "CASE typeof(credits) WHEN 'integer' THEN credits ELSE 0 END"


class Recipient(NamedTuple):
    """A row of the file with its state, and what is known of its message."""

    line: int
    phone: str
    state: State
    id: str | None
    status: str | None
    delivery: str | None
    credits: int | str | None
    error: str | None
    cells: str | None


def totals(db: sqlite3.Connection) -> tuple[Totals, int]:
    """Return the totals of a ledger, and the highest number of a request."""
    found = Totals()
    with transaction(db, "BEGIN"):
        for state, number in db.execute("SELECT state, count(*) FROM recipient GROUP BY state"):
            found.states[State(state)] = number
        for state, number, charged, lost in db.execute(
            f"SELECT state, count(*), sum({CHARGED} + spent), sum(lost) FROM result GROUP BY state"  # noqa: S608
        ):
            found.move(State.PENDING, State(state), number)
            found.credits += charged
            found.lost += lost
        for state, number, promised in db.execute(
            """SELECT coalesce(result.state, 'pending') AS before, count(*), sum(cost)
            FROM in_flight JOIN recipient USING (line) JOIN message ON message.id = message
            LEFT JOIN result USING (line) GROUP BY before"""
        ):
            found.move(State(state), TRANSITIONS[State(state), Event.INTENT], number)
            found.promised += promised
        found.requests, highest = db.execute("SELECT count(*), coalesce(max(number), 0) FROM request").fetchone()
    return found, highest


def updated(db: sqlite3.Connection) -> float:
    """Return when the last request ended, in seconds since 1970; 0 before the first."""
    (latest,) = db.execute("SELECT coalesce(max(ended), 0) FROM request").fetchone()
    return float(latest)


def pending_zones(db: sqlite3.Connection, zones: Iterable[str]) -> list[str]:
    """Return those of some time zones that pending recipients have."""
    one = "SELECT 1 FROM outcome WHERE message IS NOT NULL AND zones = ? AND state IN ('pending', 'again') LIMIT 1"
    return [each for each in zones if db.execute(one, (each,)).fetchone()]


def recipients(db: sqlite3.Connection, states: Collection[State]) -> Iterator[Recipient]:
    """Read the rows in some states, in the order of the file."""
    marks = ",".join("?" * len(states))
    for row in db.execute(
        f"""SELECT line, phone, state, id, status, delivery, credits, error, cells FROM outcome
        WHERE state IN ({marks}) ORDER BY line""",  # noqa: S608
        tuple(states),
    ):
        yield Recipient(*row)._replace(state=State(row[2]))


def message_of(db: sqlite3.Connection, line: int) -> tuple[str, int]:
    """Return the parameters (as JSON) and the estimated credits of a recipient's message."""
    found: tuple[str, int] = db.execute(
        "SELECT parameters, cost FROM recipient JOIN message ON message.id = message WHERE line = ?", (line,)
    ).fetchone()
    return found


def to_check(db: sqlite3.Connection) -> Iterator[tuple[int, str]]:
    """Read line and message id of accepted messages whose delivery state is not final, the longest unchecked first."""
    for line, message, delivery in db.execute(
        """SELECT line, id, delivery FROM result WHERE state = 'accepted' AND id IS NOT NULL
        ORDER BY coalesce(checked, 0), line"""
    ):
        if not is_final(delivery or ""):
            yield line, message


def deliveries(db: sqlite3.Connection) -> dict[str, int]:
    """Count messages by delivery state, the most frequent first."""
    return dict(
        db.execute(
            """SELECT delivery, count(*) FROM result WHERE delivery IS NOT NULL GROUP BY delivery
            ORDER BY count(*) DESC, delivery"""
        )
    )


def highest_price(db: sqlite3.Connection) -> Fraction | None:
    """Return the most that was charged for a recipient, as a multiple of its estimate; None before the first charge."""
    highest: Fraction | None = None
    for most, cost in db.execute(
        f"""SELECT max({CHARGED}), cost FROM result JOIN recipient USING (line) JOIN message ON message.id = message
        WHERE result.state = 'accepted' AND cost > 0 GROUP BY cost"""  # noqa: S608
    ):
        if most:
            highest = max(highest or Fraction(0), Fraction(most, cost))
    return highest
