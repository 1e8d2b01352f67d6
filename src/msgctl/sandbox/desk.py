"""Everything that a served sandbox answers: the interface, short URLs, its own endpoints; with the faults it has."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from enum import Enum
from ipaddress import IPv4Network, IPv6Network, ip_address
from urllib.parse import quote

from msgctl.errors import ConfigurationError
from msgctl.sandbox import clicks, control, faults, visits
from msgctl.sandbox.emulator import BASE_PATH, Emulator
from msgctl.sandbox.faults import Faults, Kind
from msgctl.sandbox.wire import Call, Refusal, Reply, quoted

Network = IPv4Network | IPv6Network

VISITS = "/u/"
_KEPT_IN_LOCATION = "%/:=&?~#+!$,;'@()*[]"


class Ending(Enum):
    """How an answer goes out."""

    WHOLE = "whole"
    NOTHING = "nothing"
    HALF = "half"
    GARBAGE = "garbage"


@dataclass(frozen=True, slots=True)
class Outcome:
    """An answer and how it goes out; ``faults`` names the faults that were met, for the log."""

    reply: Reply
    ending: Ending = Ending.WHOLE
    faults: tuple[str, ...] = ()


_ENDINGS = {Kind.DROP: Ending.NOTHING, Kind.TRUNCATE: Ending.HALF, Kind.GARBAGE: Ending.GARBAGE}


class Desk:
    """Answers calls; any number of threads may ask at once.

    ``allowed`` are the networks from which the interface may be called (empty: all), as the account's security menu
    has them.
    """

    def __init__(
        self,
        emulator: Emulator,
        *,
        allowed: Sequence[Network] = (),
        faults: Faults | None = None,
        sleep: Callable[[float], None] = time.sleep,
    ) -> None:
        self._emulator = emulator
        self._allowed = tuple(allowed)
        self._faults = faults or Faults()
        self._sleep = sleep

    def answer(self, call: Call, address: str) -> Outcome:
        """The outcome of a call from an address. Nothing that a call holds makes it raise."""
        try:
            if call.path.startswith(VISITS):
                return Outcome(self._visit(call))
            if call.path == control.PATH or call.path.startswith(control.PATH + "/"):
                return Outcome(control.answer(self._emulator, call))
            return self._operation(call, address)
        except Refusal as refusal:
            return Outcome(refusal.reply())
        except ConfigurationError as error:
            return Outcome(Refusal("SANDBOX_FAILURE", error.message, status=500).reply())

    def _operation(self, call: Call, address: str) -> Outcome:
        if not self._is_allowed(address):
            # The same answer as for wrong credentials: the interface does not tell the two apart.
            raise Refusal("UNAUTHORIZED", "client or key is wrong")
        met = self._faults.met(call.path.removeprefix(BASE_PATH))
        names = tuple(fault.kind.value for fault in met)
        for fault in met:
            if fault.kind is Kind.DELAY:
                self._sleep(fault.seconds)
        for fault in met:
            if fault.kind in faults.INSTEAD:
                ending = Ending.NOTHING if fault.kind is Kind.REJECT else Ending.WHOLE
                return Outcome(faults.reply(fault.kind), ending, names)
        reply = self._emulator.answer(call)
        ending = next((_ENDINGS[fault.kind] for fault in met if fault.kind in _ENDINGS), Ending.WHOLE)
        return Outcome(reply, ending, names)

    def _is_allowed(self, address: str) -> bool:
        if not self._allowed:
            return True
        found = ip_address(address.partition("%")[0])
        mapped = getattr(found, "ipv4_mapped", None) or found
        return any(mapped in network for network in self._allowed if network.version == mapped.version)

    def _visit(self, call: Call) -> Reply:
        """A visit leads to the long URL and counts; asking for the head alone does not count."""
        if call.method not in ("GET", "HEAD"):
            raise Refusal("METHOD_NOT_ALLOWED", "a short URL takes GET", status=405, headers={"allow": "GET, HEAD"})
        alias = call.path.removeprefix(VISITS)
        if not alias.isascii():
            raise Refusal("NOT_FOUND", "there is no such short URL", status=404)
        with self._emulator.state.writing() as db:
            url = db.execute("SELECT * FROM urls WHERE alias = ?", (alias,)).fetchone()
            if url is None:
                raise Refusal("NOT_FOUND", f"there is no short URL {quoted(alias)}", status=404)
            if call.method == "GET":
                clicks.add(db, url, [visits.click(call.headers, self._emulator.clock())])
        location = quote(url["url_long"], safe=_KEPT_IN_LOCATION)
        return Reply(302, b"", {"location": location, "cache-control": "no-store"})
