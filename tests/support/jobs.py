"""Jobs for tests: files of recipients, a service that accepts messages, their results."""

from __future__ import annotations

import socket
import sqlite3
from collections.abc import Iterable
from contextlib import closing
from pathlib import Path
from typing import Any

from support.service import Behaviour, Received, Service, accepted, respond
from support.tool import Outcome, Tool

ANA, LUIS, EVA = "573001234567", "573007654321", "573009999999"


def files(home: Path) -> list[str]:
    """Return the IDs of the jobs in the stores of this machine."""
    found: list[str] = []
    for path in (home / "state" / "msgctl").glob("*store.sqlite3"):
        with closing(sqlite3.connect(path)) as db:
            found += [job for (job,) in db.execute("SELECT id FROM job WHERE id IS NOT NULL")]
    return found


def numbers(count: int) -> list[str]:
    return [f"57300{number:07}" for number in range(count)]


def table(home: Path, *lines: str, name: str = "customers.csv") -> str:
    """A file of recipients; the path to it."""
    path = home / name
    path.write_text("".join(f"{line}\n" for line in lines), encoding="utf-8")
    return str(path)


def of_phones(home: Path, phones: Iterable[str]) -> str:
    return table(home, "phone", *phones)


def sends(service: Service) -> list[Received]:
    """The requests that arrived, but for those that read."""
    return [each for each in service.received if not each.path.endswith(("/balance", "/messages-state"))]


def accepting(service: Service) -> Behaviour:
    """Carries out the requests of one connection at a time."""

    def behave(connection: socket.socket) -> None:
        respond(accepted(service.received[-1]))(connection)

    return behave


class Jobs:
    """Bulk commands and their results, one request at a time."""

    def __init__(self, tool: Tool, *common: str) -> None:
        self.tool = tool
        self._common = common

    def __call__(self, *arguments: str, **given: Any) -> Outcome:
        done = self.tool(*self._common, *arguments, **given)
        assert "Traceback" not in done.err
        return done

    def sms(self, file: str, *more: str, text: str = "Hello", **given: Any) -> Outcome:
        return self("sms", "bulk", file, "-m", text, "--concurrency", "1", *more, **given)

    def send(self, file: str, *more: str, text: str = "Hello", code: int = 0) -> str:
        """Send to a file; the id of the job."""
        done = self.sms(file, "--yes", "--json", *more, text=text)
        assert done.code == code, done.err
        return str(done.document["job"])

    def shown(self, job: str) -> Any:
        done = self("job", "show", job, "--json")
        assert (done.code, done.err) == (0, "")
        return done.document

    def report(self, job: str, *more: str) -> Any:
        done = self("job", "report", job, "--json", *more)
        assert (done.code, done.err) == (0, "")
        return done.document

    def outcomes(self, job: str) -> dict[str, str]:
        """Return the outcome of each phone."""
        return {row["phone"]: row["outcome"] for row in self.report(job)}


def counts(document: Any) -> dict[str, int]:
    """The outcomes of a job that are not zero."""
    outcomes = ("accepted", "refused", "unknown", "pending", "invalid", "duplicate", "excluded")
    return {name: document[name] for name in outcomes if document[name]}
