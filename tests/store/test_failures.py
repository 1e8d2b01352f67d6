"""If a store is missing, damaged, newer, unsafe or not reached, there is an error, and nothing is changed or sent."""

from __future__ import annotations

import hashlib
import os
import pwd
import shutil
import socket
import sqlite3
import subprocess
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing, suppress
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory

import psycopg
import pytest

from conftest import KEY
from msgctl import files
from msgctl.errors import ConfigurationError, MsgctlError, StoreNotReachedError
from msgctl.outcomes.outcome import Outcome
from msgctl.store import jobs, people, upgrades
from msgctl.store.owners import take
from msgctl.store.postgresql import PostgreSQL
from msgctl.store.sends import Key, SendRecord, Single, StoredResult
from msgctl.store.store import Store, open_store
from store.campaigns import ACCOUNT, ANA, EVA, LUIS, phone, published, sent
from store.processes import before_lock, child, status_of
from support import PATIENCE
from support.commands import ALL, PHONE
from support.disks import mounted
from support.jobs import of_phones
from support.postgres import SUPERUSER, USER, Cluster
from support.relay import proxied
from support.service import Service, respond
from support.terminal import RUN
from support.tool import Tool

RELEASED = ("d2b77ab589131819",)
"""The beginning of the SHA-256 of each released step, which must never change. A release adds its steps here."""

TO_PEOPLE = ("sms send", "call send", "chatapp send", "chatapp order")
WITHOUT_STORE = ("2fa send-sms", "2fa send-call", "2fa send-chatapp", "block add", "2fa verify", "balance", "state get")
LOCAL = ("history", "usage", "job list", "job run-due", f"optout add {PHONE}", "optout list", "history clear --yes")


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


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can create the file of another user")
@pytest.mark.parametrize("mode", [0o600, 0o644])
def test_the_hint_for_a_store_of_another_user_has_its_owner_and_the_command_that_changes_it(mode: int) -> None:
    user = pwd.getpwnam("nobody")
    with TemporaryDirectory() as directory:
        path = Path(directory) / "store.sqlite3"
        open_store(path).close()
        path.chmod(mode)
        path.parent.chmod(0o777)
        os.seteuid(user.pw_uid)
        try:
            with pytest.raises(ConfigurationError) as error, closing(open_store(path)) as store:
                store.check_writes()
        finally:
            os.seteuid(0)
    fix = f"It belongs to root. Run msgctl as that user, or run as root: chown nobody {path}*"
    assert error.value.hint == fix


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can create the file of another user")
def test_the_hint_for_a_lock_file_that_root_created_has_the_command_that_changes_its_owner() -> None:
    user = pwd.getpwnam("nobody")
    with TemporaryDirectory() as directory:
        path = Path(directory) / "store.sqlite3"
        open_store(path).close()
        path.with_name("store.sqlite3-owners").touch(0o600)
        os.chown(path, user.pw_uid, -1)
        path.parent.chmod(0o777)
        os.seteuid(user.pw_uid)
        try:
            with pytest.raises(ConfigurationError) as error, closing(open_store(path)) as store:
                assert store.owner
        finally:
            os.seteuid(0)
    assert f"chown nobody {path}-owners*" in str(error.value.hint)


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can create the file of another user")
def test_the_hint_for_root_has_no_other_owner(tmp_path: Path) -> None:
    os.chown(tmp_path, pwd.getpwnam("nobody").pw_uid, -1)
    assert fault(tmp_path).hint == files.STORE_ELSEWHERE


# --- commands


@pytest.mark.parametrize(("reason", "code"), [("damaged_store", 3), ("store_not_reached", 4)])
def test_without_the_store_nothing_is_sent_to_people_and_codes_continue(
    reason: str, code: int, file: Path, service: Service, tool: Tool, monkeypatch: pytest.MonkeyPatch
) -> None:
    file.write_bytes(b"damaged")
    location = str(file) if code == 3 else "postgresql://127.0.0.1:1/messages"
    monkeypatch.setenv("MSGCTL_STORE", location)
    bulk = ("sms", "bulk", of_phones(file.parent, [ANA]), "-m", "Hola", "--yes")
    for line in (*(ALL[name].line for name in TO_PEOPLE), bulk, *(each.split() for each in LOCAL)):
        done = tool(*line, "--json")
        assert (done.code, done.error["reason"], done.error["nothing_sent"]) == (code, reason, True), line
    assert service.received == []
    for name in WITHOUT_STORE:
        service.will(respond(ALL[name].record))
        done = tool(*ALL[name].line)
        assert (done.code, done.err.count("This command continues without it")) == (0, 1), done.err
    assert file.read_bytes() == b"damaged"


