"""A response that repeats the key: it is neither shown nor stored."""

from __future__ import annotations

import json
import os
import tempfile
from pathlib import Path
from socket import socket
from urllib.parse import quote, quote_plus

import pytest

from conftest import KEY
from hostile.bodies import everything
from hostile.exit_codes import Verdict, code
from support.leaks import files_with_key, shows_key, spellings_of
from support.request_lines import Line, prepare
from support.service import Behaviour, Service, raw, respond
from support.tool import Outcome, Tool

VERBOSITIES = (("-v",), (), ("-q",))
FORMS = (("-o", "table"), ("--json",), ("-o", "csv"))
SAID = " and ".join(spellings_of(KEY).values())


@pytest.fixture(autouse=True)
def temporary(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Search temporary files, too."""
    (home / "tmp").mkdir()
    monkeypatch.setattr(tempfile, "tempdir", str(home / "tmp"))


def ran(line: Line, tool: Tool, turn: int) -> Outcome:
    """Run a line; in turn, with every verbosity and every output format."""
    if line.path.startswith("job ") or line.sends_a_job:  # the same job is not sent twice
        prepare(os.environ["MSGCTL_BASE_URL"])
    form = FORMS[turn // 3 % 3]
    return line.run(tool, "--yes", *VERBOSITIES[turn % 3], *form, screen=form != FORMS[2])


# --- successes


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


@pytest.mark.parametrize("said", SUCCESSES)
def test_a_result_that_repeats_the_key_is_masked_and_stored_nowhere(
    said: str, lines: list[Line], server: Service, tool: Tool, home: Path
) -> None:
    server.always(SUCCESSES[said])
    first = [*SUCCESSES].index(said)
    masked = 0
    for number, line in enumerate(lines):
        for turn in range(first + number, first + number + 9, 4)[: 3 if line.reads else 1]:
            # Each verbosity and each output format once, where nothing is sent
            outcome = ran(line, tool, turn)
            shown = outcome.stdout + outcome.stderr
            assert not shows_key(shown), (line.path, turn, outcome.out, outcome.err)
            is_elsewhere = line.path.startswith(("profile add", "sandbox "))
            assert is_elsewhere or outcome.code == code(line, Verdict.TEXTS, FORMS[turn // 3 % 3]), outcome.err
            masked += b"***" in outcome.stdout
        assert files_with_key(home) - {"config.toml"} == set(), line.path
    assert masked > len(lines) // 2


# --- everything else


def request_of(server: Service) -> Behaviour:
    """Return a refusal that repeats exactly what the caller sent."""

    def behave(connection: socket) -> None:
        received = server.received[-1]
        said = {"error": received.target, "msg": f"{received.body.decode()} {received.headers}"}
        respond(said, 520, {"Location": received.target, "X-Request": received.target})(connection)

    return behave


def failures(server: Service) -> dict[str, Behaviour]:
    page = f"<html>{SAID}</html>".encode()
    where = {"Location": f"https://{quote(KEY)}.example/?key={quote_plus(KEY)}&next={quote(quote(KEY))}"}
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


FAILURES = tuple(failures(Service.__new__(Service)))


@pytest.mark.parametrize("said", FAILURES)
def test_a_failure_that_repeats_the_key_is_masked_and_stored_nowhere(
    said: str, lines: list[Line], server: Service, tool: Tool, home: Path
) -> None:
    server.always(failures(server)[said])
    for number, line in enumerate(lines):
        outcome = ran(line, tool, FAILURES.index(said) + number)
        assert not shows_key(outcome.stdout + outcome.stderr), (line.path, outcome.out, outcome.err)
        assert files_with_key(home) - {"config.toml"} == set(), line.path
