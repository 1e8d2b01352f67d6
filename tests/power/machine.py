"""Command lines of msgctl in forked processes, and the service that they send to.

A fork has all modules loaded, and its end releases all locks, like the end of any other process. The folder of a
machine has the ``disk``, whose content a power cut can change, and the notes of the service, which survive all cuts.
"""

from __future__ import annotations

import gc
import io
import json
import os
import signal
import sys
import time
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from functools import lru_cache
from importlib import import_module
from pathlib import Path
from threading import Lock
from typing import IO, Any
from unittest import mock
from urllib.parse import parse_qs

import httpx

import msgctl.commands.job
import msgctl.commands.optout
import msgctl.commands.profile
import msgctl.commands.sms
import msgctl.http.client
import msgctl.jobs.runner  # with all that a command loads
from msgctl.cli import main as cli
from msgctl.cli.context import Context

ENVIRONMENT = {"MSGCTL_BASE_URL": "https://service.example/api/v1", "MSGCTL_CLIENT": "3", "MSGCTL_KEY": "the-key"}
MAX_SECONDS = 60
"""A command that runs for longer is killed."""


class Service(httpx.BaseTransport):
    """In place of the network: accepts each message for one credit, and notes it before it responds.

    It refuses a request to a phone that ends with 7, but accepts the next one.
    """

    def __init__(self, notes: Path) -> None:
        self.notes = notes
        self._lock = Lock()

    def handle_request(self, request: httpx.Request) -> httpx.Response:
        content = request.read().decode()
        request.extensions["sent"] = True
        if request.method == "GET":
            return httpx.Response(200, json={"status": 1_000_000})
        phones = parse_qs(content)["phone"][0].split(",")
        with self._lock:
            refused = self.noted("refused")
            outcome = "refused" if any(each[-1] == "7" and not refused[each] for each in phones) else "accepted"
            with self.notes.open("ab", buffering=0) as file:
                file.write(f"{outcome} {','.join(phones)}\n".encode())
        time.sleep(0.002)  # so that several requests are in flight
        if outcome == "refused":
            return httpx.Response(520, json={"error": "BUSY", "msg": "not now"})
        entries = [{"id": f"m{each}", "status": "queued", "credits": 1, "phone": each} for each in phones]
        return httpx.Response(200, json={"id": f"d{phones[0]}", "status": 1, "data": entries})

    def noted(self, outcome: str) -> Counter[str]:
        """Return how often each phone was in a request with this outcome."""
        lines = [line.split() for line in self.notes.read_text().splitlines()]
        return Counter(phone for noted, phones in lines if noted == outcome for phone in phones.split(","))


@dataclass(frozen=True)
class Run:
    """A command line that was run: its exit code, negative after a signal, and what it printed."""

    arguments: Sequence[str]
    code: int
    out: str
    err: str

    @property
    def document(self) -> Any:
        return json.loads(self.out)


class Machine:
    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.disk = folder / "disk"
        self.service = Service(folder / "service")
        self.disk.mkdir(exist_ok=True)
        self.service.notes.touch()

    def run(self, *arguments: str, stdin: bytes = b"", number: object = "", later: float = 0.0) -> Run:
        """Run a command line, ``later`` by some seconds. Its output is also in ``NUMBER.out`` and ``NUMBER.err``."""
        out, err, loaded = (self.folder / f"{number}.{name}" for name in ("out", "err", "loaded"))
        child = os.fork()
        if not child:
            code = 99
            try:
                signal.alarm(MAX_SECONDS)
                code = self._run(arguments, out.open("wb", buffering=0), err.open("wb", buffering=0), stdin, later)
                loaded.write_text("\n".join(sys.modules))
            finally:
                os._exit(code)
        code = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
        for module in {*loaded.read_text().split()} - sys.modules.keys() if loaded.exists() else ():
            with suppress(ImportError):
                import_module(module)  # so that the next command need not load it
        return Run(arguments, code, out.read_text(), err.read_text())

    def look(self, *arguments: str) -> Run:
        """Run a command line that only reads, in this process, which is faster."""
        out, err = io.BytesIO(), io.BytesIO()
        code = self._run(arguments, out, err)
        return Run(arguments, code, out.getvalue().decode(), err.getvalue().decode())

    def _run(
        self, arguments: Sequence[str], out: IO[bytes], err: IO[bytes], stdin: bytes = b"", later: float = 0.0
    ) -> int:
        streams = [io.TextIOWrapper(each, "utf-8", "backslashreplace", write_through=True) for each in (out, err)]
        context = Context(
            stdin=io.TextIOWrapper(io.BytesIO(stdin)),
            stdout=streams[0],
            stderr=streams[1],
            environ={} if arguments[0] == "profile" else ENVIRONMENT,
            clock=lambda: time.time() + later,
        )
        try:
            return cli.run(arguments, context)
        finally:
            for each in streams:
                each.detach()


@contextmanager
def ready(folder: Path) -> Iterator[Machine]:
    """Make this process ready to fork commands, which keep their files in directories that do not exist yet."""
    machine = Machine(folder)
    variables = {
        "HOME": str(machine.disk),
        "XDG_STATE_HOME": str(machine.disk / "local" / "state"),
        "XDG_CONFIG_HOME": str(machine.disk / "config"),
    }
    build = lru_cache(cli.build)  # once: it takes longer than most commands
    network = mock.patch.object(msgctl.http.client, "NetworkTransport", return_value=machine.service)
    with mock.patch.dict(os.environ, variables), mock.patch.object(cli, "build", build), network:
        cli.build()
        gc.freeze()  # a collection would copy the memory of each fork
        yield machine
