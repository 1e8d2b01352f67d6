"""A PostgreSQL server on loopback, in a temporary directory, that a test may stop, kill and start again."""

from __future__ import annotations

import base64
import fcntl
import hashlib
import hmac
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
from msgctl.store.move import PRIMARY_KEYS
from msgctl.store.store import open_store
from msgctl.store.upgrades import VERSION
from support import PATIENCE, programs

SUPERUSER, USER, TLS_USER, README_USER, FLEET_USER = "admin", "app", "secure", "msgctl", "shop1"
ACCESS = f"""host all {SUPERUSER},{USER},{README_USER},{FLEET_USER} 127.0.0.1/32 scram-sha-256
hostssl all {TLS_USER} 127.0.0.1/32 scram-sha-256
"""
SETTINGS = (
    "listen_addresses='127.0.0.1'",
    "unix_socket_directories=''",
    "fsync=off",
    "shared_buffers=16MB",
    "ssl=on",
)
_SHAPE = """SELECT relname, relnatts, relowner::regrole::text FROM pg_class
    WHERE relnamespace = to_regnamespace('msgctl') ORDER BY relname"""
"""The tables, indexes and sequences of a store."""
_DELETIONS = "; ".join(
    [
        *(f"DELETE FROM msgctl.{table}" for table in (*PRIMARY_KEYS, "meta")),
        f"INSERT INTO msgctl.meta VALUES ('id', md5(random()::text)), ('version', '{VERSION}')",
        "SELECT setval(oid, 1, false) FROM pg_class WHERE relnamespace = 'msgctl'::regnamespace AND relkind = 'S'",
    ]
).encode()
"""Statements that leave a store as it is created."""
ACCOUNTS = ("postgres", "nobody")
"""Accounts to run the server if root runs the tests, because PostgreSQL does not run as root."""


