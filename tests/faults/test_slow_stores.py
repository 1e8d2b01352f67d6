"""A slow store slows a job down, and never stops it: 400 people get their message within a minute."""

from __future__ import annotations

import socket
import subprocess
import threading
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path

import pytest

from support import programs
from support.jobs import numbers, of_phones
from support.postgres import Cluster
from support.server import Server
from support.tool import process

NUMBER = 400
SLOW_SYNC = """
#define _GNU_SOURCE
#include <dlfcn.h>
#include <unistd.h>
static int synced(const char *name, int file) {
    int (*real)(int) = (int (*)(int)) dlsym(RTLD_NEXT, name);
    usleep(1000000);
    return real(file);
}
int fsync(int file) { return synced("fsync", file); }
int fdatasync(int file) { return synced("fdatasync", file); }
"""


@pytest.fixture
def accepting() -> Iterator[Server]:
    server = Server()
    yield server
    server.stop()


ONE_MESSAGE: Sequence[str] = ("-m", "Hello")
OWN_MESSAGES: Sequence[str] = ("-m", "Hello {phone}")
"""A message for each person, so that each is a request."""


def send(service: Server, home: Path, environ: dict[str, str], options: Sequence[str]) -> None:
    file = of_phones(home, numbers(NUMBER))
    variables = {"MSGCTL_BASE_URL": service.base_url, "MSGCTL_CLIENT": "1", "MSGCTL_KEY": "a-key", **environ}
    done = process("sms", "bulk", file, "--yes", "--json", *options, env=variables)
    assert (done.code, done.document["accepted"]) == (0, NUMBER), done.err
    phones = [phone for request in service.requests(None) for phone in request.phones]
    assert sorted(phones) == numbers(NUMBER)


@contextmanager
def delayed(port: int, seconds: float) -> Iterator[int]:
    """A proxy to a port of this machine that delivers everything with a delay."""
    listener = socket.create_server(("127.0.0.1", 0))
    sockets = [listener]

    def forward(source: socket.socket, target: socket.socket) -> None:
        waiting: list[tuple[float, bytes]] = []
        changed = threading.Condition()

        def deliver() -> None:
            while True:
                with changed:
                    changed.wait_for(lambda: waiting)
                    at, chunk = waiting.pop(0)
                time.sleep(max(0.0, at - time.monotonic()))
                if not chunk:
                    with suppress(OSError):
                        target.shutdown(socket.SHUT_WR)
                    return
                with suppress(OSError):
                    target.sendall(chunk)

        threading.Thread(target=deliver, daemon=True).start()
        chunk = b"-"
        while chunk:
            chunk = b""
            with suppress(OSError):
                chunk = source.recv(65536)
            with changed:
                waiting.append((time.monotonic() + seconds, chunk))
                changed.notify()

    def accept() -> None:
        with suppress(OSError):
            while True:
                client = listener.accept()[0]
                server = socket.create_connection(("127.0.0.1", port))
                sockets.extend((client, server))
                for source, target in ((client, server), (server, client)):
                    source.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
                    threading.Thread(target=forward, args=(source, target), daemon=True).start()

    threading.Thread(target=accept, daemon=True).start()
    try:
        yield listener.getsockname()[1]
    finally:
        for each in sockets:
            with suppress(OSError):
                each.shutdown(socket.SHUT_RDWR)
            each.close()


@pytest.mark.slow
@pytest.mark.parametrize("options", [ONE_MESSAGE, (*ONE_MESSAGE, "--batch-size", "10"), OWN_MESSAGES])
def test_a_distant_database_slows_a_job_down_and_never_stops_it(
    accepting: Server, home: Path, postgres: Cluster, options: Sequence[str]
) -> None:
    with delayed(postgres.port, 0.05) as port:  # 100 ms for a statement and its result
        send(accepting, home, {"MSGCTL_STORE": postgres.url(port=port)}, options)


@pytest.mark.slow
@pytest.mark.parametrize("options", [ONE_MESSAGE, OWN_MESSAGES])
def test_a_disk_that_needs_a_second_for_a_sync_slows_a_job_down_and_never_stops_it(
    accepting: Server, home: Path, options: Sequence[str]
) -> None:
    (home / "sync.c").write_text(SLOW_SYNC)
    subprocess.run(
        [programs.program("cc"), "-shared", "-fPIC", "-o", "sync.so", "sync.c", "-ldl"], cwd=home, check=True
    )
    send(accepting, home, {"LD_PRELOAD": str(home / "sync.so")}, options)
