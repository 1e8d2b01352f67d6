"""Each fault that `doctor` finds, with the line that it prints."""

from __future__ import annotations

import os
import sqlite3
from collections.abc import Callable, Mapping
from contextlib import closing
from pathlib import Path
from typing import NamedTuple

import pytest

from msgctl.store.store import open_store
from store.campaigns import ANA, LUIS, published
from support.files import table, write_config
from support.jobs import of_phones
from support.postgres import Cluster
from support.service import Service, respond
from support.tool import Tool


class Fault(NamedTuple):
    """A fault: how to cause it, and the check, its status, what it found and the fix that doctor prints.

    ``not_in_fix`` must not be in the fix.
    """

    cause: Callable[[Tool, Service, Path], object]
    check: str
    status: str
    found: str
    fix: str
    not_in_fix: str = "nothing"


def responding(status: int, body: bytes | Mapping[str, object]) -> Callable[[Tool, Service, Path], None]:
    return lambda _tool, service, _home: service.always(respond(body, status))


def environment(**variables: str) -> Callable[[Tool, Service, Path], None]:
    """Set variables, which `home` restores."""
    return lambda _tool, _service, _home: os.environ.update(variables)


def main_and_sandbox(_tool: Tool, _service: Service, _home: Path) -> None:
    write_config(table("main", "contry_code = 'CO'"))
    os.environ.update(MSGCTL_PROFILE="main", **dict.fromkeys(VARIABLES, ""))


def key_command_fails(_tool: Tool, _service: Service, _home: Path) -> None:
    main_and_sandbox(_tool, _service, _home)
    write_config(table("main", "key_command = 'exit 7'", key=None))


def readable(_tool: Tool, _service: Service, _home: Path) -> None:
    write_config(table("main"), mode=0o644)


def damaged(_tool: Tool, _service: Service, home: Path) -> None:
    (home / "store.sqlite3").write_bytes(b"")
    os.environ["MSGCTL_STORE"] = str(home / "store.sqlite3")


def locked(tool: Tool, _service: Service, home: Path) -> None:
    tool("history")
    db = sqlite3.connect(home / "state" / "msgctl" / "store.sqlite3", isolation_level=None, check_same_thread=False)
    db.execute("BEGIN IMMEDIATE")
    LOCKS.append(db)


VARIABLES = ("MSGCTL_BASE_URL", "MSGCTL_CLIENT", "MSGCTL_KEY")
LOCKS: list[sqlite3.Connection] = []


def paused(tool: Tool, _service: Service, home: Path) -> None:
    with closing(open_store(home / "state" / "msgctl" / "store.sqlite3", clock=tool.clock)) as store:
        published(store, [ANA, LUIS], name="today")


def overdue(tool: Tool, _service: Service, home: Path) -> None:
    people = of_phones(home, [ANA])
    assert tool("sms", "bulk", people, "-m", "x", "--yes", "--at", "16:00", "--name", "later").code == 0
    tool.clock.now += 7_200


def failing(tool: Tool, service: Service, home: Path) -> None:
    key = home / "key.txt"
    key.write_text("stored-key")
    write_config(table("main", f"key_command = 'cat {key}'", key=None, base_url=service.base_url))
    os.environ.update(MSGCTL_PROFILE="main", **dict.fromkeys(VARIABLES, ""))
    overdue(tool, service, home)
    key.unlink()
    assert tool("job", "run-due").code == 3
    key.write_text("stored-key")


