"""Where msgctl keeps its files: the platform's folders for configuration and state."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path


def config_file(environ: Mapping[str, str]) -> Path:
    """The file that MSGCTL_CONFIG names, or ``config.toml`` in the platform's configuration folder."""
    named = environ.get("MSGCTL_CONFIG")
    if named:
        return Path(named).expanduser().absolute()
    import platformdirs

    return platformdirs.user_config_path("msgctl") / "config.toml"


def sandbox_file() -> Path:
    """The state of the in-process sandbox, in the platform's state folder."""
    import platformdirs

    return platformdirs.user_state_path("msgctl") / "sandbox.sqlite3"
