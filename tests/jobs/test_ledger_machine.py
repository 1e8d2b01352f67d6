"""A ledger against a model of what it should know, whatever happens to it, in whatever order."""

from __future__ import annotations

import sqlite3
import tempfile
from collections.abc import Sequence
from contextlib import ExitStack, closing, suppress
from dataclasses import dataclass, replace
from pathlib import Path

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule

from jobs.making import opened, phone, write
from msgctl.errors import ConfigurationError, OutcomeUnknownError, RefusedError
from msgctl.jobs.ledger import Ledger
from msgctl.jobs.records import Entry, Result, Totals
from msgctl.jobs.report import Report, settled
from msgctl.jobs.rows import Fault, Row
from msgctl.jobs.states import Event, ImpossibleStepError, Outcome, State

TEXTS = {"Hello": 1, "Good morning": 1, "x" * 200: 2}
"""What recipients are told, and the segments of it."""

AFTER = {
    Event.ANSWERED: "accepted",
    Event.REFUSAL: "refused",
    Event.LOSS: "unknown",
    Event.NEVER_LEFT: "pending",
}
"""What becomes of a recipient whose request is under way, in the words of the contract."""

ENTRIES = st.sampled_from([None, *(Entry("m1", "queued", said) for said in ("0", "1", "7", "03", None, "much", "1.5"))])


@dataclass
class Sent:
    """A request in the model; ``outcome`` is "under way" until there is one."""

    lines: list[int]
    cost: int
    outcome: str = "under way"
    leavings: int = 1
    lost: int = 0
    in_doubt: bool = False
    entries: tuple[Entry | None, ...] = ()

    @property
    def estimate(self) -> int:
        return self.cost * len(self.lines)

    @property
    def credits(self) -> int:
        return sum(int(said) for said in self.prices if said)

    @property
    def prices(self) -> list[str | None]:
        """What the service said of each recipient's price; None where it is not known."""
        texts = [entry and entry.credits for entry in self.entries]
        return [said if said in ("0", "1", "7", "03") else None for said in texts]


class DoomedError(Exception):
    """Ends a transaction."""


