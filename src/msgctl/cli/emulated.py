"""The emulator of the sandbox in the place of the network."""

from __future__ import annotations

from collections.abc import Callable

from msgctl.http.exchange import Outgoing, Reply
from msgctl.sandbox.emulator import Emulator
from msgctl.sandbox.wire import Call


def answered_by(emulator: Emulator) -> Callable[[Outgoing], Reply]:
    """What answers requests from an emulator in this process; any number of threads may call it."""

    def answer(outgoing: Outgoing) -> Reply:
        headers = {name.lower(): value for name, value in outgoing.headers.items()}
        reply = emulator.answer(Call(outgoing.method, outgoing.path, outgoing.query, headers, outgoing.body))
        return Reply(reply.status, reply.body, headers=tuple(reply.headers.items()))

    return answer
