"""Run msgctl in copies of this process, which has loaded it: to start Python and load msgctl takes 0.2 seconds.

`tests/process` and `tests/faults` start Python instead: they test how a process begins and ends.
"""

from __future__ import annotations

import ast
import os
import signal
import socket
import sys
import tempfile
import threading
import time
from collections.abc import Mapping, Sequence
from functools import cache, partialmethod
from pathlib import Path

from conftest import SHARED
from msgctl.__main__ import console
from msgctl.cli.shell.context import Context
from support import PATIENCE

NO_PAUSES = "NO_PAUSES"
"""The variable that lets msgctl wait for no retry."""

CLIENT = f"""#!{sys.executable} -IS
import _socket, array, os, sys
client = _socket.socket(_socket.AF_UNIX)
client.connect({{address!r}})
client.sendmsg([b" "], [(_socket.SOL_SOCKET, _socket.SCM_RIGHTS, array.array("i", [0, 1, 2]))])
umask = os.umask(0)
client.sendall(repr((sys.argv[1:], os.getcwd(), umask, dict(os.environ))).encode())
client.shutdown(_socket.SHUT_WR)
os._exit(int(client.recv(4)))
"""


def fork(
    arguments: Sequence[str],
    streams: Sequence[int],
    environment: Mapping[str, str],
    directory: str | Path = ".",
    umask: int = 0o22,
) -> int:
    """Run a command line in a copy of this process with these standard streams. Return its process ID."""
    pid = os.fork()
    if pid:
        return pid
    if NO_PAUSES in environment:
        patient = Context.__init__
        Context.__init__ = partialmethod(patient, sleep=lambda _: None)  # type: ignore[method-assign, assignment]
    try:
        signal.alarm(int(PATIENCE))
        for number, stream in enumerate(streams):
            os.dup2(stream, number)
        os.closerange(3, max(int(path.name) for path in Path("/dev/fd").iterdir()) + 1)
        os.chdir(directory)
        os.umask(umask)
        os.environ.clear()
        os.environ.update(environment)
        time.tzset()
        sys.argv = ["msgctl", *arguments]
        for number, (name, mode) in enumerate((("stdin", "r"), ("stdout", "w"), ("stderr", "w"))):
            setattr(sys, name, open(number, mode, encoding="utf-8", closefd=False))  # noqa: SIM115
        console()
    except SystemExit as end:  # of a completion
        sys.stdout.flush()
        os._exit(int(end.code or 0))
    finally:
        os._exit(70)


class Process:
    """A command line that runs beside the test, without input."""

    def __init__(self, arguments: Sequence[str]) -> None:
        self._outputs = [tempfile.TemporaryFile() for _ in range(2)]  # noqa: SIM115
        with open(os.devnull, "rb") as nothing:  # noqa: PTH123
            streams = [nothing.fileno(), *(output.fileno() for output in self._outputs)]
            self._pid = fork(arguments, streams, {**os.environ})

    def signal(self, number: int) -> None:
        os.kill(self._pid, number)

    def end(self) -> tuple[int, str, str]:
        """Wait for its end. Return its exit code and what it printed."""
        code = os.waitstatus_to_exitcode(os.waitpid(self._pid, 0)[1])
        printed = []
        for output in self._outputs:
            output.seek(0)
            printed.append(output.read().decode())
            output.close()
        return code, printed[0], printed[1]


@cache
def program() -> str:
    """Return the text of an executable file that lets this process run msgctl for a shell."""
    address = str(Path(os.environ[SHARED]) / f"{os.getpid()}.socket")
    listener = socket.socket(socket.AF_UNIX)
    listener.bind(address)
    listener.listen()
    threading.Thread(target=_accept, args=(listener,), daemon=True).start()
    return CLIENT.format(address=address)


def _accept(listener: socket.socket) -> None:
    while True:
        connection, _ = listener.accept()
        threading.Thread(target=_run, args=(connection,), daemon=True).start()


def _run(connection: socket.socket) -> None:
    """Run a command line in a fork, and return its exit code to the client."""
    with connection:
        _, streams, _, _ = socket.recv_fds(connection, 1, 3)
        with connection.makefile("rb") as request:
            arguments, directory, umask, environment = ast.literal_eval(request.read().decode())
        pid = fork(arguments, streams, environment, directory, umask)
        for stream in streams:
            os.close(stream)
        code = os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])
        connection.sendall(str(code if code >= 0 else 128 - code).encode())
