"""A server for benchmarks of jobs: it responds to dispatches as fast as this language lets it, and counts them.

Run it as ``python responder.py SECONDS [RATE]``: the time it waits before each response, and the requests per second
that it allows (a bucket of RATE tokens; it turns the others away with 429). It prints its port. For every line on
its standard input it prints what arrived since the last one, as a JSON array: the time and size of each dispatch.
"""

from __future__ import annotations

import asyncio
import json
import sys
import time

HEAD = b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: %d\r\n\r\n%s"
ENTRY = b'{"id":"m%s","status":"queued","credits":1,"sms":"Hola","phone":"%s"}'
TURNED_AWAY = b"HTTP/1.1 429 Too Many Requests\r\nContent-Length: 0\r\n\r\n"
OTHER = b'{"status":100000000,"state":"delivered"}'


class Figures:
    """What arrived: how many messages, and the times of their requests with their sizes."""

    def __init__(self, rate: float) -> None:
        self.arrivals: list[tuple[float, int]] = []
        self._rate = rate
        self._tokens, self._filled = rate, time.monotonic()

    def is_allowed(self) -> bool:
        """Take a token for a request, if there is one."""
        now = time.monotonic()
        self._tokens = min(self._rate, self._tokens + (now - self._filled) * self._rate)
        self._filled = now
        if self._tokens < 1:
            return False
        self._tokens -= 1
        return True

    def told(self) -> str:
        told = json.dumps(self.arrivals)
        self.arrivals.clear()
        return told


class Responder(asyncio.Protocol):
    """One connection; requests come one after another."""

    def __init__(self, figures: Figures, seconds: float) -> None:
        self._figures = figures
        self._seconds = seconds
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
            self._take(read[:whole])

    def _take(self, request: bytes) -> None:
        at = request.find(b"phone=")
        body = OTHER
        if at >= 0 and not self._figures.is_allowed():
            self._write(TURNED_AWAY)
            return
        if at >= 0:
            end = request.find(b"&", at)
            phones = request[at + 6 : end if end >= 0 else None].split(b"%2C")
            self._figures.arrivals.append((time.monotonic(), len(phones)))
            body = b'{"id":"d","status":1,"data":[%s]}' % b",".join([ENTRY % (phone, phone) for phone in phones])
        response = HEAD % (len(body), body)
        if at >= 0 and self._seconds:
            self._loop.call_later(self._seconds, self._write, response)
        else:
            self._write(response)


async def serve(seconds: float, rate: float) -> None:
    figures = Figures(rate)
    loop = asyncio.get_running_loop()
    server = await loop.create_server(lambda: Responder(figures, seconds), "127.0.0.1", 0, backlog=1024)
    print(server.sockets[0].getsockname()[1], flush=True)
    while await loop.run_in_executor(None, sys.stdin.readline):
        print(figures.told(), flush=True)


if __name__ == "__main__":
    asyncio.run(serve(float(sys.argv[1]), float((*sys.argv, "inf")[2])))
