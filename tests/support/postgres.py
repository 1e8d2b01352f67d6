"""A PostgreSQL server on loopback, in a temporary directory, that a test may stop, kill and start again."""

from __future__ import annotations

import fcntl
import os
import pwd
import shutil
import signal
import socket
import subprocess
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any
from urllib.parse import quote

import psycopg
import trustme

from conftest import KEY
from support import programs

SUPERUSER, USER, TLS_USER, README_USER = "admin", "app", "secure", "msgctl"
ACCESS = f"""host all {SUPERUSER},{USER},{README_USER} 127.0.0.1/32 scram-sha-256
hostssl all {TLS_USER} 127.0.0.1/32 scram-sha-256
"""
PATIENCE = 60.0
"""Maximum seconds for the server to start."""
ACCOUNTS = ("postgres", "nobody")
"""Accounts to run the server if root runs the tests, because PostgreSQL does not run as root."""


class Cluster:
    """A server with a database and a user, whose password is `KEY`."""

    def __init__(self, directory: Path, settings: tuple[str, ...] = (), database: str = "messages") -> None:
        self._data = directory / "data"
        self._settings = settings
        self.database = database
        self._user = next(each for each in ACCOUNTS if _exists(each)) if os.geteuid() == 0 else None
        self._server: subprocess.Popen[bytes] | None = None
        with socket.create_server(("127.0.0.1", 0)) as free:
            self.port: int = free.getsockname()[1]

    def initialize(self) -> None:
        """Create the files of the server."""
        directory = self._data.parent
        directory.chmod(0o700)
        if self._user:
            shutil.chown(directory, self._user)
        password = directory / "password"
        password.write_text(KEY, encoding="utf-8")
        if self._user:
            shutil.chown(password, self._user)
        self._run(
            *(program("initdb"), "--pgdata", str(self._data), "--username", SUPERUSER, "--pwfile", str(password)),
            *("--auth", "scram-sha-256", "--encoding", "UTF8", "--locale", "C", "--no-sync"),
        )
        password.unlink()
        certificate = trustme.CA().issue_cert("127.0.0.1")
        certificate.private_key_pem.write_to_path(self._data / "server.key")
        certificate.cert_chain_pems[0].write_to_path(self._data / "server.crt")
        (self._data / "server.key").chmod(0o600)
        if self._user:
            shutil.chown(self._data / "server.key", self._user)
        (self._data / "pg_hba.conf").write_text(ACCESS)

    def _run(self, *command: str) -> None:
        done = subprocess.run(command, user=self._user, capture_output=True, check=False, cwd="/", timeout=PATIENCE)
        assert done.returncode == 0, (command, done.stdout, done.stderr)

    def url(
        self, user: str = USER, password: str = KEY, database: str = "", port: int = 0, tls: str = "disable"
    ) -> str:
        """Return the URL for a user."""
        address = f"127.0.0.1:{port or self.port}/{database or self.database}?sslmode={tls}"
        return f"postgresql://{user}:{quote(password, safe='')}@{address}"

    def start(self) -> None:
        settings = (
            "listen_addresses=127.0.0.1",
            "unix_socket_directories=",
            "fsync=off",
            "shared_buffers=16MB",
            "ssl=on",
        )
        options = [part for each in (*settings, *self._settings) for part in ("-c", each)]
        with (self._data.parent / "log").open("ab") as log:
            self._server = subprocess.Popen(
                [program("postgres"), "-D", str(self._data), "-p", str(self.port), *options],
                user=self._user,
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                cwd="/",
            )
        deadline = time.monotonic() + PATIENCE
        while True:
            try:
                psycopg.connect(self.url(SUPERUSER, database="postgres")).close()
            except psycopg.OperationalError:
                assert self._server.poll() is None, self.log
                assert time.monotonic() < deadline, self.log
                time.sleep(0.05)
            else:
                return

    @property
    def log(self) -> str:
        return (self._data.parent / "log").read_text(errors="replace")

    def create_users(self) -> None:
        for user in (USER, TLS_USER):
            self.admin(f"CREATE ROLE {user} LOGIN PASSWORD {_literal(KEY)}", database="postgres")

    def create_database(self) -> None:
        """Create the database, in which only `USER` may create a schema."""
        self.admin(f"CREATE DATABASE {self.database} OWNER {USER}", database="postgres")

    def disconnect(self) -> None:
        """End the sessions of the user in the database."""
        self.admin(
            "SELECT pg_terminate_backend(pid, 10000) FROM pg_stat_activity "
            f"WHERE usename = '{USER}' AND datname = '{self.database}'"
        )

    def empty(self) -> None:
        """End the sessions of the user, and delete the tables."""
        self.disconnect()
        self.admin("DROP SCHEMA IF EXISTS msgctl CASCADE")

    def admin(self, *statements: str, database: str = "") -> list[Any]:
        """Execute statements with all rights, and return the rows of the last one."""
        with psycopg.connect(self.url(SUPERUSER, database=database), autocommit=True) as db:
            for each in statements:
                cursor = db.execute(each)
            return cursor.fetchall() if cursor.description else []

    def stop(self, number: int = signal.SIGQUIT) -> None:
        """Stop the server: at once (SIGQUIT), or after its sessions have been ended (SIGINT)."""
        if self._server:
            with suppress(ProcessLookupError):
                self._server.send_signal(number)
            self._server.wait(PATIENCE)
            self._server = None

    def kill(self) -> None:
        """Kill all processes of the server, as a power cut does."""
        assert self._server
        children = Path(f"/proc/{self._server.pid}/task/{self._server.pid}/children").read_text().split()
        for pid in (self._server.pid, *map(int, children)):
            with suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
        self._server.wait(PATIENCE)
        self._server = None
        (self._data / "postmaster.pid").unlink()
        time.sleep(0.05)


def program(name: str) -> str:
    """Return the path of one of the server's programs. Without it the test is skipped, or fails if it is required."""
    found = sorted(Path("/usr/lib/postgresql").glob(f"*/bin/{name}"), key=lambda path: float(path.parents[1].name))
    return str(found[-1]) if found else programs.program(name)


def _exists(account: str) -> bool:
    with suppress(KeyError):
        return bool(pwd.getpwnam(account))
    return False


def _literal(text: str) -> str:
    return "'" + text.replace("'", "''") + "'"


@contextmanager
def running(*settings: str) -> Iterator[Cluster]:
    """A server with these settings, such as ``fsync=on``, and an empty database."""
    with tempfile.TemporaryDirectory(prefix="msgctl-postgres-", dir="/tmp") as directory:
        cluster = Cluster(Path(directory), settings)
        cluster.initialize()
        try:
            cluster.start()
            cluster.create_users()
            cluster.create_database()
            yield cluster
        finally:
            cluster.stop()


def shared(directory: Path, database: str) -> Cluster:
    """Return the server in this directory, with a new database. The first process that calls this starts the server."""
    cluster = Cluster(directory, database=database)
    port = directory / "port"
    with (directory / "lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if port.exists():
            cluster.port = int(port.read_text())
        else:
            cluster.initialize()
            cluster.start()
            cluster.create_users()
            port.write_text(str(cluster.port))
    cluster.create_database()
    return cluster


def stop_shared(directory: Path) -> None:
    """Stop the server in this directory, if a process started it."""
    server = directory / "data" / "postmaster.pid"
    if server.exists():
        os.kill(int(server.read_text().split()[0]), signal.SIGQUIT)
        while server.exists():
            time.sleep(0.02)
