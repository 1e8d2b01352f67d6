"""Looking up names without asking anybody."""

from __future__ import annotations

import socket
from typing import NoReturn

import pytest


def know_no_names(monkeypatch: pytest.MonkeyPatch) -> None:
    """Answer every look-up as a resolver does that knows no such name."""

    def refuse(*_: object, **__: object) -> NoReturn:
        raise socket.gaierror(socket.EAI_NONAME, "Name or service not known")

    monkeypatch.setattr(socket, "getaddrinfo", refuse)
