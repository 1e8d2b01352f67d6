"""What the checks look at, and what the earlier ones find out for the later ones."""

from __future__ import annotations

import socket
from collections.abc import Callable, Mapping
from contextlib import ExitStack
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path

from msgctl.config import profiles
from msgctl.config.credential import Credential
from msgctl.config.profiles import Choice
from msgctl.errors import ConfigurationError, MsgctlError
from msgctl.http.client import Client
from msgctl.http.dialing import Dialer
from msgctl.http.exchange import Reply
from msgctl.http.redaction import redact


@dataclass(slots=True, repr=False)
class Case:
    """One examination.

    ``named`` is the value of ``-p``, ``find_config`` gives the path of the configuration file or raises
    ConfigurationError, ``connect`` makes a client for the profile in use. ``seconds`` bounds each step; ``offline``
    leaves out what asks the network.

    The members below them are set by the checks that find them out; no other check is made before them.
    """

    environ: Mapping[str, str]
    named: str | None
    find_config: Callable[[], Path]
    connect: Callable[[Credential], Client]
    seconds: float
    clock: Callable[[], float]
    monotonic: Callable[[], float]
    offline: bool = False

    in_sandbox: bool = field(init=False)
    """Whether the profile in use is the sandbox, which takes nothing from file, environment or network."""
    choice: Choice | None = None
    config_path: Path = field(init=False)
    file_error: ConfigurationError | None = None
    base_url: str = ""
    credential: Credential = field(init=False)
    mask: Callable[[str], str] = str
    """Gives a text without the key, as far as the key is known."""
    dialer: Dialer = field(init=False)
    connection: socket.socket = field(init=False)
    local_address: str = ""
    client: Client = field(init=False)
    outcome: Reply | MsgctlError | None = None
    """What became of the request for the balance, once it was made."""
    opened: ExitStack = field(default_factory=ExitStack)

    def __post_init__(self) -> None:
        named = self.environ.get("MSGCTL_PROFILE") if self.named is None else self.named
        self.in_sandbox = named == profiles.SANDBOX

    def choose(self, choice: Choice) -> None:
        """Take a profile for the one in use."""
        self.choice = choice
        self.in_sandbox = choice.name == profiles.SANDBOX

    def identify(self, credential: Credential) -> None:
        """Take a credential for the one in use; from here on its key is masked."""
        self.credential = credential
        self.mask = partial(redact, key=credential.key.reveal())

    def close(self) -> None:
        """Close what the checks have left open."""
        self.opened.close()
