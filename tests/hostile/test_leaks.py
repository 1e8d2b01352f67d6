"""What repeats the key to whoever made a request does not get it shown or stored, whatever was asked for."""

from __future__ import annotations

import base64
import json
import shlex
import socket
from pathlib import Path
from urllib.parse import quote, quote_plus

import pytest

from conftest import KEY
from hostile.holding import ran
from support.asking import Line
from support.leaks import files_with_key, shows_key
from support.service import Behaviour, Service, answer
from support.tool import Tool

VERBOSITIES = (("-v", "-o", "table"), ("-v", "--json"), ("-v", "-o", "csv"))
SPELLINGS = (KEY, quote(KEY), quote_plus(KEY), quote(quote(KEY)), shlex.quote(KEY), json.dumps(KEY))
SAID = " and ".join(SPELLINGS)


@pytest.mark.parametrize("seen", [KEY, *SPELLINGS, base64.b64encode(f"12:{KEY}".encode()), KEY.encode("utf-16")])
def test_the_key_would_be_found(seen: str | bytes) -> None:
    assert shows_key(seen)


def repeating(server: Service) -> dict[str, Behaviour]:
    """Refusals that say what was sent, in every spelling."""

    def request(connection: socket.socket) -> None:
        received = server.received[-1]
        said = {"error": received.target, "msg": f"{received.body.decode()} {received.headers}"}
        answer(said, 520, {"Location": received.target, "X-Request": received.target})(connection)

    where = {"Location": f"https://{quote(KEY)}.example/?key={quote_plus(KEY)}&next={quote(quote(KEY))}"}
    return {
        "the request": request,
        "an error": answer({"error": SAID, "msg": {SAID: [SAID]}}, 520),
        "an error of a proxy": answer({"error": SAID, "msg": SAID}, 503),
        "a page": answer(f"<html>{SAID}</html>".encode(), 520),
        "a redirect": answer(b"", 302, {**where, "X-Key": SAID.encode().decode("latin-1")}),
        "a record that is none": answer({"status": {SAID: SAID}, "data": SAID, SAID: 1}),
    }


@pytest.mark.parametrize("said", repeating(Service.__new__(Service)))
def test_a_refusal_that_repeats_the_key_is_masked_and_stored_nowhere(
    said: str, lines: list[Line], server: Service, tool: Tool, home: Path
) -> None:
    server.always(repeating(server)[said])
    for number, line in enumerate(lines):
        form = VERBOSITIES[number % len(VERBOSITIES)]
        outcome = ran(line, tool, form)
        shown = outcome.stderr + (outcome.stdout if outcome.code else b"")  # a result is printed as it came
        assert not shows_key(shown), (said, line.path, form, outcome.err)
        assert files_with_key(home) - {"config.toml"} == set(), (said, line.path)


def test_what_a_command_does_well_shows_and_stores_no_key(
    lines: list[Line], server: Service, tool: Tool, home: Path
) -> None:
    server.always(answer({"status": "7", "state": "delivered", "urlShort": "x", "id": "x", "sandbox": "msgctl"}))
    for line in lines:
        for form in VERBOSITIES:
            outcome = ran(line, tool, form)
            assert not shows_key(outcome.stdout + outcome.stderr), (line.path, form, outcome.err)
            assert files_with_key(home) - {"config.toml"} == set(), line.path
