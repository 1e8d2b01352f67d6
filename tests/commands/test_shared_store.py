"""A shared store: errors if it cannot be used, secrecy of the password, and the first use on a machine."""

from __future__ import annotations

import json
import os
import sqlite3
import subprocess
import sys
from contextlib import closing
from pathlib import Path
from unittest.mock import Mock

import pytest

from conftest import KEY
from msgctl.history import once, optouts
from msgctl.storage import files
from msgctl.storage.records import LOCAL
from msgctl.storage.shared import SharedRecords
from support.files import table, write_config
from support.jobs import ANA, EVA, LUIS, accepting, of_phones
from support.leaks import files_with_key, shows_key
from support.machines import network
from support.postgres import DATABASE, TLS_USER, USER, Cluster
from support.service import Service, respond
from support.tool import Tool, process

SEND = ("sms", "send", ANA, "-m", "Hello")
ONCE = (*SEND, "--once", "k")


@pytest.fixture(autouse=True)
def accepts(service: Service) -> None:
    service.always(respond({"status": 1000, "id": "m1", "state": "delivered", "phone": ANA}))


def refuses(tool: Tool, service: Service, home: Path, url: str, code: int, *parts: str, connects: bool = False) -> None:
    """Check that sends are refused with an error that contains these parts; codes, balance and states work.

    They print a warning unless msgctl ``connects``. The password is shown nowhere.
    """
    os.environ["MSGCTL_STORE"] = url  # the fixture `home` restores it
    bulk = ("sms", "bulk", of_phones(home, [ANA]), "-m", "Hello", "--yes")
    if not connects:
        alone = tool(*SEND, "--ignore-optout")
        alone.refused(code, "hared store", "; nothing was sent\n", *parts)
        assert "Warning: " not in alone.err
    for line in (SEND, (*ONCE, "-vv"), bulk, (*bulk, "--once", "k"), ("optout", "add", ANA)):
        done = tool(*line)
        done.refused(code, "hared store", "; nothing was sent\n", *parts)
        error = tool(*line, "--json").error
        assert (error["exit_code"], error["reason"]) == (code, {3: "configuration", 4: "not_reached"}[code])
        assert not shows_key(done.stderr), line
    assert service.received == []
    for other in (("balance",), ("2fa", "send-sms", ANA, "--app-name", "shop"), ("state", "get", "m1")):
        done = tool(*other)
        warned = "Warning: " in done.err, "hared store" in done.err
        assert (done.code, *warned) == (0, not connects, not connects), done.err
        assert "nothing was sent" not in done.err
        assert not shows_key(done.stdout + done.stderr), other
    shown = tool("doctor", "-vv", "--json")
    (found,) = (check["found"] for check in shown.document if check["check"] == "store")
    assert parts[0] in found
    assert not shows_key(shown.stdout + shown.stderr)
    assert files_with_key(home) == set()


@pytest.mark.parametrize(
    ("address", "code", "part"),
    [
        (":k3y-awkward@no-such-host.invalid/x", 4, "no-such-host.invalid"),
        (":k3y-awkward@127.0.0.1:1/x", 4, "Connection refused"),
        (":k3y-awkward%@127.0.0.1/x", 3, "The URL of the shared store is not valid"),
        (":k3/y-awkward@127.0.0.1/x", 3, "The URL of the shared store is not valid"),
        (":k@3y-awkward@127.0.0.1/x", 3, "The URL of the shared store is not valid"),
        (":k@3y-awkward/k3y@127.0.0.1/x", 3, "The URL of the shared store is not valid"),
        (":k3y-awkward@127.0.0.1/x?awkward=1", 3, "The URL of the shared store is not valid"),
        (":k3y-awkward@127.0.0.1/x?sslmode=no", 3, 'invalid sslmode value: "no"'),
    ],
)
def test_a_wrong_url(address: str, code: int, part: str, tool: Tool, service: Service, home: Path) -> None:
    refuses(tool, service, home, f"postgresql://app{address}", code, part)


