"""Limits of a job: its rate over any ten seconds, its budget, and failures in a row."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Sequence
from contextlib import closing
from dataclasses import replace
from fractions import Fraction
from itertools import accumulate
from pathlib import Path
from threading import Event
from typing import Any

import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

from jobs.ledgers import (
    SPEC,
    Responder,
    Service,
    accept,
    charging,
    entry,
    lose,
    miss,
    opened,
    outcomes,
    phone,
    refuse,
    report,
    rows,
    run,
    write,
)
from msgctl.errors import ConditionError, NotReachedError, OutcomeUnknownError, RefusedError
from msgctl.jobs.model import Intent, JobSpec, RequestResult, Totals
from msgctl.jobs.rate_limits import Budget, FailureCounter, RateLimiter
from msgctl.jobs.reader import Row
from msgctl.jobs.states import Outcome, State
from msgctl.outcomes.judge import RecipientOutcome

SHORTLY = settings(max_examples=25, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])


# --- rate


def leave(rate: float, size: int, delays: list[float], seconds: float) -> list[tuple[float, int]]:
    """Return the times and sizes of the requests within some seconds; each is late by one of the delays in turn."""
    pace = RateLimiter(rate)
    now = 1000.0
    sent: list[tuple[float, int]] = []
    while now < 1000.0 + seconds:
        delay = pace.delay(now)
        now += delay + delays[len(sent) % len(delays)]
        sent.append((now, pace.batch_size(size)))
        pace.sent(pace.batch_size(size), now)
    return sent


def windows(sent: list[tuple[float, int]]) -> list[int]:
    """Recipients in each span of ten seconds that begins when a request is sent, and ends before the last one."""
    times = [time for time, _ in sent]
    sums = [0, *accumulate(size for _, size in sent)]
    return [
        sums[bisect_left(times, time + 10)] - sums[number]
        for number, time in enumerate(times)
        if time + 10 <= times[-1]
    ]


@pytest.mark.parametrize("size", [1, 100])
@pytest.mark.parametrize("rate", [5.0, 7.5, 20.0, 33.0, 100.0, 1000.0])
def test_the_rate_holds_in_any_ten_seconds(rate: float, size: int) -> None:
    for delays in ([0.0], [0.004, 0.0, 0.02], [0.0] * 50 + [0.09]):
        late = [min(delay, 1 / rate) if size == 1 else delay for delay in delays]
        found = windows(leave(rate, size, late, 30))
        assert max(found) <= rate * 10 * 1.05, delays
        assert min(found) >= rate * 10 * 0.95, delays


@given(rate=st.floats(5, 5000), size=st.integers(1, 1000), delays=st.lists(st.floats(0, 4), min_size=1, max_size=5))
@example(rate=50.0, size=10, delays=[*[0.0] * 9, 5.0])
@SHORTLY
def test_a_delay_is_not_made_up_in_a_burst(rate: float, size: int, delays: list[float]) -> None:
    assert max(windows(leave(rate, size, delays, 60 if rate < 500 else 13)), default=0) <= rate * 10 * 1.05


@pytest.mark.parametrize("rate", [0.1, 0.5, 2.0, 4.9])
def test_a_slow_rate_is_never_exceeded_by_more_than_one_recipient(rate: float) -> None:
    found = windows(leave(rate, 100, [0.0], 100))
    assert max(found) <= rate * 10 + 1
    assert min(found) >= rate * 10 - 1


# --- failures in a row


@pytest.mark.parametrize(
    ("failure", "error", "outcome"),
    [
        (refuse, RefusedError, Outcome.REFUSED),
        (lose, OutcomeUnknownError, Outcome.UNKNOWN),
        (miss, NotReachedError, Outcome.PENDING),
    ],
    ids=["refused", "unknown", "not reached"],
)
def test_five_failures_of_a_kind_stop_a_job(
    failure: Responder, error: type[Exception], outcome: str, tmp_path: Path
) -> None:
    service = Service(accept, *[failure] * 4, accept, *[failure] * 5)
    with closing(opened(write(tmp_path / "job.sqlite3", rows(20), one_by_one()))) as ledger:
        stopped_by = run(ledger, service)
        found = outcomes(ledger)
    assert isinstance(stopped_by, error)
    assert len(service.asked) == 11
    assert found == {"accepted": 2, **({"pending": 18} if outcome == "pending" else {"pending": 9, str(outcome): 9})}


def test_failures_of_several_kinds_are_not_in_a_row(tmp_path: Path) -> None:
    service = Service(*[refuse] * 4, *[lose] * 4, *[miss] * 4, *[refuse] * 4)
    with closing(opened(write(tmp_path / "job.sqlite3", rows(20), one_by_one()))) as ledger:
        assert run(ledger, service) is None
        assert outcomes(ledger) == {"accepted": 8, "refused": 8, "unknown": 4}
        assert ledger.totals.requests == 20, "a request that was not sent does not count"


def one_by_one() -> JobSpec:
    return replace(SPEC, batch_size=1, concurrency=1)


# --- budget


@given(
    texts=st.lists(st.sampled_from(["Hello", "Bye", "x" * 200, "x" * 1000]), min_size=1, max_size=30),
    factor=st.integers(1, 9),
    budget=st.integers(0, 200),
    batch_size=st.integers(1, 12),
    concurrency=st.integers(1, 6),
)
@SHORTLY
def test_the_budget_is_never_exceeded(
    texts: list[str],
    factor: int,
    budget: int,
    batch_size: int,
    concurrency: int,
    tmp_path_factory: pytest.TempPathFactory,
) -> None:
    """Messages cost several times what was estimated, and that is found out only as they are charged."""
    prices = {"Hello": 1, "Bye": 1, "x" * 200: 2, "x" * 1000: 7}
    costs = {phone(line): prices[text] * factor for line, text in enumerate(texts, start=2)}
    spec = replace(SPEC, batch_size=batch_size, concurrency=concurrency, max_credits=budget)
    path = tmp_path_factory.mktemp("job") / "job.sqlite3"
    recipients = [Row(line, phone(line), (text,)) for line, text in enumerate(texts, start=2)]
    service = Service(otherwise=lambda phones: [entry(each, costs[each]) for each in phones])
    with closing(opened(write(path, recipients, spec))) as ledger:
        stopped_by = run(ledger, service)
        assert service.charged == ledger.totals.credits
        assert ("pending" not in outcomes(ledger)) == (stopped_by is None)
        if sum(costs.values()) <= budget:
            assert outcomes(ledger) == {"accepted": len(texts)}
    if stopped_by:
        assert isinstance(stopped_by, ConditionError)
        assert f"--max-credits {budget}" in stopped_by.message
    # The first message is sent if its estimate fits: its price is not known before.
    assert service.charged <= budget or [len(phones) for phones in service.asked] == [1]


CO, ES, MX = "573001234567", "34600000001", "525512345678"


def request(number: int, *phones: str, cost: int = 1) -> Intent:
    return Intent(number, State.PENDING, range(len(phones)), phones, {"sms": "Hello"}, cost)


def charged(request: Intent, *prices: str) -> RequestResult:
    """Return the result of a request whose recipients were all accepted."""
    return RequestResult(request, [RecipientOutcome(None, "accepted", credits=price) for price in prices])


def test_a_budget_counts_the_highest_price_and_the_uncertain_credits_of_each_country() -> None:
    budget = Budget(100, {"CO": (Fraction(1, 2), 3), "ES": (Fraction(3), 2), "MX": (None, 4)})
    assert str(budget.used_up(Totals(credits=50))) == (
        "Stopped: the next request could exceed --max-credits 100 "
        "(50 used, and up to 13 more without a reported charge)"
    )
    for used, cost, phones, allowed in (
        (50, 1, [ES] * 10, 10),
        (75, 1, [ES] * 10, 4),
        (76, 1, [ES] * 10, 3),
        (75, 2, [ES] * 10, 2),
        (75, 1, [CO] * 20, 12),
        (87, 1, [CO], 0),
        (75, 1, [CO, ES, MX, CO], 2),
        (75, 1, [MX, MX], 1),
        (87, 1, [MX], 0),
        (200, 0, [ES, MX], 2),
    ):
        assert budget.allows(cost, phones, Totals(credits=used)) == allowed, (used, cost, phones)


def test_only_one_request_at_a_time_goes_to_a_country_without_a_price() -> None:
    budget, totals = Budget(20, {}), Totals()
    first, free = request(1, CO), request(2, ES, cost=0)
    for each in (first, free):
        budget.reserve(each)
    assert (budget.allows(1, [CO], totals), budget.allows(1, [ES], totals)) == (None, None)
    budget.release(free)
    assert budget.allows(1, [CO], totals) is None
    budget.release(first)
    assert (budget.allows(1, [CO], totals), budget.allows(20, [CO], totals)) == (1, 1)
    budget.reserve(first)
    budget.learn(charged(first, "2"), Totals(credits=2))
    assert budget.allows(1, [CO] * 20, Totals(credits=2)) == 9
    second = request(3, CO, CO, cost=2)
    budget.reserve(second)
    assert budget.allows(1, [CO] * 20, Totals(credits=2)) == 5, "8 credits are reserved"
    budget.learn(charged(second, "5", "3"), Totals(credits=10))
    assert budget.allows(2, [CO] * 20, Totals(credits=10)) == 2, "the highest price remains: 2.5 times the estimate"
    third = request(4, CO, cost=2)
    budget.reserve(third)
    budget.learn(charged(third, "0"), Totals(credits=10))
    assert budget.allows(2, [CO] * 20, Totals(credits=10)) == 1, "the estimate counts without a charge"


def test_the_first_message_over_the_limit_is_reported() -> None:
    budget, both = Budget(8, {}), request(1, ES, CO)
    found: list[ConditionError] = []
    for prices in (("6", "2"), ("6", "2"), ("2", "6")):
        budget.reserve(both)
        budget.learn(charged(both, *prices), totals := Totals(credits=8 * (len(found) + 1)))
        found.append(budget.used_up(totals))
    excess = "Stopped: 16 credits used, more than --max-credits 8: a message to Spain cost 6"
    used_up = "Stopped: the next request could exceed --max-credits 8 (8 used)"
    assert [str(each) for each in found] == [used_up, excess, excess]
    assert {each.reason for each in found} == {"credit_limit"}
    for number, where in ((CO, " to Colombia"), ("881234567890", "")):
        budget = Budget(8, {})
        budget.learn(charged(request(1, number), "1"), Totals(credits=9))
        assert budget.excess == f"9 credits used, more than --max-credits 8: a message{where} cost 1"


def test_the_first_request_is_not_delayed() -> None:
    """A monotonic clock may be at 0 if the machine has just started."""
    for rate in (None, 0.1, 5.0):
        limiter = RateLimiter(rate)
        assert limiter.delay(0.0) == 0.0
        limiter.sent(1, 0.0)
        assert (limiter.delay(0.0) > 0) == (rate is not None)


def test_five_errors_of_one_kind_in_a_row_stop_a_job() -> None:
    failures, stops = FailureCounter(), []
    for error in (*[RefusedError("no")] * 4, None, *[RefusedError("no")] * 4, *[NotReachedError("no")] * 5, None):
        stops.append(failures.add(error))
    assert stops == [*[False] * 13, True, False]
    assert not any(FailureCounter().add(None) for _ in range(9))


def test_a_budget_is_used_up_to_its_limit(tmp_path: Path) -> None:
    spec = replace(SPEC, batch_size=4, concurrency=1, max_credits=66)
    service = Service(otherwise=charging(6))
    two_segments = [Row(line, phone(line), ("x" * 200,)) for line in range(2, 22)]
    with closing(opened(write(tmp_path / "job.sqlite3", two_segments, spec))) as ledger:
        assert isinstance(run(ledger, service), ConditionError)
        assert (ledger.totals.credits, outcomes(ledger)["accepted"]) == (66, 11)
    assert [len(phones) for phones in service.asked] == [1, 4, 4, 2]


def test_a_canary_whose_price_is_not_known_is_not_exceeded(tmp_path: Path) -> None:
    spec = replace(SPEC, batch_size=2, concurrency=1, max_credits=66, canary=2)
    service = Service(otherwise=refuse)
    with closing(opened(write(tmp_path / "job.sqlite3", rows(5), spec))) as ledger:
        assert run(ledger, service) is None
        assert outcomes(ledger) == {"refused": 2, "pending": 3}
    assert [len(phones) for phones in service.asked] == [1, 1]


def test_credits_of_a_request_that_came_back_unsent_are_used(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The job does not end while a request in flight may still give its credits back."""
    allows, is_used_up = Budget.allows, Event()

    def noticed(self: Budget, cost: int, phones: Sequence[str], totals: Totals) -> int | None:
        found = allows(self, cost, phones, totals)
        if found == 0:
            is_used_up.set()
        return found

    def late(phones: Sequence[str]) -> list[dict[str, Any]]:
        assert is_used_up.wait(10)
        return miss(phones)

    monkeypatch.setattr(Budget, "allows", noticed)
    spec = replace(SPEC, batch_size=1, concurrency=2, max_credits=2)
    with closing(opened(write(tmp_path / "job.sqlite3", rows(3), spec))) as ledger:
        assert isinstance(run(ledger, Service(accept, late)), ConditionError)
        assert outcomes(ledger) == {"accepted": 2, "pending": 1}


