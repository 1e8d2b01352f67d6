"""No process of msgctl, and none that it starts, has the key in its arguments or gets it in its environment."""

from __future__ import annotations

import json
import subprocess
import sys
import threading
from pathlib import Path
from socket import socket

import pytest

from conftest import KEY
from support.files import config_file, table, write_config
from support.leaks import files_with_key, shows_key
from support.service import PATIENCE, Service, answer
from support.terminal import Terminal, in_a_terminal


def family(pid: int) -> list[int]:
    """A process and all that it has started, as far as they run."""
    found = [pid]
    for parent in found:
        for children in Path(f"/proc/{parent}/task").glob("*/children"):
            found += map(int, children.read_text().split())
    return found


def seen_of(pid: int) -> bytes:
    """Return what other processes, partly even of other users, can see of a process and its children."""
    names = ("cmdline", "environ", "comm", "status", "stat")
    return b"".join(Path(f"/proc/{each}/{name}").read_bytes() for each in family(pid) for name in names)


class Held(threading.Event):
    """Holds a response back until the test has looked at the processes."""

    def __init__(self, server: Service) -> None:
        super().__init__()
        self.arrived = threading.Event()
        server.always(self._behave)

    def _behave(self, connection: socket) -> None:
        self.arrived.set()
        self.wait(PATIENCE)
        answer({"status": 7})(connection)

    def look_at(self, pid: int) -> bytes:
        """Return what can be seen of a process while its request is in flight, then let it continue."""
        try:
            assert self.arrived.wait(PATIENCE)
            return seen_of(pid)
        finally:
            self.set()


def ended(process: subprocess.Popen[bytes]) -> bool:
    out, err = process.communicate(timeout=PATIENCE)
    assert process.returncode == 0, err
    return not shows_key(out + err)


def started(*words: str) -> subprocess.Popen[bytes]:
    pipe = subprocess.PIPE
    return subprocess.Popen([sys.executable, "-m", "msgctl", *words], stdin=pipe, stdout=pipe, stderr=pipe)


def test_a_key_from_standard_input_is_not_visible_in_any_process(server: Service, home: Path) -> None:
    held = Held(server)
    account = ["--base-url", server.base_url, "--client", "1"]
    with started("profile", "add", "main", *account, "--key-stdin", "--check", "-v") as process:
        assert process.stdin is not None
        process.stdin.write(KEY.encode() + b"\n")
        process.stdin.close()
        process.stdin = None
        seen = held.look_at(process.pid)
        assert ended(process)
    assert b"--key-stdin" in seen
    assert not shows_key(seen)
    assert files_with_key(home) == {config_file().name}


@in_a_terminal
def test_a_typed_key_is_not_visible_in_any_process(server: Service, home: Path) -> None:
    held = Held(server)
    terminal = Terminal("profile", "add", "main", "--base-url", server.base_url, "--client", "1", "--check", "-v")
    terminal.answer("Key: ", KEY.encode() + b"\n")
    seen = held.look_at(terminal.process.pid)
    assert terminal.end() == 0
    assert b"--check" in seen
    assert not shows_key(seen + terminal.shown)
    assert files_with_key(home) == {config_file().name}


@pytest.mark.parametrize("source", ["file", "key command"])
def test_the_key_of_a_profile_is_not_visible_in_any_process(server: Service, source: str, home: Path) -> None:
    (home / "key").write_text(KEY, encoding="utf-8")
    command = f"cat '{home}/key'"
    member = f"key = {json.dumps(KEY)}" if source == "file" else f"key_command = {json.dumps(command)}"
    write_config(table("main", member, base_url=server.base_url, key=None))
    held = Held(server)
    with started("balance", "-p", "main", "-v") as process:
        seen = held.look_at(process.pid)
        assert ended(process)
    assert b"balance" in seen
    assert not shows_key(seen)
