"""The limits of a running job: credits, waits after 429, and failures in a row."""

from __future__ import annotations

import socket
import time
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from msgctl.credits import CREDIT
from msgctl.jobs.ending import counts
from msgctl.jobs.limits import CATCH_UP, MAX_WAITS, Backoff, Budget, FailureCounter, RateLimiter
from msgctl.outcomes.outcome import Outcome
from msgctl.store.jobs import JOB_COLUMNS, Job
from msgctl.store.lifecycle import Why, state_after
from msgctl.store.results import Charges, Intent
from support.jobs import accepting, numbers, of_phones, sent
from support.service import Service, respond
from support.tool import Tool

_ZEROS: Any = [0] * len(JOB_COLUMNS.split(","))
JOB = replace(Job(*_ZEROS), id="20261121-362e8c", name=None)


def intent(recipients: int, cost: int = 1) -> Intent:
    return Intent(1, 1, 1, "{}", cost, range(recipients), ["573001234567"] * recipients, 0, 0)


def paid(credits: float | None, number: int = 1) -> list[Outcome]:
    return [Outcome(None, "accepted", credits=None if credits is None else int(credits * CREDIT))] * number


def budget(most: int, *, accepted: int = 0, uncharged: int = 0, unknown: int = 0, spent: int = 0) -> Budget:
    return Budget(most, replace(JOB, credits=spent * CREDIT), Charges(accepted, uncharged, unknown))


def test_one_recipient_is_in_flight_until_the_first_price_is_known() -> None:
    limit = budget(100)
    assert limit.allows(50, 1) == 1
    limit.reserve(intent(1))
    assert limit.allows(50, 1) is None
    limit.release(intent(1), paid(2))
    assert limit.allows(50, 1) == 49


def test_a_batch_is_reduced_to_the_size_that_fits() -> None:
    assert budget(10, accepted=1, spent=4).allows(50, 2) == 3


def test_segments_in_flight_count_with_the_highest_price() -> None:
    limit = budget(10, accepted=1)
    limit.reserve(intent(1))
    limit.release(intent(1), paid(3))
    limit.reserve(intent(2))
    assert limit.allows(5, 1) is None, "one in flight may cost less, or may be refused"
    limit.release(intent(2), [Outcome(None, "refused")] * 2)
    assert limit.allows(5, 1) == 2


def test_the_price_is_per_segment() -> None:
    limit = budget(100)
    limit.reserve(intent(1, 3))
    limit.release(intent(1, 3), paid(7))
    assert limit.allows(50, 1) == 39, "93 left, and 7/3 each"


def test_a_price_that_rises_in_a_batch_is_the_price_of_one_recipient() -> None:
    limit = budget(100, accepted=1)
    limit.reserve(intent(10))
    limit.release(intent(10), paid(2, 10))
    assert limit.allows(50, 1) == 40, "80 left, and 2 each"


def test_a_charge_of_nothing_counts_as_one_credit_for_each_segment() -> None:
    for charge in (0, None):
        limit = budget(3)
        limit.reserve(intent(1, 2))
        limit.release(intent(1, 2), paid(charge))
        assert limit.allows(5, 1) == 1
    assert budget(3, accepted=1, uncharged=2).allows(5, 1) == 1


def test_an_unknown_request_may_have_been_charged() -> None:
    assert budget(3, accepted=1, unknown=2).allows(5, 1) == 1
    assert budget(3, accepted=1, unknown=3).allows(5, 1) == 0
    limit = budget(4, accepted=1)
    limit.reserve(intent(3))
    limit.release(intent(3), [Outcome(None, "unknown"), Outcome(None, "unknown"), Outcome(None, "refused")])
    assert limit.allows(5, 1) == 2


def test_at_the_limit_nothing_more_is_allowed() -> None:
    assert budget(4, accepted=1, spent=4).allows(5, 1) == 0
    assert budget(0).allows(5, 1) == 0


def test_requests_that_were_in_flight_belong_to_the_same_wait() -> None:
    waits = Backoff()
    assert not any(waits.turned_away(started=9.9, now=10.0 + each / 100, retry_after=None) for each in range(60))
    assert 11 <= waits.until <= 11.06


