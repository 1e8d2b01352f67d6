"""SIGINT, SIGTERM and SIGHUP at any moment: the command stops, reports the known outcome, and restores the terminal."""

from __future__ import annotations

import json
import re
import signal
import socket
import sqlite3
import subprocess
import sys
import threading
import time
from collections.abc import Sequence
from contextlib import closing
from itertools import islice
from pathlib import Path
from subprocess import PIPE

import pytest

from conftest import KEY
from support import PATIENCE
from support.commands import SENDS
from support.examples import FIRST, Example, line_of, write_files
from support.files import config_file, table, write_config
from support.runs import DOCUMENTED, NEVER_PRINTED, ended_well
from support.service import Service, respond, silent
from support.terminal import RUN, Terminal, in_a_terminal
from support.tool import Tool, started

STOPPING = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
SEND = SENDS["sms send"].line
READABLE = respond({"id": "m1", "status": "1", "state": "delivered", "urlShort": "https://s.example/1"})
"""A response that every command can read."""

each_signal = pytest.mark.parametrize("number", STOPPING, ids=lambda number: number.name)


@pytest.fixture(autouse=True)
def world(service: Service, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Service:
    """Write the files and the job of the examples, and a profile for a server."""
    monkeypatch.chdir(tmp_path)
    write_files(tmp_path)
    write_config(f'default_profile = "main"\n{table("main", base_url=service.base_url, key=KEY)}')
    service.always(READABLE)
    return service


# --- while a process starts


MOMENTS = [(signal.SIGTERM, 141), (signal.SIGINT, 840), (signal.SIGHUP, 1436)]
"""Signals, and the numbers of lines of Python's import log after which they are sent."""


@pytest.mark.parametrize("module", ["gc", "typer"])
def test_ctrl_c_while_modules_load_ends_with_130(module: str) -> None:
    command = [sys.executable, "-v", "-m", "msgctl", "balance"]
    with started(command, stdin=subprocess.DEVNULL, stdout=PIPE, stderr=PIPE, text=True) as child:
        assert child.stderr is not None
        loaded = next(line for line in child.stderr if re.match(rf"import '{re.escape(module)}' ", line))
        child.send_signal(signal.SIGINT)
        _, rest = child.communicate(timeout=PATIENCE)
    assert loaded
    assert (child.returncode, "Traceback" in rest) == (130, False)


def test_ctrl_c_at_the_end_of_a_command_ends_with_130() -> None:
    code = """
import sys
from msgctl.__main__ import console
class Interrupted:
    def __getitem__(self, part):
        raise KeyboardInterrupt
sys.argv = Interrupted()
console()
"""
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 130


@pytest.mark.parametrize(("number", "lines"), MOMENTS)
def test_a_signal_at_any_moment_ends_a_command_without_a_traceback(number: signal.Signals, lines: int) -> None:
    command = [RUN[0], "-v", *RUN[1:], *SEND]
    with started(command, stdin=subprocess.DEVNULL, stdout=PIPE, stderr=PIPE, text=True) as child:
        assert child.stdout is not None
        assert child.stderr is not None
        # Before msgctl's first import, Python itself handles a signal.
        skipped = next((line for line in child.stderr if "typer" in line), "")
        lines_read = list(islice(child.stderr, lines))
        child.send_signal(number)
        _, rest = child.communicate(timeout=PATIENCE)
    assert skipped
    stderr_text = "".join(lines_read) + rest
    assert [part for part in NEVER_PRINTED if part in stderr_text] == []
    # Python ends by SIGINT, which a shell shows as 130, if it is interrupted while it evaluates a text.
    assert child.returncode in {*DOCUMENTED, -number, -signal.SIGINT}


# --- while a request is in flight


def signalled_at_its_request(
    command: Sequence[str], number: signal.Signals, world: Service, stdin: bytes = b""
) -> tuple[int, str]:
    """Run a command, and send it a signal when its first request has arrived, before the response."""
    children: list[subprocess.Popen[bytes]] = []
    has_child = threading.Event()

    def stop(connection: socket.socket) -> None:
        assert has_child.wait(PATIENCE)
        children[0].send_signal(number)
        READABLE(connection)

    world.always(stop)
    with started(command, stdin=PIPE, stdout=subprocess.DEVNULL, stderr=PIPE) as child:
        children.append(child)
        has_child.set()
        _, stderr_text = child.communicate(stdin, PATIENCE)
    return child.returncode, stderr_text.decode()


PATHS = ("balance", "2fa verify", "state watch", "sms bulk")
STOPS = [
    (example, STOPPING[number % 3]) for number, example in enumerate(each for each in FIRST if each.node.path in PATHS)
]


@pytest.mark.parametrize(("example", "number"), STOPS, ids=lambda each: line_of(each) or each.name)
def test_a_signal_interrupts_a_request(example: Example, number: signal.Signals, world: Service) -> None:
    arguments = [word for word in example.arguments if word not in ("-n", "--dry-run", "--last")]
    code, stderr_text = signalled_at_its_request([*RUN, *arguments, "--yes"], number, world, example.stdin)
    assert ended_well(code, stderr_text)
    assert code == 130
    assert len(world.received) == 1


def test_an_interrupted_send_is_reported_and_recorded_as_unknown(world: Service, tool: Tool) -> None:
    code, stderr_text = signalled_at_its_request([*RUN, *SEND, "--json"], signal.SIGTERM, world)
    error = json.loads(stderr_text)
    assert (code, error["kind"], error["exit_code"]) == (130, "interrupted", 130)
    assert "may have been carried out" in error["message"]
    assert [recipient["outcome"] for recipient in error["recipients"]] == ["unknown"]
    assert [entry["outcome"] for entry in tool("history", "--json").document] == ["unknown"]


@pytest.mark.parametrize(
    ("ignored", "command"),
    [("INT", SEND), ("HUP", ("sms", "bulk", "customers.csv", "-m", "Hola", "--yes"))],
    ids=["background", "nohup"],
)
def test_a_signal_that_the_caller_ignores_stays_ignored(ignored: str, command: Sequence[str], world: Service) -> None:
    script = f"""trap '' {ignored}; exec "$0" "$@\""""
    number = signal.Signals[f"SIG{ignored}"]
    code, stderr_text = signalled_at_its_request(["sh", "-c", script, *RUN, *command], number, world)
    assert (code, "Error" in stderr_text) == (0, False), stderr_text


# --- on a terminal

ADD = "profile", "add", "new", "--base-url", "https://service.example/api/v1", "--client", "1"


@in_a_terminal
@each_signal
def test_the_echo_is_restored_if_no_key_was_given(number: signal.Signals) -> None:
    before = config_file().read_bytes()
    with Terminal(*ADD, columns=20) as tty:
        assert tty.read_until(b"Key: $")
        tty.process.send_signal(number)
        assert tty.end() == 130
        assert ended_well(130, tty.shown.decode().replace("\r", ""), coloured=True)
        assert config_file().read_bytes() == before


@in_a_terminal
def test_ctrl_z_is_ignored_while_a_key_is_typed() -> None:
    """A shell would turn the echo on again after Ctrl-Z."""
    with Terminal(*ADD, columns=20) as tty:
        assert tty.read_until(b"Key: $")
        status = Path(f"/proc/{tty.process.pid}/status").read_text(encoding="ascii")
        (ignored,) = re.findall("SigIgn:\\s*([0-9a-f]+)", status)
        assert int(ignored, 16) >> (signal.SIGTSTP - 1) & 1
        tty.write(b"\x1aa-new-key\n")
        assert tty.end() == 0
        assert b"a-new-key" not in tty.shown
        assert "a-new-key" in config_file().read_text(encoding="utf-8")


@in_a_terminal
@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGHUP])
def test_a_job_finishes_requests_in_flight_and_a_second_signal_ends_it(
    number: signal.Signals, world: Service, tool: Tool
) -> None:
    arrived = threading.Event()

    def hold(connection: socket.socket) -> None:
        arrived.set()
        silent(connection)

    world.will(READABLE, hold)
    with Terminal("sms", "bulk", "customers.csv", "-m", "Hola", "--yes", "--name", "today", columns=20) as tty:
        assert arrived.wait(PATIENCE)
        tty.process.send_signal(number)
        assert tty.read_until(b"Stopping")
        tty.process.send_signal(number)
        assert tty.end() == 130, tty.shown
        assert ended_well(130, tty.shown.decode().replace("\r", ""), coloured=True)
    assert re.search(r"Paused +Interrupted", tool("--no-color", "job", "show", "today", terminal=True).out)


