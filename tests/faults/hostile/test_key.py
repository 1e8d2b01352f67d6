"""No output, and no file except the configuration, contains the key, after any command, response or failure."""

from __future__ import annotations

import errno
import json
import tempfile
from pathlib import Path
from socket import socket
from typing import NoReturn
from urllib.parse import quote, quote_plus

import pytest

from conftest import KEY
from faults.hostile.bodies import everything
from faults.hostile.exit_codes import (
    BREAKDOWN,
    INCOMPLETE,
    NO_RESPONSE,
    NOT_JSON,
    TEXTS,
    UNAVAILABLE,
    UNREADABLE,
    Codes,
    form_of,
    run_line,
)
from msgctl import operations as ops
from support.examples import FIRST, OF_EACH_KIND, write_files
from support.leaks import files_with_key, shows_key, spellings_of
from support.request_lines import Line
from support.service import Behaviour, Received, Service, raw, respond
from support.tool import Tool


@pytest.fixture(autouse=True)
def files(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The files that the examples read. Temporary files are in the directory of the test, too."""
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
    if way == "environment":  # the tests set the variables
        return set()
    for variable in ("MSGCTL_BASE_URL", "MSGCTL_CLIENT", "MSGCTL_KEY"):
        monkeypatch.delenv(variable)
    account = ("--base-url", base_url, "--client", "12345")
    (home / "outside").write_text(KEY, encoding="utf-8")
    options = ("--key-stdin",) if way == "standard input" else ("--key-command", f"cat '{home}/outside'")
    done = tool("profile", "add", "main", *account, *options, "--check", stdin=KEY)
    assert (done.code, shows_key(done.stdout + done.stderr)) == (0, False)
    return {"outside", "config.toml"} if way == "standard input" else {"outside"}


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
    for example in OF_EACH_KIND if way == "command" else FIRST:
        if example.node.path in CHANGING:  # these change the planted key
            continue
        done = example.run(tool, *flags)
        assert not shows_key(done.stdout + done.stderr), example.line
        assert files_with_key(home) == planted, example.line
        assert done.code in (0, 1, 6) or example.node.facts.performs is None, done.err
    if way == "environment":
        # Only the request that checks for a sandbox has no key.
        keys = {(request.path.removeprefix("/api/v1"), key_of(request)) for request in server.received}
        assert keys == {(operation.path, KEY) for operation in ops.OPERATIONS} | {("/sandbox", None)}


def test_a_short_key_is_not_shown_in_the_request(tool: Tool, service: Service, monkeypatch: pytest.MonkeyPatch) -> None:
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
    "msgctl.http.transport.Transport.handle_request": SEND,
    "msgctl.http.client.parse": SEND,
    "msgctl.store.sends.SendRecord.end": SEND,
    "msgctl.output.printer.Printer.print": SEND,
    "msgctl.http.client.Client.fetch": ("doctor",),
    "msgctl.http.request.Request.with_credentials": BULK,
    "msgctl.store.batches.OwnedJob.record": BULK,
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
SPELLINGS = " and ".join(spellings_of(KEY).values())


def in_escapes(body: bytes) -> bytes:
    """Escape every character of the key in JSON."""
    escaped = "".join(f"\\u{ord(char):04x}" for char in KEY)
    return body.replace(json.dumps(KEY).encode(), f'"{escaped}"'.encode())


def repeat_the_request(server: Service) -> Behaviour:
    """Return a refusal that repeats exactly what the caller sent."""

    def behave(connection: socket) -> None:
        received = server.received[-1]
        record = {"error": received.target, "msg": f"{received.body.decode()} {received.headers}"}
        respond(record, 520, {"Location": received.target, "X-Request": received.target})(connection)

    return behave


PAGE = f"<html>{SPELLINGS}</html>".encode()
LOCATION = f"https://{quote(KEY)}.example/?key={quote_plus(KEY)}"
REPETITIONS: dict[str, tuple[Behaviour | None, Codes]] = {
    "in escapes": (respond(in_escapes(json.dumps(everything(KEY)).encode())), TEXTS),
    "in every spelling": (
        respond(everything(SPELLINGS), headers={"X-Key": quote(KEY), "Date": quote(KEY)}),
        TEXTS,
    ),
    "the request": (None, BREAKDOWN),
    "an error": (respond({"error": SPELLINGS, "msg": {SPELLINGS: [SPELLINGS]}}, 520), UNREADABLE),
    "a page": (respond(PAGE, 520), UNAVAILABLE),
    "another record": (respond({KEY: KEY, quote(KEY): [SPELLINGS]}), NOT_JSON),  # once masked, it has a field twice
    "a redirect": (
        respond(b"", 302, {"Location": LOCATION, "X-Key": SPELLINGS.encode().decode("latin-1")}),
        INCOMPLETE,
    ),
    "a reason": (raw(f"HTTP/1.1 520 {quote(KEY)}\r\nContent-Length: 0\r\n\r\n".encode()), UNAVAILABLE),
    "a header": (raw(f"HTTP/1.1 520 No\r\n{quote(KEY)}\r\nX: {quote(KEY)}\r\n\r\n".encode()), NO_RESPONSE),
    "not HTTP": (raw(f"{KEY}\r\n{KEY}\r\n\r\n".encode()), NO_RESPONSE),
    "less than announced": (respond(PAGE, 200, {"Content-Length": "100000"}), INCOMPLETE),
}


@pytest.mark.parametrize("name", REPETITIONS)
def test_a_key_in_a_response_is_masked_and_stored_nowhere(
    name: str, lines: list[Line], server: Service, tool: Tool, home: Path
) -> None:
    behaviour, codes = REPETITIONS[name]
    server.always(behaviour or repeat_the_request(server))
    masked = 0
    for number, line in enumerate(lines):
        first = [*REPETITIONS].index(name) + number
        # The result of a read is checked in every output format and verbosity.
        for turn in range(first, first + 9, 4 if codes == TEXTS and line.reads else 9):
            form = form_of(line, turn // 3)
            outcome = run_line(line, tool, form, *VERBOSITIES[turn % 3])
            assert outcome.code == codes.of(line), (line.path, outcome.err)
            assert not shows_key(outcome.stdout + outcome.stderr), (line.path, outcome.out, outcome.err)
            masked += b"***" in outcome.stdout
        assert files_with_key(home) - {"config.toml"} == set(), line.path
    assert (masked > len(lines) // 3) == (codes == TEXTS), "a result contains the masked key"