class LedgerMachine(RuleBasedStateMachine):
    """The steps that a job can take, and those that it cannot."""

    def __init__(self) -> None:
        super().__init__()
        self.opened = ExitStack()
        self.path = Path(self.opened.enter_context(tempfile.TemporaryDirectory())) / "job.sqlite3"
        self.sent: dict[int, Sent] = {}
        self.request_of: dict[int, int] = {}

    def teardown(self) -> None:
        self.opened.close()

    @initialize(
        found=st.lists(
            st.tuples(st.integers(0, 15), st.sampled_from([*TEXTS]), st.sampled_from([True, True, True, False])),
            max_size=14,
        )
    )
    def take_in(self, found: list[tuple[int, str, bool]]) -> None:
        rows: list[Row | Fault] = []
        self.text_of: dict[int, str] = {}
        self.phone_of: dict[int, str] = {}
        self.excluded: dict[int, str] = {}
        for line, (number, text, valid) in enumerate(found, start=2):
            rows.append(Row(line, phone(number), (text,)) if valid else Fault(line, phone(number), "it is broken"))
            if not valid:
                self.excluded[line] = "invalid"
            elif phone(number) in self.phone_of.values():
                self.excluded[line] = "duplicate"
            else:
                self.text_of[line], self.phone_of[line] = text, phone(number)
        self.ledger = opened(write(self.path, rows))
        self.opened.callback(self.end)

    # --- what can happen

    @rule(most=st.integers(1, 5))
    def intend(self, most: int) -> None:
        with self.ledger.transaction():
            ahead = self.ledger.peek()
            intent = self.ledger.intend(most)
        pending = [*self.lines("pending"), *self.lines("again")]
        if intent is None:
            assert (ahead, pending) == (None, [])
            return
        lines = [line for line, phone in self.phone_of.items() if phone in intent.phones]
        assert [self.phone_of[line] for line in lines] == list(intent.phones)
        assert set(lines) <= set(pending), "somebody gets a second message"
        (text,) = {self.text_of[line] for line in lines}
        assert (intent.parameters, intent.estimate) == ({"sms": text}, TEXTS[text] * len(lines))
        assert ahead == TEXTS[text]
        assert len(lines) <= most
        if intent.number in self.sent:
            self.leave_again(intent.number, lines)
            return
        self.sent[intent.number] = Sent(lines, TEXTS[text])
        self.request_of |= dict.fromkeys(lines, intent.number)

    def leave_again(self, number: int, lines: list[int]) -> None:
        sent = self.sent[number]
        assert (sent.outcome, sent.lines[: len(lines)]) == ("again" if sent.in_doubt else "pending", lines)
        if rest := sent.lines[len(lines) :]:  # it went in two
            other = max(self.sent) + 1
            self.sent[other] = Sent(rest, sent.cost, sent.outcome, leavings=0, in_doubt=sent.in_doubt)
            self.request_of |= dict.fromkeys(rest, other)
            sent.lines = lines
        sent.outcome = "under way"
        sent.leavings += 1

    @precondition(lambda self: self.numbers("under way"))
    @rule(data=st.data(), event=st.sampled_from([*AFTER]))
    def record(self, data: st.DataObject, event: Event) -> None:
        number = data.draw(st.sampled_from(self.numbers("under way")))
        sent = self.sent[number]
        entries: tuple[Entry | None, ...] = ()
        if event is Event.ANSWERED:
            entries = tuple(data.draw(ENTRIES) for _ in sent.lines)
        with self.ledger.transaction():
            self.ledger.record(Result(number, event, entries, OutcomeUnknownError("why") if not entries else None))
        sent.outcome, sent.entries = AFTER[event], entries
        sent.leavings -= event is Event.NEVER_LEFT
        sent.lost += sent.estimate if event is Event.LOSS else sent.cost * sent.prices.count(None)
        sent.in_doubt |= event is Event.LOSS
        if sent.in_doubt and not entries:
            sent.outcome = "unknown"

    def end(self) -> None:
        self.ledger.close()

    @rule()
    def end_and_look(self) -> None:
        """The process ends without a word; another one looks at what it left."""
        self.end()
        self.ledger = opened(self.path)

    @rule()
    def end_and_go_on(self) -> None:
        self.end_and_look()
        self.ledger.recover()
        for number in self.numbers("under way"):
            sent = self.sent[number]
            sent.outcome, sent.in_doubt, sent.lost = "unknown", True, sent.lost + sent.estimate
        for number in self.numbers("again"):
            self.sent[number].outcome = "unknown"

    @precondition(lambda self: not self.numbers("under way"))
    @rule(states=st.sets(st.sampled_from([State.UNKNOWN, State.REFUSED])))
    def send_again(self, states: set[State]) -> None:
        self.ledger.send_again(*states)
        for sent in self.sent.values():
            if sent.outcome in {str(state) for state in states}:
                sent.outcome = "again" if sent.in_doubt else "pending"

    # --- what cannot

    @precondition(lambda self: len(self.sent) > len(self.numbers("under way")))
    @rule(data=st.data(), event=st.sampled_from([*AFTER]))
    def record_what_is_not_under_way(self, data: st.DataObject, event: Event) -> None:
        number = data.draw(st.sampled_from(sorted({*self.sent}.difference(self.numbers("under way")))))
        before = self.stored()
        with pytest.raises(ImpossibleStepError), self.ledger.transaction():
            self.ledger.record(Result(number, event))
        assert self.stored() == before

    @rule(data=st.data(), most=st.integers(1, 5), event=st.sampled_from([*AFTER]))
    def fail(self, data: st.DataObject, most: int, event: Event) -> None:
        """A transaction is broken off after it did all sorts of things."""
        before, totals = self.stored(), replace(self.ledger.totals)
        with suppress(DoomedError), self.ledger.transaction():
            for number in self.numbers("under way"):
                self.ledger.record(Result(number, event))
            while data.draw(st.booleans()) and self.ledger.intend(most):
                pass
            raise DoomedError
        assert (self.stored(), self.ledger.totals) == (before, totals)

    # --- what is always so

    @invariant()
    def nobody_is_left_out(self) -> None:
        rows = [*Report(self.ledger, running=True)]
        assert [row["line"] for row in rows] == sorted([*self.text_of, *self.excluded])
        assert [(row["line"], row["outcome"]) for row in rows] == [
            (row["line"], self.excluded.get(row["line"]) or self.told(row["line"], running=True)) for row in rows
        ]

    @invariant()
    def the_report_tells_what_became_of_each(self) -> None:
        for row in Report(self.ledger, running=False):
            line = row["line"]
            if line in self.excluded:
                assert (row["outcome"], row["id"]) == (self.excluded[line], None)
                continue
            assert (row["phone"], row["outcome"]) == (self.phone_of[line], self.told(line, running=False))
            entry = self.entry(line)
            assert (row["id"], row["status"]) == ((entry.id, entry.status) if entry else (None, None))

    @invariant()
    def a_report_is_as_long_as_it_says(self) -> None:
        for running in (True, False):
            for only in (None, *Outcome):
                report = Report(self.ledger, only, running=running)
                assert len(report) == sum(1 for _ in report)

    @invariant()
    def totals_are_those_of_the_model_and_of_the_file(self) -> None:
        with closing(opened(self.path)) as counted_anew:
            assert self.ledger.totals == counted_anew.totals == self.counted()
        lost = settled(self.ledger.totals, running=False)
        assert lost.unknown == sum(self.told(line, running=False) == "unknown" for line in self.text_of)
        assert lost.recipients == len(self.text_of) + len(self.excluded)

    # --- the model

    def counted(self) -> Totals:
        totals = Totals(
            under_way=sum(not self.is_in_doubt(line) for line in self.lines("under way")),
            requests=sum(sent.leavings for sent in self.sent.values()),
            credits=sum(sent.credits for sent in self.sent.values()),
            doubtful=sum(sent.lost for sent in self.sent.values()),
            promised=sum(self.sent[number].estimate for number in self.numbers("under way")),
        )
        outcomes = [*self.excluded.values(), *(self.told(line, running=True) for line in self.text_of)]
        for outcome in Outcome:
            setattr(totals, outcome, outcomes.count(outcome))
        return totals

    def numbers(self, outcome: str) -> list[int]:
        return [number for number, sent in self.sent.items() if sent.outcome == outcome]

    def lines(self, outcome: str) -> list[int]:
        """The lines whose requests stand so; pending are those without one, too."""
        return [line for line in self.text_of if self.stands(line) == outcome]

    def stands(self, line: int) -> str:
        number = self.request_of.get(line)
        return "pending" if number is None else self.sent[number].outcome

    def told(self, line: int, *, running: bool) -> str:
        """The outcome of a line as the report should tell it."""
        stands = self.stands(line)
        if stands == "under way":
            return "pending" if running and not self.is_in_doubt(line) else "unknown"
        if stands == "again":
            return "unknown"
        return "unknown" if stands == "accepted" and self.entry(line) is None else stands

    def is_in_doubt(self, line: int) -> bool:
        return line in self.request_of and self.sent[self.request_of[line]].in_doubt

    def entry(self, line: int) -> Entry | None:
        number = self.request_of.get(line)
        sent = None if number is None else self.sent[number]
        return sent.entries[sent.lines.index(line)] if sent and sent.entries else None

    def stored(self) -> Sequence[object]:
        """All that the file says of requests."""
        return self.ledger.db.execute("SELECT * FROM request ORDER BY number").fetchall()


