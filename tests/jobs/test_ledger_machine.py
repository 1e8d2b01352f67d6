"""A ledger against a model of it, whatever happens, in any order."""

from __future__ import annotations

import tempfile
from collections import Counter
from contextlib import ExitStack, closing, suppress
from dataclasses import dataclass
from pathlib import Path

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule

from jobs.ledgers import close_all, opened, phone, report, rows, write
from msgctl.errors import ConfigurationError, OutcomeUnknownError, RefusedError
from msgctl.jobs.model import Intent, RequestResult
from msgctl.jobs.reader import InvalidRow, Row
from msgctl.jobs.report import Report
from msgctl.jobs.schema import OPTED_OUT
from msgctl.jobs.states import Event, Outcome, State
from msgctl.recipients import RecipientOutcome

TEXTS = {"Hello": 1, "Good morning": 1, "x" * 200: 2}
"""What recipients get, and its segments."""

AFTER = {
    Event.ACCEPTED: "accepted",
    Event.REFUSED: "refused",
    Event.LOST: "unknown",
    Event.NOT_SENT: "pending",
}
"""The state of a recipient after its request, in the words of the contract."""

PRICES = {"0": 0, "1": 1, "3": 3, "03": 3, None: None, "much": None, "1.5": None}
"""What the service may say of credits, and the whole number in it."""

SAID = st.tuples(st.sampled_from([Event.ACCEPTED, Event.REFUSED, Event.LOST]), st.sampled_from([*PRICES]))


@dataclass
class Person:
    """A recipient in the model."""

    phone: str
    text: str
    state: str = "pending"
    is_in_doubt: bool = False
    credits: int = 0
    lost: int = 0
    id: str | None = None

    @property
    def cost(self) -> int:
        return TEXTS[self.text]

    def outcome(self, *, running: bool) -> str:
        if self.state in ("sending", "again"):
            return "pending" if running and not self.is_in_doubt else "unknown"
        return self.state

    def record(self, event: Event, price: str | None = None) -> None:
        self.state = AFTER[event]
        if self.is_in_doubt and event is not Event.ACCEPTED:
            self.state = "unknown"
        self.is_in_doubt |= event is Event.LOST
        charged = PRICES[price]
        self.credits += charged or 0
        if event is Event.LOST or (event is Event.ACCEPTED and not charged):
            self.lost += max(self.cost, 2 if price == "1.5" else 0)


def result(intent: Intent, event: Event, *values: str | None) -> RequestResult:
    """Return a result that is the same for all recipients."""
    found = [RecipientOutcome(None, event, *values)] * len(intent.phones)
    if event is Event.NOT_SENT:
        found = [RecipientOutcome(None, "unknown")] * len(intent.phones)
    return RequestResult(intent, found, was_sent=event is not Event.NOT_SENT)


class DoomedError(Exception):
    """Ends a transaction."""