@pytest.mark.parametrize("is_back", [True, False], ids=["it is back", "it stays away"])
def test_a_store_that_is_lost_after_a_send_gets_the_outcome_if_it_is_back_and_keeps_the_key(
    service: Service, tool: Tool, postgres: Cluster, monkeypatch: pytest.MonkeyPatch, is_back: bool
) -> None:
    limit = f"ALTER DATABASE {postgres.database} CONNECTION LIMIT"

    def lose_the_store(connection: socket.socket) -> None:
        postgres.disconnect(f"{limit} {-1 if is_back else 0}")
        respond(ALL["sms send"].record)(connection)

    monkeypatch.setenv("MSGCTL_STORE", postgres.url())
    service.will(lose_the_store)
    done = tool(*ALL["sms send"].line, "--once", "greeting")
    postgres.admin(f"{limit} -1")
    assert (done.code, PHONE in done.out) == (0, True)
    if is_back:
        again = tool(*ALL["sms send"].line, "--once", "greeting", "--json")
        assert (again.code, "is not stored" in done.err, len(service.received)) == (0, False, 1)
        assert [entry["outcome"] for entry in tool("history", "--json").document] == ["accepted"]
        return
    assert "Warning: The result is not stored under --once" in done.err
    again = tool(*ALL["sms send"].line, "--once", "greeting", "--json")
    assert (again.code, again.error["reason"], again.error["replayed"]) == (5, "outcome_unknown", True)
    assert [entry["outcome"] for entry in tool("history", "--json").document] == ["unknown"]
    assert len(service.received) == 1


def test_a_resend_that_loses_its_database_for_good_reports_the_paused_job(
    service: Service, tool: Tool, postgres: Cluster, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    limit = f"ALTER DATABASE {postgres.database} CONNECTION LIMIT"

    def lose_the_store(connection: socket.socket) -> None:
        postgres.disconnect(f"{limit} 0")
        respond(ALL["sms send"].record)(connection)

    monkeypatch.setenv("MSGCTL_STORE", postgres.url())
    service.will(respond({"status": 7}), respond(status=422), lose_the_store)
    assert tool("sms", "bulk", of_phones(tmp_path, [ANA]), "-m", "x", "--yes", "--name", "today").code == 6
    done = tool("job", "resend", "today", "--only", "refused", "--yes", "--json", "--timeout", "1")
    postgres.admin(f"{limit} -1")
    assert (done.code, done.error["reason"], done.error["nothing_sent"]) == (4, "store_not_reached", False)
    assert done.document["state"] == "paused"


def test_a_send_whose_intent_was_stored_without_an_acknowledgement_frees_its_key(
    service: Service, tool: Tool, postgres: Cluster, monkeypatch: pytest.MonkeyPatch
) -> None:
    service.always(respond(ALL["sms send"].record))
    line = (*ALL["sms send"].line, "--once", "greeting", "--json")
    with proxied(postgres.port, loses_commit_of="INSERT INTO once") as port:
        monkeypatch.setenv("MSGCTL_STORE", postgres.url(port=port))
        done = tool(*line)
        assert (done.code, done.error["reason"], len(service.received)) == (4, "store_not_reached", 0)
        assert tool("history", "--json").document == []
        assert (tool(*line).code, len(service.received)) == (0, 1)


# --- the version and the tables


def test_released_steps_never_change() -> None:
    digests = [hashlib.sha256(step.encode()).hexdigest()[:16] for step in upgrades.STEPS]
    assert digests[: len(RELEASED)] == [*RELEASED]


def test_a_store_of_the_first_release_is_upgraded_and_keeps_its_jobs(opened: Callable[[], Store], store: Store) -> None:
    job = published(store, [ANA], name="today")
    (removed,) = (text for text in upgrades.statements(upgrades.STEPS[0]) if text.startswith("CREATE TABLE response"))
    store.db.create(removed)
    store.db.change("INSERT INTO response (job, request, body) VALUES (1, 1, '{}')")
    store.db.change("UPDATE meta SET value = '1' WHERE name = 'version'")
    upgraded = opened()
    assert upgraded.db.value("SELECT value FROM meta WHERE name = 'version'") == str(upgrades.VERSION)
    assert sent(upgraded, job.number) == [ANA]
    with pytest.raises(ConfigurationError):
        upgraded.db.value("SELECT count(*) FROM response")


def test_an_upgrade_is_applied_and_recorded_once_or_not_at_all(store: Store, opened: Callable[[], Store]) -> None:
    steps = (*upgrades.STEPS, "CREATE TABLE added (number INTEGER PRIMARY KEY AUTOINCREMENT)")
    with pytest.raises(ConfigurationError):
        upgrades.upgrade(store.db, (*steps, "CREATE TABLE again (number INTEGER); nonsense"))
    assert store.db.value("SELECT value FROM meta WHERE name = 'version'") == str(upgrades.VERSION)
    other = opened()
    before_lock(store, partial(upgrades.upgrade, other.db, steps))
    upgrades.upgrade(store.db, steps)
    upgrades.upgrade(store.db, steps)
    assert store.db.value("SELECT count(*) FROM added") == 0
    next_steps = (*steps, "CREATE TABLE next (number INTEGER)")
    before_lock(store, partial(upgrades.upgrade, other.db, (*next_steps, "CREATE TABLE newest (number INTEGER)")))
    with pytest.raises(ConfigurationError, match="newer msgctl"):
        upgrades.upgrade(store.db, next_steps)
    assert store.db.value("SELECT value FROM meta WHERE name = 'version'") == str(upgrades.VERSION + 3)


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        ("UPDATE meta SET value = '99' WHERE name = 'version'", "newer_store"),
        ("DELETE FROM meta WHERE name = 'version'", "damaged_store"),
        ("DROP TABLE result", "damaged_store"),
    ],
)
def test_a_newer_store_or_one_without_a_version_or_a_table_is_refused(
    change: str, reason: str, opened: Callable[[], Store], location: str
) -> None:
    opened().db.change(change)
    error = fault(location)
    assert error.reason == reason
    assert reason == "damaged_store" or f"(schema 99, this one reads {upgrades.VERSION})" in error.message