TestLedger = LedgerMachine.TestCase
TestLedger.settings = settings(max_examples=40, stateful_step_count=20, deadline=None)


def test_every_other_step_is_impossible() -> None:
    """The steps as the contract tells them: what is accepted stays so, and only a person has things sent again."""
    from msgctl.jobs.states import step

    possible: dict[tuple[State | None, Event], str] = {
        (None, Event.INTENT): "under way",
        (State.WAITING, Event.INTENT): "under way",
        **{(State.UNDER_WAY, event): "waiting" if after == "pending" else after for event, after in AFTER.items()},
        (State.UNKNOWN, Event.RESENDING): "again",
        (State.AGAIN, Event.CALLED_OFF): "unknown",
        (State.AGAIN, Event.INTENT): "under way again",
        (State.UNDER_WAY_AGAIN, Event.ANSWERED): "accepted",
        **{(State.UNDER_WAY_AGAIN, event): "unknown" for event in (Event.REFUSAL, Event.LOSS, Event.NEVER_LEFT)},
        (State.REFUSED, Event.RESENDING): "waiting",
    }
    for state in (None, *State):
        for event in Event:
            if (state, event) in possible:
                assert step(state, event) == possible[state, event]
            else:
                with pytest.raises(ImpossibleStepError):
                    step(state, event)


