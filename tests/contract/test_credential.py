"""No object shows the key, and a key command can print it."""

from __future__ import annotations

import json
import re
from io import StringIO
from pathlib import Path

import pytest

from conftest import KEY
from msgctl.cli.shell.context import Context
from msgctl.config import credential as key_commands
from msgctl.config.file import load
from support.files import credentials, table, write_config
from support.leaks import shows_key
from support.service import Service
from support.terminal import Terminal, in_a_terminal
from support.tool import Tool


def test_no_object_shows_the_key(service: Service) -> None:
    context = Context(stdin=StringIO(), stdout=StringIO(), stderr=StringIO())
    profile = context.profile
    credential = profile.credential()
    assert credential == (12345, KEY)
    config = load(write_config(table("main", key=KEY)))
    for each in (credential, profile, config, context.client, context):
        assert not shows_key(f"{each!r} {each!s} {each} {each!a} {[each]}")


# --- keys that a command prints


def with_command(server: Service, command: str) -> None:
    write_config(table("main", f"key_command = {json.dumps(command)}", base_url=server.base_url, key=None))


def test_the_first_line_of_a_key_command_is_the_key(tool: Tool, server: Service, home: Path) -> None:
    (home / "key").write_text(f"{KEY}\n", encoding="utf-8")
    for command in ("awk '{{printf \"%s\\r\\n\", $0}}' {key}", "echo a note >&2; cat {key}"):
        with_command(server, command.format(key=home / "key"))
        done = tool("balance", "-p", "main")
        assert done.code == 0, done.err
        assert credentials(server) == ("1", KEY)


def test_a_key_keeps_its_spaces_whatever_else_the_command_prints(tool: Tool, server: Service, home: Path) -> None:
    (home / "key").write_bytes(f" {KEY} \n".encode().ljust(64 * 1024, b"x"))
    with_command(server, f"cat {home}/key")
    assert tool("balance", "-p", "main").code == 0
    assert credentials(server) == ("1", f" {KEY} ")


def test_a_key_command_without_a_key_exits_with_3(tool: Tool, server: Service, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(key_commands, "MAX_SECONDS", 8)
    for command in (
        "echo hidden-word; exit 7",
        "echo hidden-word; kill $$",
        "sleep 9 & echo hidden-word; exit 7",
        "true",
        "echo; echo hidden-word",
        "echo '  '",
        "printf 'hidden-word\\377\\n'",
        "printf 'hidden-word\\t\\n'",
    ):
        with_command(server, command)
        done = tool("balance", "-p", "main")
        done.refused(3, "main")
        assert not re.search("hidden-word|did not end", done.err)
    assert server.received == []


def test_a_key_command_that_does_not_end_is_killed(
    tool: Tool, server: Service, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(key_commands, "MAX_SECONDS", 0.1)
    for command in ("exec sleep 5", "sleep 5 & sleep 5"):
        with_command(server, command)
        done = tool("balance", "-p", "main")
        assert (done.code, server.received) == (3, [])
        assert "did not end within 0.1 seconds" in done.err


def test_a_key_command_may_leave_a_process_behind_that_keeps_its_output_open(
    tool: Tool, server: Service, home: Path
) -> None:
    (home / "key").write_text(KEY, encoding="utf-8")
    with_command(server, f"sleep 5 & cat {home}/key")
    assert tool("balance", "-p", "main").code == 0
    assert credentials(server) == ("1", KEY)


def test_a_key_command_that_prints_without_end_exits_with_3(tool: Tool, server: Service) -> None:
    with_command(server, "yes")
    done = tool("balance", "-p", "main")
    assert (done.code, server.received) == (3, [])
    assert "printed over 65,536 bytes" in done.err


@in_a_terminal
def test_a_key_command_can_ask_on_a_terminal(server: Service) -> None:
    with_command(server, "printf 'Passphrase? ' >&2; read -r phrase; echo key-of-$phrase")
    with Terminal("balance", "-p", "main") as terminal:
        terminal.answer("Passphrase? ", b"ana\n")
        assert terminal.end() == 0
        assert credentials(server) == ("1", "key-of-ana")
