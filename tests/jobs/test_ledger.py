"""Intents and results in a ledger, and a damaged file."""

from __future__ import annotations

import stat
from collections.abc import Sequence
from contextlib import closing
from dataclasses import replace
from pathlib import Path

import pytest

from jobs.ledgers import SPEC, opened, outcomes, phone, report, rows, write
from msgctl.errors import ConfigurationError, OutcomeUnknownError, RefusedError
from msgctl.jobs.ledger import MAX_DIGESTS, Ledger, facts
from msgctl.jobs.model import Intent, RequestResult, Totals
from msgctl.jobs.reader import Row
from msgctl.jobs.schema import lock_of
from msgctl.jobs.states import Event, Outcome, State
from msgctl.outcomes.judge import RecipientOutcome
from support.jobs import NOW, write_ledger

LONG_URL = "https://shop.example/?c={text}"


def result(intent: Intent, event: Event, *values: str | None) -> RequestResult:
    """Return a result that is the same for all recipients."""
    found = [RecipientOutcome(None, event, *values)] * len(intent.phones)
    if event is Event.NOT_SENT:
        found = [RecipientOutcome(None, "unknown")] * len(intent.phones)
    return RequestResult(intent, found, was_sent=event is not Event.NOT_SENT)


def intend(ledger: Ledger, size: int = 1) -> Intent:
    """Commit the intent of the next request."""
    with ledger.transaction():
        intent = ledger.intend(size)
    assert intent is not None
    return intent


def finish(ledger: Ledger, found: RequestResult) -> None:
    """Commit the result of a request."""
    with ledger.transaction():
        ledger.record(found)


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


def test_the_report_gives_the_reason_for_an_unknown_outcome_even_after_a_resend(tmp_path: Path) -> None:
    with closing(opened(write(tmp_path / "job.sqlite3", rows(1)))) as ledger:
        for _ in range(2):
            finish(ledger, result(intend(ledger), Event.LOST))
            (row,) = report(ledger)
            assert row["error"] == "the response does not show whether this number was accepted"
            ledger.resend(Outcome.UNKNOWN)


# --- totals


def test_the_totals_of_a_run_equal_the_totals_of_the_stored_ledger(tmp_path: Path) -> None:
    path = write(tmp_path / "job.sqlite3", [Row(line, phone(line), ("x" * 200,)) for line in range(2, 14)])
    with closing(opened(path)) as ledger:

        def check() -> Totals:
            with closing(Ledger(path, clock=lambda: NOW, read_only=True)) as stored:
                assert stored.totals == ledger.totals
            return ledger.totals

        prices = "3", "4", "free"
        accepted = [RecipientOutcome(None, Event.ACCEPTED, f"m{price}", "queued", price) for price in prices]
        finish(ledger, RequestResult(intend(ledger, 3), accepted, body="a response"))
        assert (check().credits, check().lost, check().promised) == (7, 2, 0)
        assert [row["credits"] for row in report(ledger, Outcome.ACCEPTED)] == [3, 4, "free"]
        assert ledger.db.execute("SELECT ended, body FROM request").fetchall() == [(NOW, "a response")]
        finish(ledger, result(intend(ledger, 2), Event.LOST))
        finish(ledger, result(intend(ledger, 2), Event.REFUSED))
        assert (check().credits, check().lost, check().requests) == (7, 6, 3)
        finish(ledger, result(intend(ledger, 2), Event.NOT_SENT))
        assert (check().credits, check().lost, check().requests) == (7, 6, 3)
        ledger.resend(Outcome.UNKNOWN, Outcome.REFUSED)
        check()
        for size in (2, 3):
            intend(ledger, size)
            check()
        assert outcomes(ledger, running=True) == {"accepted": 3, "unknown": 2, "pending": 7}
        intend(ledger, 9)
        assert (check().promised, check().requests) == (2 * 9, 6)
        assert check().unsent == 0


def test_the_lock_file_of_a_job_contains_the_number_of_its_commits(tmp_path: Path) -> None:
    path = write(tmp_path / "job.sqlite3", rows(12))
    for number in range(1, 12):
        with closing(opened(path)) as ledger:
            intend(ledger)
            assert lock_of(path).read_bytes() == b"%d" % number
    assert stat.S_IMODE(lock_of(path).stat().st_mode) == 0o600


def test_requests_in_flight_when_a_process_ended_are_unknown(tmp_path: Path) -> None:
    path = write(tmp_path / "job.sqlite3", rows(3))
    with closing(opened(path)) as ledger:
        finish(ledger, result(intend(ledger), Event.LOST))
        ledger.resend(Outcome.UNKNOWN)
        intend(ledger)
        intend(ledger)
    for _ in range(2):
        with closing(Ledger(path, clock=lambda: NOW + 9)) as ledger:
            ledger.recover()
            assert [(row["outcome"], row["error"]) for row in report(ledger)] == [
                *[("unknown", "msgctl ended before the response arrived")] * 2,
                ("pending", None),
            ]
            totals = ledger.totals
            assert (totals.requests, totals.lost, totals.promised, totals.unsent) == (3, 3, 0, 1)
    assert (facts(path).last, facts(path).is_in_flight) == (NOW + 9, False)
    with closing(opened(path)) as ledger:
        ledger.resend(Outcome.UNKNOWN)
        assert ledger.totals.unsent == 3
    with closing(opened(path)) as ledger:
        ledger.recover()
        assert outcomes(ledger) == {"unknown": 2, "pending": 1}