class LedgerMachine(RuleBasedStateMachine):
    """The steps that a job can take, and those that it cannot."""

    def __init__(self) -> None:
        super().__init__()
        self.opened = ExitStack()
        self.path = Path(self.opened.enter_context(tempfile.TemporaryDirectory())) / "job.sqlite3"
        self.in_flight: dict[int, Intent] = {}
        self.requests = 0

    def teardown(self) -> None:
        self.opened.close()
        close_all()

    @initialize(
        found=st.lists(
            st.tuples(st.integers(0, 15), st.sampled_from([*TEXTS]), st.sampled_from([True, True, True, False])),
            max_size=14,
        )
    )
    def import_file(self, found: list[tuple[int, str, bool]]) -> None:
        lines: list[Row | InvalidRow] = []
        self.people: dict[int, Person] = {}
        self.excluded: dict[int, str] = {}
        for line, (number, text, valid) in enumerate(found, start=2):
            lines.append(Row(line, phone(number), (text,)) if valid else InvalidRow(line, phone(number), "broken"))
            if not valid:
                self.excluded[line] = "invalid"
            elif phone(number) in (each.phone for each in self.people.values()):
                self.excluded[line] = "duplicate"
            else:
                self.people[line] = Person(phone(number), text)
        self.ledger = opened(write(self.path, lines))
        self.opened.callback(self.end)

    # --- what can happen

    @rule(most=st.integers(1, 5))
    def intend(self, most: int) -> None:
        with self.ledger.transaction():
            cost, upcoming = self.ledger.upcoming(most)
            intent = self.ledger.intend(most)
        waiting = [line for line, person in self.people.items() if person.state in ("pending", "again")]
        if intent is None:
            assert (upcoming, waiting) == ((), [])
            return
        people = [self.people[line] for line in intent.lines]
        assert len({*intent.lines}) == len(people), "a recipient is twice in one request"
        assert [person.phone for person in people] == list(intent.phones) == list(upcoming)
        assert set(intent.lines) <= set(waiting), "a recipient gets a second message"
        (text,) = {person.text for person in people}
        assert (intent.parameters, intent.cost, cost) == ({"sms": text}, TEXTS[text], TEXTS[text])
        assert len(people) <= most
        assert {person.is_in_doubt for person in people} == {intent.state is State.AGAIN}
        self.in_flight[intent.number] = intent
        self.requests += 1
        for person in people:
            person.state = "sending"

    @precondition(lambda self: self.in_flight)
    @rule(data=st.data(), failed=st.sampled_from([None, Event.REFUSED, Event.LOST, Event.NOT_SENT]))
    def record(self, data: st.DataObject, failed: Event | None) -> None:
        intent = self.in_flight.pop(data.draw(st.sampled_from(sorted(self.in_flight))))
        results = None if failed else [self.responded(data, line) for line in intent.lines]
        with self.ledger.transaction():
            self.ledger.record(result(intent, failed) if failed else RequestResult(intent, results or []))
        self.requests -= failed is Event.NOT_SENT
        for place, line in enumerate(intent.lines):
            each = results[place] if results else None
            self.people[line].record(failed or Event(each.outcome if each else ""), each and each.credits)
            if failed is not Event.NOT_SENT or intent.state is State.AGAIN:  # else nothing changes in the file
                self.people[line].id = each and each.id

    def responded(self, data: st.DataObject, line: int) -> RecipientOutcome:
        event, price = data.draw(SAID)
        is_lost = event is Event.LOST
        return RecipientOutcome(None, event) if is_lost else RecipientOutcome(None, event, f"m{line}", "queued", price)

    def end(self) -> None:
        self.ledger.close()

    @rule()
    def end_and_look(self) -> None:
        """The process is killed; another one reads what it left."""
        self.end()
        self.ledger = opened(self.path)

    @rule()
    def end_and_resume(self) -> None:
        self.end_and_look()
        self.ledger.recover()
        self.in_flight = {}
        for person in self.people.values():
            if person.state == "sending":
                person.record(Event.LOST)
            elif person.state == "again":
                person.state = "unknown"

    @precondition(lambda self: not self.in_flight)
    @rule(asked=st.sets(st.sampled_from([Outcome.UNKNOWN, Outcome.REFUSED])))
    def resend(self, asked: set[Outcome]) -> None:
        self.ledger.resend(*asked)
        for person in self.people.values():
            if person.state in asked:
                person.is_in_doubt |= person.state == "unknown"
                person.state = "again" if person.is_in_doubt else "pending"

    @precondition(lambda self: self.people)
    @rule(data=st.data())
    def opt_out(self, data: st.DataObject) -> None:
        people = data.draw(st.sets(st.sampled_from(sorted(self.people))))
        waiting = [self.people[line] for line in people if self.people[line].state in ("pending", "again")]
        with self.ledger.transaction():
            phones = [self.people[line].phone for line in people]
            assert self.ledger.leave_out(phones, OPTED_OUT) == len(waiting)
        for person in waiting:
            person.state = {"pending": "excluded", "again": "unknown"}[person.state]

    @rule(most=st.integers(1, 5), number=st.integers(1, 3))
    def withdraw(self, most: int, number: int) -> None:
        before, totals = self.stored(), self.ledger.totals.copy()
        with self.ledger.transaction():
            intents = [each for _ in range(number) if (each := self.ledger.intend(most))]
            self.ledger.withdraw(intents)
        assert (self.stored(), self.ledger.totals) == (before, totals)

    # --- what cannot

    @precondition(lambda self: self.people)
    @rule(data=st.data(), most=st.integers(1, 5))
    def fail(self, data: st.DataObject, most: int) -> None:
        """A transaction fails after it did all sorts of things."""
        before, totals = self.stored(), self.ledger.totals.copy()
        with suppress(DoomedError), self.ledger.transaction():
            for intent in self.in_flight.values():
                self.ledger.record(result(intent, Event.ACCEPTED))
            while data.draw(st.booleans()) and self.ledger.intend(most):
                pass
            raise DoomedError
        assert (self.stored(), self.ledger.totals) == (before, totals)

    @precondition(lambda self: not self.in_flight)
    @rule(data=st.data(), event=st.sampled_from([*AFTER]))
    def record_twice(self, data: st.DataObject, event: Event) -> None:
        with self.ledger.transaction():
            intent = self.ledger.intend(5)
        if intent is None:
            return
        self.requests += 1
        with self.ledger.transaction():
            self.ledger.record(result(intent, Event.ACCEPTED, "m1", "queued", "1"))
        for line in intent.lines:
            self.people[line].record(Event.ACCEPTED, "1")
            self.people[line].id = "m1"
        before = self.stored()
        with pytest.raises(ConfigurationError), self.ledger.transaction():
            self.ledger.record(result(intent, event))
        assert self.stored() == before

    # --- what is always so

    @invariant()
    def the_report_gives_the_outcome_of_every_recipient(self) -> None:
        for running in (True, False):
            lines = sorted([*self.people, *self.excluded])
            assert [(row["line"], row["outcome"]) for row in report(self.ledger, running=running)] == [
                (line, self.excluded.get(line) or self.people[line].outcome(running=running)) for line in lines
            ]
        for row in report(self.ledger):
            if row["line"] in self.people:
                person = self.people[row["line"]]
                assert (row["phone"], row["id"]) == (person.phone, person.id)

    @invariant()
    def a_report_is_as_long_as_it_says(self) -> None:
        for running in (True, False):
            for only in ((), *([each] for each in Outcome)):
                found = Report(self.ledger, only, running=running)
                assert len(found) == sum(1 for _ in found)

    @invariant()
    def totals_are_those_of_the_model_and_of_the_file(self) -> None:
        totals = self.ledger.totals
        with closing(opened(self.path)) as reopened:
            assert (+reopened.totals.states, reopened.totals.requests) == (+totals.states, totals.requests)
            assert (reopened.totals.credits, reopened.totals.lost) == (totals.credits, totals.lost)
            assert reopened.totals.promised == totals.promised
        people = self.people.values()
        assert totals.requests == self.requests
        assert totals.credits == sum(person.credits for person in people)
        assert totals.lost == sum(person.lost for person in people)
        assert totals.promised == sum(intent.estimate for intent in self.in_flight.values())
        for running in (True, False):
            counted = Counter([*self.excluded.values(), *(person.outcome(running=running) for person in people)])
            assert +Counter(totals.outcomes(running=running)) == counted

    @invariant()
    def every_result_names_a_request(self) -> None:
        query = "SELECT line FROM result WHERE request > 0 AND request NOT IN (SELECT number FROM request)"
        assert self.ledger.db.execute(query).fetchall() == []

    @invariant()
    def the_ledger_is_not_damaged(self) -> None:
        self.ledger.check()

    def stored(self) -> list[object]:
        """Return everything that the file contains about recipients and requests."""
        return [
            self.ledger.db.execute(f"SELECT * FROM {table}").fetchall() for table in ("outcome", "request", "result")
        ]


TestLedger = LedgerMachine.TestCase
TestLedger.settings = settings(max_examples=15, stateful_step_count=20, deadline=None)


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
