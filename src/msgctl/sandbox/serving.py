"""A sandbox that listens on an address: its server, its emulator, and the settings that a reset restores."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from msgctl import files
from msgctl.sandbox import endpoints, faults
from msgctl.sandbox.emulator import Emulator, Network
from msgctl.sandbox.protocol import BASE_PATH
from msgctl.sandbox.responses import DOCUMENTED
from msgctl.sandbox.server import Server
from msgctl.sandbox.service import respond


@dataclass(frozen=True)
class SandboxSettings:
    """The options with which a sandbox starts. ``allowed`` are the networks that may use the API (empty: all)."""

    client: int = 1
    key: str = "sandbox-key"
    credits: int | None = None
    faults: Sequence[str] = ()
    responses: str = DOCUMENTED
    clock: str | None = None
    seed: int | None = None
    allowed: Sequence[Network] = ()

    def apply(self, emulator: Emulator, *, is_new: bool) -> None:
        """Set the credits of a new account, the faults, the responses and the clock. Raises UsageError."""
        if self.credits is not None and is_new:
            endpoints.credit(emulator, credits=self.credits)
        faults.replace_all(emulator, *self.faults)
        endpoints.choose_responses(emulator, responses=self.responses)
        if self.clock is not None:
            endpoints.set_clock(emulator, change=self.clock)


class ServedSandbox:
    """A sandbox with a server that listens; ``serve`` responds.

    ``state`` is the emulator's file. ``store`` is the path of a store that belongs to this sandbox, so that a reset
    empties it, too. Raises UsageError for a wrong setting, and ConfigurationError if the state cannot be used.
    """

    def __init__(
        self,
        server: Server,
        state: Path,
        settings: SandboxSettings,
        *,
        store: Path | None = None,
        clock: Callable[[], float] = time.time,
    ) -> None:
        with files.explained("use", state):
            is_new = not state.is_file() or state.stat().st_size == 0
        self.server = server
        self.settings = settings
        self._store = store
        self.emulator = Emulator(
            state,
            clock=clock,
            seed=settings.seed,
            client=settings.client,
            key=settings.key,
            base_url=server.origin,
            allowed=settings.allowed,
            begin=self._begin_again,
        )
        try:
            # A restarted server continues with the credits that were left.
            settings.apply(self.emulator, is_new=is_new)
        except BaseException:
            self.emulator.close()
            raise

    def _begin_again(self, emulator: Emulator) -> None:
        self.settings.apply(emulator, is_new=True)
        if self._store is not None:
            files.delete_database(self._store)

    @property
    def base_url(self) -> str:
        return self.server.origin + BASE_PATH

    @property
    def page(self) -> str:
        """The URL of the inbox page."""
        return f"{self.server.origin}/"

    @property
    def variables(self) -> dict[str, str]:
        """The variables with which msgctl finds the sandbox, and its own store if it has one."""
        variables = {
            "MSGCTL_BASE_URL": self.base_url,
            "MSGCTL_CLIENT": str(self.settings.client),
            "MSGCTL_KEY": self.settings.key,
        }
        if self._store is not None:
            variables["MSGCTL_STORE"] = str(self._store)
        return variables

    def serve(self) -> None:
        """Respond to requests until the server is stopped."""
        self.server.serve_forever(partial(respond, self.emulator))

    @contextmanager
    def in_thread(self) -> Iterator[None]:
        """Respond to requests in a thread during the block."""
        thread = threading.Thread(target=self.serve, daemon=True)
        thread.start()
        try:
            yield
        finally:
            self.server.stop()
            thread.join()

    def close(self) -> None:
        self.emulator.close()
