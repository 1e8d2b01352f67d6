"""Checks of delivery states: which messages are checked, the counts, and the errors."""

from __future__ import annotations

import json
from collections.abc import Mapping
from contextlib import closing
from dataclasses import replace
from pathlib import Path
from typing import Any, cast

from jobs.ledgers import SPEC, Service, Ticker, opened, phone, rows, run, write
from msgctl.errors import RefusedError
from msgctl.http import response
from msgctl.http.client import Client
from msgctl.http.request import Request
from msgctl.http.response import Response
from msgctl.jobs.pollers import StatePoller

ONE_BY_ONE = replace(SPEC, concurrency=1)


class Responses:
    """Responds to the request about each item with a record, or raises an error.

    ``asked`` contains the values of the requests, and ``times`` their times.
    """

    def __init__(
        self,
        records: Mapping[str, Mapping[str, Any] | Exception],
        clock: Ticker | None = None,
    ) -> None:
        self._records = records
        self._clock = clock or Ticker(0.0)
        self.asked: list[Mapping[str, Any]] = []
        self.times: list[float] = []

    def connect(self) -> Client:
        return cast(Client, self)

    def send(self, request: Request) -> Response:
        self.asked.append(request.values)
        self.times.append(self._clock.now)
        found = self._records[str(request.values["id"])]
        if isinstance(found, Exception):
            raise found
        return response.read(request, json.dumps(found).encode(), 200)

    def close(self) -> None:
        pass


def poll(poller: StatePoller) -> tuple[int, int, int, str]:
    """Run a poller. Return how many messages were due, checked and not checked, and the first error."""
    poller.start()
    assert poller.wait(30)
    assert poller.finish() is None
    return poller.due, poller.checked, poller.failed, str(poller.first_error or "")


def test_the_states_of_messages_without_a_wanted_state_are_checked(tmp_path: Path) -> None:
    states: dict[str, Mapping[str, Any] | Exception] = {
        f"m{phone(2)}": {"id": "1", "state": "delivered"},
        f"m{phone(3)}": {"id": "1", "state": "sent"},
        f"m{phone(4)}": RefusedError("no such message"),
        f"m{phone(5)}": RefusedError("not now"),
    }
    responses = Responses(states)
    with closing(opened(write(tmp_path / "job.sqlite3", rows(4), ONE_BY_ONE))) as ledger:
        run(ledger, Service())
        poller = StatePoller(ledger, responses.connect, until=["sent"])
        assert (poller.missing(), poller.status()) == (4, "")
        assert poll(poller) == (4, 4, 2, "no such message")
        assert [each["id"] for each in responses.asked] == [*states]
        assert (poller.missing(), poller.status()) == (2, "1 delivered, 1 sent")
        states |= {f"m{phone(4)}": {"id": "1", "state": "sent"}, f"m{phone(5)}": {"id": "1", "state": "sent"}}
        responses.asked.clear()
        assert poll(StatePoller(ledger, responses.connect, until=["sent"])) == (2, 2, 0, "")
        assert [each["id"] for each in responses.asked] == [*states][2:]
        assert (poller.missing(), poller.status()) == (0, "3 sent, 1 delivered")
        assert StatePoller(ledger, responses.connect).missing() == 3


def test_states_are_checked_at_the_rate_of_the_job(tmp_path: Path) -> None:
    clock = Ticker(1 / 10_000)
    responses = Responses({f"m{phone(line)}": {"id": "1", "state": "sent"} for line in range(2, 5)}, clock=clock)
    with closing(opened(write(tmp_path / "job.sqlite3", rows(3), ONE_BY_ONE))) as ledger:
        run(ledger, Service())
        ledger.spec = replace(ONE_BY_ONE, rate=1000.0)
        assert poll(StatePoller(ledger, responses.connect, monotonic=clock)) == (3, 3, 0, "")
    assert all(time >= due for time, due in zip(responses.times, (0, 0.001, 0.002), strict=True)), responses.times
