"""Machines that share a PostgreSQL database: each has its own name and directories, and may have its own clock."""

from __future__ import annotations

import contextlib
import os
import select
import socket
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from msgctl.storage.shared import SharedRecords
from support.jobs import Jobs
from support.service import PATIENCE
from support.tool import Outcome, Tool

PROCESS = """
import socket, sys, time
name, offset = sys.argv.pop(1), float(sys.argv.pop(1))
socket.gethostname, true_time = lambda: name, time.time
time.time = lambda: true_time() + offset
from msgctl.__main__ import console
console()
"""


class Machine:
    """A machine. A call runs a command line on it, in this process."""

    def __init__(self, name: str, home: Path, url: str, monkeypatch: pytest.MonkeyPatch) -> None:
        self.name = name
        self.home = home / name
        self.home.mkdir()
        self.url = url
        self._monkeypatch = monkeypatch
        self.tool = Tool()
        self.jobs = Jobs(self.tool)

    @property
    def _environment(self) -> dict[str, str]:
        return {
            "HOME": str(self.home),
            "XDG_CONFIG_HOME": str(self.home / "config"),
            "XDG_STATE_HOME": str(self.home / "state"),
            "MSGCTL_STORE": self.url,
        }

    def enter(self) -> Jobs:
        """Make this process run its next command lines on this machine."""
        for name, value in self._environment.items():
            self._monkeypatch.setenv(name, value)
        self._monkeypatch.setattr(SharedRecords, "owner", self.name)
        return self.jobs

    def __call__(self, *arguments: str, **given: Any) -> Outcome:
        self.enter()
        done = self.tool(*arguments, **given)
        assert "Traceback" not in done.err, done.err
        assert "because of a bug" not in done.err, done.err
        return done

    def start(self, *arguments: str, clock: float = 0) -> subprocess.Popen[bytes]:
        """Start a process on this machine. Its clock is ``clock`` seconds ahead."""
        return subprocess.Popen(
            [sys.executable, "-c", PROCESS, self.name, str(clock), *arguments],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            env={**os.environ, **self._environment},
        )


def ended(*processes: subprocess.Popen[bytes]) -> list[Outcome]:
    """Wait for processes, and return their outcomes."""
    outcomes = []
    for each in processes:
        out, err = each.communicate(timeout=120)
        assert b"Traceback" not in err, err
        assert b"because of a bug" not in err, err
        outcomes.append(Outcome(each.returncode, out, err))
    return outcomes


class Network:
    """A network between msgctl and the database, which fails when msgctl sends the packet with the number ``packet``.

    ``how`` is ``lost before`` (the packet does not arrive), ``lost after`` (its response does not), ``silent before``
    or ``silent after`` (the same, but the connection stays open). Without ``how``, ``event`` is called instead.
    """

    def __init__(self, port: int, packet: int = 0, how: str = "", event: Callable[[], None] | None = None) -> None:
        self._port = port
        self._packet = packet
        self._how = how
        self._event = event
        self._listener = socket.create_server(("127.0.0.1", 0))
        self._lock = threading.Lock()
        self._threads = [threading.Thread(target=self._accept, daemon=True)]
        self.packets = 0
        self.port: int = self._listener.getsockname()[1]

    def start(self) -> None:
        self._threads[0].start()

    def stop(self) -> None:
        """Wait for the end of all connections."""
        with contextlib.suppress(OSError):
            self._listener.shutdown(socket.SHUT_RDWR)
        for thread in self._threads:
            thread.join(PATIENCE)
        self._listener.close()

    def _accept(self) -> None:
        while True:
            try:
                client, _ = self._listener.accept()
            except OSError:
                return
            self._threads.append(threading.Thread(target=self._serve, args=(client,), daemon=True))
            self._threads[-1].start()

    def _serve(self, client: socket.socket) -> None:
        with contextlib.suppress(OSError), client, socket.create_connection(("127.0.0.1", self._port)) as server:
            client.settimeout(PATIENCE)
            while ready := select.select([client, server], [], [], PATIENCE)[0]:
                if client in ready:
                    if not (chunk := client.recv(65536)):
                        return
                    with self._lock:
                        self.packets += 1
                        fails = self._packet and self.packets >= self._packet
                        event, self._event = self._event if fails else None, None if fails else self._event
                    if event:
                        event()
                    if fails and self._how:
                        if "after" in self._how and self.packets == self._packet:
                            server.sendall(chunk)
                            server.recv(65536)
                        if "silent" in self._how:
                            client.recv(65536)
                        return
                    server.sendall(chunk)
                if server in ready:
                    if not (chunk := server.recv(65536)):
                        return
                    client.sendall(chunk)


@contextlib.contextmanager
def network(port: int, packet: int = 0, how: str = "", event: Callable[[], None] | None = None) -> Iterator[Network]:
    """Run a network for a block."""
    found = Network(port, packet, how, event)
    found.start()
    try:
        yield found
    finally:
        found.stop()
