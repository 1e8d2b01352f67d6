"""Name lookups without a resolver."""

from __future__ import annotations

import ipaddress
import socket
from typing import Any

import pytest


def know_no_names(monkeypatch: pytest.MonkeyPatch) -> None:
    """Fail every lookup like a resolver that does not know the name; addresses need no resolver."""
    look_up = socket.getaddrinfo

    def refuse(host: str, *rest: Any, **more: Any) -> Any:
        try:
            ipaddress.ip_address(host)
        except ValueError:
            raise socket.gaierror(socket.EAI_NONAME, "Name or service not known") from None
        return look_up(host, *rest, **more)

    monkeypatch.setattr(socket, "getaddrinfo", refuse)
