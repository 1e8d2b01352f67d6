"""Rounds of questions in a ledger: which one is open, and what was heard of the delivery of each message."""

from __future__ import annotations

from collections.abc import Iterable

from msgctl.delivery_states import is_final
from msgctl.jobs.ledger import Ledger
from msgctl.jobs.records import Heard
from msgctl.jobs.schema import LEDGER
from msgctl.storage import database


def begin(ledger: Ledger) -> int:
    """The number of the round that was stopped, or else of a new one."""
    with LEDGER.understood(ledger.path):
        number = int(ledger.member("round") or 0)
    if ledger.member("round_is_open") == "yes":
        return number
    with ledger.transaction():
        ledger.put_member("round", str(number + 1))
        ledger.put_member("round_is_open", "yes")
    return number + 1


def end(ledger: Ledger) -> None:
    with ledger.transaction():
        ledger.put_member("round_is_open", "no")


def note(ledger: Ledger, number: int, heard: Iterable[Heard]) -> None:
    """Write what was heard in a round; a state that is known stays where a question failed.

    A question that got no answer was not asked.
    """
    with ledger.transaction():
        ledger.writing().executemany(
            """INSERT INTO delivery (line, state, error, round) VALUES (?, ?, ?, ?) ON CONFLICT (line) DO UPDATE
            SET state = coalesce(excluded.state, state), error = excluded.error, round = excluded.round""",
            (
                (each.line, each.state, each.fault and each.fault.message, number if each.is_answered else 0)
                for each in heard
            ),
        )


def last_heard(ledger: Ledger, line: int) -> tuple[str | None, int]:
    """The delivery state of a recipient and the round in which it was asked for; None and 0 before the first."""
    with LEDGER.understood(ledger.path):
        row = ledger.db.execute("SELECT state, round FROM delivery WHERE line = ?", (line,)).fetchone() or (None, 0)
        database.require(str, row[0] or "")
        return row[0], int(row[1])


def left_out(ledger: Ledger, number: int) -> int:
    """How many messages a round does not ask for: their state is final, or they were asked for in it already."""
    with LEDGER.explained(ledger.path):
        known = ledger.db.execute("SELECT CAST(state AS TEXT), round, count(*) FROM delivery GROUP BY 1, 2").fetchall()
    return sum(count for state, asked_in, count in known if asked_in == number or is_final(state or ""))


def counts(ledger: Ledger) -> dict[str, int]:
    """How many recipients are in each delivery state, the most frequent first."""
    with LEDGER.explained(ledger.path):
        return dict(
            ledger.db.execute(
                """SELECT CAST(state AS TEXT), count(*) FROM delivery WHERE state IS NOT NULL
                GROUP BY 1 ORDER BY 2 DESC, 1"""
            )
        )