def test_resent_messages_keep_to_the_limits_of_that_run(tmp_path: Path) -> None:
    spec = replace(SPEC, batch_size=10, concurrency=1)
    path = write(tmp_path / "job.sqlite3", rows(20), spec)
    with closing(opened(path)) as ledger:
        run(ledger, Service(otherwise=refuse))
        assert outcomes(ledger) == {"refused": 20}
        ledger.change(replace(spec, max_credits=32))
        ledger.resend(Outcome.REFUSED)
        service = Service(otherwise=charging(5))
        assert isinstance(run(ledger, service), ConditionError)
        assert [len(phones) for phones in service.asked] == [1, 5]
        assert (ledger.totals.credits, outcomes(ledger)) == (30, {"accepted": 6, "pending": 14})
        ledger.change(replace(spec, max_credits=1000))
        service = Service()
        assert run(ledger, service) is None
    with closing(opened(path)) as ledger:
        assert ledger.spec.max_credits == 1000
    phones = [phone for asked in service.asked for phone in asked]
    assert (len(phones), len(set(phones))) == (14, 14)


def test_until_a_price_is_known_requests_go_one_by_one(tmp_path: Path) -> None:
    spec = replace(SPEC, batch_size=10, concurrency=4, max_credits=1000)
    free = charging(0)  # as for a number that is blocked
    service = Service(free, free, charging(2), otherwise=charging(2))
    with closing(opened(write(tmp_path / "job.sqlite3", rows(40), spec))) as ledger:
        assert run(ledger, service) is None
    assert sorted(map(len, service.asked)) == [1, 1, 1, 7, 10, 10, 10]
    assert [len(phones) for phones in service.asked][:3] == [1, 1, 1]


