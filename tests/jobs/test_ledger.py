"""Intents and results in a ledger, and a damaged file."""

from __future__ import annotations

from contextlib import closing
from pathlib import Path

import pytest

from jobs.ledgers import opened, report, rows, write
from msgctl.errors import ConfigurationError, OutcomeUnknownError, RefusedError
from msgctl.jobs.model import Intent, RequestResult
from msgctl.jobs.states import Event, Outcome, State
from msgctl.recipients import RecipientOutcome


def result(intent: Intent, event: Event, *values: str | None) -> RequestResult:
    """Return a result that is the same for all recipients."""
    found = [RecipientOutcome(None, event, *values)] * len(intent.phones)
    if event is Event.NOT_SENT:
        found = [RecipientOutcome(None, "unknown")] * len(intent.phones)
    return RequestResult(intent, found, was_sent=event is not Event.NOT_SENT)


def test_intents_are_not_written_over_those_of_another_process(tmp_path: Path) -> None:
    path = write(tmp_path / "job.sqlite3", rows(2))
    with closing(opened(path)) as one, closing(opened(path)) as other:
        assert other.upcoming(1)[0] == 1
        with one.transaction():
            assert one.intend(1) is not None
        stored = one.db.execute("SELECT * FROM outcome").fetchall()
        with pytest.raises(ConfigurationError), other.transaction():
            other.intend(2)
        assert one.db.execute("SELECT * FROM outcome").fetchall() == stored
        assert other.totals.states[State.PENDING] == 2


def test_one_price_in_two_spellings_is_charged_to_both(tmp_path: Path) -> None:
    path = write(tmp_path / "job.sqlite3", rows(2))
    with closing(opened(path)) as ledger:
        with ledger.transaction():
            intent = ledger.intend(2)
        assert intent is not None
        results = [
            RecipientOutcome(None, Event.ACCEPTED, id_, "queued", price) for id_, price in (("a", "1"), ("b", "01"))
        ]
        with ledger.transaction():
            ledger.record(RequestResult(intent, results))
        assert [(row["id"], row["credits"]) for row in report(ledger)] == [("a", 1), ("b", 1)]
    with closing(opened(path)) as ledger:
        assert (ledger.totals.states[State.PENDING], ledger.totals.credits) == (0, 2)


def test_an_unknown_recipient_keeps_the_request_that_was_sent(tmp_path: Path) -> None:
    path = write(tmp_path / "job.sqlite3", rows(2))
    for event, asked in ((Event.LOST, [Outcome.UNKNOWN]), (Event.NOT_SENT, []), (Event.ACCEPTED, [])):
        with closing(opened(path)) as ledger:
            with ledger.transaction():
                intent = ledger.intend(1)
            assert intent is not None
            with ledger.transaction():
                ledger.record(result(intent, event))
            ledger.resend(*asked)
            found = ledger.db.execute(
                "SELECT result.line, lines FROM result JOIN request ON number = request"
            ).fetchall()
    assert found == [(2, "[2]"), (3, "[3]")]


def test_the_report_mentions_a_lost_request_and_the_refusal_of_the_next(tmp_path: Path) -> None:
    failures = ((Event.LOST, OutcomeUnknownError("it was late")), (Event.REFUSED, RefusedError("no")))
    with closing(opened(write(tmp_path / "job.sqlite3", rows(1)))) as ledger:
        errors = []
        for event, error in failures:
            with ledger.transaction():
                intent = ledger.intend(1)
                assert intent is not None
            with ledger.transaction():
                ledger.record(result(intent, event)._replace(error=error))
            errors += [row["error"] for row in report(ledger)]
            ledger.resend(Outcome.UNKNOWN)
    assert errors == ["it was late", "an earlier request may have been carried out; the last one: no"]


def test_the_error_for_a_damaged_ledger_mentions_the_file(tmp_path: Path) -> None:
    path = write(tmp_path / "job.sqlite3", rows(2000))
    with path.open("r+b") as file:
        file.seek(8192)
        file.write(b"\xff" * 4096)
    with pytest.raises(ConfigurationError) as caught, closing(opened(path)) as ledger:
        ledger.check()
    assert path.name in caught.value.message
    assert caught.value.exit_code == 3
