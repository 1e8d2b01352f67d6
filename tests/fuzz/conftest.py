"""The environment of these tests: only loopback, no programs, and a home of its own."""

from __future__ import annotations

import getpass
import socket
from pathlib import Path
from typing import Any

import pytest

from fuzz.world import World
from msgctl.sandbox.server import Server
from support.examples import write_files
from support.files import table, write_config
from support.service import Service, answer
from support.tool import Tool

READABLE = {"id": "m1", "status": "7", "state": "delivered", "urlShort": "https://s.example/1"}
"""An answer that is readable as any record."""


@pytest.fixture
def world(service: Service, tool: Tool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> World:
    """The files and the job that examples are about, a profile that leads to the server, and a used sandbox."""
    home = tmp_path / "home"
    home.mkdir()
    for name, value in {"HOME": home, "XDG_CONFIG_HOME": home / "config", "XDG_STATE_HOME": home / "state"}.items():
        monkeypatch.setenv(name, str(value))
    monkeypatch.chdir(home)
    monkeypatch.setenv("PATH", "")  # what is stored as a key command is run by a shell
    monkeypatch.setattr(getpass, "getpass", lambda _: "typed")
    monkeypatch.setattr(Server, "serve_forever", lambda *_, **__: None)
    know_only_loopback(monkeypatch)
    service.always(answer(READABLE))
    write_files(home)
    write_config(f'default_profile = "main"\n{table("main", base_url=service.base_url)}')
    for words in (
        ["sms", "send", "573001234567", "-m", "Hola"],
        ["url", "shorten", "https://a.example", "--name", "x"],
    ):
        assert tool("-p", "sandbox", *words).code == 0
    world = World(home, service, tool)
    world.keep()
    return world


def know_only_loopback(monkeypatch: pytest.MonkeyPatch) -> None:
    """Look up numbers of loopback, and fail for every other name like a resolver that does not know it."""
    look_up = socket.getaddrinfo

    def refuse(host: Any, *more: Any, **named: Any) -> Any:
        if host in ("127.0.0.1", "::1"):
            return look_up(host, *more, **named)
        raise socket.gaierror(socket.EAI_NONAME, "Name or service not known")

    monkeypatch.setattr(socket, "getaddrinfo", refuse)
