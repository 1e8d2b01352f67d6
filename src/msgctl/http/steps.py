"""The steps of a request as httpcore traces them."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any


@dataclass(slots=True)
class Steps:
    """Addresses, duration and certificate of the connection that a request made; `note` is the callback for it.

    ``local`` is the address that the connection leaves from, empty if there was none. ``through_proxy`` leaves out the
    TLS connection to the proxy itself.
    """

    monotonic: Callable[[], float]
    through_proxy: bool = False
    local: str = ""
    remote: tuple[str, int] = ("", 0)
    seconds: float = 0.0
    tls_began: bool = False
    tls_version: str = ""
    certificate: Mapping[str, Any] = field(default_factory=dict)
    _began: float = 0.0

    def note(self, event: str, info: Mapping[str, Any]) -> None:
        """Note an event, such as ``connection.connect_tcp.complete``."""
        source, _, step = event.partition(".")
        if step == "connect_tcp.started":
            self._began = self.monotonic()
        elif step == "connect_tcp.complete":
            self.seconds = self.monotonic() - self._began
            self.local = str(info["return_value"].get_extra_info("client_addr")[0])
            self.remote = info["return_value"].get_extra_info("server_addr")[:2]
        elif self.through_proxy and source == "connection":
            return
        elif step == "start_tls.started":
            self.tls_began = True
        elif step == "start_tls.complete":
            secured = info["return_value"].get_extra_info("ssl_object")
            self.tls_version = secured.version()
            self.certificate = secured.getpeercert()
