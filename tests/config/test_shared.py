"""A shared store is refused, because this version has none."""

from __future__ import annotations

from pathlib import Path

import pytest

from support.service import Service
from support.tool import Tool

SENDS = (
    ("sms", "send", "573001234567", "-m", "Hello", "--once", "a"),
    ("sms", "bulk", "people.csv", "-m", "Hello", "--yes", "--once", "b"),
    ("sms", "bulk", "people.csv", "-m", "Hello", "--yes", "--at", "tomorrow 09:00"),
    ("balance",),
    ("api", "GET", "/balance"),
)
NOT_SUPPORTED = "A shared store is not supported by this version of msgctl; nothing was sent"


@pytest.fixture
def people(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(home)
    Path("people.csv").write_text("phone\n573001234567\n", encoding="utf-8")


@pytest.mark.usefixtures("people")
def test_no_request_is_made_with_the_variable(service: Service, tool: Tool, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MSGCTL_SHARED", "postgresql://db/msgctl")
    for arguments in SENDS:
        tool(*arguments).refused(3, NOT_SUPPORTED, "Unset MSGCTL_SHARED")
    assert (service.received, tool("job", "list", "--json").document) == ([], [])
    assert tool("-p", "sandbox", *SENDS[0]).code == 0
    monkeypatch.setenv("MSGCTL_SHARED", "")
    assert tool("-n", *SENDS[0]).code == 0


@pytest.mark.usefixtures("people")
def test_no_request_is_made_with_the_setting(service: Service, tool: Tool, home: Path) -> None:
    added = tool(
        "profile", "add", "main", "--base-url", service.base_url, "--client", "1", "--key-stdin", stdin="a-key"
    )
    assert added.code == 0, added.err
    file = home / "config" / "msgctl" / "config.toml"
    file.write_text(file.read_text(encoding="utf-8") + 'shared = "postgresql://db/msgctl"\n', encoding="utf-8")
    for arguments in SENDS:
        tool("-p", "main", *arguments).refused(3, NOT_SUPPORTED, "Delete `shared` from ")
    assert service.received == []