PROXY = b"<html><body>Blocked by the proxy</body></html>"
FAULTS = {
    "a file that others can read": Fault(readable, "file", "failed", "readable by other users", "chmod 600"),
    "an unknown setting": Fault(main_and_sandbox, "file", "failed", "did you mean country_code", "Correct or remove"),
    "no profile": Fault(environment(MSGCTL_PROFILE="x"), "profile", "failed", "all set", "Unset MSGCTL_PROFILE"),
    "two of three variables": Fault(
        environment(MSGCTL_KEY=""), "profile", "failed", "MSGCTL_KEY is not set", "set MSG"
    ),
    "a key command that fails": Fault(key_command_fails, "key", "failed", "exit status 7", "Run the command by hand"),
    "a short key": Fault(environment(MSGCTL_KEY="abcde"), "key", "warning", "fewer than 6", "longer key"),
    "plain http": Fault(
        environment(MSGCTL_BASE_URL="http://sms.example/api/v1"), "profile", "failed", "is plain http", "Use https://"
    ),
    "an empty store": Fault(damaged, "store", "failed", "it is empty", "Restore it from a backup"),
    "a store that cannot be written": Fault(locked, "store", "failed", "Another program is using", "Try again later"),
    "a store that is not reached": Fault(
        environment(MSGCTL_STORE="postgresql://127.0.0.1:1/x"), "store", "failed", "was not reached", "it is running"
    ),
    "a home that cannot be written": Fault(
        environment(XDG_STATE_HOME="/proc/x"), "store", "failed", "Cannot use the store", "MSGCTL_STORE"
    ),
    "a paused job": Fault(paused, "jobs", "warning", "1 paused job with 2 pending recipients: today", "resume today"),
    "no run-due": Fault(overdue, "run-due", "warning", "1 job is overdue: no `msgctl job run-due` has sent it", "cron"),
    "a run-due that fails": Fault(
        failing, "run-due", "failed", "1 job is overdue: `msgctl job run-due` fails: Job later: ", "by hand"
    ),
    "401": Fault(responding(401, {"error": "E1"}), "credentials", "failed", "401", "Check the client ID and the key"),
    "403": Fault(responding(403, PROXY), "credentials", "failed", "403", "Check the client ID and the key"),
    "a refusal": Fault(
        responding(520, {"error": "1003", "msg": "IP no permitida"}), "credentials", "failed", "1003", "Security", "key"
    ),
    "a wrong key with status 520": Fault(
        responding(520, {"error": "UNAUTHORIZED", "msg": "client or key is wrong"}),
        "credentials",
        "failed",
        "UNAUTHORIZED",
        "Check the client ID and the key in MSGCTL_CLIENT and MSGCTL_KEY. The service refuses every address",
    ),
    "429": Fault(responding(429, {}), "credentials", "failed", "429", "", "key"),
    "503": Fault(responding(503, b""), "credentials", "failed", "503", "", "key"),
    "the page of a proxy": Fault(responding(200, PROXY), "credentials", "failed", "", "", "key"),
    "a wrong path": Fault(responding(404, PROXY), "credentials", "failed", "404", "", "key"),
    "no service": Fault(
        environment(MSGCTL_BASE_URL="http://127.0.0.1:1/api/v1"), "service", "failed", "No connection", "base URL"
    ),
}


@pytest.mark.parametrize("name", FAULTS)
def test_each_fault_has_its_line(
    name: str, tool: Tool, service: Service, home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    fault = FAULTS[name]
    service.always(respond({"status": 7}))
    with monkeypatch.context() as change:
        for variable in (*VARIABLES, "MSGCTL_PROFILE", "MSGCTL_STORE", "XDG_STATE_HOME"):
            change.setenv(variable, os.environ.get(variable, ""))  # the cause may change it
        fault.cause(tool, service, home)
        done = tool("doctor", "--timeout", "3", "--json")
    for lock in LOCKS:
        lock.close()
    LOCKS.clear()
    line = next(each for each in done.document if each["check"] == fault.check)
    assert (line["status"], done.code) == (fault.status, int(fault.status == "failed")), line
    assert fault.found in line["found"]
    assert fault.fix in (line["fix"] or "")
    assert fault.not_in_fix not in (line["fix"] or "")


def test_the_file_of_the_profile_in_use_is_checked(tool: Tool, monkeypatch: pytest.MonkeyPatch) -> None:
    write_config(table("main", "contry_code = 'CO'"))
    monkeypatch.setenv("MSGCTL_PROFILE", "sandbox")
    statuses = [
        {line["check"]: line["status"] for line in tool(*options, "doctor", "-n", "--json").document}
        for options in ((), ("-p", "main"))
    ]
    assert [each["file"] for each in statuses] == ["skipped", "failed"]


def test_a_store_that_is_read_only_is_reported(
    postgres: Cluster, service: Service, tool: Tool, monkeypatch: pytest.MonkeyPatch
) -> None:
    service.always(respond({"status": 7}))
    monkeypatch.setenv("MSGCTL_STORE", postgres.url())
    postgres.admin(f"ALTER DATABASE {postgres.database} SET default_transaction_read_only = on")
    try:
        done = tool("doctor", "--json")
    finally:
        read_write = "SET default_transaction_read_only = off"
        postgres.admin(read_write, f"ALTER DATABASE {postgres.database} RESET default_transaction_read_only")
    lines = {line["check"]: line for line in done.document}
    assert (lines["store"]["status"], "is read-only" in lines["store"]["found"], done.code) == ("failed", True, 1)
