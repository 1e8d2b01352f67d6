"""A store that is missing, damaged, newer, unsafe or not reached: what the error says, and that nothing is changed."""

from __future__ import annotations

import hashlib
import os
import shutil
import sqlite3
from collections.abc import Callable
from contextlib import closing
from pathlib import Path

import pytest

from conftest import KEY
from msgctl.errors import ConfigurationError, MsgctlError, StoreNotReachedError
from msgctl.store import upgrades
from msgctl.store.owners import take
from msgctl.store.store import Store, open_store
from store.campaigns import ANA, published
from store.processes import child, status_of
from support.pooler import proxied
from support.postgres import DATABASE, USER, Cluster

RELEASED: tuple[str, ...] = ()
"""The beginning of the SHA-256 of each step that is in a release: such a step must not change."""


@pytest.fixture
def file(tmp_path: Path) -> Path:
    """A store on SQLite with a job."""
    path = tmp_path / "state" / "store.sqlite3"
    with closing(open_store(path)) as store:
        published(store, [ANA])
    return path


def fault(location: str | Path, timeout: float = 60) -> MsgctlError:
    with pytest.raises(MsgctlError) as error:
        open_store(location, timeout=timeout)
    assert "nothing was sent" in error.value.message
    assert KEY not in f"{error.value.message}{error.value.hint}"
    return error.value


def test_released_steps_never_change() -> None:
    digests = [hashlib.sha256(step.encode()).hexdigest()[:16] for step in upgrades.STEPS]
    assert digests[: len(RELEASED)] == [*RELEASED]


def test_an_upgrade_is_applied_with_its_record_or_not_at_all(store: Store) -> None:
    steps = (*upgrades.STEPS, "CREATE TABLE added (number INTEGER PRIMARY KEY AUTOINCREMENT)")
    with pytest.raises(ConfigurationError):
        upgrades.upgrade(store.db, (*steps, "CREATE TABLE again (number INTEGER); nonsense"))
    assert store.db.value("SELECT value FROM meta WHERE name = 'version'") == "1"
    upgrades.upgrade(store.db, steps)
    upgrades.upgrade(store.db, steps)
    assert store.db.value("SELECT count(*) FROM added") == 0
    assert store.db.value("SELECT value FROM meta WHERE name = 'version'") == "2"


def test_a_newer_store_is_refused(opened: Callable[[], Store]) -> None:
    store = opened()
    store.db.change("UPDATE meta SET value = '99' WHERE name = 'version'")
    with pytest.raises(ConfigurationError, match=r"newer msgctl \(schema 99") as error:
        opened()
    assert error.value.reason == "newer_store"


@pytest.mark.parametrize("content", [b"", b"not a database, but a text of some length" * 99])
def test_a_file_without_tables_is_damage_and_not_a_new_store(file: Path, content: bytes) -> None:
    for each in file.parent.glob("store.sqlite3-*"):
        each.unlink()
    file.write_bytes(content)
    assert fault(file).reason == "damaged_store"
    assert file.read_bytes() == content


def test_a_database_of_another_program_is_damage(file: Path) -> None:
    file.unlink()
    with closing(sqlite3.connect(file)) as db:
        db.execute("CREATE TABLE job (number)")
    file.chmod(0o600)
    assert fault(file).reason == "damaged_store"


