"""Checks of delivery states and clicks: which messages are checked, the counts, and the errors."""

from __future__ import annotations

import json
from collections.abc import Mapping
from contextlib import closing
from dataclasses import replace
from datetime import date
from pathlib import Path
from typing import Any, cast

from jobs.ledgers import SPEC, Service, Ticker, opened, outcomes, phone, rows, run, write
from msgctl.errors import RefusedError
from msgctl.http import response
from msgctl.http.client import Client
from msgctl.http.request import Request
from msgctl.http.response import Response
from msgctl.jobs.pollers import ClickPoller, Poller, StatePoller
from support.jobs import NOW, write_ledger

ONE_BY_ONE = replace(SPEC, concurrency=1)


class Responses:
    """Responds to the request about each item with a record, or raises an error.

    ``asked`` contains the values of the requests, and ``times`` their times.
    """

    def __init__(
        self,
        records: Mapping[str, Mapping[str, Any] | Exception],
        name: str = "id",
        clock: Ticker | None = None,
    ) -> None:
        self._records = records
        self._name = name
        self._clock = clock or Ticker(0.0)
        self.asked: list[Mapping[str, Any]] = []
        self.times: list[float] = []

    def connect(self) -> Client:
        return cast(Client, self)

    def send(self, request: Request) -> Response:
        self.asked.append(request.values)
        self.times.append(self._clock.now)
        found = self._records[str(request.values[self._name])]
        if isinstance(found, Exception):
            raise found
        return response.read(request, json.dumps(found).encode(), 200)

    def close(self) -> None:
        pass


def poll(poller: Poller) -> tuple[int, int, int, str]:
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


def test_the_clicks_on_the_links_in_sent_messages_are_counted(tmp_path: Path) -> None:
    """The first day is the day before the link was created, because the service may be in another time zone."""
    spec = replace(ONE_BY_ONE, link="https://shop.example/")
    days = [str(date.fromtimestamp(NOW - number * 86400)) for number in range(5)]
    with closing(opened(write_ledger(tmp_path / "job.sqlite3", rows(3), spec, "{link}"))) as ledger:
        exists = "UPDATE link SET requested = ?, short_url = 'https://s.example/' || line"
        ledger.db.execute(exists, (NOW - 3 * 86400,))
        run(ledger, Service())
        assert outcomes(ledger) == {"accepted": 3}
        clicks: dict[str, Mapping[str, Any]] = {
            f"job-{line}": {"clicksNumber": number, "metrics": []} for line, number in ((2, 2), (3, 0), (4, "many"))
        }
        responses = Responses(clicks, "name-url")
        poller = ClickPoller(ledger, responses.connect)
        assert (poller.missing(), poller.status()) == (3, "")
        assert poll(poller) == (3, 3, 1, "The response for job-4 has no number of clicks")
        assert poller.first_error
        assert poller.first_error.http_status == 200
        assert responses.asked == [{"name-url": name, "since": days[4], "until": days[0]} for name in clicks]
        assert (poller.missing(), poller.status()) == (2, "1 of 3 clicked")
        clicks["job-4"] = {"clicksNumber": "1", "metrics": []}
        assert poll(ClickPoller(ledger, responses.connect)) == (3, 3, 0, "")
        assert (poller.missing(), poller.status()) == (1, "2 of 3 clicked")
