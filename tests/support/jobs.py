"""Jobs for tests: files of recipients, a service that accepts messages, the folder of ledgers."""

from __future__ import annotations

import json
import socket
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

from msgctl.jobs.importer import Importer
from msgctl.jobs.index import NAME
from msgctl.jobs.model import JobSpec
from msgctl.jobs.reader import InvalidRow, Recipients, Row
from msgctl.jobs.template import Renderer
from support.service import Behaviour, Received, Service, respond
from support.tool import Outcome, Tool

NOW = 1_790_000_000.0
"""When jobs are made, in seconds since 1970."""

ANA, LUIS, EVA = "573001234567", "573007654321", "573009999999"

SUMMARY_FIELDS = [
    *("job", "name", "command", "file", "profile", "state", "recipients"),
    *("accepted", "refused", "unknown", "pending", "invalid", "duplicate", "excluded"),
    *("requests", "credits", "created", "updated"),
]
"""The fields that `job show` prints, in order; `states` comes before `created` when some are known."""

BALANCE = respond({"status": 1000})
REFUSAL = respond({"error": "NOT_NOW", "msg": "phone: come back tomorrow, not allowed"}, 520)


def folder(home: Path) -> Path:
    return home / "state" / "msgctl" / "jobs"


def files(home: Path) -> list[str]:
    """Return the names in the folder of jobs, without the index."""
    names = [path.name for path in folder(home).iterdir()] if folder(home).exists() else []
    return sorted(name for name in names if not name.startswith(NAME))


def numbers(count: int) -> list[str]:
    return [f"57300{number:07}" for number in range(count)]


def table(home: Path, *lines: str, name: str = "customers.csv") -> str:
    """A file of recipients; the path to it."""
    path = home / name
    path.write_text("".join(f"{line}\n" for line in lines), encoding="utf-8")
    return str(path)


def of_phones(home: Path, phones: Iterable[str]) -> str:
    return table(home, "phone", *phones)


def phones(request: Received) -> list[str]:
    """Return the phones of a request."""
    fields = json.loads(request.body) if request.body.startswith(b"{") else dict(request.form)
    return str(fields["phone"]).split(",")


def sends(service: Service) -> list[Received]:
    """The requests that arrived, but for those that read."""
    return [each for each in service.received if not each.path.endswith(("/balance", "/messages-state"))]


def sent_to(service: Service) -> list[str]:
    """Return the phones of the requests that arrived, sorted."""
    return sorted(phone for request in sends(service) for phone in phones(request))


def accepting(
    service: Service, *, credits: object = 1, balance: object = 1000, look: Callable[[], object] = lambda: None
) -> Behaviour:
    """Responds with the balance, accepts the dispatches of one connection at a time, and calls back for each."""

    def behave(connection: socket.socket) -> None:
        request = service.received[-1]
        if request.path.endswith("/balance"):
            respond({"status": balance})(connection)
            return
        look()
        if request.path.endswith(("/chatapp/send", "/block-phone")):
            respond({"id": f"m{phones(request)[0]}", "status": "sent", "phone": phones(request)[0]})(connection)
            return
        status = "state" if request.path.endswith("/call/send") else "status"
        data = [{"id": f"m{each}", status: "queued", "credits": credits, "phone": each} for each in phones(request)]
        respond({"id": "d1", "status": "1", "data": data})(connection)

    return behave


def imported(
    path: Path,
    recipients: Iterable[Row | InvalidRow],
    spec: JobSpec,
    template: str = "{text}",
    *,
    created: float = NOW,
    **options: Any,
) -> Importer:
    """Import recipients with one value, the column ``text``. ``options`` are arguments of `Importer`."""
    importer = Importer(path, spec, created=created, **options)
    reader = Recipients(("text",), "phone", iter(recipients))
    importer.read(reader, Renderer(reader, {"sms": template}, str, None))
    return importer


def write_ledger(
    path: Path,
    recipients: Iterable[Row | InvalidRow],
    spec: JobSpec,
    template: str = "{text}",
    **options: Any,
) -> Path:
    """Create a job that has not begun, with the arguments of `imported`."""
    imported(path, recipients, spec, template, **options).finish()
    return path


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