@pytest.mark.parametrize("credits", [None, 0, "0", "free", -5])
def test_without_a_price_the_estimate_counts(credits: object, tmp_path: Path) -> None:
    """Responses to chat-app messages have no credits, and some services report 0 for every message."""
    spec = replace(SPEC, batch_size=10, concurrency=4, max_credits=30)
    service = Service(otherwise=lambda phones: [entry(each, credits) for each in phones])
    path = write(tmp_path / "job.sqlite3", rows(40), spec)
    with closing(opened(path)) as ledger:
        assert isinstance(run(ledger, service), ConditionError)
        assert (ledger.totals.credits, ledger.totals.lost, outcomes(ledger)["accepted"]) == (0, 30, 30)
    with closing(opened(path)) as again:
        assert again.totals == ledger.totals
    assert {*map(len, service.asked)} == {1}, "a real price may still come"


def test_prices_differ_by_country(tmp_path: Path) -> None:
    """Only the first message to a country may cost more than the credits that are left."""
    costly = [Row(line, f"346000{line:05}", ("Hello",)) for line in range(22, 42)]
    spec = replace(SPEC, batch_size=10, concurrency=4, max_credits=60)
    service = Service(otherwise=more_expensive_in_spain(13))
    with closing(opened(write(tmp_path / "job.sqlite3", [*rows(20), *costly], spec))) as ledger:
        stopped_by = run(ledger, service)
        assert (ledger.totals.credits, outcomes(ledger)) == (59, {"accepted": 23, "pending": 17})
    assert isinstance(stopped_by, ConditionError)
    assert stopped_by.message == "Stopped: the next request could exceed --max-credits 60 (59 used)"
    assert not [asked for asked in service.asked if len({phone[:2] for phone in asked}) > 1 and len(asked) == 1]
    to_spain = [asked for asked in service.asked if asked[0].startswith("34")]
    assert [len(asked) for asked in to_spain] == [1, 2]