def test_a_store_whose_end_is_missing_is_damage(file: Path) -> None:
    content = file.read_bytes()
    file.write_bytes(content[: len(content) // 2])
    assert fault(file).reason == "damaged_store"


def test_a_store_without_a_table_is_damage(store: Store, opened: Callable[[], Store]) -> None:
    store.db.change("DROP TABLE result")
    with pytest.raises(ConfigurationError, match="its tables are missing") as error:
        opened()
    assert error.value.reason == "damaged_store"


def test_a_network_file_system_is_refused(file: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    mounts = f"21 1 8:1 / / rw - ext4 /dev/sda rw\n22 21 0:40 / {file.parent} rw shared:1 - nfs4 server:/home rw\n"
    mounts += f"23 21 0:41 / /{'another' * 30} rw - ext4 /dev/sdb rw\n"
    monkeypatch.setattr(Path, "read_text", lambda path, **_: mounts if str(path) == "/proc/self/mountinfo" else "")
    link = file.parent.parent / "link.sqlite3"
    link.symlink_to(file)
    for path in (file, link):
        error = fault(path)
        assert "network file system (nfs4)" in error.message
        assert "PostgreSQL" in (error.hint or "")


def test_an_old_sqlite_is_refused(file: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sqlite3, "sqlite_version_info", (3, 34, 1))
    assert "too old for the store; version 3.35 or later is needed" in fault(file).message


def test_a_file_that_another_program_locks_is_not_reached_in_time(file: Path) -> None:
    with closing(sqlite3.connect(file, isolation_level=None)) as db, closing(open_store(file, timeout=0.05)) as store:
        db.execute("BEGIN IMMEDIATE")
        with pytest.raises(StoreNotReachedError) as error:
            published(store, [ANA])
        assert (error.value.exit_code, error.value.reason) == (4, "store_not_reached")


def test_a_new_store_is_complete_or_missing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "state" / "store.sqlite3"
    with monkeypatch.context() as change:
        change.setattr(Path, "hardlink_to", lambda *_: (_ for _ in ()).throw(OSError(28, "No space left")))
        assert fault(path).exit_code == 3
    assert [*path.parent.iterdir()] == []
    with closing(open_store(path)) as store:
        assert path.stat().st_mode & 0o777 == 0o600
        assert store.db.value("PRAGMA synchronous") == 2
        assert store.db.value("PRAGMA auto_vacuum") == 2
        assert store.db.value("PRAGMA journal_mode") == "wal"


def test_processes_that_use_a_store_through_a_link_see_each_other(file: Path, tmp_path: Path) -> None:
    link = tmp_path / "link.sqlite3"
    link.symlink_to(file)
    ready, go = os.pipe(), os.pipe()

    def work(other: Store) -> None:
        os.write(ready[1], other.owner.to_bytes(8))
        os.read(go[0], 1)

    pid = child(str(file), work)
    with closing(open_store(link)) as store:
        assert store.is_owned(int.from_bytes(os.read(ready[0], 8)))
        os.write(go[1], b"1")
        assert status_of(pid) == 0


def test_a_link_to_a_missing_store_creates_it(tmp_path: Path) -> None:
    link = tmp_path / "link.sqlite3"
    link.symlink_to(tmp_path / "missing" / "store.sqlite3")
    open_store(link).close()
    assert (tmp_path / "missing" / "store.sqlite3").stat().st_size


def test_a_copy_of_a_store_is_a_store(file: Path, tmp_path: Path) -> None:
    shutil.copy(file, tmp_path / "copy.sqlite3")
    with closing(open_store(tmp_path / "copy.sqlite3")) as store:
        assert store.db.value("SELECT count(*) FROM job") == 1


@pytest.mark.parametrize(
    "url",
    [
        "postgresql://bob:S3CRETPASSWORDhost/db",
        "postgresql://bob:S3CRET/PASSWORD@host/db",
        "postgresql://bob:S3CRET@PASSWORD@host/db",
        "postgresql://bob:S3CRET PASSWORD@host/db",
        "postgresql://bob:S3CRET%PASSWORD@host/db",
        "postgresql://bob:12345/S3CRETPASSWORD@host/db",
        "postgresql://bob:S3CRET?PASSWORD@host/db",
        "postgres+asyncpg://bob:S3CRETPASSWORD@host/db",
        "mysql://bob:S3CRETPASSWORD@host/db",
    ],
)
def test_no_form_of_a_wrong_url_shows_a_password(url: str) -> None:
    error = fault(url, timeout=2)
    text = f"{error.message}{error.hint}{error!r}"
    assert "S3CRET" not in text
    assert "PASSWORD" not in text


def test_a_wrong_password_a_missing_database_and_missing_rights_are_configuration_errors(postgres: Cluster) -> None:
    for url in (postgres.url(password="wr0ng-secret"), postgres.url(database="missing"), postgres.url("nobody_here")):
        error = fault(url)
        assert (error.exit_code, error.reason) == (3, "configuration")
        assert "wr0ng-secret" not in error.message
    assert fault(postgres.url("secure", tls="require")).exit_code == 3


def test_a_schema_of_another_role_is_refused(postgres: Cluster) -> None:
    postgres.admin("CREATE SCHEMA msgctl")
    assert "belongs to another role" in fault(postgres.url()).message


def test_a_server_that_does_not_listen_is_not_reached(postgres: Cluster) -> None:
    error = fault(postgres.url(port=1), timeout=2)
    assert (error.exit_code, error.reason) == (4, "store_not_reached")


def test_an_old_postgresql_is_refused(postgres: Cluster) -> None:
    with proxied(postgres.port, version="13.14") as port:
        error = fault(postgres.url(port=port))
    assert (error.exit_code, error.reason) == (3, "configuration")
    assert "PostgreSQL 13 is too old for the store" in error.message
    assert "14" in (error.hint or "")


def test_a_pooler_that_does_not_keep_sessions_is_refused(postgres: Cluster) -> None:
    with proxied(postgres.port, shares_sessions=True) as port:
        error = fault(postgres.url(port=port))
    assert (error.exit_code, error.reason) == (3, "configuration")
    assert "behind a pooler that does not keep sessions" in error.message
    assert "session mode" in (error.hint or "")


def test_a_pooler_that_keeps_sessions_is_used(postgres: Cluster) -> None:
    with proxied(postgres.port) as port, closing(open_store(postgres.url(port=port))) as store:
        assert store.db.value("SELECT count(*) FROM job") == 0


def test_tls_is_used_unless_the_host_is_this_machine_or_the_url_states_otherwise(
    postgres: Cluster, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PGSSLMODE", "disable")
    with proxied(postgres.port) as port:  # it refuses TLS
        local = postgres.url(port=port).partition("?")[0]
        elsewhere = local.replace("127.0.0.1", "0.0.0.0")
        for url in (local, f"{elsewhere}?sslmode=disable"):
            open_store(url).close()
        error = fault(elsewhere)
        assert (error.exit_code, error.reason) == (3, "configuration")
        assert "does not support SSL" in error.message
        monkeypatch.setenv("PGHOSTADDR", "0.0.0.0")
        assert "does not support SSL" in fault(local).message
        monkeypatch.delenv("PGHOSTADDR")
    monkeypatch.setenv("PGSSLMODE", "verify-full")
    assert "root certificate" in fault(elsewhere.replace(f":{port}/", f":{postgres.port}/")).message


def test_tls_is_used_with_a_service_file_that_does_not_state_otherwise(
    postgres: Cluster, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    services = tmp_path / "services.conf"
    monkeypatch.setenv("PGSERVICEFILE", str(services))
    monkeypatch.setenv("PGPASSWORD", KEY)
    monkeypatch.setenv("PGSSLMODE", "disable")
    with proxied(postgres.port) as port:  # it refuses TLS
        service = f"[prod]\nhost=0.0.0.0\nport={port}\ndbname={DATABASE}\nuser={USER}\n"
        services.write_text(service)
        assert "does not support SSL" in fault("postgresql:///?service=prod").message
        monkeypatch.setenv("PGSERVICE", "prod")
        assert "does not support SSL" in fault("postgresql://").message
        services.write_text(f"{service}sslmode=disable\n")
        open_store("postgresql://").close()


def test_a_lost_connection_is_not_reached_and_reconnects(postgres: Cluster) -> None:
    with closing(open_store(postgres.url())) as store:
        owner = store.owner
        postgres.disconnect()
        with pytest.raises(StoreNotReachedError):
            store.db.value("SELECT 1")
        store.reconnect()
        with closing(open_store(postgres.url())) as other:
            assert other.is_owned(owner)


def test_only_a_sender_that_is_silent_loses_its_locks(postgres: Cluster) -> None:
    """Any machine may resume its job within a minute. Before that, a person may think about the question."""
    with closing(open_store(postgres.url(), timeout=5)) as store:
        number = published(store, [ANA]).number
        assert store.db.value("SHOW idle_session_timeout") == "0"
        sending = take(store, number)
        assert store.db.value("SHOW idle_session_timeout") == "45s"
        store.reconnect()
        assert store.db.value("SHOW idle_session_timeout") == "45s"
        sending.finish("paused")
        assert store.db.value("SHOW idle_session_timeout") == "0"


def test_a_store_that_an_abandoned_thread_may_use_stays_open(opened: Callable[[], Store]) -> None:
    """Closing the connection under a statement of another thread would crash the process."""
    store = opened()
    store.is_in_use = True
    store.close()
    assert store.db.value("SELECT 1") == 1
    store.is_in_use = False
