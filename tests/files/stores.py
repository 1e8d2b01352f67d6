"""The files that msgctl keeps, the commands that change them, and their content before, during and after a change."""

from __future__ import annotations

import tomllib
from collections.abc import Callable, Collection, Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from support.counting import CountingServer
from support.tool import Outcome, Tool

ANA, LUIS = "573001234567", "573007654321"
ADD = ("profile", "add", "new", "--base-url", "https://service.example/api/v1", "--client", "3", "--key-stdin")
KEY = b"the-key-of-new\n"

View = Any
"""The content of a file, without times and identifiers."""


@dataclass(frozen=True)
class World:
    """A home folder of the test, and the server that receives messages."""

    home: Path
    server: CountingServer
    tool: Tool

    def ok(self, *words: str, stdin: bytes = b"", codes: Collection[int] = (0,)) -> Outcome:
        """Run a command in this process; it must succeed."""
        done = self.tool(*words, stdin=stdin)
        assert done.code in codes, done.err
        assert "Warning" not in done.err
        return done

    def document(self, *words: str) -> Any:
        return self.ok(*words, "--json").document


@dataclass(frozen=True)
class Change:
    """A command that changes one of the files.

    ``views`` are the only contents that the file may have, from before the change to after it. For a command that
    sends, the message was sent in the last two: its outcome is unknown, then known.
    """

    id: str
    file: str
    words: tuple[str, ...]
    lay: Callable[[World], None]
    view: Callable[[World], View]
    views: tuple[View, ...]
    stdin: bytes = b""
    sends: bool = False
    is_notes: bool = False
    """Whether the file only records what the command does, so that the command works without it."""

    @property
    def touches(self) -> str:
        """Return a part of the path of every file that the change touches."""
        return str(Path(self.file).parent) if self.file == CONFIG else self.file

    def arguments(self, world: World) -> list[str]:
        """Return the command line."""
        return spelled(world, self.words)

    def go_on(self, world: World) -> None:
        """Run what a person would run next, whatever the result of the change; it must succeed."""
        if self.file != JOBS:
            world.ok(*self.arguments(world), stdin=self.stdin)
            return
        for job in job_ids(world):
            world.ok("job", "resume", job, "--max-credits", "9", codes=(0, 6))
        lay_recipients(world)
        world.ok(*spelled(world, BULK))


# --- config.toml

CONFIG = "config/msgctl/config.toml"
TWO = {"main": "the-key-of-main", "other": "the-key-of-other"}


def lay_profiles(world: World) -> None:
    for name, key in TWO.items():
        world.ok(*(name if word == "new" else word for word in ADD), stdin=key.encode())


def profiles(world: World) -> View:
    """Return the keys of the profiles, and the default."""
    document = tomllib.loads((world.home / CONFIG).read_text(encoding="utf-8"))
    return {name: each["key"] for name, each in document["profiles"].items()}, document.get("default_profile")


# --- the history

HISTORY = "state/msgctl/history.sqlite3"


def lay_history(world: World) -> None:
    world.ok("sms", "send", ANA, "-m", "Hola")


def history(world: World) -> View:
    return [(entry["phone"], entry["outcome"]) for entry in world.document("history", "list")]


# --- the state of the sandbox

STATE = "state/msgctl/sandbox.sqlite3"


def lay_state(world: World) -> None:
    world.ok("-p", "sandbox", "sms", "send", ANA, "-m", "Hola")
    (world.home / HISTORY).unlink()


def state(world: World) -> View:
    """Return how many credits were charged, and who received messages."""
    inbox = [message["phone"] for message in world.document("-p", "sandbox", "sandbox", "inbox")]
    return 1000 - world.document("-p", "sandbox", "balance")["status"], inbox


# --- ledgers

JOBS = "state/msgctl/jobs"
BULK = tuple("sms bulk {home}/recipients.csv -m Hola --yes --batch-size 1 --concurrency 1 --again".split())


def job_ids(world: World) -> list[str]:
    return sorted(path.name.removesuffix(".sqlite3") for path in (world.home / JOBS).glob("[0-9]*.sqlite3"))


def spelled(world: World, words: Iterable[str]) -> list[str]:
    """Return a command line with the home folder and the job filled in."""
    return [word.format(home=world.home, job=next(iter(job_ids(world)), "")) for word in words]


def lay_recipients(world: World) -> None:
    (world.home / "recipients.csv").write_text(f"phone\n{LUIS}\n", encoding="utf-8")


def lay_paused_job(world: World) -> None:
    (world.home / "recipients.csv").write_text(f"phone\n{ANA}\n{LUIS}\n", encoding="utf-8")
    world.ok(*spelled(world, BULK), "--max-credits", "1", codes=(6,))


def jobs(world: World) -> View:
    """Return the outcome of each recipient of each job."""
    found = world.document("job", "list")
    return [[(row["phone"], row["outcome"]) for row in world.document("job", "report", job["job"])] for job in found]


_ONE, _SECOND = (ANA, "accepted"), [(LUIS, outcome) for outcome in ("pending", "unknown", "accepted")]

CHANGES = [
    Change(
        *("add a profile", CONFIG, (*ADD, "--force"), lay_profiles, profiles),
        ((TWO, "main"), ({**TWO, "new": "the-key-of-new"}, "main")),
        stdin=KEY,
    ),
    Change(
        *("record a send", HISTORY, ("sms", "send", LUIS, "-m", "Hola"), lay_history, history),
        ([_ONE], [_ONE, (LUIS, "unknown")], [_ONE, (LUIS, "accepted")]),
        sends=True,
        is_notes=True,
    ),
    Change(
        *("record the first send", HISTORY, ("sms", "send", LUIS, "-m", "Hola"), lambda _: None, history),
        ([], [(LUIS, "unknown")], [(LUIS, "accepted")]),
        sends=True,
        is_notes=True,
    ),
    Change(
        *("send in the sandbox", STATE, ("-p", "sandbox", "sms", "send", LUIS, "-m", "Hola"), lay_state, state),
        ((1, [ANA]), (2, [ANA, LUIS])),
    ),
    Change("begin a job", JOBS, BULK, lay_recipients, jobs, ([], *([[each]] for each in _SECOND)), sends=True),
    Change(
        *("resume a job", JOBS, ("job", "resume", "{job}", "--max-credits", "9"), lay_paused_job, jobs),
        tuple([[_ONE, each]] for each in _SECOND),
        sends=True,
    ),
]
BY_ID = {change.id: change for change in CHANGES}