def test_a_message_that_was_accepted_cannot_be_sent_again(tmp_path: Path) -> None:
    with closing(opened(write(tmp_path / "job.sqlite3", [Row(2, phone(1), ("Hello",))]))) as ledger:
        with ledger.transaction():
            intent = ledger.intend(1)
            assert intent is not None
            ledger.record(Result(intent.number, Event.ANSWERED, (Entry("m1", "queued", "1"),)))
        with pytest.raises(ImpossibleStepError):
            ledger.send_again(State.ACCEPTED)
        assert _outcomes(ledger) == ["accepted"]


def test_nothing_leaves_with_an_intent_that_somebody_else_has_written(tmp_path: Path) -> None:
    path = write(tmp_path / "job.sqlite3", [Row(line, phone(line), ("Hello",)) for line in (2, 3)])
    with closing(opened(path)) as one, closing(opened(path)) as other:
        with one.transaction():
            assert one.intend(1) is not None
        stored = one.db.execute("SELECT * FROM request").fetchall()
        with pytest.raises(ConfigurationError), other.transaction():
            other.intend(2)
        assert one.db.execute("SELECT * FROM request").fetchall() == stored
        assert other.totals.under_way == 0


def test_an_old_sqlite_writes_as_many_requests_together_as_there_may_be(tmp_path: Path) -> None:
    path = write(tmp_path / "job.sqlite3", [Row(line, phone(line), ("Hello",)) for line in range(300)])
    with closing(opened(path)) as ledger:
        ledger.db.setlimit(sqlite3.SQLITE_LIMIT_VARIABLE_NUMBER, 999)
        with ledger.transaction():
            intents = [intent for _ in range(300) if (intent := ledger.intend(1))]
        with ledger.transaction():
            for intent in intents:
                ledger.record(Result(intent.number, Event.ANSWERED, (Entry("m1", "queued", "1"),)))
        assert _outcomes(ledger) == ["accepted"] * 300


def test_all_that_is_under_way_again_counts_against_the_budget(tmp_path: Path) -> None:
    path = write(tmp_path / "job.sqlite3", [Row(line, phone(line), ("Hello",)) for line in range(2, 6)])
    with closing(opened(path)) as ledger:
        with ledger.transaction():
            for intent in (ledger.intend(2), ledger.intend(2)):
                assert intent is not None
                ledger.record(Result(intent.number, Event.NEVER_LEFT, (), OutcomeUnknownError("why")))
        assert (ledger.totals.promised, ledger.totals.requests) == (0, 0)
        with ledger.transaction():
            ledger.intend(2)
            ledger.intend(2)
        assert (ledger.totals.promised, ledger.totals.requests) == (4, 2)
        with closing(opened(path)) as counted_anew:
            assert counted_anew.totals == ledger.totals


def test_the_report_tells_of_a_lost_request_and_of_the_refusal_of_the_next(tmp_path: Path) -> None:
    why = OutcomeUnknownError("it was late"), RefusedError("it was refused", http_status=520)
    with closing(opened(write(tmp_path / "job.sqlite3", [Row(2, phone(1), ("Hello",))]))) as ledger:
        errors = []
        for event, fault in zip((Event.LOSS, Event.REFUSAL), why, strict=True):
            with ledger.transaction():
                intent = ledger.intend(1)
                assert intent is not None
                ledger.record(Result(intent.number, event, (), fault))
            errors += [row["error"] for row in Report(ledger, running=False)]
            ledger.send_again(State.UNKNOWN)
    assert errors[0] == "it was late"
    assert errors[1] == "an earlier request may have been carried out; of the last one: it was refused"


def _outcomes(ledger: Ledger) -> list[str]:
    return [row["outcome"] for row in Report(ledger, running=False)]