def test_a_request_that_was_in_flight_prolongs_a_wait_and_never_shortens_it() -> None:
    waits = Backoff()
    for retry_after in (2, 30, 5):
        assert not waits.turned_away(started=9.9, now=10, retry_after=retry_after)
    assert 40 <= waits.until <= 41.5


@pytest.mark.parametrize("retry_after", [None, 0.0])
def test_waits_become_longer_until_a_message_is_accepted(retry_after: float | None) -> None:
    waits, now = Backoff(), 0.0
    for seconds in (1, 2, 4, 8, 16):
        assert not waits.turned_away(now, now + 0.1, retry_after)
        assert seconds <= waits.delay(now + 0.1) <= seconds * 1.05
        now = waits.until + 0.1
    assert waits.turned_away(now, now + 0.1, retry_after), f"{MAX_WAITS} waits"
    waits.accepted()
    assert not waits.turned_away(now, now + 0.1, retry_after)
    assert waits.delay(now + 0.1) <= 1.05


def test_a_rate_catches_up_with_at_most_a_short_delay() -> None:
    limiter = RateLimiter(2)
    for now in (100.0, 200.0):
        limiter.sent(2, now)
        assert limiter.delay(now) == pytest.approx(1 - CATCH_UP)


def test_a_wait_of_more_than_ten_minutes_pauses_the_job() -> None:
    assert not Backoff().turned_away(0, 1, 600)
    assert Backoff().turned_away(0, 1, 601)


def test_five_failures_in_a_row_stop_the_job() -> None:
    failures = FailureCounter()
    kinds = ["refused"] * 4 + [""] + ["unknown"] * 4 + ["refused"] * 5
    assert [failures.count(kind) for kind in kinds] == [False] * (len(kinds) - 1) + [True]


def test_a_scheduled_job_stays_scheduled_if_the_next_run_may_succeed() -> None:
    job = replace(JOB, state="scheduled", pending=1)
    passing = {Why.TERMINATED, Why.NOT_REACHED, Why.RATE_LIMITED, Why.STORE_LOST, Why.CONFIGURATION}
    scheduled = {why for why in Why if state_after(job, why) == "scheduled"}
    assert scheduled == {Why.COMPLETE, Why.CLOSED, *passing}


def test_requests_in_flight_when_a_job_was_killed_count_as_unknown() -> None:
    assert counts(replace(JOB, accepted=3, unknown=1, sending=2)) == "3 accepted, 3 unknown"


def test_five_failed_checks_in_a_row_end_the_polling(tool: Tool, service: Service, home: Path) -> None:
    service.always(accepting(service))
    job = sent(tool, of_phones(home, numbers(150)))
    service.received.clear()
    service.always(respond({"error": "E1"}, 503))
    assert tool("job", "states", job).code == 4
    assert 5 <= len(service.received) < 110  # at most 100 messages wait for the threads


def test_failed_checks_that_are_not_in_a_row_do_not_end_the_polling(tool: Tool, service: Service, home: Path) -> None:
    def fail_each_second(connection: socket.socket) -> None:
        if len(service.received) % 2:
            respond({"error": "E1"}, 422)(connection)
        else:
            respond({"id": "m", "state": "delivered"})(connection)

    service.always(accepting(service))
    job = sent(tool, of_phones(home, numbers(12)))
    service.received.clear()
    service.always(fail_each_second)
    assert tool("job", "states", job).code == 1
    assert len(service.received) == 12


def test_checks_of_states_keep_the_rate_of_the_job(
    tool: Tool, service: Service, home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    service.always(accepting(service))
    job = sent(tool, of_phones(home, numbers(4)), "--rate", "10")
    monkeypatch.setattr(time, "sleep", tool.clock.sleep)
    begun, tool.clock.slept = tool.clock() + time.monotonic(), []
    assert tool("job", "states", job).code == 0
    assert tool.clock() + time.monotonic() - begun >= 3 / 10 - CATCH_UP
    assert sum(tool.clock.slept) <= 3 / 10