# --- the next recipients


def test_a_job_of_many_recipients_is_read_in_parts_and_sent_completely(tmp_path: Path) -> None:
    spec = replace(SPEC, batch_size=2000)
    with closing(opened(write(tmp_path / "job.sqlite3", rows(6003), spec))) as ledger, ledger.transaction():
        assert ledger.upcoming(2) == (1, [phone(2), phone(3)])
        intents = [ledger.intend(2000) for _ in range(4)]
        assert (ledger.intend(2000), ledger.upcoming(2000)) == (None, (0, ()))
    sent = [list(intent.lines) for intent in intents if intent]
    assert [len(lines) for lines in sent] == [2000, 2000, 2000, 3]
    assert [line for lines in sent for line in lines] == [*range(2, 6005)]


def unchecked(path: Path, phones: Sequence[str]) -> Path:
    """Create a job for national numbers that are not checked."""
    recipients = [Row(line, each, ("Hello",)) for line, each in enumerate(phones, 2)]
    return write_ledger(path, recipients, SPEC, international="57{}".format)


def test_unchecked_numbers_keep_their_international_numbers(tmp_path: Path) -> None:
    with closing(opened(unchecked(tmp_path / "job.sqlite3", ["301", "302", "303", "304", "305"]))) as ledger:
        with ledger.transaction():
            first = ledger.intend(2)
            assert first is not None
            assert (first.numbers, first.people) == (["301", "302", "57301", "57302"], ["57301", "57302"])
            assert ledger.leave_out(["57304"], "opted out") == 1
            assert (ledger.numbers_ahead(), ledger.people_ahead()) == (
                ["303", "305", "57303", "57305"],
                ["57303", "57305"],
            )
            ledger.withdraw([first])
            assert ledger.people_ahead() == ["57301", "57302", "57303", "57305"]
        finish(ledger, result(intend(ledger), Event.REFUSED))
        finish(ledger, result(intend(ledger), Event.ACCEPTED))
        assert ledger.not_sent_to(["57301", "57302", "303", "57304", "57305", "57306"]) == {
            *("57301", "57303", "57304", "57305"),
        }
        assert ledger.international("303") == "57303"


def test_withdrawn_requests_are_the_next_ones_with_the_same_messages(tmp_path: Path) -> None:
    recipients = [Row(line, phone(line), (f"Hello {line}",)) for line in (2, 3, 4)]
    with closing(opened(write(tmp_path / "job.sqlite3", recipients))) as ledger, ledger.transaction():
        before = ledger.totals.copy()
        for _ in range(2):
            intents = [intent for _ in recipients if (intent := ledger.intend(1))]
            found = [(*intent.phones, intent.parameters["sms"]) for intent in intents]
            assert found == [(row.phone, *row.values) for row in recipients]
            ledger.withdraw(intents)
            assert ledger.totals == before


def test_numbers_are_left_out_even_if_thousands_are_listed(tmp_path: Path) -> None:
    strangers = [str(10**11 + number) for number in range(5000)]
    with closing(opened(write(tmp_path / "job.sqlite3", rows(5)))) as ledger:
        finish(ledger, result(intend(ledger), Event.LOST))
        ledger.resend(Outcome.UNKNOWN)
        listed = [phone(2), phone(3), *strangers, phone(4), *strangers]
        with ledger.transaction():
            assert ledger.upcoming(9)[1] == [phone(2)]
            assert [ledger.leave_out(listed, "opted out") for _ in range(2)] == [3, 0]
            assert ledger.upcoming(9)[1] == [phone(5), phone(6)]
        rows_left = [(row["outcome"], row["error"]) for row in report(ledger)]
        assert rows_left == [
            ("unknown", "opted out"),
            *[("excluded", "opted out")] * 2,
            *[("pending", None)] * 2,
        ]
        assert outcomes(ledger) == {"unknown": 1, "excluded": 2, "pending": 2}


# --- facts


def test_the_facts_of_a_job_list_the_digests_of_at_most_a_hundred_messages(tmp_path: Path) -> None:
    for number in (MAX_DIGESTS, MAX_DIGESTS + 1):
        recipients = [Row(line, phone(line), (f"Hello {line}",)) for line in range(2, number + 2)]
        found = facts(write(tmp_path / f"{number}.sqlite3", recipients)).digests
        assert found is None or len({*found}) == len(found) == 100
        assert (found is None) == (number == 101)


def test_a_scheduled_job_has_begun_after_its_first_request(tmp_path: Path) -> None:
    path = write(tmp_path / "job.sqlite3", rows(2), replace(SPEC, at=NOW + 60))
    found = [facts(path)]
    with closing(opened(path)) as ledger:
        intent = intend(ledger)
        found.append(facts(path))
        finish(ledger, result(intent, Event.ACCEPTED))
        found.append(facts(path))
    assert [(each.due, each.created, each.has_begun, each.is_in_flight, each.first, each.last) for each in found] == [
        (NOW + 60, NOW, False, False, None, None),
        (NOW + 60, NOW, True, True, None, None),
        (NOW + 60, NOW, True, False, NOW, NOW),
    ]