def test_a_wrong_password(postgres: Cluster, tool: Tool, service: Service, home: Path) -> None:
    part = f'/{DATABASE}: password authentication failed for user "{USER}"'
    refuses(tool, service, home, postgres.url(password=f"{KEY} "), 3, part, "the password: in PGPASSWORD")
    assert "Warning" not in tool("doctor").err


def test_a_database_that_does_not_exist(postgres: Cluster, tool: Tool, service: Service, home: Path) -> None:
    refuses(tool, service, home, postgres.url(database="other"), 3, 'database "other" does not exist', "Create it")


def test_no_right_to_create_the_schema(postgres: Cluster, tool: Tool, service: Service, home: Path) -> None:
    url = postgres.url(TLS_USER, tls="require")
    refuses(tool, service, home, url, 3, "permission denied for database", "GRANT CREATE ON DATABASE", connects=True)
    postgres.admin(f"CREATE SCHEMA msgctl AUTHORIZATION {TLS_USER}")
    assert tool(*ONCE).code == 0


def test_no_right_to_use_the_tables(postgres: Cluster, tool: Tool, service: Service, home: Path) -> None:
    with closing(SharedRecords(postgres.url(), 30)) as records:
        optouts.add(records, [], 0)
    refuses(
        tool,
        service,
        home,
        postgres.url(TLS_USER, tls="require"),
        3,
        "permission denied for schema msgctl",
        connects=True,
    )


def test_tables_of_a_newer_msgctl(postgres: Cluster, tool: Tool, service: Service, home: Path) -> None:
    for kind in ("once.sqlite3", "optouts.sqlite3", "contacts"):
        os.environ["MSGCTL_STORE"] = postgres.url()
        assert tool(*ONCE).code == 0
        service.received.clear()
        postgres.admin(f"UPDATE msgctl.meta SET value = 9 WHERE name = '{kind}'")
        line = ONCE if kind != "contacts" else SEND
        tool(*line).refused(3, "was written by a newer msgctl (schema 9); nothing was sent", "Update this msgctl.")
        assert service.received == []
        assert "newer msgctl" in tool("doctor").out
        postgres.empty()


def test_a_server_that_requires_tls(postgres: Cluster, tool: Tool, service: Service, home: Path) -> None:
    refuses(tool, service, home, postgres.url(TLS_USER), 3, "no pg_hba.conf entry", "no encryption")


def test_a_lost_tls_connection_is_not_a_mistake_in_the_url(postgres: Cluster, tool: Tool, service: Service) -> None:
    with network(postgres.port, 12, "lost before") as between:
        os.environ["MSGCTL_STORE"] = postgres.url(port=between.port, tls="require")
        tool(*ONCE).refused(4, "The shared store 127.0.0.1", "nothing was sent")
    assert service.received == []


def test_the_extra_is_not_installed(tool: Tool, service: Service, home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "psycopg", None)
    monkeypatch.delitem(sys.modules, "msgctl.storage.shared")
    part = "A shared store needs the package psycopg, which is not installed"
    refuses(tool, service, home, "postgresql://app@127.0.0.1/x", 3, part, "msgctl[shared]")


