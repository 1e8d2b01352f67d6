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

from support import PATIENCE, programs
from support.jobs import numbers, of_phones
from support.postgres import Cluster
from support.relay import relaying
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

    def forward(source: socket.socket, target: socket.socket) -> None:
        with suppress(OSError):
            while chunk := source.recv(65536):
                time.sleep(seconds)
                target.sendall(chunk)
            target.shutdown(socket.SHUT_WR)

    def serve(client: socket.socket, server: socket.socket) -> None:
        for end in (client, server):
            end.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        responses = threading.Thread(target=forward, args=(server, client), daemon=True)
        responses.start()
        forward(client, server)
        responses.join(PATIENCE)

    with relaying(port, serve) as relay:
        yield relay


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
