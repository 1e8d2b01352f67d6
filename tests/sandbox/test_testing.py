"""`msgctl.testing`, as a test of another program uses it."""

from __future__ import annotations

import errno
import os
import subprocess
import sys
import tempfile
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any, NoReturn

import pytest

from msgctl.errors import UsageError
from msgctl.testing import Sandbox, sandbox
from support import PATIENCE
from support.files import write_config
from support.tool import Outcome, Tool

PHONE = "573001234567"


def run(served: Sandbox, *arguments: str) -> Outcome:
    """Run a command line with the variables of a sandbox."""
    with pytest.MonkeyPatch.context() as patch:
        for name, value in served.variables.items():
            patch.setenv(name, value)
        return Tool()(*arguments)


def send(served: Sandbox, *options: str) -> Outcome:
    return run(served, "sms", "send", PHONE, "-m", "Hola", *options)


def test_a_program_uses_the_account_and_the_faults_of_the_sandbox() -> None:
    with sandbox(credits=2, fault="429:next=1", client=7, key="made up") as served:
        assert send(served, "--json").error["reason"] == "rate_limited"
        assert send(served).code == send(served).code == 0
        assert send(served, "--json").error["reason"] == "refused", "the credits are spent"
        served.fault("503:next=1", "delay=0.01")
        assert send(served, "--json").error["http_status"] == 503
        served.fault("clear")
        assert [message["phone"] for message in served.inbox(phone=PHONE)] == [PHONE, PHONE]
        assert served.inbox(phone="573009999999") == []


def test_a_program_uses_no_profile_of_the_user(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MSGCTL_PROFILE", "main")
    write_config('[profiles.main]\nbase_url = "https://service.example/api/v1"\nclient = 1\nkey = "secret-key"\n')
    with sandbox() as served:
        assert send(served).code == 0
        assert send(served, "-p", "main", "--dry-run").code == 3


def test_a_wait_returns_each_message_once() -> None:
    with sandbox() as served:
        send(served)
        assert run(served, "2fa", "send-sms", PHONE, "--app-name", "Shop").code == 0
        first, second = served.wait(PHONE), served.wait(PHONE)
        assert (first["text"], first["code"]) == ("Hola", None)
        assert second["code"] is not None
        assert second["code"] in second["text"]
        with pytest.raises(TimeoutError, match=PHONE):
            served.wait(PHONE, timeout=0.1)


def test_a_wait_ends_when_the_message_arrives() -> None:
    with sandbox() as served, ThreadPoolExecutor() as pool:
        waiting = pool.submit(served.wait, PHONE, timeout=PATIENCE)
        send(served)
        assert waiting.result(PATIENCE)["text"] == "Hola"


def test_the_clock_moves_states() -> None:
    with sandbox(clock="2026-12-01T09:00:00") as served:
        send(served)
        assert served.inbox()[0]["state"] == "queued"
        served.clock("+1m")
        assert served.inbox()[0]["state"] == "delivered"
        for change in ("1969-12-31T23:59:59Z", "3001-01-01T00:00:00Z"):
            with pytest.raises(UsageError, match="between 1970 and 3000"):
                served.clock(change)


def test_a_reset_empties_the_store_of_the_sandbox_and_two_sandboxes_share_nothing() -> None:
    with sandbox(seed=1) as served, sandbox() as other:
        for _ in range(2):
            assert send(served, "--once", "welcome").code == 0
            assert len(served.inbox()) == 1, "the key is new"
            assert served.wait("573001234567", 0)["text"] == "Hola", "the ID is that of the first round"
            served.reset()
            assert served.inbox() == []
        assert send(other, "--once", "welcome").code == 0
        assert (len(served.inbox()), len(other.inbox())) == (0, 1)


def test_an_inbox_with_many_messages_lists_the_newest_thousand() -> None:
    with sandbox(credits=50_000) as served:
        phones = [f"57300123{number:04d}" for number in range(4, 1_009)]
        for part in (phones[:500], phones[500:]):
            send = ("sms", "send", ",".join(part), "-m", "x" * 6_000, "--max-segments", "40")
            assert run(served, *send).code == 0
        assert len(served.inbox()) == 1_005, "6 MB are more than a response of the service may have"
        done = run(served, "sandbox", "inbox", "-o", "csv", "--no-header")
        assert [line.split(",")[2] for line in done.out.splitlines()] == phones[5:]
        assert "The newest 1,000 of 1,005 messages" in done.err
        assert len(run(served, "sandbox", "inbox", "--limit", "2000", "--json").document) == 1_005


@pytest.mark.parametrize(
    "options",
    [
        {"fault": "none"},
        {"clock": "later"},
        {"credits": -1},
        {"responses": "other"},
        {"client": "shop"},
        {"key": ""},
    ],
)
def test_a_wrong_setting_is_an_error(options: Any) -> None:
    with pytest.raises(UsageError), sandbox(**options):
        pass


def test_a_store_that_is_still_written_when_the_sandbox_ends_is_no_error(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    def fail(*_: object, **__: object) -> NoReturn:
        raise OSError(errno.ENOTEMPTY, "Directory not empty")

    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    with sandbox():
        monkeypatch.setattr(os, "rmdir", fail)


def test_without_pytest_the_module_loads_neither_pytest_nor_the_command_line() -> None:
    code = "import sys, msgctl.testing; assert not {'pytest', 'typer', 'httpx', 'rich'} & {*sys.modules}"
    subprocess.run([sys.executable, "-c", code], check=True)
