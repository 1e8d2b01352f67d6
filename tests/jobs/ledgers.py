"""Ledgers for tests, and a service with prepared responses to their requests."""

from __future__ import annotations

import json
import threading
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any, cast

from msgctl import operations
from msgctl.errors import MsgctlError, NotReachedError, OutcomeUnknownError, RefusedError
from msgctl.http import response
from msgctl.http.client import Client
from msgctl.http.request import Request
from msgctl.http.response import Response
from msgctl.jobs.ledger import Ledger
from msgctl.jobs.model import JobSpec
from msgctl.jobs.reader import InvalidRow, Row
from msgctl.jobs.report import Report
from msgctl.jobs.runner import Runner
from msgctl.jobs.schema import KEPT_OPEN
from msgctl.jobs.states import Outcome
from msgctl.operations import Operation
from support.jobs import NOW, write_ledger

SPEC = JobSpec("sms bulk", operations.SEND_SMS.name, "customers.csv", "main", "https://service.example/api/v1", {})

Responder = Callable[[Sequence[str]], list[dict[str, Any]]]
"""The service's entries for some phones; it may raise an error instead."""


def phone(number: int) -> str:
    return f"57300{number:07}"


def rows(number: int) -> list[Row]:
    """Return this many recipients of one text."""
    return [Row(line, phone(line), ("Hello",)) for line in range(2, number + 2)]


def write(path: Path, recipients: Iterable[Row | InvalidRow], spec: JobSpec = SPEC) -> Path:
    """Make a job that sends each recipient the value of its row."""
    return write_ledger(path, recipients, spec, "{text}")


def opened(path: Path) -> Ledger:
    return Ledger(path, clock=lambda: NOW)


def outcomes(ledger: Ledger, *, running: bool = False) -> dict[str, int]:
    """Count recipients by outcome, without the zeros."""
    return {str(name): number for name, number in ledger.totals.outcomes(running=running).items() if number}


def report(ledger: Ledger, *only: Outcome, running: bool = False) -> list[dict[str, Any]]:
    return list(Report(ledger, only, running=running))


def entry(phone: str, credits: object = 1) -> dict[str, Any]:
    return {"id": f"m{phone}", "status": "queued", "credits": credits, "phone": phone}


def accept(phones: Sequence[str]) -> list[dict[str, Any]]:
    return [entry(each) for each in phones]


def charging(credits: int) -> Responder:
    return lambda phones: [entry(each, credits) for each in phones]


def refuse(_: Sequence[str]) -> list[dict[str, Any]]:
    raise RefusedError("the service refused the request (520): NO: not now", http_status=520)


def lose(_: Sequence[str]) -> list[dict[str, Any]]:
    raise OutcomeUnknownError("the connection broke")


def miss(_: Sequence[str]) -> list[dict[str, Any]]:
    raise NotReachedError("no connection")


class Ticker:
    """A monotonic clock that advances a little each time it is read."""

    def __init__(self, step: float) -> None:
        self._step = step
        self.now = 0.0

    def __call__(self) -> float:
        self.now += self._step
        return self.now


class Service:
    """Responds to the first requests of a job with ``responders``, to the others with ``otherwise``, in any threads.

    ``asked`` holds the phones of each request, ``charged`` the credits of the responses.
    """

    def __init__(self, *responders: Responder, otherwise: Responder = accept) -> None:
        self._responders = list(responders)
        self._otherwise = otherwise
        self._lock = threading.Lock()
        self.asked: list[tuple[str, ...]] = []
        self.charged = 0
        self.closed = 0

    def connect(self) -> Client:
        return cast(Client, self)

    def send(self, request: Request, *, timeout: float) -> Response:
        assert timeout > 0, "a client without a limit of its own would repeat a request"
        phones = tuple(phone or "" for phone in request.phones)
        with self._lock:
            self.asked.append(phones)
            respond = self._responders.pop(0) if self._responders else self._otherwise
        data = respond(phones)
        with self._lock:
            self.charged += sum(each["credits"] for each in data if isinstance(each["credits"], int))
        return responded({"id": "d1", "status": "1", "data": data}, phones)

    def close(self) -> None:
        self.closed += 1


def responded(
    document: Mapping[str, Any], phones: Sequence[str] = (), operation: Operation = operations.SEND_SMS
) -> Response:
    """Return a response as it is read from the wire."""
    sent = Request(operation, form=(("phone", ",".join(phones)),))
    return response.read(sent, json.dumps(document).encode(), 200)


def run(ledger: Ledger, service: Service) -> MsgctlError | None:
    """Run a job to its end and return the error that stopped it."""
    runner = Runner(ledger, service.connect)
    runner.start()
    assert runner.wait(30), "the threads did not end"
    return runner.finish()


def close_all() -> None:
    """Close the ledgers that a process leaves open when it is killed, as its end would."""
    for connection in KEPT_OPEN:
        connection.close()
    KEPT_OPEN.clear()
