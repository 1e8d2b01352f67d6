"""Dispatches a second that a served sandbox makes on one core, for 64 clients at once, and where the time goes.

Run it as ``python tests/benchmarks/sandbox.py``; it needs ``taskset`` (util-linux) to keep the server on one core. It
prints the rate, checks that no credit was lost, and prints ratios within the run: the same emulator without HTTP, and
the same server without a state file's work (an unknown path).
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

from msgctl.sandbox import endpoints
from msgctl.sandbox.emulator import Emulator
from msgctl.sandbox.protocol import SandboxRequest

CLIENTS = 64
SECONDS = 5.0
FORM = {"content-type": "application/x-www-form-urlencoded"}
BODY = b"client=1&key=sandbox-key&phone=573001234567&sms=Hola"
HEAD = "POST %s HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Type: " + FORM["content-type"] + "\r\nContent-Length: %d\r\n\r\n"
CREDITS = 10_000_000


def main() -> None:
    with tempfile.TemporaryDirectory() as folder:
        bare = without_http(Path(folder) / "bare.sqlite3")
        pin = ["taskset", "-c", "0"] if shutil.which("taskset") else []
        options = ["--port", "0", "--json", "-q", "--credits", str(CREDITS), "--state", f"{folder}/served.sqlite3"]
        command = [*pin, sys.executable, "-m", "msgctl", "sandbox", "serve", *options]
        with subprocess.Popen(command, stdout=subprocess.PIPE) as server:
            assert server.stdout is not None
            base_url = json.loads(server.stdout.readline())["base_url"]
            before = cpu_seconds(server.pid)
            dispatches = rate(base_url, "/api/v1/send-sms")
            cpu = cpu_seconds(server.pid) - before
            left = balance(base_url)
            empty = rate(base_url, "/nothing")
            server.terminate()
    print(f"served, one core, {CLIENTS} clients: {dispatches / SECONDS:.0f} dispatches a second")
    print(f"by the processor time of the server: {dispatches / cpu:.0f} a second, whatever else this machine does")
    print(f"credits charged for {CREDITS - left} dispatches, {dispatches} were answered")
    print(f"the same emulator without HTTP: {bare * SECONDS / dispatches:.1f} times that")
    print(f"the same server without any work: {empty / dispatches:.1f} times that")


def cpu_seconds(pid: int) -> float:
    """The processor time of a process until now."""
    user, system = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[11:13]
    return (int(user) + int(system)) / os.sysconf("SC_CLK_TCK")


def without_http(path: Path) -> float:
    """Dispatches a second of the emulator alone."""
    emulator = Emulator(path, key="sandbox-key")
    endpoints.credit(emulator, credits=CREDITS)
    call = SandboxRequest("POST", "/api/v1/send-sms", "", FORM, BODY)
    done, started = 0, time.perf_counter()
    while (passed := time.perf_counter() - started) < 2:
        done += emulator.respond(call).status == 200
    emulator.close()
    return done / passed


def rate(base_url: str, path: str) -> int:
    """How many requests 64 clients make in the time of a measurement, each on a connection that it keeps."""
    host, _, port = base_url.split("/")[2].rpartition(":")
    request = (HEAD % (path, len(BODY))).encode() + BODY
    until = time.perf_counter() + SECONDS

    def client(_: int) -> int:
        done = 0
        with socket.create_connection((host, int(port))) as connection:
            while time.perf_counter() < until:
                connection.sendall(request)
                received = b""
                while not received.endswith(b"}\n"):
                    received += connection.recv(4096)
                done += 1
        return done

    with ThreadPoolExecutor(CLIENTS) as clients:
        return sum(clients.map(client, range(CLIENTS)))


def balance(base_url: str) -> int:
    with urllib.request.urlopen(f"{base_url}/balance?client=1&key=sandbox-key") as answer:
        return int(json.load(answer)["status"])


if __name__ == "__main__":
    main()
