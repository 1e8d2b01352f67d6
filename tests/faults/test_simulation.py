"""Seeded histories of faults keep every promise, and find out a msgctl that is broken."""

from __future__ import annotations

import tempfile
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from unittest import mock

import pytest

from faults.simulation import Simulation, memory
from msgctl.errors import NotReachedError, OutcomeUnknownError
from msgctl.jobs.requests import Outcome, send
from msgctl.store.database import Database
from msgctl.store.results import add_to_counts
from msgctl.store.sending import Sending

HISTORIES = 50
MAX_HISTORIES = 300
"""Histories in which each planted fault is found. Most are found in the first ten."""


@pytest.fixture
def simulation() -> Iterator[Simulation]:
    with tempfile.TemporaryDirectory(dir=memory()) as directory:
        yield Simulation(Path(directory))


@pytest.mark.parametrize("part", range(2))
def test_histories_with_faults_break_no_promise(simulation: Simulation, part: int) -> None:
    for number in range(part * HISTORIES, (part + 1) * HISTORIES):
        assert simulation.play(f"suite-{number}") == ""


def _no_fence(sending: Sending) -> None:
    epoch = sending._db.value("SELECT epoch FROM job WHERE number = ?", (sending.job.number,))
    sending.job.epoch = epoch
    _real_fence(sending)


_real_fence = Sending._fence


def _retried(db: Database, job: int) -> None:
    lost = db.change("DELETE FROM result WHERE job = ? AND outcome = 'sending' AND attempt = 1", (job,))
    add_to_counts(db, job, Counter(sending=-lost, pending=lost))


def _unknown_is_not_sent(*given: object) -> Outcome:
    outcome = send(*given)  # type: ignore[arg-type]
    if isinstance(outcome.error, OutcomeUnknownError):
        return Outcome(outcome.intent, outcome.started, error=NotReachedError("no response"))
    return outcome


FAULTS = {
    "no fence": ("msgctl.store.sending.Sending._fence", _no_fence),
    "requests in flight are retried": ("msgctl.store.results.lose", _retried),
    "requests in flight are forgotten": ("msgctl.store.results.lose", lambda *_: None),
    "a lost response is not sent": ("msgctl.jobs.sending.send", _unknown_is_not_sent),
    "intents do not expire": ("msgctl.store.sending.INTENT_LIFE", 1e9),
    "opt-outs are ignored": ("msgctl.store.people.opted_out", lambda *_: set()),
    "repeats are sent": ("msgctl.store.people.repeats", lambda *_, **__: set()),
    "--at-most is ignored": ("msgctl.store.people.messages_since", lambda *_: {}),
    "credits are ignored": ("msgctl.jobs.limits.Budget.allows", lambda _, size, cost: size),
}
"""What is broken in msgctl, and its replacement."""


@pytest.mark.parametrize("fault", FAULTS)
def test_a_broken_msgctl_is_found_out(simulation: Simulation, fault: str) -> None:
    place, replacement = FAULTS[fault]
    with mock.patch(place, replacement):
        assert any(simulation.play(f"broken-{number}") for number in range(MAX_HISTORIES))
