"""A sandbox that listens on an address: its server and its emulator."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path

from msgctl import files
from msgctl.sandbox import endpoints
from msgctl.sandbox.emulator import Emulator, SandboxSettings
from msgctl.sandbox.protocol import BASE_PATH
from msgctl.sandbox.routing import respond
from msgctl.sandbox.server import Server


class ServedSandbox:
    """A sandbox with a server that listens; ``serve`` responds. ``state`` is the emulator's file.

    Raises UsageError for a wrong setting, and ConfigurationError if the state cannot be used.
    """

    def __init__(
        self, server: Server, state: Path, settings: SandboxSettings, *, clock: Callable[[], float] = time.time
    ) -> None:
        with files.explained("use", state):
            is_new = not state.is_file() or state.stat().st_size == 0
        self.server = server
        self.settings = settings
        self.emulator = Emulator(state, settings, clock=clock, origin=server.origin)
        try:
            endpoints.apply_settings(self.emulator, is_new=is_new)
        except BaseException:
            self.emulator.close()
            raise

    @property
    def base_url(self) -> str:
        return self.server.origin + BASE_PATH

    @property
    def page(self) -> str:
        """The URL of the inbox page."""
        return f"{self.server.origin}/"

    @property
    def variables(self) -> dict[str, str]:
        """The variables with which msgctl finds the sandbox. With a separate store, they hide the user's profiles."""
        variables = {
            "MSGCTL_BASE_URL": self.base_url,
            "MSGCTL_CLIENT": str(self.settings.client),
            "MSGCTL_KEY": self.settings.key,
        }
        if self.settings.store is not None:
            variables |= {
                "MSGCTL_STORE": str(self.settings.store),
                "MSGCTL_CONFIG": str(self.settings.store.with_name("config.toml")),  # no profile of a real account
                "MSGCTL_PROFILE": "",
            }
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
