"""One row per reason of an error: the command line and the service that lead to it, and what the JSON of the error has.

A reason has more rows if a run and an earlier one, or a send and a job, may end in it.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

import pytest

from msgctl.errors import REASONS
from msgctl.store import jobs, owners
from msgctl.store.store import Store, open_store
from support.commands import PHONE
from support.service import Behaviour, Service, hang_up, respond, silent
from support.tool import Tool

SEND = ("sms", "send", PHONE, "-m", "Hola")
BULK = ("sms", "bulk", "people.csv", "-m", "Hola", "--yes")
VERIFY = ("2fa", "verify", PHONE, "--app-name", "Shop", "--code", "123456")
ACCEPTED = respond({"id": "m1", "status": "queued", "phone": PHONE})
REFUSED = respond({"error": "INVALID_PHONE", "msg": "invalid phone"}, 520)
TWO = ("sms", "send", PHONE, "573007654321", "-m", "Hola")
ONE_OF_TWO = respond(
    {
        "id": "dispatch1",
        "data": [
            {"id": "m1", "status": "queued", "phone": PHONE},
            {"status": "rejected", "phone": "573007654321"},
        ],
    }
)
PEOPLE = "phone\n573001234567\n573007654321\n"


class Case(NamedTuple):
    """A run that ends in a reason; ``prepare`` sets the scene, and may return an object to close.

    ``recipients`` are the outcomes that the error lists.
    """

    reason: str
    code: int
    command: tuple[str, ...]
    nothing_sent: bool
    prepare: Callable[[Service, Tool, pytest.MonkeyPatch, Path], object]
    recipients: tuple[str, ...] = ()
    replayed: bool = False


def responds(behaviour: Behaviour) -> Callable[..., object]:
    return lambda service, *_: service.always(behaviour)


def nothing(*_: object) -> None:
    pass


def opted_out(_service: Service, tool: Tool, *_: object) -> None:
    assert tool("optout", "add", PHONE).code == 0


def key_in_use_for_another_message(service: Service, tool: Tool, *_: object) -> None:
    service.always(ACCEPTED)
    assert tool("sms", "send", PHONE, "-m", "Other", "--once", "k").code == 0


def everyone_has_got_it(service: Service, tool: Tool, *_: object) -> None:
    service.always(respond({"status": "queued", "id": "message1"}))
    assert tool(*BULK).code == 0


def without_an_account(_service: Service, _tool: Tool, environment: pytest.MonkeyPatch, *_: object) -> None:
    for name in ("BASE_URL", "CLIENT", "KEY"):
        environment.delenv(f"MSGCTL_{name}")


def without_a_key(_service: Service, _tool: Tool, environment: pytest.MonkeyPatch, *_: object) -> None:
    environment.delenv("MSGCTL_KEY")


def readable_by_others(service: Service, _tool: Tool, environment: pytest.MonkeyPatch, home: Path) -> None:
    without_an_account(service, _tool, environment)
    path = home / "config.toml"
    path.write_text(f'[profiles.main]\nbase_url = "{service.base_url}"\nclient = 1\nkey = "a-secret"\n')
    path.chmod(0o644)
    environment.setenv("MSGCTL_CONFIG", str(path))


def damaged(_service: Service, _tool: Tool, environment: pytest.MonkeyPatch, home: Path) -> None:
    (home / "empty.sqlite3").touch()
    environment.setenv("MSGCTL_STORE", str(home / "empty.sqlite3"))


def newer(service: Service, tool: Tool, environment: pytest.MonkeyPatch, home: Path) -> None:
    import sqlite3

    environment.setenv("MSGCTL_STORE", str(home / "store.sqlite3"))
    service.always(ACCEPTED)
    assert tool(*SEND).code == 0
    service.received.clear()
    store = sqlite3.connect(home / "store.sqlite3")
    store.execute("UPDATE meta SET value = '9999' WHERE name = 'version'")
    store.commit()
    store.close()


def unreachable_store(_service: Service, _tool: Tool, environment: pytest.MonkeyPatch, _home: Path) -> None:
    environment.setenv("MSGCTL_STORE", "postgresql://nobody@127.0.0.1:1/nothing?connect_timeout=2")


def job_removed(service: Service, tool: Tool, *_: object) -> None:
    service.always(respond({"status": "queued", "id": "message1"}))
    assert tool(*BULK, "--name", "day").code == 0
    assert tool("job", "remove", "day", "--yes").code == 0


def job_cancelled(service: Service, tool: Tool, *_: object) -> None:
    service.always(respond({"status": "queued", "id": "message1"}))
    assert tool(*BULK, "--name", "day", "--batch-size", "1", "--canary", "1").code == 0
    assert tool("job", "cancel", "day", "--yes").code == 0


def not_toml(service: Service, tool: Tool, environment: pytest.MonkeyPatch, home: Path) -> None:
    readable_by_others(service, tool, environment, home)
    (home / "config.toml").write_text("profiles = ")
    (home / "config.toml").chmod(0o600)


def five_people(service: Service, _tool: Tool, _environment: pytest.MonkeyPatch, home: Path) -> None:
    (home / "people.csv").write_text("phone\n" + "".join(f"57300123456{digit}\n" for digit in range(6)))
    service.always(respond({"status": "in doubt"}))


def down(_service: Service, _tool: Tool, environment: pytest.MonkeyPatch, _home: Path) -> None:
    environment.setenv("MSGCTL_BASE_URL", "http://127.0.0.1:1/api/v1")


def runs_elsewhere(service: Service, tool: Tool, environment: pytest.MonkeyPatch, home: Path) -> object:
    """Own the job as another process does, until the store is closed."""
    environment.setenv("MSGCTL_STORE", str(home / "store.sqlite3"))
    service.always(respond({"status": "queued", "id": "message1"}))
    assert tool(*BULK, "--name", "day", "--batch-size", "1", "--canary", "1").code == 0
    store = open_store(home / "store.sqlite3", clock=tool.clock)
    owners.take(store, jobs.listed(store)[0].number)
    return store


def lost_before(service: Service, tool: Tool, *_: object) -> None:
    service.always(hang_up)
    assert tool(*SEND, "--once", "k").code == 5


def partly_refused_before(service: Service, tool: Tool, *_: object) -> None:
    service.always(ONE_OF_TWO)
    assert tool(*TWO, "--once", "k").code == 6


def job_refused_before(service: Service, tool: Tool, *_: object) -> None:
    service.always(REFUSED)
    assert tool(*BULK, "--name", "day").code == 6


def no_links(service: Service, *_: object) -> None:
    service.always(respond({"error": "x"}, 503))


CASES = (
    Case("unauthorized", 1, SEND, True, responds(respond({"error": "no"}, 401)), ("refused",)),
    Case("not_verified", 1, VERIFY, True, responds(respond({"status": "rejected"}))),
    Case("unreadable", 1, ("balance",), True, responds(respond({"balance": "unlimited"}))),
    Case("refused", 1, SEND, True, responds(REFUSED), ("refused",)),
    Case("invalid_phone", 2, ("sms", "send", "12", "-m", "Hola"), True, nothing),
    Case("invalid_file", 2, ("sms", "bulk", "wrong.csv", "-m", "Hola", "--yes"), True, nothing),
    Case("opted_out", 2, SEND, True, opted_out),
    Case("repeats", 2, BULK, True, everyone_has_got_it),
    Case("key_reused", 2, (*SEND, "--once", "k"), True, key_in_use_for_another_message),
    Case("not_confirmed", 2, BULK[:-1], True, nothing),
    Case("usage", 2, ("sms", "send"), True, nothing),
    Case("no_profile", 3, SEND, True, without_an_account),
    Case("no_credentials", 3, SEND, True, without_a_key),
    Case("unsafe_file", 3, SEND, True, readable_by_others),
    Case("damaged_store", 3, SEND, True, damaged),
    Case("newer_store", 3, SEND, True, newer),
    Case("not_reached", 4, SEND, True, down),
    Case("rate_limited", 4, SEND, True, responds(respond({}, 429)), ("refused",)),
    Case("unavailable", 4, ("balance", "--timeout", "1"), True, responds(silent)),
    Case("store_not_reached", 4, SEND, True, unreachable_store),
    Case("outcome_unknown", 5, SEND, False, responds(hang_up), ("unknown",)),
    Case("low_balance", 6, ("balance", "check", "--min", "9"), True, responds(respond({"status": 7}))),
    Case("outcome_unknown", 5, (*SEND, "--once", "k"), True, lost_before, ("unknown",), replayed=True),
    Case("not_accepted", 6, TWO, False, responds(ONE_OF_TWO), ("accepted", "refused")),
    Case(
        "not_accepted",
        6,
        (*TWO, "--once", "k"),
        True,
        partly_refused_before,
        ("accepted", "refused"),
        replayed=True,
    ),
    Case("not_accepted", 6, BULK, True, responds(REFUSED)),
    Case("not_accepted", 6, (*BULK, "--name", "day"), True, job_refused_before, replayed=True),
    Case(
        "not_delivered",
        6,
        ("state", "watch", "m1", "--until", "delivered"),
        True,
        responds(respond({"state": "rejected"})),
    ),
    Case(
        "state_not_reached", 6, ("state", "watch", "m1", "--max-wait", "1"), True, responds(respond({"state": "sent"}))
    ),
    Case(
        "credit_limit",
        6,
        (*BULK, "--batch-size", "1", "--max-credits", "1"),
        False,
        responds(
            respond({"id": "m12345", "status": "queued", "data": [{"id": "m12345", "status": "queued", "credits": 1}]})
        ),
    ),
    Case(
        "rows_failed",
        6,
        ("url", "bulk", "people.csv", "--to", "https://shop.example/{phone}", "--name", "n{phone}"),
        True,
        no_links,
    ),
    Case("running_elsewhere", 6, (*BULK, "--name", "day"), True, runs_elsewhere),
    Case("job_removed", 6, (*BULK, "--name", "day"), True, job_removed),
    Case(
        "cancelled",
        6,
        (*BULK, "--name", "day", "--batch-size", "1", "--canary", "1"),
        True,
        job_cancelled,
        replayed=True,
    ),
    Case("paused", 6, (*BULK, "--batch-size", "1", "--concurrency", "1"), False, five_people),
    Case("configuration", 3, SEND, True, not_toml),
    Case("no_message", 6, ("-p", "sandbox", "sandbox", "inbox", "--wait", "0.1"), True, nothing),
)


@pytest.mark.parametrize("case", CASES, ids=[case.reason for case in CASES])
def test_an_error_has_its_reason(
    case: Case, service: Service, tool: Tool, home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(home)
    (home / "people.csv").write_text(PEOPLE)
    (home / "wrong.csv").write_text("phone\n12\n")
    scene = case.prepare(service, tool, monkeypatch, home)
    try:
        done = tool(*case.command, "--json")
    finally:
        if isinstance(scene, Store):
            scene.close()
    error = json.loads(done.err.splitlines()[-1])
    assert (error["reason"], error["exit_code"], done.code) == (case.reason, case.code, case.code), error
    assert (error["nothing_sent"], error.get("replayed", False)) == (case.nothing_sent, case.replayed), error
    assert tuple(recipient["outcome"] for recipient in error.get("recipients", ())) == case.recipients, error


def test_every_reason_has_a_test() -> None:
    assert {case.reason for case in CASES} == REASONS.keys()
