"""Name lookups without a resolver."""

from __future__ import annotations

import ipaddress
import socket
from typing import Any

import pytest


def know_no_names(monkeypatch: pytest.MonkeyPatch) -> None:
    """Fail every lookup except of loopback addresses, as a resolver does for an unknown name."""
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
