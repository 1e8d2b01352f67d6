"""Run the examples of the commands."""

from __future__ import annotations

import re
import shlex
from contextlib import closing
from pathlib import Path
from typing import NamedTuple

from msgctl import files
from msgctl.config import profiles, urls
from msgctl.credits import CREDIT
from msgctl.jobs.settings import Settings
from msgctl.operations import SEND_SMS
from msgctl.outcomes import outcome
from msgctl.store import jobs, owners, recipients
from msgctl.store.queue import ExclusionRules
from msgctl.store.recipients import NewContent, NewRecipient
from msgctl.store.results import RequestOutcome
from msgctl.store.store import open_store
from support.tool import Outcome, Tool
from support.tree import COMMANDS, Node

FILES = {
    "notice.txt": "Your order is ready",
    "code.txt": "123456\n",
    "customers.csv": "phone,name\n573001234567,Ana\n573007654321,Luis\n",
    "patients.csv": "phone,name,hour\n573001234567,Ana,8:00\n573007654321,Luis,9:30\n",
    "unsubscribed.csv": "phone,name\n573001234567,Ana\n",
    "team.txt": "573001234567\n573007654321\n",
    "unsubscribed.txt": "573005550100\n573005550101\n",
    "body.json": '{"phone": "573001234567", "body": ["Ana", "8:00"]}',
    "order.json": '{"phone": "573001234567", "body": ["Ana", "1029"]}',
}


class Example(NamedTuple):
    """A command, and a line of shell that uses it."""

    node: Node
    line: str

    @property
    def arguments(self) -> list[str]:
        """The arguments of the msgctl part: of ``a | msgctl … < file`` and of ``"$(msgctl …)"`` alike."""
        match = re.search(r"msgctl( [^|<>)]*)", self.line)
        assert match is not None, self.line
        return shlex.split(match[1])

    @property
    def stdin(self) -> bytes:
        redirected = re.search(r"< (\S+)", self.line)
        if redirected:
            return FILES.get(redirected[1], "").encode()
        return b"text of another program\n" if "| msgctl" in self.line else b""

    def run(self, tool: Tool, *more: str) -> Outcome:
        """Run the line, with further options, without a terminal."""
        return tool(*self.arguments, *more, stdin=self.stdin)


def goes_on(line: str) -> bool:
    """Return whether a line runs until it is stopped or until a person types a code."""
    return any(part in line for part in ("sandbox serve", "sandbox exec", "--follow"))


EXAMPLES = tuple(Example(node, line) for node in COMMANDS for line in node.facts.examples if not goes_on(line))
FIRST = tuple({example.node.path: example for example in reversed(EXAMPLES)}.values())
OF_EACH_KIND = tuple(
    example
    for example in FIRST
    if example.node.path in ("balance", "sms send", "2fa verify", "sms bulk", "job show", "profile list")
)
"""The example of one command of each kind: reads, sends, asks, runs a job, reads a job, and is local."""


JOB = "20261121-3f9a2c"
"""The ID of the job in the examples."""


def write_files(folder: Path, message: str = "m100001") -> None:
    """Create the files that the examples read, and the job in the examples, in the directories of the test.

    ``message`` is the ID of its accepted message.
    """
    write_job(message=message)
    for name, content in FILES.items():
        (folder / name).write_text(content, encoding="utf-8")


def write_job(
    profile: str = profiles.SANDBOX, base_url: str = profiles.SANDBOX_URL, client: int = 1, *, message: str = ""
) -> None:
    """Create a paused job with two recipients. With ``message``, the first one was accepted with this message ID."""
    name = "sandbox-store.sqlite3" if profile == profiles.SANDBOX else "store.sqlite3"
    settings = Settings(SEND_SMS.name, "customers.csv", profile, base_url, client, {})
    with closing(open_store(files.state_path(name))) as store:
        account = urls.account(base_url, client)
        number = jobs.create(store, account, profile, settings.command, settings.dump())
        people = [NewRecipient(line, phone, 1) for line, phone in ((2, "573001234567"), (3, "573007654321"))]
        recipients.add(store, number, [NewContent(1, '{"sms": "Hello"}', b"hello", 1)], people)
        jobs.publish(store, number, state="paused", digest=b"")
        store.db.change("UPDATE job SET id = ? WHERE number = ?", (JOB, number))
        if message:
            sending = owners.take(store, number)
            with sending.batch(ExclusionRules("sms")):
                intent = sending.intend(1)
            assert intent is not None
            with sending.batch(ExclusionRules("sms")):
                accepted = outcome.Outcome(intent.phones[0], "accepted", message, "sent", CREDIT)
                sending.record([RequestOutcome(intent, [accepted])])
            sending.finish("paused")


def line_of(value: object) -> str | None:
    """The id of a parametrized test."""
    return value.line if isinstance(value, Example) else None
