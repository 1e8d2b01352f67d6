"""Where the store is: the path or URL in MSGCTL_STORE or in a profile."""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path

from msgctl import files
from msgctl.config.profiles import Profile
from msgctl.errors import ConfigurationError
from msgctl.text import shorten

SANDBOX_STORE = "sandbox-store.sqlite3"


def chosen(environ: Mapping[str, str], profile: Profile | None) -> str | Path | None:
    """Return the location of a run's store; None for the usual file. The sandbox has a separate store."""
    if profile is not None and profile.is_sandbox:
        return files.state_path(SANDBOX_STORE)
    location = environ.get("MSGCTL_STORE") or (profile and profile.store)
    return location_of(location) if location else None


def location_of(store: str) -> str | Path:
    """Return the absolute path of a store, or its URL unchanged. Raises ConfigurationError."""
    if "://" in store:
        return store
    if store.lower().startswith(("postgresql:", "postgres:")):  # it may contain a password
        raise ConfigurationError(
            f"The URL of the store must begin with {store.partition(':')[0]}://",
            "Write it like postgresql://user@host/database.",
        )
    try:
        return Path(store).expanduser().absolute()
    except RuntimeError:
        raise ConfigurationError(
            f'The path of the store begins with an unknown user: "{shorten(store)}"', "Use an absolute path."
        ) from None


def resolved(place: str | Path) -> str | Path:
    """Return the path of a store without symbolic links, or its URL unchanged. Each file has only one such path."""
    return place if isinstance(place, str) else Path(os.path.realpath(place))
