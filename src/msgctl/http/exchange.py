"""What goes out and what comes back, and how a request can be lost: the words of everything that carries a request."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import NamedTuple, Protocol

from msgctl.http.response import ShapeError


class Outgoing(NamedTuple):
    """A request as it travels, credentials in it: ``path`` and ``query`` percent-encoded, the query without its ``?``.

    ``headers`` are those that the interface names; those of the connection (Host, Content-Length) are not among them.
    """

    method: str
    path: str
    query: str = ""
    headers: Mapping[str, str] = MappingProxyType({})
    body: bytes = b""

    def __repr__(self) -> str:
        """Without credentials."""
        return f"Outgoing({self.method} {self.path})"

    @property
    def target(self) -> str:
        """Path and query, as they stand in the first line of the request."""
        return f"{self.path}?{self.query}" if self.query else self.path


class Reply(NamedTuple):
    """Status and body of an answer, and its headers in their order.

    ``fault`` says why the body is not the whole answer (it is then empty), and is None where it is. ``version`` and
    ``reason`` are those of the first line.
    """

    status: int
    body: bytes
    fault: str | None = None
    headers: tuple[tuple[str, str], ...] = ()
    version: str = "HTTP/1.1"
    reason: str = ""

    def __repr__(self) -> str:
        """Its status alone: what a service says may repeat what was sent."""
        return f"Reply({self.status})"

    @property
    def is_success(self) -> bool:
        """Whether its status says that the request was carried out (RFC 9110, 15.3)."""
        return 200 <= self.status < 300

    def header(self, name: str) -> str | None:
        """The first header of a name, whose case does not matter."""
        return next((value for each, value in self.headers if each.lower() == name.lower()), None)

    def whole_body(self) -> bytes:
        """The body. Raises ShapeError where it is not whole."""
        if self.fault is not None:
            raise ShapeError(self.fault)
        return self.body


class LostError(Exception):
    """The request left, or may have left, and no whole answer came back; the text says why."""


class Line(Protocol):
    """Carries requests one after another; one thread at a time may use it."""

    left: bool
    """Whether the request that was given last has left, as far as it may have been carried out."""

    def exchange(self, outgoing: Outgoing, seconds: float) -> Reply:
        """Send a request once and read its answer, within ``seconds``.

        Raises NotReachedError where it never left, LostError where it did and no whole answer came back, and
        ConfigurationError.
        """

    def close(self) -> None: ...


class LocalLine:
    """Has requests answered in this process, by a function that knows no time limit."""

    def __init__(self, answer: Callable[[Outgoing], Reply]) -> None:
        self._answer = answer
        self.left = False

    def exchange(self, outgoing: Outgoing, seconds: float) -> Reply:  # noqa: ARG002
        self.left = True
        return self._answer(outgoing)

    def close(self) -> None:
        pass
