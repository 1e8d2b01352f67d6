"""The emulator of the sandbox in place of the network."""

from __future__ import annotations

from collections.abc import Callable

from msgctl.http.exchange import LostError, Outgoing, Reply
from msgctl.sandbox import faults
from msgctl.sandbox.emulator import Emulator
from msgctl.sandbox.faults import FaultKind
from msgctl.sandbox.protocol import SandboxRequest

_BROKEN = {FaultKind.DROP, FaultKind.REJECT, FaultKind.TRUNCATE, FaultKind.GARBAGE}


def answered_by(emulator: Emulator) -> Callable[[Outgoing], Reply]:
    """Return a function that answers requests from an emulator in this process, in any thread."""

    def answer(outgoing: Outgoing) -> Reply:
        headers = {name.lower(): value for name, value in outgoing.headers.items()}
        request = SandboxRequest(outgoing.method, outgoing.path, outgoing.query, headers, outgoing.body)
        outcome = faults.respond(emulator, request)
        if _BROKEN.intersection(outcome.faults):
            raise LostError("the connection was closed without a response")
        response = outcome.response
        return Reply(response.status, response.body, headers=tuple(response.headers.items()))

    return answer
