"""Where msgctl keeps its files: the platform's folders for configuration and state."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from msgctl.errors import ConfigurationError
from msgctl.text import shorten


def config_file(environ: Mapping[str, str]) -> Path:
    """The file that MSGCTL_CONFIG names, or ``config.toml`` in the platform's configuration folder.

    Raises ConfigurationError where the variable cannot be read as a path.
    """
    named = environ.get("MSGCTL_CONFIG")
    if named:
        try:
            return Path(named).expanduser().absolute()
        except (RuntimeError, OSError):
            raise ConfigurationError(
                f"MSGCTL_CONFIG is '{shorten(named)}', which leads nowhere", "Give it a whole path."
            ) from None
    import platformdirs

    return platformdirs.user_config_path("msgctl") / "config.toml"


def jobs_folder() -> Path:
    """The ledgers of jobs, in the platform's state folder."""
    import platformdirs

    return platformdirs.user_state_path("msgctl") / "jobs"


def sandbox_file() -> Path:
    """The state of the in-process sandbox, in the platform's state folder."""
    import platformdirs

    return platformdirs.user_state_path("msgctl") / "sandbox.sqlite3"


def history_file() -> Path:
    """What was sent from this machine, in the platform's state folder."""
    import platformdirs

    return platformdirs.user_state_path("msgctl") / "history.sqlite3"


def once_file() -> Path:
    """Return the path of the keys of ``--once``, in the platform's state folder."""
    import platformdirs

    return platformdirs.user_state_path("msgctl") / "once.sqlite3"


def optouts_file() -> Path:
    """Return the path of the opt-out list, in the platform's state folder."""
    import platformdirs

    return platformdirs.user_state_path("msgctl") / "optouts.sqlite3"
