"""Ledgers as tests make them, and a service that answers their requests as it is told."""

from __future__ import annotations

import json
import threading
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any, cast

from msgctl import operations
from msgctl.errors import MsgctlError, NotReachedError, OutcomeUnknownError, RefusedError
from msgctl.http.client import Client
from msgctl.http.response import Response, read
from msgctl.jobs.intake import Intake
from msgctl.jobs.ledger import Ledger
from msgctl.jobs.records import Order
from msgctl.jobs.rows import Fault, Row
from msgctl.jobs.runner import Runner
from msgctl.jobs.template import Template
from msgctl.jobs.wording import Wording

NOW = 1_790_000_000.0
ORDER = Order("sms bulk", operations.SEND_SMS.name, "customers.csv", "main", "https://service.example/api/v1", {})

Said = Callable[[Sequence[str]], list[dict[str, Any]]]
"""What the service says to some phones; raising an error is another way to answer."""


def phone(number: int) -> str:
    return f"57300{number:07}"


def rows(number: int) -> list[Row]:
    """So many recipients of one text."""
    return [Row(line, phone(line), ("Hello",)) for line in range(2, number + 2)]


def write(path: Path, recipients: Iterable[Row | Fault], order: Order = ORDER) -> Path:
    """A job that says to each recipient the first value of its row."""
    intake = Intake(path, order, created=NOW)
    wording = Wording({"sms": Template.of_column("text", ("text",))}, str, in_segments=True)
    intake.take(recipients, wording)
    intake.finish()
    return path


def opened(path: Path) -> Ledger:
    return Ledger(path, clock=lambda: NOW)


def entry(phone: str, credits: object = 1) -> dict[str, Any]:
    return {"id": f"m{phone}", "status": "queued", "credits": credits, "phone": phone}


def accept(phones: Sequence[str]) -> list[dict[str, Any]]:
    return [entry(each) for each in phones]


def charging(credits: int) -> Said:
    return lambda phones: [entry(each, credits) for each in phones]


def refuse(_: Sequence[str]) -> list[dict[str, Any]]:
    raise RefusedError("the service refused the request (520): NO: not now", http_status=520)


def lose(_: Sequence[str]) -> list[dict[str, Any]]:
    raise OutcomeUnknownError("the connection broke")


def miss(_: Sequence[str]) -> list[dict[str, Any]]:
    raise NotReachedError("no connection")


class Service:
    """Answers the requests of a job: the next ones as ``will`` says, the others as ``otherwise``; any threads may ask.

    ``asked`` holds the phones of each request, ``charged`` the credits of the answers.
    """

    def __init__(self, *will: Said, otherwise: Said = accept) -> None:
        self._will = list(will)
        self._otherwise = otherwise
        self._lock = threading.Lock()
        self.asked: list[tuple[str, ...]] = []
        self.charged = 0
        self.closed = 0

    def connect(self) -> Client:
        return cast(Client, self)

    def send(self, operation: operations.Operation, values: Mapping[str, Any], *, timeout: float) -> Response:
        phones = tuple(values["phone"])
        with self._lock:
            self.asked.append(phones)
            said = self._will.pop(0) if self._will else self._otherwise
        data = said(phones)
        with self._lock:
            self.charged += sum(int(each["credits"] or 0) for each in data)
        return told({"id": "d1", "status": "1", "data": data})

    def close(self) -> None:
        self.closed += 1


def told(document: Mapping[str, Any], operation: operations.Operation = operations.SEND_SMS) -> Response:
    """An answer as it is read from the wire."""
    return read(operation, json.dumps(document).encode())


def run(ledger: Ledger, service: Service) -> MsgctlError | None:
    """Let a job run to its end; the error that stopped it."""
    runner = Runner(ledger, service.connect)
    runner.start()
    assert runner.wait(30), "the threads did not end"
    return runner.finish()