def more_expensive_in_spain(credits: int) -> Responder:
    return lambda phones: [entry(each, credits if each.startswith("34") else 1) for each in phones]


def test_first_messages_to_several_countries_go_one_at_a_time(tmp_path: Path) -> None:
    """Together they could exceed the limit by more than one message."""
    everywhere = [Row(2, "573001234567", ("Hi",)), Row(3, "34600000001", ("Hi",)), Row(4, "447911123456", ("Hi",))]
    spec = replace(SPEC, batch_size=10, concurrency=4, max_credits=8)
    service = Service(otherwise=charging(5))
    with closing(opened(write(tmp_path / "job.sqlite3", everywhere, spec))) as ledger:
        stopped_by = run(ledger, service)
        assert (ledger.totals.credits, outcomes(ledger)) == (10, {"accepted": 2, "pending": 1})
    assert stopped_by is not None
    assert stopped_by.message == "Stopped: 10 credits used, more than --max-credits 8: a message to Spain cost 5"


def test_a_resumed_job_knows_the_price_in_each_country(tmp_path: Path) -> None:
    spain = [Row(line, f"346000{line:05}", ("Hello",)) for line in range(12, 22)]
    spec = replace(SPEC, batch_size=10, concurrency=1, max_credits=30)
    path = write(tmp_path / "job.sqlite3", [*rows(10), *spain], spec)
    with closing(opened(path)) as ledger:
        run(
            ledger,
            Service(otherwise=lambda phones: [entry(each, 9 if each.startswith("34") else 1) for each in phones]),
        )
        assert (ledger.totals.credits, outcomes(ledger)) == (28, {"accepted": 12, "pending": 8})
    with closing(opened(path)) as ledger:
        ledger.change(replace(ledger.spec, max_credits=56))
        service = Service(otherwise=charging(9))
        assert isinstance(run(ledger, service), ConditionError)
        assert ledger.totals.credits == 55
    assert [len(phones) for phones in service.asked] == [3]


