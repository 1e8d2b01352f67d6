"""No output, and no file except the configuration, contains the key, after any command, response or failure."""

from __future__ import annotations

import errno
import json
import os
import tempfile
from pathlib import Path
from socket import socket
from typing import NoReturn
from urllib.parse import quote, quote_plus

import pytest

from conftest import KEY
from faults.hostile.bodies import everything
from faults.hostile.exit_codes import Verdict, codes
from msgctl import operations as ops
from support.examples import FIRST, Example, write_files
from support.leaks import files_with_key, shows_key, spellings_of
from support.request_lines import Line, prepare
from support.service import Behaviour, Received, Service, raw, respond
from support.tool import Clock, Outcome, Tool


@pytest.fixture(autouse=True)
def files(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The files that the examples read. Temporary ones are below the folder of the test, too."""
    (home / "work").mkdir()
    (home / "tmp").mkdir()
    monkeypatch.setattr(tempfile, "tempdir", str(home / "tmp"))
    monkeypatch.chdir(home / "work")
    write_files(Path.cwd())


# --- however the key came in, and whatever the command

ANY_RECORD = {"balance": "7", "status": "1", "state": "delivered", "urlShort": "x", "id": "x"}
"""Fields of the records of all operations."""


def plant(way: str, tool: Tool, base_url: str, home: Path, monkeypatch: pytest.MonkeyPatch) -> set[str]:
    """Give msgctl the key in one of the ways; return the names of the files that may contain it."""
    account = ("--base-url", base_url, "--client", "12345")
    for variable in ("MSGCTL_BASE_URL", "MSGCTL_CLIENT", "MSGCTL_KEY"):
        monkeypatch.delenv(variable)
    if way == "environment":
        monkeypatch.setenv("MSGCTL_BASE_URL", base_url)
        monkeypatch.setenv("MSGCTL_CLIENT", "12345")
        monkeypatch.setenv("MSGCTL_KEY", KEY)
        return set()
    (home / "outside").write_text(KEY, encoding="utf-8")
    options = ("--key-stdin",) if way == "standard input" else ("--key-command", f"cat '{home}/outside'")
    done = tool("profile", "add", "main", *account, *options, "--check", stdin=KEY)
    assert (done.code, shows_key(done.stdout + done.stderr)) == (0, False)
    return {"outside", "config.toml"} if way == "standard input" else {"outside"}


def run(tool: Tool, example: Example, *more: str) -> Outcome:
    """Run an example; the key of `profile add` comes from standard input."""
    if example.node.path == "profile add":
        key = [] if "--key-command" in example.arguments or "--key-stdin" in example.arguments else ["--key-stdin"]
        return tool(*example.arguments, *key, "--force", *more, stdin=KEY)
    return example.run(tool, *more)


CHANGING = ("profile add", "profile set", "profile use", "profile remove")
FLAGS = (("-vv",), ("-vv", "--json"))


@pytest.mark.parametrize(
    ("way", "flags"),
    [("environment", FLAGS[0]), ("standard input", FLAGS[1]), ("standard input", ("-n", "-v")), ("command", FLAGS[0])],
    ids=["environment", "standard input", "dry run", "key command"],
)
def test_no_command_shows_or_stores_the_key(
    way: str, flags: tuple[str, ...], tool: Tool, server: Service, home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    server.received.clear()
    server.always(respond(ANY_RECORD))
    planted = plant(way, tool, server.base_url, home, monkeypatch)
    for example in FIRST:
        if example.node.path in CHANGING:  # they change what is planted, and have a test of their own
            continue
        done = run(tool, example, *flags)
        assert not shows_key(done.stdout), example.line
        assert not shows_key(done.stderr), example.line
        assert files_with_key(home) == planted, example.line
        assert done.code in (0, 1, 6) or example.node.facts.performs is None, done.err
    if "-n" not in flags:
        # The sandbox commands ask the server of the environment whether it is a sandbox, and tell it nothing.
        asked = [request for request in server.received if request.path != "/sandbox"]
        assert {request.path for request in asked} == {f"/api/v1{each.path}" for each in ops.OPERATIONS}
        assert {key_of(request) for request in asked} == {KEY}
        assert {key_of(request) for request in server.received if request not in asked} <= {None}


def test_a_key_of_a_few_letters_is_not_shown_where_it_is_sent(
    tool: Tool, service: Service, monkeypatch: pytest.MonkeyPatch
) -> None:
    service.always(respond({"status": "7"}))
    monkeypatch.setenv("MSGCTL_KEY", "abc")
    for command in (("balance",), SEND):
        done = tool("-vv", *command)
        assert "key=***" in done.err
        assert "abc" not in done.err
    assert {key_of(request) for request in service.received} == {"abc"}


def key_of(received: Received) -> str | None:
    """Return the key that was sent with a request."""
    return dict(received.query).get("key") or dict(received.form).get("key")


# --- when msgctl itself makes a mistake

MISTAKES = (RuntimeError, OSError, RecursionError)
SEND = ("sms", "send", "573001234567", "-m", "Hola")
BULK = ("sms", "bulk", "customers.csv", "-m", "Hola", "--yes", "--again")
PLACES = {
    "msgctl.config.profiles.Profile.credential": SEND,
    "msgctl.http.client.Client.send": SEND,
    "msgctl.http.transport.Transport.send": SEND,
    "msgctl.http.client.parse": SEND,
    "msgctl.store.once.end": SEND,
    "msgctl.output.printer.Printer.print": SEND,
    "msgctl.http.client.Client.fetch": ("doctor",),
    "msgctl.http.request.Request.with_credentials": BULK,
    "msgctl.store.sending.Sending.record": BULK,
}
"""A place where a bug is simulated, and a command that runs it."""


@pytest.mark.parametrize("place", PLACES)
def test_a_bug_does_not_show_the_key(
    tool: Tool, service: Service, monkeypatch: pytest.MonkeyPatch, place: str, home: Path
) -> None:
    met: list[type[Exception]] = []

    def fail(*_: object, **__: object) -> NoReturn:
        met.append(mistake)
        raise mistake(errno.EIO, "it failed", KEY) if mistake is OSError else mistake(KEY, f"the key is {KEY}")

    service.always(respond({**ANY_RECORD, "status": 7}))
    monkeypatch.setattr(place, fail)
    for number, mistake in enumerate(MISTAKES):
        done = tool(*PLACES[place], *FLAGS[number % 2])
        shown = done.stdout + done.stderr
        assert not shows_key(shown), mistake
        assert b"Traceback" not in shown, mistake
        assert (done.code != 0, met[-1:]) == (True, [mistake]), done.err
    assert files_with_key(home) == set()


# --- responses that repeat the key

VERBOSITIES = (("-v",), (), ("-q",))
FORMS = (("-o", "table"), ("--json",), ("-o", "csv"))
SAID = " and ".join(spellings_of(KEY).values())


def run_line(line: Line, tool: Tool, turn: int) -> Outcome:
    """Run a line; in turn, with every verbosity and every output format."""
    tool.clock = Clock(tool.clock.now)  # a thread of an earlier run may still sleep on its clock
    if line.path.startswith("job ") or line.sends_a_job:  # the same job is not sent twice
        prepare(os.environ["MSGCTL_BASE_URL"])
    form = FORMS[turn // 3 % 3]
    return line.run(tool, "--yes", *VERBOSITIES[turn % 3], *form, screen=form != FORMS[2])


def in_escapes(body: bytes) -> bytes:
    """Return JSON whose strings consist only of escapes."""
    units = KEY.encode("utf-16-be").hex()
    escaped = "".join(f"\\u{units[at : at + 4]}" for at in range(0, len(units), 4))
    text = body.decode().replace(json.dumps(KEY), f'"{escaped}"')
    assert "awkward" not in text
    return text.encode()


SUCCESSES = {
    "in escapes": respond(in_escapes(json.dumps(everything(KEY)).encode())),
    "in every spelling": respond(everything(SAID), headers={"X-Key": quote(KEY), "Date": quote(KEY)}),
}


@pytest.mark.parametrize("name", SUCCESSES)
def test_a_result_that_repeats_the_key_is_masked_and_stored_nowhere(
    name: str, lines: list[Line], server: Service, tool: Tool, home: Path
) -> None:
    server.always(SUCCESSES[name])
    first = [*SUCCESSES].index(name)
    masked = 0
    for number, line in enumerate(lines):
        for turn in range(first + number, first + number + 9, 4)[: 3 if line.reads else 1]:
            # Each verbosity and each output format once, where nothing is sent
            outcome = run_line(line, tool, turn)
            shown = outcome.stdout + outcome.stderr
            assert not shows_key(shown), (line.path, turn, outcome.out, outcome.err)
            is_elsewhere = line.path.startswith(("profile add", "sandbox "))
            assert is_elsewhere or outcome.code in codes(line, Verdict.TEXTS, FORMS[turn // 3 % 3]), outcome.err
            masked += b"***" in outcome.stdout
        assert files_with_key(home) - {"config.toml"} == set(), line.path
    assert masked > len(lines) // 2


# --- responses that repeat the key: everything else


def request_of(server: Service) -> Behaviour:
    """Return a refusal that repeats exactly what the caller sent."""

    def behave(connection: socket) -> None:
        received = server.received[-1]
        record = {"error": received.target, "msg": f"{received.body.decode()} {received.headers}"}
        respond(record, 520, {"Location": received.target, "X-Request": received.target})(connection)

    return behave


def failures(server: Service) -> dict[str, Behaviour]:
    page = f"<html>{SAID}</html>".encode()
    where = {"Location": f"https://{quote(KEY)}.example/?key={quote_plus(KEY)}"}
    return {
        "the request": request_of(server),
        "an error": respond({"error": SAID, "msg": {SAID: [SAID]}}, 520),
        "a page": respond(page, 520),
        "another record": respond({KEY: KEY, quote(KEY): [SAID]}),
        "a redirect": respond(b"", 302, {**where, "X-Key": SAID.encode().decode("latin-1")}),
        "a reason": raw(f"HTTP/1.1 520 {quote(KEY)}\r\nContent-Length: 0\r\n\r\n".encode()),
        "a header": raw(f"HTTP/1.1 520 No\r\n{quote(KEY)}\r\nX: {quote(KEY)}\r\n\r\n".encode()),
        "not HTTP": raw(f"{KEY}\r\n{KEY}\r\n\r\n".encode()),
        "less than announced": respond(page, 200, {"Content-Length": "100000"}),
    }


MEANINGS = {
    "the request": Verdict.DOUBT,
    "an error": Verdict.DOUBT,
    "a page": Verdict.DOUBT,
    "another record": Verdict.UNREADABLE,  # once masked, it has a field twice
    "a redirect": Verdict.DOUBT,
    "a reason": Verdict.DOUBT,
    "a header": Verdict.DOUBT,
    "not HTTP": Verdict.LOST,
    "less than announced": Verdict.LOST,
}
FAILURES = tuple(failures(Service.__new__(Service)))


@pytest.mark.parametrize("name", FAILURES)
def test_a_failure_that_repeats_the_key_is_masked_and_stored_nowhere(
    name: str, lines: list[Line], server: Service, tool: Tool, home: Path
) -> None:
    server.always(failures(server)[name])
    for number, line in enumerate(lines):
        turn = FAILURES.index(name) + number
        outcome = run_line(line, tool, turn)
        assert outcome.code in codes(line, MEANINGS[name], FORMS[turn // 3 % 3]), (line.path, outcome.err)
        assert not shows_key(outcome.stdout + outcome.stderr), (line.path, outcome.out, outcome.err)
        assert files_with_key(home) - {"config.toml"} == set(), line.path
