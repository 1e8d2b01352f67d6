"""The sandbox in Python tests: an emulator of the whole service, in a thread.

    from msgctl.testing import sandbox

    with sandbox(credits=100, fault="429:next=1") as s:
        shop = Shop(s.base_url, s.client, s.key)
        shop.send_code("573001234567")
        assert shop.sign_in(s.wait("573001234567")["code"])

With ``pytest_plugins = ["msgctl.testing"]`` in the ``conftest.py`` of pytest's root directory, or ``pytest -p
msgctl.testing``, pytest has the fixture ``msgctl_sandbox``: one sandbox for the session, reset for each test, with
`Sandbox.variables` in the environment of the test.

PYTEST_DONT_REWRITE: this module has no assertions, and pytest would warn if a test imports it before the plugin.
"""

from __future__ import annotations

import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any, Literal, NotRequired, TypedDict

from msgctl.errors import UsageError
from msgctl.sandbox import endpoints
from msgctl.sandbox.emulator import SandboxSettings
from msgctl.sandbox.protocol import SECONDS_BETWEEN_CHECKS
from msgctl.sandbox.server import Server
from msgctl.sandbox.serving import ServedSandbox

__all__ = ["ReceivedMessage", "Sandbox", "State", "sandbox"]


class State(TypedDict):
    """A delivery state of a message, and when it was reached."""

    state: str
    time: str


class ReceivedMessage(TypedDict):
    """A message that a phone received. ``kind`` is sms, call or chatapp; ``code`` is the verification code in it."""

    id: str
    time: str
    kind: str
    phone: str
    text: str
    code: str | None
    state: str
    history: list[State]
    credits: int
    segments: NotRequired[int]
    voice: NotRequired[str]
    audio_code: NotRequired[str]
    template: NotRequired[str]
    values: NotRequired[list[str]]


class Sandbox:
    """A sandbox that responds at ``base_url`` to the account ``client`` with the key ``key``."""

    def __init__(self, served: ServedSandbox) -> None:
        self._served = served
        self._returned = set[str]()
        self.base_url = served.base_url
        self.client = served.settings.client
        self.key = served.settings.key
        self.variables = served.variables
        """The variables with which msgctl uses this sandbox, a store that belongs to it, and no stored profile."""

    def inbox(self, phone: str | None = None) -> list[ReceivedMessage]:
        """Return the messages that all phones received, or one phone, the newest last."""
        messages: Any = endpoints.received(self._served.emulator, phone or "")
        return list(messages)

    def wait(self, phone: str, timeout: float = 10.0) -> ReceivedMessage:
        """Return the next message to a phone: the first one that no earlier call returned.

        Raises TimeoutError if none arrives within ``timeout`` seconds.
        """
        until = time.monotonic() + timeout
        while True:
            for message in self.inbox(phone):
                if message["id"] not in self._returned:
                    self._returned.add(message["id"])
                    return message
            if time.monotonic() > until:
                raise TimeoutError(f"No message to {phone} arrived in {timeout:g} s")
            time.sleep(SECONDS_BETWEEN_CHECKS)

    def fault(self, *specs: str) -> None:
        """Make requests fail from now on: ``s.fault("503:next=2", "delay=1:/send-sms")``. Without a SPEC, none fails.

        Raises msgctl.errors.UsageError for a SPEC that it cannot read.
        """
        endpoints.fault(self._served.emulator, faults=[spec for spec in specs if spec != "clear"])

    def clock(self, change: str) -> None:
        """Change the clock, which controls states and expiry: ``+10m``, ``stop``, ``start``, or a time to stop at.

        Raises msgctl.errors.UsageError for any other change.
        """
        endpoints.set_clock(self._served.emulator, change=change)

    def reset(self) -> None:
        """Delete everything, even in the store of ``variables``, and restore the settings of the start."""
        endpoints.reset(self._served.emulator)
        self._returned.clear()


@contextmanager
def sandbox(
    *,
    client: int = 1,
    key: str = "sandbox-key",
    credits: int | None = None,
    fault: str | Sequence[str] = (),
    responses: Literal["documented", "observed"] = "documented",
    clock: str | None = None,
    seed: int | None = None,
    port: int = 0,
) -> Iterator[Sandbox]:
    """Serve a sandbox on this machine during the block, by default on a free port.

    The parameters are the options of ``msgctl sandbox serve``; ``fault`` is one SPEC or several. Nothing is kept after
    the block. Raises msgctl.errors.UsageError for a value that the sandbox cannot use.
    """
    if not isinstance(client, int) or not key:  # otherwise, every request would be refused
        raise UsageError(f"client must be a whole number, and key must not be empty, not {client!r} and {key!r}")
    faults = [fault] if isinstance(fault, str) else fault
    # A program under test may still write to its store while the directory is deleted.
    with tempfile.TemporaryDirectory(prefix="msgctl-", ignore_cleanup_errors=True) as directory:
        state, store = Path(directory, "state.sqlite3"), Path(directory, "store.sqlite3")
        settings = SandboxSettings(client, key, credits, faults, responses, clock, seed, store=store)
        with (
            closing(Server("127.0.0.1", port, lambda _line: None)) as server,
            closing(ServedSandbox(server, state, settings)) as served,
            served.in_thread(),
        ):
            yield Sandbox(served)


if "pytest" in sys.modules:  # other programs do not need the fixture, and pytest takes longer to load than this module
    import pytest

    @pytest.fixture(scope="session")
    def msgctl_sandbox_of_session() -> Iterator[Sandbox]:
        """The sandbox of all tests; use `msgctl_sandbox`."""
        with sandbox() as served:
            yield served

    @pytest.fixture
    def msgctl_sandbox(msgctl_sandbox_of_session: Sandbox) -> Iterator[Sandbox]:
        """A sandbox as new, with its variables in the environment."""
        msgctl_sandbox_of_session.reset()
        with pytest.MonkeyPatch.context() as patch:
            for name, value in msgctl_sandbox_of_session.variables.items():
                patch.setenv(name, value)
            yield msgctl_sandbox_of_session
