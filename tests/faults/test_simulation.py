"""Seeded histories of faults keep every promise, and find out a msgctl that is broken."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import replace
from unittest import mock

import pytest

from faults.sessions import PostgreSQLStores
from faults.simulation import Simulation, simulating
from msgctl.errors import NotReachedError, OutcomeUnknownError
from msgctl.jobs.requests import Outcome, send
from msgctl.jobs.settings import Settings
from msgctl.store import owners, removal
from msgctl.store.database import Database
from msgctl.store.jobs import Job
from msgctl.store.postgresql import PostgreSQL
from msgctl.store.results import NEWEST, add_to_counts
from msgctl.store.schema import STATES
from msgctl.store.sending import Sending
from msgctl.store.store import Store
from support.postgres import Cluster

HISTORIES = 50
MAX_HISTORIES = 1500
"""Histories in which each planted fault is found. Most are found in the first ten."""


@pytest.fixture
def simulation() -> Iterator[Simulation]:
    with simulating() as simulation:
        yield simulation


@pytest.fixture
def server(cluster: Cluster) -> Iterator[Simulation]:
    """A simulation on PostgreSQL."""
    cluster.empty()
    stores = PostgreSQLStores(cluster)
    try:
        yield Simulation(stores)
    finally:
        stores.close()


@pytest.mark.parametrize("part", range(2))
def test_histories_with_faults_break_no_promise(simulation: Simulation, part: int) -> None:
    for number in range(part * HISTORIES, (part + 1) * HISTORIES):
        assert simulation.play(f"suite-{number}") == ""


def test_histories_on_a_server_break_no_promise(server: Simulation) -> None:
    for number in range(HISTORIES // 5):
        assert server.play(f"server-{number}") == ""


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


_load = Settings.load


def _without_canary(text: str) -> Settings:
    return replace(_load(text), canary=None)


def _remove_everything(store: Store, jobs: Sequence[int], *, everything: bool = False) -> None:
    del everything
    _real_delete(store, jobs, everything=True)


_real_delete = removal._delete


def _everyone(*_: object) -> tuple[str, list[str]]:
    return f"FROM result WHERE job = ? AND {NEWEST}", []


def _schedule(store: Store, number: int, state: str) -> Job:
    return _ask_to_stop(store, number, "scheduled" if state == "paused" else state)


_ask_to_stop = owners.ask_to_stop


def _find_no_name(*_: object) -> Job | None:
    return None


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
    "the canary is ignored": ("msgctl.jobs.settings.Settings.load", _without_canary),
    "windows do not close": ("msgctl.jobs.schedule.SendingHours.is_open", lambda _: True),
    "cancelled jobs are resumed": ("msgctl.store.owners._check_not_cancelled", lambda _: None),
    "a pause is forgotten": ("msgctl.store.owners.ask_to_stop", _schedule),
    "jobs that have not ended are removed": ("msgctl.store.removal.ENDED", STATES),
    "a removal forgets whom a job reached": ("msgctl.store.removal._delete", _remove_everything),
    "a removal keeps the rows": ("msgctl.store.removal._delete", lambda *_, **__: None),
    "a resend reaches everyone": ("msgctl.store.owners._selected", _everyone),
    "names are ignored": ("msgctl.store.jobs.named", _find_no_name),
}
"""What is broken in msgctl, and its replacement."""


@pytest.mark.parametrize("fault", FAULTS)
def test_a_fault_in_msgctl_is_detected(simulation: Simulation, fault: str) -> None:
    place, replacement = FAULTS[fault]
    with mock.patch(place, replacement):
        assert any(simulation.play(f"broken-{number}") for number in range(MAX_HISTORIES))


def _begin_without_lock(self: PostgreSQL, lock: str) -> None:
    del lock
    self._session.execute("BEGIN", prepare=False)


@pytest.mark.slow
def test_a_missing_lock_of_an_account_is_detected(server: Simulation) -> None:
    with mock.patch("msgctl.store.postgresql.PostgreSQL.begin", _begin_without_lock):
        assert any(server.play(f"broken-{number}") for number in range(MAX_HISTORIES))
