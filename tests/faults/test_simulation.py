"""Seeded histories of faults keep every promise, and find out a msgctl that is broken."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import replace
from unittest import mock

import pytest

from faults.sessions import PostgreSQLStores
from faults.simulation import Simulation, simulating
from msgctl.errors import NotReachedError, OutcomeUnknownError
from msgctl.jobs.limits import canary_left
from msgctl.jobs.sending import make
from msgctl.jobs.settings import Settings
from msgctl.store import owners, removal
from msgctl.store.batches import OwnedJob
from msgctl.store.database import Database
from msgctl.store.jobs import Job
from msgctl.store.lifecycle import ALLOWED
from msgctl.store.postgresql import PostgreSQL
from msgctl.store.results import Charges, RequestOutcome, add_to_counts, charges
from msgctl.store.store import Store
from support.postgres import Cluster

HISTORIES = 30
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


def _no_fence(sending: OwnedJob) -> None:
    sending.job.epoch = sending._db.value("SELECT epoch FROM job WHERE number = ?", (sending.job.number,))
    _real_fence(sending)


_real_fence = OwnedJob._fence


def _retried(db: Database, job: int) -> None:
    lost = db.change("DELETE FROM result WHERE job = ? AND outcome = 'sending' AND attempt = 1", (job,))
    add_to_counts(db, job, Counter(sending=-lost, pending=lost))


def _unknown_is_not_sent(*given: object) -> RequestOutcome:
    outcome = make(*given)  # type: ignore[arg-type]
    if isinstance(outcome.error, OutcomeUnknownError):
        return outcome._replace(rows=(), error=NotReachedError("no response"))
    return outcome


def _canary_of_a_run(store: Store, settings: Settings, job: Job) -> int | None:
    """Return what the canary allows, but forget it if its people were sent to, whatever happened then."""
    return canary_left(store, settings, job) or None


def _free_is_free(store: Store, job: int) -> Charges:
    return charges(store, job)._replace(uncharged=0)


_real_load, _real_delete, _real_stop = Settings.load, removal._delete, owners.ask_to_stop
_real_selected = owners._selected

FAULTS = {
    "no fence": ("msgctl.store.batches.OwnedJob._fence", _no_fence),
    "requests in flight are retried": ("msgctl.store.results.lose", _retried),
    "requests in flight are forgotten": ("msgctl.store.results.lose", lambda *_: None),
    "a lost response is not sent": ("msgctl.jobs.sending.make", _unknown_is_not_sent),
    "intents do not expire": ("msgctl.store.batches.INTENT_LIFE", 1e9),
    "a slow commit stops a job": ("msgctl.store.batches.OLD", 1e9),
    "a resend repeats a refused request": ("msgctl.store.results.was_refused", lambda *_: False),
    "free messages cost nothing after a resume": ("msgctl.store.results.charges", _free_is_free),
    "opt-outs are ignored": ("msgctl.store.people.opted_out", lambda *_: set()),
    "repeats are sent": ("msgctl.store.people.repeats", lambda *_, **__: {}),
    "--at-most is ignored": ("msgctl.store.people.messages_since", lambda *_: {}),
    "credits are ignored": ("msgctl.jobs.limits.Budget.allows", lambda _, size, cost: size),
    "a canary that was killed is forgotten": ("msgctl.jobs.sending.canary_left", _canary_of_a_run),
    "the canary is ignored": (
        "msgctl.jobs.settings.Settings.load",
        lambda text: replace(_real_load(text), canary=None),
    ),
    "windows do not close": ("msgctl.jobs.schedule.SendingHours.is_open", lambda _: True),
    "cancelled jobs are resumed": ("msgctl.store.lifecycle.ALLOWED", {**ALLOWED, "cancelled": ALLOWED["paused"]}),
    "a pause is forgotten": (
        "msgctl.store.owners.ask_to_stop",
        lambda store, number, state: _real_stop(store, number, state.replace("paused", "scheduled")),
    ),
    "jobs that have not ended are removed": (
        "msgctl.store.removal.ENDED",
        ("scheduled", "active", "paused", "cancelled", "done"),
    ),
    "a removal forgets whom a job reached": (
        "msgctl.store.removal._delete",
        lambda store, numbers, **_: _real_delete(store, numbers, everything=True),
    ),
    "a removal keeps the rows": ("msgctl.store.removal._delete", lambda *_, **__: None),
    "a resend reaches everyone": (
        "msgctl.store.owners._selected",
        lambda store, number, *_: _real_selected(store, number, ("accepted", "refused", "unknown", "excluded"), None),
    ),
    "names are ignored": ("msgctl.store.jobs.named", lambda *_: None),
}
"""Planted faults: the replaced part of msgctl, and its replacement."""


@pytest.mark.slow  # it tests the simulation
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