@pytest.mark.parametrize(("second", "state"), [(signal.SIGHUP, "scheduled"), (signal.SIGINT, "paused")], ids=str)
def test_the_two_signals_of_a_shutdown_leave_a_job_of_run_due_scheduled(
    second: signal.Signals, state: str, world: Service, tool: Tool, home: Path
) -> None:
    tool("sms", "bulk", "customers.csv", "-m", "Hola", "--yes", "--name", "later", "--at", "23:59")
    with closing(sqlite3.connect(home / "state/msgctl/store.sqlite3")) as db, db:
        db.execute("UPDATE job SET due = ?", (time.time_ns() // 10**6,))
    arrived = threading.Event()

    def hold(connection: socket.socket) -> None:
        arrived.set()
        silent(connection)

    world.will(hold)
    with started([*RUN, "job", "run-due"], stdout=subprocess.DEVNULL, stderr=PIPE, text=True) as child:
        assert child.stderr is not None
        assert arrived.wait(PATIENCE)
        child.send_signal(signal.SIGTERM)
        assert any("Stopping" in line for line in child.stderr)
        child.send_signal(second)
        child.communicate(timeout=PATIENCE)
    assert child.returncode == 130
    assert tool("job", "show", "later", "--json").document["state"] == state


@in_a_terminal
@pytest.mark.parametrize("arguments", [SEND, ("sms", "bulk", "customers.csv", "-m", "x", "-y")], ids=["send", "job"])
def test_closing_the_terminal_interrupts(arguments: tuple[str, ...], world: Service, tmp_path: Path) -> None:
    arrived, closed = threading.Event(), threading.Event()

    def hold(connection: socket.socket) -> None:
        arrived.set()
        assert closed.wait(PATIENCE)
        READABLE(connection)

    world.always(hold)
    with (
        (tmp_path / "stderr").open("w+b") as stderr_text,
        Terminal(*arguments, stderr=stderr_text.fileno(), columns=20) as tty,
    ):
        assert arrived.wait(PATIENCE)
        tty.hang_up()
        closed.set()
        assert tty.process.wait(PATIENCE) == 130
        stderr_text.seek(0)
        assert b"nterrupted" in stderr_text.read()
