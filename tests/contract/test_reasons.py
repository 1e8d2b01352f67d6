"""One row per reason of an error: the command line and the service that lead to it, and whether anything was sent."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

import pytest

from msgctl.errors import REASONS
from support.commands import PHONE
from support.service import Behaviour, Service, hang_up, respond, silent
from support.tool import Tool

SEND = ("sms", "send", PHONE, "-m", "Hola")
BULK = ("sms", "bulk", "people.csv", "-m", "Hola", "--yes")
VERIFY = ("2fa", "verify", PHONE, "--app-name", "Shop", "--code", "123456")
ACCEPTED = respond({"id": "m1", "status": "queued", "phone": PHONE})
REFUSED = respond({"error": "INVALID_PHONE", "msg": "invalid phone"}, 520)
PEOPLE = "phone\n573001234567\n573007654321\n"


class Case(NamedTuple):
    """A run that ends in a reason; ``prepare`` sets the scene."""

    reason: str
    code: int
    command: tuple[str, ...]
    nothing_sent: bool
    prepare: Callable[[Service, Tool, pytest.MonkeyPatch, Path], object]


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


def no_links(service: Service, *_: object) -> None:
    service.always(respond({"error": "x"}, 503))


CASES = (
    Case("unauthorized", 1, SEND, True, responds(respond({"error": "no"}, 401))),
    Case("not_verified", 1, VERIFY, True, responds(respond({"status": "rejected"}))),
    Case("unreadable", 1, ("balance",), True, responds(respond({"balance": "unlimited"}))),
    Case("refused", 1, SEND, True, responds(REFUSED)),
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
    Case("rate_limited", 4, SEND, True, responds(respond({}, 429))),
    Case("unavailable", 4, ("balance", "--timeout", "1"), True, responds(silent)),
    Case("store_not_reached", 4, SEND, True, unreachable_store),
    Case("outcome_unknown", 5, SEND, False, responds(hang_up)),
    Case("low_balance", 6, ("balance", "check", "--min", "9"), True, responds(respond({"status": 7}))),
    Case(
        "not_accepted",
        6,
        ("sms", "send", PHONE, "573007654321", "-m", "Hola"),
        False,
        responds(
            respond(
                {
                    "id": "dispatch1",
                    "data": [
                        {"id": "m1", "status": "queued", "phone": PHONE},
                        {"status": "rejected", "phone": "573007654321"},
                    ],
                }
            )
        ),
    ),
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
    Case("job_removed", 6, (*BULK, "--name", "day"), True, job_removed),
    Case("cancelled", 6, (*BULK, "--name", "day", "--batch-size", "1", "--canary", "1"), True, job_cancelled),
    Case("paused", 6, (*BULK, "--batch-size", "1", "--concurrency", "1"), False, five_people),
    Case("configuration", 3, SEND, True, not_toml),
    Case("no_message", 6, ("-p", "sandbox", "sandbox", "inbox", "--wait", "0.1"), True, nothing),
)

ELSEWHERE = {"running_elsewhere": "tests/store and tests/stories"}
"""Reasons that need several processes, and the tests that show them."""


@pytest.mark.parametrize("case", CASES, ids=[case.reason for case in CASES])
def test_an_error_has_its_reason(
    case: Case, service: Service, tool: Tool, home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(home)
    (home / "people.csv").write_text(PEOPLE)
    (home / "wrong.csv").write_text("phone\n12\n")
    case.prepare(service, tool, monkeypatch, home)
    done = tool(*case.command, "--json")
    error = json.loads(done.err.splitlines()[-1])
    found = {name: error[name] for name in ("reason", "exit_code", "nothing_sent")}
    assert found == {"reason": case.reason, "exit_code": case.code, "nothing_sent": case.nothing_sent}, error
    assert done.code == case.code


def test_every_reason_has_a_test() -> None:
    assert {case.reason for case in CASES} | ELSEWHERE.keys() == REASONS.keys()
