"""Name lookups without a resolver."""

from __future__ import annotations

import ipaddress
import socket
from typing import Any

import pytest


def know_no_names(monkeypatch: pytest.MonkeyPatch) -> None:
    """Fail every lookup but of a loopback address, like a resolver that does not know the name."""
    look_up = socket.getaddrinfo

    def refuse(host: Any, *rest: Any, **more: Any) -> Any:
        try:
            known = ipaddress.ip_address(host).is_loopback
        except ValueError:
            known = False
        if not known:
            raise socket.gaierror(socket.EAI_NONAME, "Name or service not known")
        return look_up(host, *rest, **more)

    monkeypatch.setattr(socket, "getaddrinfo", refuse)
