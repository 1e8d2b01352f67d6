"""The configuration file: profiles in TOML. Changes keep all other settings, but not comments."""

from __future__ import annotations

import os
import re
import stat
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from msgctl import files
from msgctl.config.urls import has_password
from msgctl.errors import ConfigurationError
from msgctl.text import clean, shorten

TomlTable = dict[str, Any]

_LEXEME = r"""\\.|\"{3}|'{3}|["'#]"""
"""An escape, the beginning or end of a string, or the beginning of a comment in TOML."""


@dataclass(slots=True, repr=False)
class ConfigFile:
    """The content of a configuration file, which may be missing. It may contain keys, so its repr does not show it."""

    path: Path
    document: TomlTable
    has_comments: bool = False

    @property
    def profiles(self) -> dict[str, TomlTable]:
        """The stored profiles by name; the mapping can be changed."""
        table: dict[str, TomlTable] = self.document.setdefault("profiles", {})
        return table

    @property
    def default(self) -> str | None:
        """The name in ``default_profile``, even if there is no such profile."""
        return self.document.get("default_profile")

    def label(self, profile: str) -> str:
        """Return the description of a profile for messages: ``FILE: profile NAME``."""
        return f"{files.shown(self.path)}: profile {shorten(profile, 64)}"


def load(path: Path) -> ConfigFile:
    """Read a configuration file; a missing one is empty. Raises ConfigurationError."""
    with files.explained("read", path):
        try:
            with path.open("rb") as file:
                status, content = os.fstat(file.fileno()), file.read()
        except FileNotFoundError:
            return ConfigFile(path, {})
    config = ConfigFile(path, _parse(files.shown(path), content), has_comments=_has_comments(content.decode()))
    if any("key_command" in profile for profile in config.profiles.values()) and status.st_uid not in (0, os.geteuid()):
        raise ConfigurationError(
            f"{files.shown(path)} contains a key_command and belongs to another user",
            'Check the command, then take the file over: chown "$(id -u)" ' + files.typed(path),
            reason="unsafe_file",
        )
    if any(_has_secret(profile) for profile in config.profiles.values()):
        _check_private(path, status)
    return config


def _has_comments(toml: str) -> bool:
    """Return whether valid TOML contains a comment."""
    quote = ""
    for sign in re.findall(_LEXEME, toml, re.DOTALL):
        if quote.startswith("'"):
            sign = sign.removeprefix("\\")  # noqa: PLW2901 (literal strings have no escapes)
        if quote:
            quote = "" if sign == quote else quote
        elif sign == "#":
            return True
        else:
            quote = sign
    return False


def refuse_unsafe(environ: Mapping[str, str]) -> None:
    """Refuse a file with a secret that other users can access, even if this run does not need the secret.

    Raises ConfigurationError (``unsafe_file``).
    """
    try:
        path = files.config_file(environ)
        if path.stat().st_mode & (stat.S_IRWXG | stat.S_IRWXO):
            load(path)
    except OSError:  # usually, there is no file
        return
    except ConfigurationError as error:
        if error.reason == "unsafe_file":
            raise


def _has_secret(profile: TomlTable) -> bool:
    """Return whether a profile contains a key, a command that prints it, or a password in the URL of its store."""
    return "key" in profile or "key_command" in profile or has_password(str(profile.get("store", "")))


def _check_private(path: Path, status: os.stat_result) -> None:
    """Refuse a file that other users can access; the group may read a file of root. Raises ConfigurationError."""
    mode = stat.S_IMODE(status.st_mode)
    allowed = stat.S_IRGRP if status.st_uid == 0 else 0
    if not mode & (stat.S_IRWXG | stat.S_IRWXO) & ~allowed:
        return
    access = "writable" if mode & (stat.S_IWGRP | stat.S_IWOTH) else "readable"
    fix = "640" if status.st_uid == 0 and os.geteuid() != 0 else "600"
    raise ConfigurationError(
        f"{files.shown(path)} contains a secret and is {access} by other users (mode {mode:04o})",
        f"chmod {fix} {files.typed(path)}",
        reason="unsafe_file",
    )


def _parse(shown: str, content: bytes) -> TomlTable:
    import tomllib

    try:
        document = tomllib.loads(content.decode("utf-8-sig"))
    except UnicodeDecodeError as error:
        line = error.object.count(b"\n", 0, error.start) + 1
        raise ConfigurationError(f"{shown}: line {line} is not UTF-8 text", "Save the file as UTF-8.") from None
    except (ValueError, RecursionError) as error:  # TOMLDecodeError is a ValueError
        hint = "Fix that line." if "at line" in str(error) else "Fix the file."
        raise ConfigurationError(f"{shown} is not valid TOML: {clean(str(error))}", hint) from None
    profiles = document.get("profiles", {})
    if not isinstance(profiles, dict) or not all(isinstance(profile, dict) for profile in profiles.values()):
        raise ConfigurationError(
            f"{shown}: profiles must be a table of tables", "Write [profiles.NAME] above the settings of a profile."
        )
    if not isinstance(document.get("default_profile", ""), str):
        raise ConfigurationError(f"{shown}: default_profile must be a string", 'Write default_profile = "NAME".')
    return document


@contextmanager
def changed(path: Path) -> Iterator[ConfigFile]:
    """Yield the content of a file for changes, and write it if the block ends without an error.

    Another process that changes it at the same time waits. Raises ConfigurationError.
    """
    import tomli_w

    with files.changing(path):
        config = load(path)
        yield config
        files.write(path, tomli_w.dumps(config.document).encode())
