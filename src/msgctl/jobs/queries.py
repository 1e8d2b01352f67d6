"""Read a ledger from its beginning to its end; neither memory nor time grow with what was read before."""

from __future__ import annotations

import sqlite3
from collections.abc import Collection, Iterable, Iterator
from fractions import Fraction
from typing import NamedTuple

from msgctl.jobs.spec import Totals
from msgctl.jobs.states import IN_FLIGHT, State
from msgctl.recipients import is_final

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
    (found.requests, highest) = db.execute("SELECT count(*), coalesce(max(number), 0) FROM request").fetchone()
    for state, number, charged, lost, last in db.execute(
        f"SELECT state, count(*), sum({CHARGED} + spent), sum(lost), max(request) FROM recipient GROUP BY state"  # noqa: S608
    ):
        found.states[State(state)] = number
        found.credits += charged
        found.lost += lost
        highest = max(highest, last or 0)
    (in_flight, promised) = db.execute(
        """SELECT count(DISTINCT request), coalesce(sum(cost), 0) FROM recipient JOIN message ON message.id = message
        WHERE state IN (?, ?)""",
        IN_FLIGHT,
    ).fetchone()
    found.requests += in_flight
    found.promised = promised
    return found, highest


def updated(db: sqlite3.Connection) -> float:
    """Return when the last request ended, in seconds since 1970; 0 before the first."""
    (latest,) = db.execute("SELECT coalesce(max(updated), 0) FROM request").fetchone()
    return float(latest)


def pending_zones(db: sqlite3.Connection, zones: Iterable[str]) -> list[str]:
    """Return those of some time zones that pending recipients have."""
    one = "SELECT 1 FROM recipient WHERE state IN ('pending', 'again') AND zones = ? LIMIT 1"
    return [each for each in zones if db.execute(one, (each,)).fetchone()]


def recipients(db: sqlite3.Connection, states: Collection[State]) -> Iterator[Recipient]:
    """Read the rows in some states, in the order of the file."""
    marks = ",".join("?" * len(states))
    for row in db.execute(
        f"""SELECT recipient.line, phone, state, id, status, delivery, credits,
        coalesce(recipient.error, request.error), row FROM recipient LEFT JOIN request ON number = request
        LEFT JOIN cells ON cells.line = recipient.line WHERE state IN ({marks}) ORDER BY recipient.line""",  # noqa: S608
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
        """SELECT line, id, delivery FROM recipient WHERE state = 'accepted' AND id IS NOT NULL
        ORDER BY coalesce(checked, 0), line"""
    ):
        if not is_final(delivery or ""):
            yield line, message


def deliveries(db: sqlite3.Connection) -> dict[str, int]:
    """Count messages by delivery state, the most frequent first."""
    return dict(
        db.execute(
            """SELECT delivery, count(*) FROM recipient WHERE delivery IS NOT NULL GROUP BY delivery
            ORDER BY count(*) DESC, delivery"""
        )
    )


def highest_price(db: sqlite3.Connection) -> Fraction | None:
    """Return the most that was charged for a recipient, as a multiple of its estimate; None before the first charge."""
    highest: Fraction | None = None
    for most, cost in db.execute(
        f"""SELECT max({CHARGED}), cost FROM recipient JOIN message ON message.id = message
        WHERE state = 'accepted' AND cost > 0 GROUP BY cost"""  # noqa: S608
    ):
        if most:
            highest = max(highest or Fraction(0), Fraction(most, cost))
    return highest
