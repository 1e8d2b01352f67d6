"""The sandbox of this machine, with the same methods as one that is served (`msgctl.cli.remote_sandbox`)."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from msgctl.sandbox import tools
from msgctl.sandbox.emulator import Emulator


class LocalSandbox:
    """What the ``msgctl sandbox`` commands do to the state of an emulator. Raises ConfigurationError, UsageError."""

    def __init__(self, emulator: Emulator) -> None:
        self._emulator = emulator

    def inbox(self, phone: str | None, kind: str | None, after: int = 0) -> list[dict[str, Any]]:
        """What the phones received after a number, newest last."""
        return tools.inbox(self._emulator.state, self._emulator.clock, phone, kind, after=after)

    def click(self, name: str, count: int, days: int, visitor: Mapping[str, str]) -> int:
        """Make visits of a short URL; how many were made."""
        given: dict[str, Any] = {**visitor}
        return tools.click(self._emulator, name, count, days=days, **given)

    def credit(self, amount: int, *, add: bool) -> int:
        """Set the credits, or add to them; how many there are then."""
        return (tools.add_credit if add else tools.set_credit)(self._emulator.state, amount)