def test_the_credits_of_an_entry_for_several_numbers_count_once(tmp_path: Path) -> None:
    def together(phones: Sequence[str]) -> list[dict[str, Any]]:
        return [entry(",".join(phones), 3 * len(phones))]

    spec = replace(SPEC, batch_size=4, concurrency=1, max_credits=40)
    path = write(tmp_path / "job.sqlite3", rows(20), spec)
    with closing(opened(path)) as ledger:
        assert isinstance(run(ledger, Service(otherwise=together)), ConditionError)
        assert (ledger.totals.credits, outcomes(ledger)) == (39, {"accepted": 13, "pending": 7})
        assert {row["credits"] for row in report(ledger, Outcome.ACCEPTED)} == {3}
    with closing(opened(path)) as again:
        assert again.totals.credits == 39


def test_a_fraction_of_a_credit_counts_as_one(tmp_path: Path) -> None:
    service = Service(otherwise=lambda phones: [entry(each, "2.5") for each in phones])
    with closing(opened(write(tmp_path / "job.sqlite3", rows(4), replace(SPEC, max_credits=9)))) as ledger:
        assert isinstance(run(ledger, service), ConditionError)
        assert (ledger.totals.lost, outcomes(ledger)) == (9, {"accepted": 3, "pending": 1})


def test_lost_requests_count_as_spent(tmp_path: Path) -> None:
    spec = replace(SPEC, batch_size=10, concurrency=1, max_credits=40)
    service = Service(charging(2), lose, otherwise=charging(2))
    with closing(opened(write(tmp_path / "job.sqlite3", rows(40), spec))) as ledger:
        stopped_by = run(ledger, service)
        assert (ledger.totals.credits, outcomes(ledger)["unknown"]) == (20, 10)
    assert isinstance(stopped_by, ConditionError)
    assert "(20 used, and up to 20 more without a reported charge)" in stopped_by.message


def test_a_resumed_job_knows_the_price(tmp_path: Path) -> None:
    """Even if some of the first request had no price, so that its average is too low."""

    def half_priced(phones: Sequence[str]) -> list[dict[str, Any]]:
        return [entry(each, 6 * (number % 2)) for number, each in enumerate(phones)]

    path = write(tmp_path / "job.sqlite3", rows(40), replace(SPEC, batch_size=10, concurrency=1))
    with closing(opened(path)) as ledger:
        run(ledger, Service(half_priced, *[refuse] * 3, *[miss] * 5))
    with closing(opened(path)) as ledger:
        assert (ledger.totals.credits, outcomes(ledger)["refused"]) == (30, 30)
        ledger.resend(Outcome.REFUSED)
        ledger.change(replace(ledger.spec, max_credits=80))
        service = Service(otherwise=charging(6))
        assert isinstance(run(ledger, service), ConditionError)
        assert ledger.totals.credits == 48
    assert [len(phones) for phones in service.asked] == [3], "5 others may have cost 6 each"
