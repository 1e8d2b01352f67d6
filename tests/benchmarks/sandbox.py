"""Dispatches a second that a served sandbox makes on one core, for 64 clients at once, and whether a credit was lost.

Run it as ``python tests/benchmarks/sandbox.py``; it needs ``taskset`` (util-linux) to keep the server on one core.
"""

from __future__ import annotations

import json
import os
import shutil
import socket
import subprocess
import sys
import tempfile
import time
import urllib.request
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

CLIENTS = 64
SECONDS = 5.0
BODY = b"client=1&key=sandbox-key&phone=573001234567&sms=Hola"
REQUEST = (
    "POST /api/v1/send-sms HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Type: application/x-www-form-urlencoded\r\n"
    f"Content-Length: {len(BODY)}\r\n\r\n"
).encode() + BODY
CREDITS = 10_000_000


def main() -> None:
    with tempfile.TemporaryDirectory() as folder:
        pin = ["taskset", "-c", "0"] if shutil.which("taskset") else []
        options = ["--port", "0", "--json", "-q", "--credits", str(CREDITS), "--state", f"{folder}/served.sqlite3"]
        command = [*pin, sys.executable, "-m", "msgctl", "sandbox", "serve", *options]
        with subprocess.Popen(command, stdout=subprocess.PIPE) as server:
            assert server.stdout is not None
            base_url = json.loads(server.stdout.readline())["base_url"]
            before = cpu_seconds(server.pid)
            dispatches = rate(base_url)
            cpu = cpu_seconds(server.pid) - before
            left = balance(base_url)
            server.terminate()
    print(f"served, one core, {CLIENTS} clients: {dispatches / SECONDS:.0f} dispatches a second")
    print(f"by the processor time of the server: {dispatches / cpu:.0f} a second, whatever else this machine does")
    print(f"credits charged for {CREDITS - left} dispatches, {dispatches} got a response")


def cpu_seconds(pid: int) -> float:
    """The processor time of a process until now."""
    user, system = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[11:13]
    return (int(user) + int(system)) / os.sysconf("SC_CLK_TCK")


def rate(base_url: str) -> int:
    """How many requests 64 clients make in the time of a measurement, each on a connection that it keeps."""
    host, _, port = base_url.split("/")[2].rpartition(":")
    until = time.perf_counter() + SECONDS

    def client(_: int) -> int:
        done = 0
        with socket.create_connection((host, int(port))) as connection:
            while time.perf_counter() < until:
                connection.sendall(REQUEST)
                received = b""
                while not received.endswith(b"}\n"):
                    received += connection.recv(4096)
                done += 1
        return done

    with ThreadPoolExecutor(CLIENTS) as clients:
        return sum(clients.map(client, range(CLIENTS)))


def balance(base_url: str) -> int:
    with urllib.request.urlopen(f"{base_url}/balance?client=1&key=sandbox-key") as response:
        return int(json.load(response)["status"])


if __name__ == "__main__":
    main()
