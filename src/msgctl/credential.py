"""The account's credentials, and the one place that keeps them out of what is shown.

The interface ("Account credentials") knows a client identifier and a key; both travel with every request.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass, field
from urllib.parse import quote, quote_plus

MASK = "***"


class Secret:
    """A text that shows itself nowhere: not in a repr, a format, a log line or a traceback's locals."""

    __slots__ = ("_reveal",)

    def __init__(self, text: str) -> None:
        self._reveal: Callable[[], str] = lambda: text

    def reveal(self) -> str:
        return self._reveal()

    def __repr__(self) -> str:
        return MASK

    __str__ = __repr__

    def __reduce__(self) -> str:
        raise TypeError("a secret is not written anywhere")


@dataclass(frozen=True, slots=True)
class Credential:
    """Client identifier (int64) and account key."""

    client: int
    key: Secret = field(repr=False)

    def parameters(self) -> tuple[tuple[str, str], ...]:
        """The parameters ``client`` and ``key`` as they travel. The only place where the key is read."""
        return (("client", str(self.client)), ("key", self.key.reveal()))

    def mask(self, text: str) -> str:
        """``text`` without the key, however it is spelled: raw, percent-encoded, or escaped in JSON."""
        key = self.key.reveal()
        spellings = {key, quote(key, safe=""), quote(key), quote_plus(key), json.dumps(key)[1:-1]}
        for spelling in sorted(spellings, key=len, reverse=True):
            text = text.replace(spelling, MASK)
        return text