class Cluster:
    """A server in a directory, with a database that belongs to `USER`, whose password is `KEY`."""

    def __init__(self, directory: Path, database: str = "messages") -> None:
        self._data = directory / "data"
        self._user = next(filter(_exists, ACCOUNTS)) if os.geteuid() == 0 else None
        self.database = database
        self._shape: list[Any] = []

    @property
    def _id(self) -> Path:
        """The file that exists while the server runs. Its first line is the process ID."""
        return self._data / "postmaster.pid"

    @property
    def port(self) -> int:
        return int(self._id.read_text().splitlines()[3])

    def create(self, *settings: str) -> None:
        directory = self._data.parent
        password = directory / "password"
        password.write_text(KEY, encoding="utf-8")
        directory.chmod(0o700)
        if self._user:
            shutil.chown(directory, self._user)
            shutil.chown(password, self._user)
        self._run(
            *("initdb", "--username", SUPERUSER, "--pwfile", str(password)),
            *("--auth", "scram-sha-256", "--encoding", "UTF8", "--locale", "C", "--no-sync"),
        )
        with socket.create_server(("127.0.0.1", 0)) as free:
            port = free.getsockname()[1]
        with (self._data / "postgresql.conf").open("a") as file:
            file.writelines(f"{setting}\n" for setting in (*SETTINGS, *settings, f"port={port}"))
        certificate = trustme.CA().issue_cert("127.0.0.1")
        certificate.private_key_pem.write_to_path(self._data / "server.key")
        certificate.cert_chain_pems[0].write_to_path(self._data / "server.crt")
        (self._data / "server.key").chmod(0o600)
        if self._user:
            shutil.chown(self._data / "server.key", self._user)
        (self._data / "pg_hba.conf").write_text(ACCESS)
        self.start()
        roles = [f"CREATE ROLE {user} LOGIN PASSWORD '{_VERIFIER}'" for user in (USER, TLS_USER)]
        self.admin(f"ALTER ROLE {SUPERUSER} PASSWORD '{_VERIFIER}'", *roles, database="postgres")

    def _run(self, name: str, *arguments: str) -> None:
        command = (program(name), "--pgdata", str(self._data), *arguments)
        done = subprocess.run(command, user=self._user, capture_output=True, check=False, cwd="/", timeout=PATIENCE)
        assert done.returncode == 0, (command, done.stdout, done.stderr)

    def url(
        self, user: str = USER, password: str = KEY, database: str = "", port: int = 0, tls: str = "disable"
    ) -> str:
        address = f"127.0.0.1:{port or self.port}/{database or self.database}?sslmode={tls}"
        return f"postgresql://{user}:{quote(password, safe='')}@{address}"

    def start(self) -> None:
        self._run("pg_ctl", "--wait", "--log", str(self._data.parent / "log"), "start")

    def create_database(self) -> None:
        """Create the database, in which only `USER` may create a schema."""
        self.admin(f"CREATE DATABASE {self.database} OWNER {USER}", database="postgres")

    def disconnect(self, *then: str) -> None:
        """End all sessions of `USER` with the database, and execute more statements."""
        self.admin(self._end_sessions, *then)

    @property
    def _end_sessions(self) -> str:
        return (
            "SELECT pg_terminate_backend(pid, 10000) FROM pg_stat_activity "
            f"WHERE usename = '{USER}' AND datname = '{self.database}'"
        )

    def empty(self) -> None:
        self.disconnect("DROP SCHEMA IF EXISTS msgctl CASCADE")

    def clear(self) -> None:
        """Leave a store without rows. The tables that this process created stay, because new ones take 60 ms."""
        with psycopg.connect(self.url(SUPERUSER), autocommit=True) as db:
            db.execute(self._end_sessions)
            if [os.getpid(), *db.execute(_SHAPE)] == self._shape:
                db.execute(_DELETIONS)
            else:
                db.execute("DROP SCHEMA IF EXISTS msgctl CASCADE")
                open_store(self.url()).close()
                self._shape = [os.getpid(), *db.execute(_SHAPE)]  # a fork may have a mutant

    def admin(self, *statements: str, database: str = "") -> list[Any]:
        """Execute statements with all rights, and return the rows of the last one."""
        with psycopg.connect(self.url(SUPERUSER, database=database), autocommit=True) as db:
            for each in statements:
                cursor = db.execute(each)
            return cursor.fetchall() if cursor.description else []

    @contextmanager
    def altered(self, *changes: str) -> Iterator[None]:
        """Alter the database for the time of a block, for example with ``SET client_encoding = 'LATIN1'``."""
        here = f"ALTER DATABASE {self.database}"
        self.admin(*(f"{here} {change}" for change in changes))
        try:
            yield
        finally:
            self.admin("SET default_transaction_read_only = off", f"{here} RESET ALL", f"{here} CONNECTION LIMIT -1")

    @contextmanager
    def lending_names(self) -> Iterator[None]:
        """Let one test at a time create the database and the roles of README and the manual; then remove them."""
        with (self._data.parent / "names").open("w") as lock:
            fcntl.flock(lock, fcntl.LOCK_EX)
            try:
                yield
            finally:
                drop_roles = f"DROP ROLE IF EXISTS {FLEET_USER}, {README_USER}"
                self.admin("DROP DATABASE IF EXISTS msgctl WITH (FORCE)", drop_roles, database="postgres")

    def stop(self) -> None:
        """Stop the server immediately if it is running."""
        if self._id.exists():
            self._run("pg_ctl", "--wait", "--mode", "immediate", "stop")

    def kill(self) -> None:
        """Kill all processes of the server, as a power cut does."""
        pid = int(self._id.read_text().split()[0])
        children = Path(f"/proc/{pid}/task/{pid}/children").read_text().split()
        for each in (pid, *map(int, children)):
            with suppress(ProcessLookupError):
                os.kill(each, signal.SIGKILL)
        while Path(f"/proc/{pid}").exists():
            time.sleep(0.05)
        self._id.unlink()


def program(name: str) -> str:
    """Return the path of one of the server's programs. Without it the test is skipped, or fails if it is required."""
    found = sorted(Path("/usr/lib/postgresql").glob(f"*/bin/{name}"), key=lambda path: float(path.parents[1].name))
    return str(found[-1]) if found else programs.program(name)


def _exists(account: str) -> bool:
    with suppress(KeyError):
        return bool(pwd.getpwnam(account))
    return False


def _verifier(password: str) -> str:
    """Return what the server stores for a password (RFC 5803), with one iteration: 4,096 take 4 ms per connection."""
    salt = bytes(16)
    salted = hashlib.pbkdf2_hmac("sha256", password.encode(), salt, 1)
    client, server = (hmac.digest(salted, name, "sha256") for name in (b"Client Key", b"Server Key"))
    parts = [base64.b64encode(part).decode() for part in (salt, hashlib.sha256(client).digest(), server)]
    return f"SCRAM-SHA-256$1:{parts[0]}${parts[1]}:{parts[2]}"


_VERIFIER = _verifier(KEY)


@contextmanager
def running(*settings: str) -> Iterator[Cluster]:
    """A server with these settings, such as ``fsync=on``, and an empty database."""
    with tempfile.TemporaryDirectory(prefix="msgctl-postgres-", dir="/tmp") as directory:
        cluster = Cluster(Path(directory))
        try:
            cluster.create(*settings)
            cluster.create_database()
            yield cluster
        finally:
            cluster.stop()


def shared(directory: Path, database: str) -> Cluster:
    """Return the server in a directory, with a new database. The first caller starts the server."""
    cluster = Cluster(directory, database)
    with (directory / "lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not (directory / "data").exists():
            cluster.create()
    cluster.create_database()
    return cluster
