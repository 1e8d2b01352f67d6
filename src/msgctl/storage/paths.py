"""Where msgctl keeps its files: the platform's folders for configuration and state."""

from __future__ import annotations

import os
import shlex
from collections.abc import Mapping
from pathlib import Path

from msgctl.errors import ConfigurationError
from msgctl.text import clean, shorten


def config_file(environ: Mapping[str, str]) -> Path:
    """Return the file that MSGCTL_CONFIG names, else ``config.toml`` in the platform's configuration folder.

    Raises ConfigurationError if the variable names the home of an unknown user.
    """
    named = environ.get("MSGCTL_CONFIG")
    if named:
        try:
            return Path(named).expanduser().absolute()
        except (RuntimeError, OSError):
            raise ConfigurationError(
                f'MSGCTL_CONFIG must be a path, not "{shorten(named)}"', "Give an absolute path."
            ) from None
    import platformdirs

    return platformdirs.user_config_path("msgctl") / "config.toml"


OPTOUTS = "optouts.sqlite3"


def state(name: str) -> Path:
    """Return a file or folder in the platform's state folder, such as ``history.sqlite3``."""
    import platformdirs

    return platformdirs.user_state_path("msgctl") / name


def shown(path: Path) -> str:
    """Return a path for a message, with ``~`` for the home folder."""
    home, below = _split_home(path)
    return clean(home + below)


def typed(path: Path) -> str:
    """Return a path as one types it in a shell: quoted if necessary."""
    home, below = _split_home(path)
    return clean(home + shlex.quote(below))


def _split_home(path: Path) -> tuple[str, str]:
    """Return ``~/`` and the rest of a path below the home folder; nothing and the whole path for another one."""
    home = os.environ.get("HOME", "").rstrip("/") + "/"
    text = str(path)
    return ("~/", text.removeprefix(home)) if len(home) > 1 and text.startswith(home) else ("", text)