def test_the_sandbox_never_uses_the_store(tool: Tool, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MSGCTL_STORE", "postgresql://app@127.0.0.1:1/x")
    done = tool("-p", "sandbox", *ONCE)
    assert (done.code, "shared" in done.err) == (0, False)


# --- the password


def test_the_password_is_shown_nowhere(
    postgres: Cluster, tool: Tool, service: Service, home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It may be in the profile, in a variable, or in the report of a bug."""
    monkeypatch.setenv("MSGCTL_KEY", "another key")
    for url, password in ((postgres.url(), ""), (postgres.url(password="").replace(":@", "@"), KEY)):
        settings = table("main", f"store = {json.dumps(url)}", base_url=service.base_url, key="another key")
        write_config(f'default_profile = "main"\n{settings}', mode=0o600)
        monkeypatch.setenv("PGPASSWORD", password) if password else monkeypatch.delenv("PGPASSWORD", raising=False)
        for variable in ("MSGCTL_BASE_URL", "MSGCTL_CLIENT", "MSGCTL_KEY"):
            monkeypatch.delenv(variable, raising=False)
        bulk = ("sms", "bulk", of_phones(home, [ANA]), "-m", "Hello", "--yes", "--again")
        for line in (
            ONCE,
            bulk,
            ("doctor",),
            ("profile", "show"),
            ("profile", "list"),
            ("optout", "list"),
            ("balance",),
        ):
            for more in (("-vv",), ("--json", "-vv")):
                done = tool(*line, *more)
                assert not shows_key(done.stdout + done.stderr), (line, done.out, done.err)
                assert done.code in (0, 1, 6), done.err
        with monkeypatch.context() as patch:
            for place in ("SharedRecords._connect", "SharedConnection.execute", "SharedRecords._prepare"):
                fail = Mock(side_effect=RuntimeError(url, KEY))
                patch.setattr(f"msgctl.storage.shared.{place}", fail)
                done = tool(*ONCE, "-vv")
                assert (done.code, shows_key(done.stdout + done.stderr)) == (5, False), done.err
        assert files_with_key(home) <= {"config.toml"}


def test_the_plan_of_a_deleted_job_is_deleted_in_the_store_of_its_profile(
    postgres: Cluster, tool: Tool, service: Service, home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for variable in ("MSGCTL_BASE_URL", "MSGCTL_CLIENT", "MSGCTL_KEY"):
        monkeypatch.delenv(variable, raising=False)
    shared = table("main", f"store = {json.dumps(postgres.url())}", base_url=service.base_url)
    write_config(f'default_profile = "other"\n{shared}{table("other", client=2)}', mode=0o600)
    service.always(accepting(service))
    assert tool("-p", "main", "sms", "bulk", of_phones(home, [ANA]), "-m", "Hello", "--yes", "--name", "one").code == 0
    assert len(postgres.admin("SELECT source FROM msgctl.plans")) == 1
    assert tool("job", "remove", "one", "--yes").code == 0
    assert postgres.admin("SELECT source FROM msgctl.plans") == []


# --- the first use


def test_the_records_of_a_machine_are_imported_at_their_first_use_and_when_they_change(
    postgres: Cluster, tool: Tool, service: Service, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert tool(*ONCE).code == 0
    assert tool("optout", "add", LUIS).code == 0
    monkeypatch.setenv("MSGCTL_STORE", postgres.url())
    service.received.clear()
    assert "This is the result of the first attempt" in tool(*ONCE).err
    tool("sms", "send", LUIS, "-m", "Hello").refused(2, "opted out")
    with monkeypatch.context() as another_machine:
        another_machine.setenv("XDG_STATE_HOME", f"{files.state('x').parents[2]}/another")
        assert tool(*ONCE).code == 0
        tool("sms", "send", LUIS, "-m", "Hello").refused(2, "opted out")
    assert service.received == []
    assert tool("optout", "remove", LUIS).code == 0
    service.always(accepting(service))
    assert tool("sms", "send", LUIS, "-m", "Hello").code == 0
    optouts.add(LOCAL, [(EVA, "all")], 1.0)  # as an older msgctl does
    tool("sms", "send", EVA, "-m", "Hello").refused(2, "opted out")


def test_a_request_in_flight_before_the_store_was_shared_is_unknown(
    postgres: Cluster, tool: Tool, service: Service, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert tool(*ONCE).code == 0
    with closing(sqlite3.connect(files.state(once.KEYS.file))) as db, db:
        db.execute("UPDATE keys SET exit_code = NULL")
    service.received.clear()
    monkeypatch.setenv("MSGCTL_STORE", postgres.url())
    assert tool(*ONCE).code == 5
    assert service.received == []


def test_tables_are_created_once_by_many_processes(postgres: Cluster, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MSGCTL_STORE", postgres.url())
    line = [sys.executable, "-m", "msgctl", "optout", "add", ANA]
    started = [subprocess.Popen(line, stdout=subprocess.PIPE, stderr=subprocess.PIPE) for _ in range(4)]
    for each in started:
        _, err = each.communicate(timeout=60)
        assert each.returncode == 0, err
    assert process("optout", "list", "-o", "csv", "--no-header", "--fields", "phone").out == f"{ANA}\n"
