"""A move to another store keeps everything, can be interrupted anywhere, and closes the old store."""

from __future__ import annotations

import os
import shlex
import socket
import subprocess
from collections.abc import Callable
from contextlib import closing, suppress
from itertools import count
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from conftest import KEY
from msgctl.errors import ConditionError, ConfigurationError, MissingStoreError, UsageError
from msgctl.outcomes.outcome import Outcome
from msgctl.store import jobs, move, people, upgrades
from msgctl.store.move import PRIMARY_KEYS
from msgctl.store.owners import take
from msgctl.store.removal import discard
from msgctl.store.sends import Key, SendRecord, Single, StoredResult
from msgctl.store.store import open_store
from store.campaigns import ACCOUNT, ANA, EVA, LUIS, imported, intend, published, sent
from store.processes import KILLED, die_after, status_of
from support.commands import ALL
from support.jobs import of_phones
from support.service import Service, respond
from support.tool import Tool

if TYPE_CHECKING:
    from support.postgres import Cluster

GREETING = Single(ACCOUNT, "main", "sms send", '{"sms": "¡Hola 🎉!"}', [ANA], is_contact=True, digest=b"\0greeting")
KEY_OF_GREETING = Key("greeting", b"digest", 1)


@pytest.fixture
def elsewhere(location: str, tmp_path: Path, cluster: Cluster) -> str:
    """A store of the other kind."""
    if location.startswith("postgresql:"):
        return str(tmp_path / "elsewhere.sqlite3")
    cluster.empty()
    return cluster.url()


@pytest.fixture
def full(location: str) -> str:
    """A store with a row in each table that is still in use: a paused job, one with an end, a key and opt-outs."""
    with closing(open_store(location)) as store:
        sent(store, published(store, [ANA, LUIS, EVA], name="done").number, {LUIS: "refused"})
        paused = published(store, [ANA, EVA], name="paused", message="Adiós")
        sending = take(store, paused.number)
        intend(sending, size=1)
        people.add_optouts(store, [(EVA, "sms"), (LUIS, "all")])
        record = SendRecord(store, GREETING, KEY_OF_GREETING)
        assert record.begin() is None
        record.end([Outcome(ANA, "accepted", "id-1")], StoredResult(0, 200, b"\0{}"))
        # The end of this process leaves a request in flight.
    return location


def moved(old: str, new: str) -> None:
    with closing(open_store(old, is_moving=True)) as source, closing(open_store(new, is_moving=True)) as target:
        move.move(source, target, new, lambda: None)


def rows_of(location: str) -> dict[str, list[object]]:
    with closing(open_store(location, is_moving=True)) as store:
        columns = {table: ", ".join(store.db.columns(table)) for table in PRIMARY_KEYS}
        return {
            table: sorted(store.db.rows(f"SELECT {columns[table]} FROM {table}"), key=repr) for table in PRIMARY_KEYS
        }


def is_usable(location: str) -> bool:
    """Return whether messages can be sent with a store."""
    with suppress(ConfigurationError):
        open_store(location).close()
        return True
    return False


def test_every_table_is_moved() -> None:
    created = {
        statement.split()[2]
        for step in upgrades.STEPS
        for statement in upgrades.statements(step)
        if statement.startswith("CREATE TABLE")
    }
    dropped = {
        statement.split()[-1]
        for step in upgrades.STEPS
        for statement in upgrades.statements(step)
        if statement.startswith("DROP TABLE")
    }
    assert created - dropped == {*PRIMARY_KEYS}


