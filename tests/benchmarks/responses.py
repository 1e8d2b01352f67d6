"""Processor time and peak memory of msgctl with responses that are costly to process, and as large as allowed.

Run it as ``python tests/benchmarks/responses.py [COMMAND...]``; without names, all commands: balance, state, send,
stats, api, job. Each response is sent by a server on loopback. It has 16 MiB (and is refused), or it is just below the
limit of the request. The limits are 2 s and 256 MiB for a command, and 512 MiB for a job.
"""

from __future__ import annotations

import contextlib
import os
import pty
import socketserver
import subprocess
import sys
import tempfile
import threading
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import NamedTuple

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from msgctl import operations as ops
from msgctl.http.request import build

MIB = 2**20
CONNECTIONS = 64
BATCH = 100
PHONES = [str(573_000_000_000 + number) for number in range(BATCH)]
TEXT = "Hola, su pedido sale hoy 😀"
MAX_SECONDS = 2.0
MAX_COMMAND = 256
MAX_JOB = 512
PEAK = """
import os, sys
child = os.posix_spawnp(sys.argv[2], sys.argv[2:], os.environ)
_, status, usage = os.wait4(child, 0)
processor = 1000 * (usage.ru_utime + usage.ru_stime)
os.write(int(sys.argv[1]), b"%d %d %d" % (usage.ru_maxrss, processor, os.waitstatus_to_exitcode(status)))
"""
"""Runs a command from a small process, because a child counts the memory of its parent."""

FILLINGS = {
    "strings": (b'{"status":1,"id":"d","state":"sent","urlShort":"u","data":[', b'"ab",', b'"ab"]}'),
    "entries": (b"[", b'{"id":1},', b'{"id":1}]'),
    "entries in data": (b'{"status":1,"id":"d","data":[', b'{"id":1},', b'{"id":1}]}'),
    "newlines": (b"", b"\n", b'{"status":1,"id":"d","state":"sent","urlShort":"u"}'),
    "digits": (b'{"id":"d","urlShort":"u","state":"sent","status":', b"1", b"}"),
    "numbers": (b'{"status":1,"id":"d","state":"sent","urlShort":"u","more":[', b"1234,", b"1]}"),
    "nesting": (b'{"status":1,"id":"d","urlShort":"u","more":' + b"[" * 900, b"[[]],", b"1" + b"]" * 900 + b"}"),
    "brackets": (b'{"status":', b"[", b""),
    "objects": (b'{"status":1,"id":"d","state":"sent","urlShort":"u","more":[', b'{"":{}},', b"1]}"),
    "metrics": (b'{"urlShort":"u","status":1,"state":"sent","metrics":[', b'{"city":{}},', b'{"city":{}}]}'),
    "categories": (b'{"urlShort":"u","status":1,"state":"sent","metrics":{', b'"%07d":{},', b'"city":{}}}'),
    "fields": (b'{"status":1,"id":"d","state":"sent","urlShort":"u",', b'"%07d":1,', b'"data":[{}]}'),
    "fields of entries": (b'{"status":1,"id":"d","data":[', b'{"%07d":1},', b"{}]}"),
    "a long id": (b'{"status":1,"urlShort":"u","state":"sent","data":[' + b"{}," * 1000 + b'{}],"id":"', b"x", b'"}'),
    "controls": (b'{"status":1,"urlShort":"u","state":"sent","id":"', b"\xc2\x9b", b'"}'),
    "escapes": (b'{"status":1,"urlShort":"u","state":"sent","id":"', b"\\ud83d\\ude00", b'"}'),
    "emoji": ('{"status":1,"urlShort":"u","state":"sent","id":"😀'.encode(), b"x", b'"}'),
    "the key": (b'{"status":1,"id":"d","state":"sent","urlShort":"u","more":[', b'"key-of-account",', b"1]}"),
    "a long text": (b'{"status":1,"urlShort":"u","state":"sent","data":[{"id":1,"sms":"', b"hello ", b'"}]}'),
    "a long line": (b'{"status":1,"urlShort":"u","state":"sent","data":[{"id":1,"sms":"', b"x", b'"}]}'),
    "masked numbers": (b'{"status":1,"urlShort":"u","state":"sent","data":[{"id":1,"phone":"', b"5*%07d,", b'5"}]}'),
    "errors": (b'{"error":[', b'"a",', b'1],"msg":""}'),
}  # fmt: skip
"""Content of responses: beginning, the piece that is repeated, and the end."""


