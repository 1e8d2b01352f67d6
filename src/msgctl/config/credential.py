"""The account's credentials: a client identifier and a key, which every request carries and nothing shows."""

from __future__ import annotations

from typing import NamedTuple


class Secret:
    """A text that is not shown in a repr, a format or a log line."""

    __slots__ = ("_text",)

    def __init__(self, text: str) -> None:
        self._text = text

    def reveal(self) -> str:
        return self._text

    def __repr__(self) -> str:
        return "***"


class Credential(NamedTuple):
    """Client identifier (int64) and account key."""

    client: int
    key: Secret

    def parameters(self) -> tuple[tuple[str, str], ...]:
        """Return the parameters ``client`` and ``key`` as they are sent."""
        return (("client", str(self.client)), ("key", self.key.reveal()))