def test_a_move_killed_at_any_change_is_finished_by_the_same_command_and_nothing_sends_meanwhile(
    full: str, elsewhere: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(move, "PAGE", 2)
    before = rows_of(full)
    assert all(before[table] for table in PRIMARY_KEYS if table != "usage")
    open_store(elsewhere).close()

    def attempt(changes: int) -> int:
        if pid := os.fork():
            return status_of(pid)
        with suppress(BaseException):
            source, target = open_store(full, is_moving=True), open_store(elsewhere, is_moving=True)
            die_after([source.db, target.db], changes)
            move.move(source, target, elsewhere, lambda: None)
            os._exit(0)
        os._exit(1)

    is_closed = False
    for changes in count(1):
        status = attempt(changes)
        is_closed |= not is_usable(full)
        assert is_closed != is_usable(full)
        if is_closed and is_usable(elsewhere):
            assert rows_of(elsewhere) == before
        if status == 0:
            break
        assert status == KILLED
    assert changes > 10
    assert (is_usable(full), is_usable(elsewhere), rows_of(elsewhere)) == (False, True, before)
    moved(full, elsewhere)  # again: it is complete
    with closing(open_store(elsewhere)) as store:
        assert jobs.find(store, "paused").shown_state == "paused"
        assert sent(store, jobs.find(store, "paused").number, {}) == []
        assert SendRecord(store, GREETING, KEY_OF_GREETING).begin() == StoredResult(0, 200, b"\0{}", "", "")
        new = published(store, [ANA], message="Otro")
        assert new.number > max(int(str(row[0])) for row in before["job"] if isinstance(row, tuple))


def test_a_store_in_use_or_one_that_is_not_empty_is_not_moved(full: str, elsewhere: str, tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="is the store in use"):
        moved(full, full)
    with closing(open_store(full)) as store:
        importing = imported(store, [ANA])
        with pytest.raises(UsageError, match="is running"):
            moved(full, elsewhere)
        discard(store, importing)
    assert is_usable(full)
    assert is_usable(elsewhere)
    other = str(tmp_path / "other.sqlite3")
    with closing(open_store(other)) as store:
        people.add_optouts(store, [(ANA, "all")])
    with pytest.raises(UsageError, match="is not empty"):
        moved(full, other)
    moved(full, elsewhere)
    with pytest.raises(UsageError, match="is not empty"):
        moved(elsewhere, full)
    with pytest.raises(ConfigurationError, match="was moved to"):
        moved(full, str(tmp_path / "third.sqlite3"))
    moved(elsewhere, str(tmp_path / "fourth.sqlite3"))


def test_a_store_is_not_moved_while_a_message_is_sent_under_a_key(full: str, elsewhere: str) -> None:
    before = rows_of(full)
    with closing(open_store(full)) as store:
        record = SendRecord(store, GREETING, Key("other", b"digest", 1))
        assert record.begin() is None
        with pytest.raises(UsageError, match="A message is being sent on"):
            moved(full, elsewhere)
        record.end([Outcome(ANA, "accepted", "id-2")], StoredResult(0, 200, b"{}"))
    assert is_usable(full)
    assert len(rows_of(full)["once"]) == len(before["once"]) + 1
    moved(full, elsewhere)
    assert is_usable(elsewhere)


def test_a_move_that_was_interrupted_is_only_continued_with_the_same_stores(
    full: str, elsewhere: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    third = str(tmp_path / "third.sqlite3")
    open_store(third).close()
    before = rows_of(full)
    with monkeypatch.context() as change:
        change.setattr(move, "_check_counts", lambda *_: 1 / 0)
        with pytest.raises(ZeroDivisionError):
            moved(full, elsewhere)
    assert (is_usable(full), is_usable(elsewhere)) == (False, False)
    with pytest.raises(UsageError, match="is not empty"):
        moved(third, elsewhere)
    for other in (third, full):
        with pytest.raises(ConfigurationError, match="Not everything has arrived"):
            moved(elsewhere, other)
    assert (is_usable(full), is_usable(elsewhere), is_usable(third)) == (False, False, True)
    moved(full, elsewhere)
    assert rows_of(elsewhere) == before


def test_a_store_moves_back_after_the_command_that_deletes_the_closed_one(
    full: str, elsewhere: str, cluster: Cluster
) -> None:
    before = rows_of(full)
    moved(full, elsewhere)
    with pytest.raises(UsageError, match="closed store, which was moved to") as refused:
        moved(elsewhere, full)
    removal = str(refused.value.hint).splitlines()[-1]
    if removal.startswith("rm "):
        subprocess.run(shlex.split(removal), check=True)
    else:
        cluster.disconnect(removal)
    moved(elsewhere, full)
    assert (is_usable(full), is_usable(elsewhere), rows_of(full)) == (True, False, before)


def test_a_process_that_opened_the_store_before_the_move_writes_nothing_more(full: str, elsewhere: str) -> None:
    with closing(open_store(full)) as store:
        paused = jobs.find(store, "paused").number
        moved(full, elsewhere)
        actions: list[Callable[[], object]] = [
            SendRecord(store, GREETING).begin,
            lambda: take(store, paused),
            lambda: people.add_optouts(store, [(ANA, "all")]),
        ]
        for action in actions:
            with pytest.raises(ConfigurationError, match="was moved to"):
                action()


def test_two_processes_do_not_move_a_store_at_once(full: str, elsewhere: str, monkeypatch: pytest.MonkeyPatch) -> None:
    with monkeypatch.context() as change:
        change.setattr(move, "_check_counts", lambda *_: moved(full, elsewhere))
        with pytest.raises(ConditionError, match="Another process"):
            moved(full, elsewhere)
    moved(full, elsewhere)


def test_a_store_is_moved_to_postgresql_and_back_and_the_profile_follows(
    service: Service, tool: Tool, cluster: Cluster, home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    cluster.empty()
    service.always(respond(ALL["sms send"].record))
    people_file = of_phones(home, [ANA, LUIS])
    assert tool("optout", "add", LUIS).code == 0
    assert tool("sms", "send", ANA, "-m", "Hola", "--once", "greeting").code == 0
    assert tool("sms", "bulk", people_file, "-m", "Adiós", "--yes", "--at", "23:59", "--name", "later").code == 0
    sent_requests = len(service.received)
    url = cluster.url()
    done = tool("store", "move", "--to", url)
    assert (done.code, "export MSGCTL_STORE='postgresql://app@127.0.0.1" in done.err, KEY in done.err) == (
        0,
        True,
        False,
    )
    assert "~/.pgpass" in done.err
    closed = tool("sms", "send", EVA, "-m", "Hola", "--json")
    assert (closed.code, closed.error["reason"], closed.error["nothing_sent"]) == (3, "configuration", True)
    assert f"127.0.0.1:{cluster.port}" in closed.error["message"]
    assert tool("job", "run-due").code == 3
    for place in (url, str(home / "back.sqlite3")):
        monkeypatch.setenv("MSGCTL_STORE", place)
        assert tool("sms", "send", ANA, "-m", "Hola", "--once", "greeting").code == 0
        assert tool("sms", "send", LUIS, "-m", "Hola").code == 2
        assert tool("job", "show", "later", "--json").document["state"] == "scheduled"
        if place == url:
            back = tool("store", "move", "--to", str(home / "back.sqlite3"), "--json").document
            assert (back["optouts"], f"127.0.0.1:{cluster.port}" in back["from"]) == (1, True)
    assert len(service.received) == sent_requests
    monkeypatch.setenv("MSGCTL_STORE", url)  # as another machine that does not know of the move
    closed = tool("sms", "send", ANA, "-m", "Hola", "--json")
    assert f"was moved to {home}/back.sqlite3 on {socket.gethostname()}" in closed.error["message"]
    assert "export MSGCTL_STORE=" in closed.error["hint"]
    with monkeypatch.context() as change:
        change.setattr(socket, "gethostname", lambda: "another")
        refused = tool("sms", "send", ANA, "-m", "Hola")
    assert ("move it to PostgreSQL on" in refused.err, "MSGCTL_STORE" in refused.err) == (True, False)
    (home / "back.sqlite3").unlink()  # a machine with the same name
    closed = tool("sms", "send", ANA, "-m", "Hola", "--json")
    assert (closed.code, "MSGCTL_STORE" in closed.error["hint"]) == (3, False)


def test_a_profile_whose_store_gets_another_user_or_a_password_keeps_its_store_without_a_warning(
    tool: Tool, postgres: Cluster, monkeypatch: pytest.MonkeyPatch
) -> None:
    account = ("--base-url", "https://service.example/api/v1", "--client", "1")
    assert tool("profile", "add", "main", *account, "--key-stdin", stdin=KEY).code == 0
    monkeypatch.setenv("PGPASSWORD", KEY)
    url = postgres.url().replace(f":{KEY}@", "@")
    assert tool("profile", "set", "main", "--store", url).code == 0
    assert tool("optout", "add", LUIS).code == 0
    for same in (url.replace("127.0.0.1", "localhost"), postgres.url()):
        done = tool("profile", "set", "main", "--store", same)
        assert (done.code, "store move" in done.err, "opt-out" in done.err) == (0, False, False)


def test_a_profile_that_gets_a_file_does_not_create_it(
    tool: Tool, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("MSGCTL_CONFIG", str(tmp_path / "config.toml"))
    account = ("--base-url", "https://service.example/api/v1", "--client", "1")
    assert tool("profile", "add", "main", *account, "--key-stdin", stdin=KEY).code == 0
    assert tool("profile", "set", "main", "--store", str(tmp_path / "old.sqlite3")).code == 0
    assert tool("optout", "add", LUIS).code == 0
    done = tool("profile", "set", "main", "--store", str(tmp_path / "new" / "store.sqlite3"))
    assert (done.code, "store move --to" in done.err, (tmp_path / "new").exists()) == (0, True, False)


def test_a_profile_that_gets_a_database_creates_no_store_in_it(
    tool: Tool, postgres: Cluster, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    postgres.empty()
    monkeypatch.setenv("MSGCTL_CONFIG", str(tmp_path / "config.toml"))
    account = ("--base-url", "https://service.example/api/v1", "--client", "1")
    assert tool("profile", "add", "main", *account, "--key-stdin", stdin=KEY).code == 0
    assert tool("profile", "set", "main", "--store", str(tmp_path / "old.sqlite3")).code == 0
    assert tool("optout", "add", LUIS).code == 0
    done = tool("profile", "set", "main", "--store", postgres.url())
    assert (done.code, "store move --to" in done.err, "cannot be used" in done.err) == (0, True, False)
    with pytest.raises(MissingStoreError):
        open_store(postgres.url(), creates=False)
