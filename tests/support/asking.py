"""The command lines that make requests, found by letting every command make its own.

Nothing here names a command that performs an operation: a new one is found by its examples.
"""

from __future__ import annotations

import shutil
from contextlib import closing
from dataclasses import dataclass, field

from conftest import KEY
from contract.interface import BASE_PATH
from msgctl.config import profiles
from msgctl.jobs.ledger import Ledger
from msgctl.jobs.spec import RequestResult
from msgctl.jobs.store import Store
from msgctl.recipients import RecipientOutcome
from msgctl.storage import files
from support.examples import EXAMPLES, JOB, write_job
from support.service import Service, answer
from support.tool import Outcome, Tool
from support.tree import COMMANDS

READING = {f"{BASE_PATH}{path}" for path in ("/balance", "/messages-state", "/url/short-statistic")}
"""The requests that only read ("Requests" in the contract of the command line); every other one is made once."""

WELL = {"status": 1500, "state": "delivered", "id": "m1", "urlShort": "u", "phone": "573001234567", "sandbox": "msgctl"}
"""An answer that every command can read."""


@dataclass(frozen=True)
class Line:
    """A command line that makes requests, and its requests if all goes well."""

    path: str
    words: tuple[str, ...]
    stdin: bytes = b""
    asked: frozenset[str] = field(default=frozenset(), compare=False)

    @property
    def reads(self) -> bool:
        """Whether it changes nothing, whatever its result."""
        return self.asked <= READING

    @property
    def sends_a_job(self) -> bool:
        """Whether it sends to the recipients in a file."""
        return self.path.endswith(" bulk") or self.path == "job resume"

    def run(self, tool: Tool, *common: str, screen: bool = False) -> Outcome:
        """Run it with common options before it; a job begins where `prepare` has left it."""
        return tool(*common, *self.words, stdin=self.stdin, screen=screen)


def prepare(base_url: str) -> None:
    """Have one job: its first recipient is accepted, the second is pending."""
    shutil.rmtree(files.state("jobs"), ignore_errors=True)
    write_job(profiles.ENVIRONMENT, base_url, client=12345)
    with closing(Ledger(Store(files.state("jobs")).path(JOB), clock=lambda: 1_790_000_000.0)) as ledger:
        with ledger.transaction():
            intent = ledger.intend(1)
        assert intent is not None
        with ledger.transaction():
            ledger.record(RequestResult(intent, [RecipientOutcome(None, "accepted", "m1", "sent", "1")]))


def asking(tool: Tool, service: Service) -> list[Line]:
    """A line for each command that asks the server for something: the first of its examples that does, no dry run."""
    found: dict[str, Line] = {}
    service.always(answer(WELL))
    for line in (*_of_examples(), _check_of_a_new_profile(service.base_url)):
        if line.path in found:
            continue
        prepare(service.base_url)
        service.received.clear()
        line.run(tool, "--quiet")
        asked = frozenset(request.path for request in service.received)
        if asked:
            found[line.path] = Line(line.path, line.words, line.stdin, asked)
    return list(found.values())


def _of_examples() -> list[Line]:
    lines = []
    for example in EXAMPLES:
        words = example.words
        if {"--dry-run", "-n"} & set(words) or example.node.words[0] == "profile":
            continue
        words += ["--max-wait", "1"] if example.node.path == "state watch" else []
        if "--rate" in words:  # which takes its time
            at = words.index("--rate")
            words = words[:at] + words[at + 2 :]
        lines.append(Line(example.node.path, tuple(words), example.stdin))
    return lines


def _check_of_a_new_profile(base_url: str) -> Line:
    """The one command whose examples make no request, and whose option does."""
    assert any(node.path == "profile add" for node in COMMANDS)
    words = ("profile", "add", "checked", "--base-url", base_url, "--client", "1", "--key-stdin", "--check", "--force")
    return Line("profile add", words, KEY.encode())