# --- files


def empty(file: Path) -> None:
    file.write_bytes(b"")


def text(file: Path) -> None:
    file.write_bytes(b"not a database, but a text of some length" * 99)


def foreign(file: Path) -> None:
    file.unlink()
    with closing(sqlite3.connect(file)) as db:
        db.execute("CREATE TABLE job (number)")


def cut(file: Path) -> None:
    content = file.read_bytes()
    file.write_bytes(content[: len(content) // 2])


@pytest.mark.parametrize("damage", [empty, text, foreign, cut])
def test_a_damaged_file_is_not_changed_and_not_used_as_a_new_store(file: Path, damage: Callable[[Path], None]) -> None:
    damage(file)
    content = file.read_bytes()
    assert fault(file).reason == "damaged_store"
    assert file.read_bytes() == content


def test_a_statement_that_sqlite_refuses_is_a_bug_and_not_damage(file: Path) -> None:
    with closing(open_store(file)) as store, pytest.raises(ConfigurationError, match="because of a bug") as error:
        store.db.change("UPDATE optout SET time = missing(time)")
    assert (error.value.reason, error.value.hint) == ("configuration", "Please report it.")


def test_a_network_file_system_is_refused(file: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    mounts = f"21 1 8:1 / / rw - ext4 /dev/sda rw\n22 21 0:40 / {file.parent} rw shared:1 - nfs4 server:/home rw\n"
    mounts += f"23 21 0:41 / /{'another' * 30} rw - ext4 /dev/sdb rw\n"
    monkeypatch.setattr(Path, "read_text", lambda path, **_: mounts if str(path) == "/proc/self/mountinfo" else "")
    link = file.parent.parent / "link.sqlite3"
    link.symlink_to(file)
    for path in (file, link):
        assert "network file system (nfs4)" in fault(path).message


def test_an_old_sqlite_is_refused(file: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sqlite3, "sqlite_version_info", (3, 34, 1))
    assert "version 3.35 or later is needed" in fault(file).message


def test_a_file_that_another_program_locks_is_not_reached_in_time(file: Path) -> None:
    with closing(sqlite3.connect(file, isolation_level=None)) as db, closing(open_store(file, timeout=0.05)) as store:
        db.execute("BEGIN IMMEDIATE")
        with pytest.raises(StoreNotReachedError):
            published(store, [ANA])


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


def test_a_full_disk_leaves_a_complete_store_or_nothing(tmp_path: Path) -> None:
    for kilobytes in range(16, 320, 16):
        with mounted(tmp_path / "disk", f"{kilobytes}k") as disk:
            path = disk.path / "state" / "store.sqlite3"
            with suppress(ConfigurationError):
                open_store(path).close()
            if path.exists():
                with closing(sqlite3.connect(path)) as db:
                    assert db.execute("PRAGMA quick_check").fetchall() == [("ok",)]
            else:
                assert [*disk.path.glob("state/.*")] == []
        (tmp_path / "disk").rmdir()


@pytest.mark.parametrize("suffix", ["-wal", "-shm"])
def test_a_log_without_its_store_never_enters_a_new_one(file: Path, suffix: str) -> None:
    store = open_store(file)
    published(store, [LUIS])
    file.unlink()
    for other in {"-wal", "-shm"} - {suffix}:
        file.with_name(file.name + other).unlink()
    error = fault(file)
    assert (error.reason, f"{suffix} exists without it" in error.message, file.exists()) == (
        "damaged_store",
        True,
        False,
    )
    store.close()


def test_a_log_that_a_killed_process_left_only_enters_its_own_store(file: Path, tmp_path: Path) -> None:
    backup, other = tmp_path / "backup.sqlite3", tmp_path / "other.sqlite3"
    open_store(other).close()
    with closing(open_store(file)) as store:
        with closing(sqlite3.connect(file)) as db, closing(sqlite3.connect(backup)) as copy:
            db.backup(copy)
        published(store, [LUIS], message="One")
    with closing(open_store(file)) as store:
        published(store, [LUIS], message="Two")
        left = {suffix: file.with_name(f"{file.name}{suffix}").read_bytes() for suffix in ("", "-wal")}
    for number, content in enumerate((left[""], backup.read_bytes(), other.read_bytes())):
        place = tmp_path / f"{number}.sqlite3"
        place.write_bytes(content)
        place.with_name(f"{place.name}-wal").write_bytes(left["-wal"])
        if number == 0:
            with closing(open_store(place)) as store:
                assert len(jobs.listed(store)) == 3
        else:
            assert "belongs to another store" in fault(place).message
            assert place.read_bytes() == content


def test_opt_outs_are_kept_if_a_process_opens_the_store_twice_and_another_process_ends(
    file: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    link = file.parent.with_name("link")
    link.symlink_to(file.parent)
    monkeypatch.setenv("MSGCTL_STORE", str(file))
    with closing(open_store(file)) as first, closing(open_store(link / file.name)):
        for add, opted_out in ((ANA, LUIS), (EVA, phone(1))):
            subprocess.run([*RUN, "optout", "add", add], check=True, timeout=PATIENCE)
            people.add_optouts(first, [(opted_out, "sms")])
        listed = subprocess.run([*RUN, "optout", "list"], check=True, timeout=PATIENCE, capture_output=True)
    assert listed.stdout.count(b"\n57") == 4


@pytest.mark.parametrize("is_replaced", [False, True])
def test_a_store_that_is_deleted_or_replaced_pauses_its_job_before_the_next_request(
    is_replaced: bool, file: Path, service: Service, tool: Tool, monkeypatch: pytest.MonkeyPatch
) -> None:
    copy = shutil.copy(file, file.parent / "copy.sqlite3")

    def lose_the_store(connection: socket.socket) -> None:
        file.unlink()
        if is_replaced:
            Path(copy).rename(file)
        respond(ALL["sms send"].record)(connection)

    monkeypatch.setenv("MSGCTL_STORE", str(file))
    service.will(respond({"status": 7}), lose_the_store)
    people = of_phones(file.parent, [ANA, LUIS])
    done = tool("sms", "bulk", people, "-m", "x", "--yes", "--batch-size", "1", "--concurrency", "1", "--json")
    assert (done.code, done.error["reason"], done.error["nothing_sent"]) == (3, "damaged_store", False)
    assert "deleted or replaced" in done.error["message"]
    assert [request.path.rpartition("/")[2] for request in service.received] == ["balance", "send-sms"]


def test_processes_that_use_a_store_through_a_link_see_each_other(file: Path, tmp_path: Path) -> None:
    link = tmp_path / "link.sqlite3"
    link.symlink_to(file)
    ready, go = os.pipe(), os.pipe()

    def work(other: Store) -> None:
        assert not other.is_owned(12345)
        os.write(ready[1], other.owner.to_bytes(8))
        os.read(go[0], 1)

    pid = child(str(file), work)
    with closing(open_store(link)) as store:
        assert store.is_owned(int.from_bytes(os.read(ready[0], 8)))
        assert not store.is_owned(12345)  # the other process has checked it and left no lock
        os.write(go[1], b"1")
        assert status_of(pid) == 0


def test_a_link_to_a_missing_store_creates_the_store_and_a_copy_of_a_store_can_be_used(tmp_path: Path) -> None:
    link, target = tmp_path / "link.sqlite3", tmp_path / "missing" / "store.sqlite3"
    link.symlink_to(target)
    open_store(link).close()
    shutil.copy(target, tmp_path / "copy.sqlite3")
    with closing(open_store(tmp_path / "copy.sqlite3")) as store:
        assert store.db.value("SELECT count(*) FROM job") == 0


# --- servers


def test_no_form_of_a_wrong_url_shows_a_password() -> None:
    for url in (
        "postgresql://bob:S3CRETPASSWORDhost/db",
        "postgresql://bob:S3CRET/PASSWORD@host/db",
        "postgresql://bob:S3CRET@PASSWORD@host/db",
        "postgresql://bob:S3CRET PASSWORD@host/db",
        "postgresql://bob:S3CRET%PASSWORD@host/db",
        "postgresql://bob:12345/S3CRETPASSWORD@host/db",
        "postgresql://bob:S3CRET?PASSWORD@host/db",
        "postgres+asyncpg://bob:S3CRETPASSWORD@host/db",
        "mysql://bob:S3CRETPASSWORD@host/db",
    ):
        error = fault(url, timeout=2)
        shown = f"{error.message}{error.hint}{error!r}"
        assert "S3CRET" not in shown
        assert "PASSWORD" not in shown


def test_a_database_that_cannot_be_used_is_a_configuration_error(postgres: Cluster) -> None:
    postgres.empty()
    for url, fix in (
        (postgres.url(password="wr0ng-secret"), "PGPASSWORD"),
        (postgres.url(database="missing"), "Create it"),
        (postgres.url("secure", tls="require"), "GRANT CREATE"),
    ):
        error = fault(url)
        assert (error.exit_code, error.reason) == (3, "configuration")
        assert fix in (error.hint or "")
        assert "wr0ng-secret" not in f"{error.message}{error.hint}"


def test_a_schema_of_another_role_is_refused_and_a_role_per_machine_can_use_the_owner_s(postgres: Cluster) -> None:
    open_store(postgres.url()).close()
    machine = postgres.url(SUPERUSER)
    error = fault(machine)
    assert f"belongs to another role, {USER}" in error.message
    fix = f"GRANT {USER} TO {SUPERUSER}; ALTER ROLE {SUPERUSER} SET role = {USER}"
    assert (error.hint or "").endswith(f"For a role per machine: {fix}")
    here = f"ALTER ROLE {SUPERUSER} IN DATABASE {postgres.database}"
    postgres.admin(f"{here} SET role = {USER}", database="postgres")
    try:
        open_store(machine).close()
    finally:
        postgres.admin(f"{here} RESET role", database="postgres")


def test_a_role_that_prepares_the_schema_meanwhile_does_not_become_its_owner(
    postgres: Cluster, monkeypatch: pytest.MonkeyPatch
) -> None:
    postgres.empty()
    begin = PostgreSQL.begin

    def prepare(db: PostgreSQL, lock: str) -> None:
        postgres.admin("CREATE SCHEMA msgctl")
        begin(db, lock)

    monkeypatch.setattr(PostgreSQL, "begin", prepare)
    assert "belongs to another role, admin" in fault(postgres.url()).message
    assert postgres.admin("SELECT 1 FROM pg_tables WHERE schemaname = 'msgctl'") == []


def test_a_database_that_is_read_only_or_not_utf8_is_refused(postgres: Cluster) -> None:
    database = f"{postgres.database}_latin1"
    postgres.admin(
        f"DROP DATABASE IF EXISTS {database}",
        f"CREATE DATABASE {database} OWNER {USER} ENCODING 'LATIN1' LC_COLLATE 'C' LC_CTYPE 'C' TEMPLATE template0",
        database="postgres",
    )
    assert "has the encoding LATIN1; the store needs UTF8" in fault(postgres.url(database=database)).message
    open_store(postgres.url()).close()
    with postgres.altered("SET default_transaction_read_only = on"):
        assert "is read-only" in fault(postgres.url()).message


def test_settings_of_the_server_neither_end_a_question_nor_change_text(postgres: Cluster) -> None:
    with (
        postgres.altered("SET idle_session_timeout = '1h'", "SET client_encoding = 'LATIN1'"),
        closing(open_store(postgres.url())) as store,
    ):
        assert store.db.rows("SELECT ?, current_setting('idle_session_timeout')", ("🎉",)) == [("🎉", "0")]


def test_the_lock_of_an_account_has_the_same_number_on_all_machines(postgres: Cluster) -> None:
    """Machines with different versions must wait for each other, so this number never changes."""
    query = """SELECT (classid::bigint << 32) | objid::bigint FROM pg_locks
        WHERE locktype = 'advisory' AND objsubid = 1 AND pid = pg_backend_pid()"""
    with closing(open_store(postgres.url())) as store, store.db.transaction("account"):
        assert store.db.rows(query) == [(-43613302090837961,)]


def test_a_commit_is_on_the_disk_of_the_server_whatever_its_settings(postgres: Cluster) -> None:
    for setting, expected in (("off", "on"), ("local", "on"), ("remote_apply", "remote_apply")):
        with (
            postgres.altered(f"SET synchronous_commit = '{setting}'"),
            closing(open_store(postgres.url())) as store,
        ):
            assert store.db.value("SELECT current_setting('synchronous_commit')") == expected


def test_too_many_connections_are_a_reason_to_try_again_with_their_own_fix(postgres: Cluster) -> None:
    with postgres.altered("CONNECTION LIMIT 0"):
        error = fault(postgres.url())
    assert (error.exit_code, error.reason) == (4, "store_not_reached")
    assert "max_connections" in (error.hint or "")


def test_a_host_or_port_that_cannot_exist_is_a_configuration_error() -> None:
    for host in ("a" * 64, "db..example", "db.invalid"):
        assert "cannot exist" in fault(f"postgresql://bob@{host}/db").message
    assert fault("postgresql://bob@127.0.0.1:99999/db").exit_code == 3


def test_an_old_postgresql_or_a_pooler_that_does_not_keep_sessions_is_refused(postgres: Cluster) -> None:
    with proxied(postgres.port, version="13.14") as port:
        assert "PostgreSQL 13 is too old for the store; nothing was sent" in fault(postgres.url(port=port)).message
    with proxied(postgres.port) as port:
        with postgres.altered("SET msgctl.probe = 'used'"):  # as if another connection had used the session
            assert "does not keep sessions" in fault(postgres.url(port=port)).message
        open_store(postgres.url(port=port)).close()


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
        for host in ("127.example", "localhost.example"):
            named = local.replace("127.0.0.1", host)
            assert "does not support SSL" in fault(f"{named}?hostaddr=0.0.0.0").message
        with monkeypatch.context() as change:
            change.setenv("PGHOSTADDR", ",")  # an empty address means the host
            two = elsewhere.replace(f"0.0.0.0:{port}", f"0.0.0.0:{port},0.0.0.0:{port}")
            assert "does not support SSL" in fault(two).message
        for hosts in (f"127.0.0.1:{port},0.0.0.0:{port}", f"0.0.0.0:{port},127.0.0.1:{port}"):
            assert "does not support SSL" in fault(local.replace(f"127.0.0.1:{port}", hosts)).message
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
        service = f"[prod]\nhost=0.0.0.0\nport={port}\ndbname={postgres.database}\nuser={USER}\n"
        services.write_text(service)
        message = fault("postgresql:///?service=prod").message
        assert "does not support SSL" in message
        assert "The store of service prod" in message or "the store of service prod" in message
        monkeypatch.setenv("PGSERVICE", "prod")
        assert "does not support SSL" in fault("postgresql://").message
        services.write_text(f"{service}sslmode=disable\n")
        open_store("postgresql://").close()
        monkeypatch.delenv("PGSERVICE")
        monkeypatch.delenv("PGSSLMODE")
        open_store("postgresql:///?service=prod").close()
        open_store(postgres.url().replace(f":{postgres.port}/", f":{port}/").partition("?")[0]).close()


def test_a_store_that_lost_its_connection_reconnects_and_locks_its_owner_again(postgres: Cluster) -> None:
    with closing(open_store(postgres.url())) as store:
        owner = store.owner
        postgres.disconnect()
        with pytest.raises(StoreNotReachedError):
            store.db.value("SELECT 1")
        store.db.reconnect()
        with closing(open_store(postgres.url())) as other:
            assert other.is_owned(owner)


def test_a_reconnect_waits_until_the_server_has_ended_the_lost_session_and_released_its_lock(postgres: Cluster) -> None:
    waiting = "SELECT count(*) FROM pg_locks JOIN pg_database d ON d.oid = database WHERE datname = %s AND NOT granted"
    with closing(open_store(postgres.url())) as store, psycopg.connect(postgres.url("admin")) as lost:
        owner = store.owner
        postgres.disconnect()
        lost.execute("SELECT pg_advisory_lock(%s)", (owner,))
        with ThreadPoolExecutor() as pool, psycopg.connect(postgres.url("admin"), autocommit=True) as observer:
            reconnected = pool.submit(store.db.reconnect)
            while not reconnected.done() and observer.execute(waiting, (postgres.database,)).fetchone() != (1,):
                pass
            lost.close()
            reconnected.result(PATIENCE)
        assert store.is_owned(owner)
        assert store.db.alive([owner]) == {owner}


def test_a_server_that_sends_nothing_in_time_is_not_reached(postgres: Cluster) -> None:
    with closing(open_store(postgres.url(), timeout=0.5)) as store:
        with pytest.raises(StoreNotReachedError, match="no response within"):
            store.db.value("SELECT pg_sleep(60)")
        store.db.reconnect()
        assert store.db.value("SELECT 1") == 1


def test_only_a_sender_that_is_silent_loses_its_locks(postgres: Cluster) -> None:
    """Any machine may resume its job within a minute. Before that, a person may think about the question."""
    with closing(open_store(postgres.url(), timeout=5)) as store:
        number = published(store, [ANA]).number
        store.db.reconnect()
        limits = [store.db.value("SHOW idle_session_timeout")]
        sending = take(store, number)
        limits.append(store.db.value("SHOW idle_session_timeout"))
        store.db.reconnect()
        limits.append(store.db.value("SHOW idle_session_timeout"))
        sending.finish("paused")
        limits.append(store.db.value("SHOW idle_session_timeout"))
        assert limits == ["0", "45s", "45s", "0"]
    with closing(open_store(postgres.url(), timeout=60)) as store:
        take(store, number)
        assert store.db.value("SHOW idle_session_timeout") == "70s", "a statement may take a minute"


def test_a_session_may_be_silent_after_a_send_that_is_not_repeated(postgres: Cluster) -> None:
    key = Key("greeting", b"digest", 1)
    single = Single(ACCOUNT, "main", "sms send", "{}", [ANA], is_contact=True, digest=b"greeting")
    with closing(open_store(postgres.url())) as store:
        first = SendRecord(store, single, key)
        first.begin()
        assert store.db.value("SHOW idle_session_timeout") != "0"
        first.end([Outcome(ANA, "accepted", "id-1")], StoredResult(0, 200, b"{}"))
        assert SendRecord(store, single, key).begin() is not None
        assert store.db.value("SHOW idle_session_timeout") == "0"


def test_a_store_that_an_abandoned_thread_may_use_stays_open(opened: Callable[[], Store]) -> None:
    """Closing the connection under a statement of another thread would crash the process."""
    store = opened()
    store.is_in_use = True
    store.close()
    assert store.db.value("SELECT 1") == 1
    store.is_in_use = False


@pytest.mark.parametrize("replaced", [False, True])
def test_a_transaction_fails_if_its_file_was_deleted_or_replaced_meanwhile(tmp_path: Path, replaced: bool) -> None:
    path = tmp_path / "store.sqlite3"

    def change(store: Store) -> None:
        with store.db.transaction("test"):
            store.db.change("DELETE FROM job")
            path.unlink()
            if replaced:
                path.touch()

    with closing(open_store(str(path))) as store, pytest.raises(ConfigurationError, match="deleted or replaced"):
        change(store)
