"""A job that is stopped: by a person, by its budget, by the service. It waits for requests in flight."""

from __future__ import annotations

import signal
from collections import Counter

import pytest

from jobs.bulk import CONCURRENCY, Bulk, NewBulk, Running, assert_true
from support.counting_server import CountingServer

BATCH = 10
UNDER_WAY = CONCURRENCY * BATCH
STOPPING = "waiting for requests in flight"


def _held(bulk: Bulk, counter: CountingServer) -> Running:
    """A job with as many requests in flight as allowed, all without a response."""
    counter.hold()
    running = bulk.begin()
    counter.wait_for(CONCURRENCY)
    return running


def test_the_first_signal_lets_requests_in_flight_finish(counter: CountingServer, new_bulk: NewBulk) -> None:
    bulk = new_bulk(300, "--batch-size", str(BATCH))
    running = _held(bulk, counter)
    running.signal(signal.SIGTERM)
    assert "Send the signal again to stop at once" in running.wait_for_line(STOPPING)
    counter.release()
    done = running.end()
    assert done.code == 130
    assert f"{UNDER_WAY} of 300 recipients accepted, 220 pending" in done.err
    assert f"msgctl job resume {bulk.id}" in done.err
    assert assert_true(bulk, counter) == {"accepted": UNDER_WAY, "pending": 220}
    assert len(counter.dispatches) == CONCURRENCY
    assert bulk.resume().end().code == 0
    assert assert_true(bulk, counter) == {"accepted": 300}


@pytest.mark.slow
def test_checking_states_can_be_killed_and_continued(counter: CountingServer, new_bulk: NewBulk) -> None:
    counter.state = lambda message: "queued" if message.endswith("0") else "delivered"
    bulk = new_bulk(600)
    assert bulk.begin().end().code == 0
    running = bulk.states("--concurrency", "2")
    counter.wait_for_questions(300)
    running.kill()
    stopped_after = len(counter.questions)
    assert stopped_after < 600
    assert bulk.states().end().code == 0
    asked = Counter(counter.questions)
    assert {counter.phone_of(message) for message in asked} == set(bulk.phones)
    checked_twice = [message for message, times in asked.items() if times > 1 and not message.endswith("0")]
    # Those whose state is final are not checked again, unless the kill came before it was written.
    assert len(checked_twice) <= 202
    queued = sum(message.endswith("0") for message in asked)
    assert bulk.shown()["states"] == {"delivered": 600 - queued, "queued": queued}
    counter.questions.clear()
    assert bulk.states().end().code == 0
    assert Counter(counter.questions) == {message: 1 for message in asked if message.endswith("0")}
