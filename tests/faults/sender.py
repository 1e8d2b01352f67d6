"""Send a job to a simulated service. The service writes the phones that arrive to a file, which survives a kill."""

from __future__ import annotations

import os
import time
from collections import Counter
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import NamedTuple, cast

from msgctl.credits import CREDIT
from msgctl.http.client import Client
from msgctl.http.request import Request
from msgctl.jobs.sending import JobRunner
from msgctl.jobs.settings import Settings
from msgctl.outcomes.outcome import ACCEPTED, Outcome
from msgctl.store import jobs, owners, recipients, results
from msgctl.store.jobs import Job
from msgctl.store.recipients import NewContent, NewRecipient
from msgctl.store.store import Store
from support import PATIENCE

ACCOUNT = "https://service.example/api/v1 1"
SETTINGS = Settings("sms send", "people.csv", "main", "https://service.example/api/v1", 1, {})


class Response(NamedTuple):
    """The response to a request that was accepted."""

    outcomes: list[Outcome]
    body: bytes = b"{}"


class FakeClient:
    """A client that accepts every request and writes its phones to a file."""

    def __init__(self, arrivals: Path) -> None:
        self._file = os.open(arrivals, os.O_WRONLY | os.O_CREAT | os.O_APPEND)
        self._arrivals = arrivals

    def send(self, request: Request, *, timeout: float, may_send: Callable[[], bool]) -> Response:
        os.write(self._file, "".join(f"{phone}\n" for phone in request.phones).encode())
        time.sleep(0.001)
        return Response([Outcome(phone, ACCEPTED, f"m{phone}", "sent", CREDIT) for phone in request.phones])

    def sibling(self) -> Client:
        return cast(Client, FakeClient(self._arrivals))

    def close(self) -> None:
        os.close(self._file)


def arrived(arrivals: Path) -> Counter[str]:
    """Return how often each phone arrived at the service."""
    return Counter(arrivals.read_text().split()) if arrivals.exists() else Counter()


def phones(number: int) -> list[str]:
    return [f"57300{each:07}" for each in range(number)]


def new_job(store: Store, number: int) -> int:
    """Publish a job with this many recipients, two of each message."""
    job = jobs.create(store, ACCOUNT, "main", "sms bulk", SETTINGS.dump())
    contents = [NewContent(each, f'{{"sms": "{each}"}}', bytes([each]), 1) for each in range(1, number // 2 + 1)]
    people = [NewRecipient(line, phone, line // 2) for line, phone in enumerate(phones(number), 2)]
    recipients.add(store, job, contents, people)
    jobs.publish(store, job, state="active", digest=b"")
    return job


def send(
    store: Store,
    job: int,
    arrivals: Path,
    settings: Settings = SETTINGS,
    connect: Callable[[], Client] | None = None,
) -> Job:
    """Send a job to its end. Raises the errors of the store and of the owner."""
    sending = owners.take(store, job)
    runner = JobRunner(store, sending, settings, connect or FakeClient(arrivals).sibling)
    runner.start()
    assert runner.wait(PATIENCE)
    return runner.finish()[0]


def check(store: Store, job: Job, phones: Iterable[str], times: Counter[str]) -> None:
    """Check that every recipient has a result and at most one message, and that accepted messages arrived."""
    results.check_counts(store, job)
    rows = store.db.rows("SELECT phone, outcome FROM result WHERE job = ? ORDER BY attempt", (job.number,))
    outcomes: dict[str, str] = dict(rows)
    for phone in phones:
        outcome, number = outcomes.get(phone), times[phone]
        is_true = (outcome, number) in (("accepted", 1), ("unknown", 0), ("unknown", 1))
        assert is_true, f"{phone} got {number} messages and is {outcome}"
