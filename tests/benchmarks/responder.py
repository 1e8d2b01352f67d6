"""A fast server for the benchmarks of jobs. It records when requests to send arrive.

Run it as ``python responder.py SECONDS RATE``: it waits SECONDS before each response, and allows RATE requests per
second (a bucket of RATE tokens; it responds to the others with 429). It prints its port. For every line on standard
input, it prints the requests since the previous line: a JSON array of times and numbers of recipients.
"""

from __future__ import annotations

import asyncio
import json
import sys
import time

HEAD = b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: %d\r\n\r\n%s"
ENTRY = b'{"id":"m%s","status":"queued","credits":1,"sms":"Hola","phone":"%s"}'
TURNED_AWAY = b"HTTP/1.1 429 Too Many Requests\r\nContent-Length: 0\r\n\r\n"
OTHER = b'{"balance":100000000,"state":"delivered"}'
SECONDS, RATE = float(sys.argv[1]), float(sys.argv[2])

arrivals: list[tuple[float, int]] = []


class Bucket:
    """A bucket of tokens, one per allowed request, which fills at RATE."""

    def __init__(self) -> None:
        self._tokens, self._filled = RATE, time.monotonic()

    def take(self) -> bool:
        """Take a token for a request, if there is one."""
        now = time.monotonic()
        self._tokens = min(RATE, self._tokens + (now - self._filled) * RATE)
        self._filled = now
        is_allowed = self._tokens >= 1
        self._tokens -= is_allowed
        return is_allowed


class Responder(asyncio.Protocol):
    """One connection; requests come one after another."""

    bucket = Bucket()

    def __init__(self) -> None:
        self._loop = asyncio.get_running_loop()
        self._read = b""

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        assert isinstance(transport, asyncio.Transport)
        self._write = transport.write

    def data_received(self, data: bytes) -> None:
        self._read = read = self._read + data if self._read else data
        end = read.find(b"\r\n\r\n") + 4
        if end < 4:
            return
        at = read.lower().find(b"content-length:", 0, end)
        whole = end + (int(read[at + 15 : read.find(b"\r", at)]) if at >= 0 else 0)
        if len(read) >= whole:
            self._read = b""
            self._respond(read[:whole])

    def _respond(self, request: bytes) -> None:
        _, _, rest = request.partition(b"phone=")
        if not rest:
            self._write(HEAD % (len(OTHER), OTHER))
        elif self.bucket.take():
            phones = rest.partition(b"&")[0].split(b"%2C")
            arrivals.append((time.monotonic(), len(phones)))
            body = b'{"id":"d","status":1,"data":[%s]}' % b",".join([ENTRY % (phone, phone) for phone in phones])
            self._loop.call_later(SECONDS, self._write, HEAD % (len(body), body))
        else:
            self._write(TURNED_AWAY)


async def serve() -> None:
    loop = asyncio.get_running_loop()
    server = await loop.create_server(Responder, "127.0.0.1", 0, backlog=1024)
    print(server.sockets[0].getsockname()[1], flush=True)
    while await loop.run_in_executor(None, sys.stdin.readline):
        print(json.dumps(arrivals), flush=True)
        arrivals.clear()


asyncio.run(serve())
