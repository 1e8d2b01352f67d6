"""The files that msgctl keeps, what changes them, and how they look before, within and after the change."""

from __future__ import annotations

import tomllib
from collections.abc import Callable, Collection, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from support.counting import CountingServer
from support.tool import Outcome, Tool

ANA, LUIS = "573001234567", "573007654321"
ADD = ("profile", "add", "new", "--base-url", "https://service.example/api/v1", "--client", "3", "--key-stdin")
KEY = b"the-key-of-new\n"

View = Any
"""What a store holds, without times and identifiers."""


@dataclass(frozen=True)
class World:
    """A home of its own, in which the environment is, and the server that messages go to."""

    home: Path
    server: CountingServer
    tool: Tool

    def ok(self, *words: str, stdin: bytes = b"", codes: Collection[int] = (0,)) -> Outcome:
        """Run a command that must succeed, in this process."""
        done = self.tool(*words, stdin=stdin)
        assert done.code in codes, done.err
        assert "Warning" not in done.err
        return done

    def document(self, *words: str) -> Any:
        return self.ok(*words, "--json").document


@dataclass(frozen=True)
class Change:
    """A command that changes one of the files.

    ``views`` are what the file may hold from before the change to after it, and nothing else. Of a command that sends,
    the last two are those where the message has left: what became of it is unknown, and known.
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
    """Whether the file only notes what the command does, which is done all the same."""
    codes: tuple[int, ...] = (0,)
    """How the command may end that is given again, after the change was made."""

    def path(self, world: World) -> Path:
        """The file, or the folder of ledgers."""
        return world.home / self.file

    def itself(self, world: World) -> Path:
        """The file, also of a job, which must be there."""
        return self.path(world) / f"{job_ids(world)[0]}.sqlite3" if self.file == JOBS else self.path(world)

    @property
    def touches(self) -> str:
        """A part of the name of everything that the change has to do with."""
        return str(Path(self.file).parent) if self.file == CONFIG else self.file

    def arguments(self, world: World) -> list[str]:
        """The command line."""
        return spelled(world, self.words)

    def go_on(self, world: World) -> None:
        """What a person does next, whatever became of the change; it must succeed."""
        if self.file != JOBS:
            world.ok(*self.arguments(world), stdin=self.stdin, codes=self.codes)
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
    """The keys of the profiles, and the default."""
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
    with without_history(world):
        world.ok("-p", "sandbox", "sms", "send", ANA, "-m", "Hola")


def state(world: World) -> View:
    """How many credits were charged, and to whom messages were delivered."""
    inbox = [message["phone"] for message in world.document("-p", "sandbox", "sandbox", "inbox")]
    return 1000 - world.document("-p", "sandbox", "balance")["status"], inbox


@contextmanager
def without_history(world: World) -> Iterator[None]:
    """Leave no history behind."""
    yield
    (world.home / HISTORY).unlink()


# --- ledgers

JOBS = "state/msgctl/jobs"
BULK = ("sms", "bulk", "{home}/recipients.csv", "-m", "Hola", "--yes", "--batch-size", "1", "--concurrency", "1")


def job_ids(world: World) -> list[str]:
    return sorted(path.name.removesuffix(".sqlite3") for path in (world.home / JOBS).glob("[0-9]*.sqlite3"))


def spelled(world: World, words: Iterable[str]) -> list[str]:
    """A command line with the home, and the job that there is."""
    return [word.format(home=world.home, job=next(iter(job_ids(world)), "")) for word in words]


def lay_recipients(world: World) -> None:
    (world.home / "recipients.csv").write_text(f"phone\n{LUIS}\n", encoding="utf-8")


def lay_paused_job(world: World) -> None:
    (world.home / "recipients.csv").write_text(f"phone\n{ANA}\n{LUIS}\n", encoding="utf-8")
    world.ok(*spelled(world, BULK), "--max-credits", "1", codes=(6,))


def jobs(world: World) -> View:
    """What became of each recipient of each job."""
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
        "use a profile", CONFIG, ("profile", "use", "other"), lay_profiles, profiles, ((TWO, "main"), (TWO, "other"))
    ),
    Change(
        *("remove a profile", CONFIG, ("profile", "remove", "main", "--yes"), lay_profiles, profiles),
        ((TWO, "main"), ({"other": TWO["other"]}, None)),
        codes=(0, 3),
    ),
    Change(
        *("note a dispatch", HISTORY, ("sms", "send", LUIS, "-m", "Hola"), lay_history, history),
        ([_ONE], [_ONE, (LUIS, "unknown")], [_ONE, (LUIS, "accepted")]),
        sends=True,
        is_notes=True,
    ),
    Change(
        *("note the first dispatch", HISTORY, ("sms", "send", LUIS, "-m", "Hola"), lambda _: None, history),
        ([], [(LUIS, "unknown")], [(LUIS, "accepted")]),
        sends=True,
        is_notes=True,
    ),
    Change("clear the history", HISTORY, ("history", "clear", "--yes"), lay_history, history, ([_ONE], [])),
    Change(
        *("send in the sandbox", STATE, ("-p", "sandbox", "sms", "send", LUIS, "-m", "Hola"), lay_state, state),
        ((1, [ANA]), (2, [ANA, LUIS])),
    ),
    Change(
        *("make the sandbox", STATE, ("-p", "sandbox", "sms", "send", LUIS, "-m", "Hola"), lambda _: None, state),
        ((0, []), (1, [LUIS])),
    ),
    Change(
        "reset the sandbox",
        STATE,
        ("-p", "sandbox", "sandbox", "reset", "--yes"),
        lay_state,
        state,
        ((1, [ANA]), (0, [])),
    ),
    Change("begin a job", JOBS, BULK, lay_recipients, jobs, ([], *([[each]] for each in _SECOND)), sends=True),
    Change(
        *("go on with a job", JOBS, ("job", "resume", "{job}", "--max-credits", "9"), lay_paused_job, jobs),
        tuple([[_ONE, each]] for each in _SECOND),
        sends=True,
    ),
    Change(
        *("remove a job", JOBS, ("job", "remove", "{job}", "--yes"), lay_paused_job, jobs),
        ([[_ONE, (LUIS, "pending")]], []),
    ),
]
BY_ID = {change.id: change for change in CHANGES}
FIRST = [BY_ID[each] for each in ("add a profile", "note a dispatch", "send in the sandbox", "begin a job")]
"""One of each file."""
