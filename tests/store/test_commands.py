"""What each command does if the store cannot be used: nothing is sent to people, and codes continue."""

from __future__ import annotations

import socket
import sqlite3
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from urllib.parse import quote

import pytest

from conftest import KEY
from msgctl.store.store import open_store
from store.campaigns import ANA, published
from support.commands import ALL, PHONE
from support.jobs import of_phones
from support.pooler import proxied
from support.postgres import Cluster
from support.service import Service, respond
from support.tool import Tool

TO_PEOPLE = ("sms send", "call send", "chatapp send", "chatapp order")
WITHOUT_STORE = ("2fa send-sms", "2fa send-call", "2fa send-chatapp", "block add", "2fa verify", "balance", "state get")
LOCAL = ("history", "usage", "job list", "job run-due", f"optout add {PHONE}", "optout list", "history clear --yes")
SECRETS = (KEY, quote(KEY, safe=""), "wr0ng-secret")

Place = Callable[[Path, pytest.FixtureRequest], Iterator[str]]
"""Prepares a store, and yields its path or URL."""


def _file(home: Path) -> Path:
    path = home / "broken" / "store.sqlite3"
    with closing(open_store(path)) as store:
        published(store, [ANA])
    return path


def empty(home: Path, _: pytest.FixtureRequest) -> Iterator[str]:
    path = _file(home)
    path.write_bytes(b"")
    yield str(path)


def text(home: Path, _: pytest.FixtureRequest) -> Iterator[str]:
    path = _file(home)
    path.write_bytes(b"a text of some length" * 99)
    yield str(path)


def foreign(home: Path, _: pytest.FixtureRequest) -> Iterator[str]:
    path = _file(home)
    path.unlink()
    with closing(sqlite3.connect(path)) as db:
        db.execute("CREATE TABLE job (number)")
    yield str(path)


def cut(home: Path, _: pytest.FixtureRequest) -> Iterator[str]:
    path = _file(home)
    path.write_bytes(path.read_bytes()[:9000])
    yield str(path)


def newer(home: Path, _: pytest.FixtureRequest) -> Iterator[str]:
    path = _file(home)
    with closing(open_store(path)) as store:
        store.db.change("UPDATE meta SET value = '99' WHERE name = 'version'")
    yield str(path)


def invalid_url(*_: object) -> Iterator[str]:
    yield f"postgresql://bob:{SECRETS[2]}host/db"


def _server(request: pytest.FixtureRequest) -> Cluster:
    cluster: Cluster = request.getfixturevalue("postgres")
    return cluster


def not_running(_: Path, request: pytest.FixtureRequest) -> Iterator[str]:
    yield _server(request).url(port=1)


def wrong_password(_: Path, request: pytest.FixtureRequest) -> Iterator[str]:
    yield _server(request).url(password=SECRETS[2])


def no_rights(_: Path, request: pytest.FixtureRequest) -> Iterator[str]:
    yield _server(request).url("secure", tls="require")


def foreign_schema(_: Path, request: pytest.FixtureRequest) -> Iterator[str]:
    _server(request).admin("CREATE SCHEMA msgctl")
    yield _server(request).url()


def missing_table(_: Path, request: pytest.FixtureRequest) -> Iterator[str]:
    open_store(_server(request).url()).close()
    _server(request).admin("DROP TABLE msgctl.result")
    yield _server(request).url()


def newer_schema(_: Path, request: pytest.FixtureRequest) -> Iterator[str]:
    open_store(_server(request).url()).close()
    _server(request).admin("UPDATE msgctl.meta SET value = '99' WHERE name = 'version'")
    yield _server(request).url()


def pooler(_: Path, request: pytest.FixtureRequest) -> Iterator[str]:
    with proxied(_server(request).port, shares_sessions=True) as port:
        yield _server(request).url(port=port)


def old_server(_: Path, request: pytest.FixtureRequest) -> Iterator[str]:
    with proxied(_server(request).port, version="13.14") as port:
        yield _server(request).url(port=port)


def content(location: str) -> bytes:
    """Return the content of a file, or nothing for a URL."""
    return Path(location).read_bytes() if Path(location).exists() else b""


@pytest.mark.parametrize(
    ("place", "code", "reason", "fix"),
    [
        (empty, 3, "damaged_store", "backup"),
        (text, 3, "damaged_store", "backup"),
        (foreign, 3, "damaged_store", "backup"),
        (cut, 3, "damaged_store", "backup"),
        (newer, 3, "newer_store", "Update this msgctl"),
        (invalid_url, 3, "configuration", "postgresql://user@host/database"),
        (not_running, 4, "store_not_reached", "running"),
        (wrong_password, 3, "configuration", "PGPASSWORD"),
        (no_rights, 3, "configuration", "GRANT CREATE"),
        (foreign_schema, 3, "configuration", "role that owns it"),
        (missing_table, 3, "damaged_store", "backup"),
        (newer_schema, 3, "newer_store", "Update this msgctl"),
        (pooler, 3, "configuration", "session mode"),
        (old_server, 3, "configuration", "14 or later"),
    ],
)
def test_without_the_store_nothing_is_sent_to_people_and_codes_continue(
    place: Place,
    code: int,
    reason: str,
    fix: str,
    service: Service,
    tool: Tool,
    home: Path,
    monkeypatch: pytest.MonkeyPatch,
    request: pytest.FixtureRequest,
) -> None:
    people = of_phones(home, [ANA])
    bulk = ("sms", "bulk", people, "-m", "Hola", "--yes")
    with contextmanager(place)(home, request) as location:
        monkeypatch.setenv("MSGCTL_STORE", location)
        before = content(location)
        for line in (*(ALL[name].line for name in TO_PEOPLE), bulk, *(each.split() for each in LOCAL)):
            done = tool(*line, "--json", "--timeout", "60")
            error = done.error
            assert (done.code, error["reason"], error["nothing_sent"]) == (code, reason, True), line
            assert fix in error["hint"], line
            assert not [secret for secret in SECRETS if secret in done.err], line
        assert service.received == []
        for name in WITHOUT_STORE:
            service.will(respond(ALL[name].record))
            done = tool(*ALL[name].line)
            assert (done.code, done.err.count("This command continues without it")) == (0, 1), done.err
            assert not [secret for secret in SECRETS if secret in done.err]
        assert content(location) == before


def test_a_store_that_is_lost_after_a_send_reports_the_outcome_and_keeps_the_key(
    service: Service, tool: Tool, postgres: Cluster, monkeypatch: pytest.MonkeyPatch
) -> None:
    def lose_the_store(connection: socket.socket) -> None:
        postgres.disconnect()
        respond(ALL["sms send"].record)(connection)

    monkeypatch.setenv("MSGCTL_STORE", postgres.url())
    service.will(lose_the_store)
    done = tool(*ALL["sms send"].line, "--once", "greeting")
    assert (done.code, PHONE in done.out) == (0, True)
    assert "Warning: The result is not stored under --once" in done.err
    again = tool(*ALL["sms send"].line, "--once", "greeting", "--json")
    assert (again.code, again.error["reason"], again.error["replayed"]) == (5, "outcome_unknown", True)
    assert [entry["outcome"] for entry in tool("history", "--json").document] == ["unknown"]
    assert len(service.received) == 1
