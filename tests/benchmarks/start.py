"""How long a short command takes, as multiples of a bare ``python -c pass`` or another tool in the same run.

Run it as ``python tests/benchmarks/start.py``. It installs msgctl and httpie into an environment of its own, compiles
everything, and serves the responses on loopback. Medians of 15 interleaved runs; what counts is the ratio, since every
machine has its own milliseconds.
"""

from __future__ import annotations

import os
import statistics
import subprocess
import sys
import tempfile
import threading
import time
import venv
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import NamedTuple

ROUNDS = 15
ROOT = Path(__file__).parent.parent.parent
BODY = b'{"status":1000}'
MIB = 1024
SEND = ("-q", "-p", "sandbox", "sms", "send", "573001234567", "-m", "Hello", "--json")
MEMORY = """
import os, sys
quiet = [(os.POSIX_SPAWN_OPEN, 1, "/dev/null", 1, 0)]
child = os.posix_spawnp(sys.argv[1], sys.argv[1:], os.environ, file_actions=quiet)
print(os.wait4(child, 0)[2].ru_maxrss)
"""
"""Runs a command from a small process, since a child is credited with the memory of its parent."""


class Responder(BaseHTTPRequestHandler):
    """Tells a balance."""

    protocol_version = "HTTP/1.1"

    def do_GET(self) -> None:
        self.send_response(200)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(BODY)))
        self.end_headers()
        self.wfile.write(BODY)

    def log_message(self, format: str, *args: object) -> None:
        pass


class Subject(NamedTuple):
    """A command that is measured, what it is compared with, and the most that is wanted of it."""

    name: str
    command: Sequence[str]
    most: float | None = None
    against: str = "python -c pass"


@contextmanager
def serving() -> Iterator[int]:
    server = ThreadingHTTPServer(("127.0.0.1", 0), Responder)
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    try:
        yield server.server_address[1]
    finally:
        server.shutdown()
        server.server_close()


def installed(folder: Path) -> Path:
    """The programs of a new environment with msgctl and httpie, all compiled."""
    venv.create(folder, with_pip=True)
    programs = folder / "bin"
    subprocess.run([programs / "pip", "install", "--quiet", "--compile", str(ROOT), "httpie"], check=True)
    return programs


def subjects(programs: Path, port: int) -> list[Subject]:
    """What is measured. The first is what the others are compared with."""
    msgctl, python = str(programs / "msgctl"), str(programs / "python")
    url = f"http://127.0.0.1:{port}/api/v1/balance?client=1&key=0123456789"
    return [
        Subject("python -c pass", [python, "-c", "pass"]),
        Subject("msgctl --version", [msgctl, "--version"], 1.8),
        Subject("msgctl --help", [msgctl, "--help"], 8.5),
        Subject("msgctl balance --json", [msgctl, "balance", "--json"]),
        Subject("msgctl balance", [msgctl, "balance"], 11.8),
        Subject("msgctl sms send --json", [msgctl, *SEND], 13.5),
        Subject("httpie", [str(programs / "http"), "--ignore-stdin", "GET", url]),
        Subject("… against httpie", [msgctl, "balance", "--json"], 0.47, "httpie"),
        Subject("httpx", [python, "-c", f"import httpx; print(httpx.get({url!r}).text)"]),
        Subject("… against httpx", [msgctl, "balance", "--json"], 1, "httpx"),
    ]


def run(command: Sequence[str], environment: Mapping[str, str]) -> float:
    """Run a command to its end, with its output in a pipe; the time it took, in seconds."""
    began = time.perf_counter()
    subprocess.run(command, env=environment, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, check=True)
    return time.perf_counter() - began


def memory(command: Sequence[str], environment: Mapping[str, str]) -> float:
    """The peak of a command's memory, in MiB."""
    done = subprocess.run(
        [sys.executable, "-S", "-c", MEMORY, *command], env=environment, capture_output=True, check=True
    )
    return int(done.stdout) / MIB


def measured(wanted: Sequence[Subject], environment: Mapping[str, str]) -> dict[str, float]:
    """The median of each, from rounds in which each runs once: what disturbs the machine disturbs all alike."""
    runs: dict[str, list[float]] = {each.name: [] for each in wanted}
    for number in range(ROUNDS + 2):
        for each in wanted:
            seconds = run(each.command, environment)
            if number >= 2:  # the first rounds warm up
                runs[each.name].append(seconds)
    return {name: statistics.median(several) for name, several in runs.items()}


def main() -> None:
    with tempfile.TemporaryDirectory() as name, serving() as port:
        folder = Path(name)
        environment = environment_for(folder, port)
        wanted = subjects(installed(folder / "environment"), port)
        found = measured(wanted, environment)
        for each in wanted:
            ratio = found[each.name] / found[each.against]
            verdict = "" if each.most is None else f"wanted {each.most:g}  {'ok' if ratio <= each.most else 'TOO SLOW'}"
            print(
                f"{each.name:24} {found[each.name] * 1000:7.1f} ms  {ratio:6.2f} x {each.against:15}"
                f" {memory(each.command, environment):5.1f} MiB  {verdict}"
            )


def environment_for(folder: Path, port: int) -> dict[str, str]:
    """Variables that lead to the server."""
    kept = {name: value for name, value in os.environ.items() if not name.startswith(("MSGCTL_", "PYTHON"))}
    return {
        **kept,
        "MSGCTL_CONFIG": str(folder / "config.toml"),
        "MSGCTL_BASE_URL": f"http://127.0.0.1:{port}/api/v1",
        "MSGCTL_CLIENT": "1",
        "MSGCTL_KEY": "0123456789",
        "XDG_STATE_HOME": str(folder / "state"),
    }


if __name__ == "__main__":
    main()