def body_of(name: str, size: int) -> bytes:
    """Return a response of almost ``size`` bytes."""
    head, piece, tail = FILLINGS[name]
    room = size - len(head) - len(tail)
    if b"%" not in piece:
        return head + piece * (room // len(piece)) + tail
    return head + b"".join(piece % number for number in range(room // len(piece % 0))) + tail


class Responder(socketserver.StreamRequestHandler):
    """Responds to each request with the body of the server."""

    disable_nagle_algorithm = True

    def handle(self) -> None:
        with contextlib.suppress(OSError):
            while True:
                length = 0
                while (line := self.rfile.readline()).strip():
                    name, _, value = line.partition(b":")
                    length = int(value) if name.lower() == b"content-length" else length
                if not line:
                    return
                self.rfile.read(length)
                body: bytes = self.server.body  # type: ignore[attr-defined]
                self.wfile.write(b"HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n" % len(body) + body)


class Server(socketserver.ThreadingTCPServer):
    daemon_threads = True
    request_queue_size = 256
    body = b""


@contextlib.contextmanager
def serving() -> Iterator[Server]:
    with Server(("127.0.0.1", 0), Responder) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield server
        server.shutdown()


class Command(NamedTuple):
    """A command, the limit of its response, and whether it is a job."""

    arguments: Sequence[str]
    limit: int
    is_job: bool = False


def commands(folder: Path) -> dict[str, Command]:
    people = folder / "people.csv"
    people.write_text("phone\n" + "\n".join(str(573_000_000_000 + number) for number in range(CONNECTIONS * BATCH)))
    options = ("--batch-size", str(BATCH), "--concurrency", str(CONNECTIONS), "--yes")
    send = build(ops.SEND_SMS, {"phone": PHONES, "sms": TEXT}).max_response
    stats = build(ops.URL_STATISTIC, {"name-url": "a", "since": "2026-01-01", "until": "2026-12-31"}).max_response
    return {
        "balance": Command(("balance",), build(ops.BALANCE, {}).max_response),
        "state": Command(("state", "get", "m1"), build(ops.MESSAGES_STATE, {"id": "m1"}).max_response),
        "send": Command(("sms", "send", *PHONES, "-m", TEXT), send),
        "stats": Command(("url", "stats", "a", "--since", "2026-01-01", "--until", "2026-12-31"), stats),
        "api": Command(("api", "/anything"), 4 * MIB),
        "job": Command(("sms", "bulk", str(people), "-m", TEXT, *options), send, is_job=True),
    }


def run(server: Server, arguments: Sequence[str], *, on_terminal: bool) -> tuple[float, float, int]:
    """Run msgctl; return its processor time in seconds, its peak memory in MiB, and its exit code."""
    home = tempfile.mkdtemp(dir=tempfile.gettempdir())
    environ = {name: value for name, value in os.environ.items() if not name.startswith(("MSGCTL_", "PYTHOND"))}
    environ |= {
        "HOME": home,
        "XDG_STATE_HOME": home,
        "MSGCTL_BASE_URL": f"http://127.0.0.1:{server.server_address[1]}/api/v1",
        "MSGCTL_CLIENT": "1",
        "MSGCTL_KEY": "key-of-account",
        "TERM": "xterm-256color",
    }
    outer, inner = pty.openpty()
    reader, writer = os.pipe()
    threading.Thread(target=_drain, args=(outer,), daemon=True).start()
    output = inner if on_terminal else subprocess.DEVNULL
    process = subprocess.Popen(
        [sys.executable, "-S", "-c", PEAK, str(writer), sys.executable, "-m", "msgctl", *arguments],
        env=environ, stdin=subprocess.DEVNULL, stdout=output, stderr=output, pass_fds=(writer,),
    )  # fmt: skip
    os.close(writer)
    os.close(inner)
    with os.fdopen(reader) as found:
        peak, processor, code = map(int, found.read().split())
    process.wait()
    return processor / 1000, peak / 1024, code


def _drain(terminal: int) -> None:
    with contextlib.suppress(OSError):
        while os.read(terminal, 65536):
            pass
    os.close(terminal)


def main(names: Sequence[str]) -> None:
    failed = 0
    with tempfile.TemporaryDirectory() as name, serving() as server:
        folder = Path(name)
        for what, command in commands(folder).items():
            if names and what not in names:
                continue
            forms = [["-o", "csv"], ["--json"], ["-o", "table"], []]
            if what == "api":
                forms = [["--json"], []]
            elif command.is_job:
                forms = [["--json"]]
            print(f"{what}, up to {command.limit:,} bytes:")
            for filling in os.environ.get("F", "").split(",") if os.environ.get("F") else FILLINGS:
                for size in (16 * MIB, command.limit):
                    server.body = body_of(filling, size)
                    for form in forms if size == command.limit else forms[:1]:
                        seconds, peak, code = run(server, [*command.arguments, *form], on_terminal=not form)
                        is_bad = peak > (MAX_JOB if command.is_job else MAX_COMMAND)
                        is_bad |= seconds > MAX_SECONDS and not command.is_job
                        failed += is_bad
                        where = " ".join(form) or "terminal"
                        size_shown = f"{len(server.body) / MIB:.2f} MiB"
                        print(
                            f"  {filling:18} {size_shown:>10} {where:10} {seconds:6.2f} s {peak:6.0f} MiB  exit {code}"
                            f"{'  OVER THE LIMIT' if is_bad else ''}",
                            flush=True,
                        )
    sys.exit(f"{failed} runs were over the limit" if failed else 0)


if __name__ == "__main__":
    main(sys.argv[1:])
