"""Checking the delivery states of a job can be killed and continued."""

from __future__ import annotations

from collections import Counter

import pytest

from jobs.bulk import NewBulk
from support.counting_server import CountingServer


@pytest.mark.slow
def test_checking_states_can_be_killed_and_continued(counter: CountingServer, new_bulk: NewBulk) -> None:
    counter.state = lambda message: "queued" if message.endswith("0") else "delivered"
    bulk = new_bulk(600)
    assert bulk.begin().end().code == 0
    running = bulk.states()
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
