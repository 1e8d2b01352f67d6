"""Sockets under a time limit.

A limit on a whole exchange cannot be had from a socket's time-out alone: a server that sends a byte a second starts it
anew for ever. So the time-out is set to what is left of the time before each step.
"""

from __future__ import annotations

import io
import socket
import time
from typing import Any


class Deadline:
    """When something has to have ended, ``seconds`` from now."""

    def __init__(self, seconds: float) -> None:
        self.seconds = seconds
        self._end = time.monotonic() + seconds

    def left(self) -> float:
        """The seconds that are left. Raises TimeoutError where none are."""
        left = self._end - time.monotonic()
        if left <= 0:
            raise TimeoutError
        return left


class TooMuchError(Exception):
    """More came than is read."""


BUFFER = 32 * 1024
"""Bytes that are received at once, if there are as many: the answer about a hundred recipients."""

NEAR_ENOUGH = 0.01
"""Seconds that a limit may be passed by: setting a time-out anew for less is two system calls for nothing."""


def limit(connection: socket.socket, deadline: Deadline) -> None:
    """Let the next step of a connection end by a deadline. Raises TimeoutError where that has passed."""
    left = deadline.left()
    before = connection.gettimeout()
    if before is None or not left - NEAR_ENOUGH < before < left + NEAR_ENOUGH:
        connection.settimeout(left)


def send(connection: socket.socket, rest: memoryview, deadline: Deadline) -> None:
    """Send all of some bytes. Raises TimeoutError and OSError."""
    while rest:
        limit(connection, deadline)
        rest = rest[connection.send(rest) :]


class _Source(io.RawIOBase):
    """What comes over a connection, up to ``deadline`` and for ``allowed`` bytes."""

    def __init__(self, connection: socket.socket) -> None:
        self._connection = connection
        self.deadline: Deadline | None = None
        self.allowed = 0

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int | None:
        if self.deadline is None:
            return None  # nothing is awaited: only what is in the buffer already can be read
        if self.allowed <= 0:
            raise TooMuchError
        limit(self._connection, self.deadline)
        count = self._connection.recv_into(buffer)
        self.allowed -= count
        return count


class Incoming(io.BufferedReader):
    """What comes over a connection, in the shape that `http.client.HTTPResponse` reads: that of a socket, and its file.

    Reading raises TimeoutError, TooMuchError and OSError.
    """

    def __init__(self, connection: socket.socket) -> None:
        self._source = _Source(connection)
        super().__init__(self._source, BUFFER)

    def makefile(self, mode: str) -> Incoming:  # noqa: ARG002
        return self

    def close(self) -> None:
        """Leave it open: an answer closes its file where it ends, and the connection may bring another one."""

    def flush(self) -> None:
        """Do nothing: an answer that is thrown away flushes its file, which may be gone before it."""

    def expect(self, deadline: Deadline, most_bytes: int) -> None:
        """Let up to ``most_bytes`` more be received, until the deadline."""
        self._source.deadline = deadline
        self._source.allowed = most_bytes

    def has_more(self) -> bool:
        """Whether more was received than was read. From here on nothing is received until it is expected."""
        self._source.deadline = None
        return bool(self.peek(1))
