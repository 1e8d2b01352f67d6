"""The account's credentials: a client identifier and a key, which every request carries and nothing shows."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple


class Secret:
    """A text that is not shown in a repr, a format, a log line or a traceback's locals, and cannot be pickled."""

    __slots__ = ("_reveal",)

    def __init__(self, text: str) -> None:
        self._reveal: Callable[[], str] = lambda: text

    def reveal(self) -> str:
        return self._reveal()

    def __repr__(self) -> str:
        return "***"

    __str__ = __repr__

    def __reduce__(self) -> str:
        raise TypeError("a secret is not written anywhere")


class Credential(NamedTuple):
    """Client identifier (int64) and account key."""

    client: int
    key: Secret

    def parameters(self) -> tuple[tuple[str, str], ...]:
        """Return the parameters ``client`` and ``key`` as they are sent."""
        return (("client", str(self.client)), ("key", self.key.reveal()))
