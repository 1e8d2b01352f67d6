"""The configuration file: TOML in, TOML out, members that are not known kept.

A file that cannot be understood is an error with the place of the mistake, and is left alone.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from msgctl.errors import ConfigurationError
from msgctl.storage import files as private
from msgctl.text import clean

Document = dict[str, Any]


def load(path: Path) -> Document:
    """The document in a file, empty where there is no file. Raises ConfigurationError."""
    content = private.read(path)
    if content is None:
        return {}
    document = _parse(clean(str(path)), content)
    _check(clean(str(path)), document)
    return document


def _parse(shown: str, content: bytes) -> Document:
    import tomllib  # spared where no profile is needed
    from decimal import Decimal

    try:
        # Decimal: a number of somebody else's is written back with every digit.
        return tomllib.loads(content.decode("utf-8-sig"), parse_float=Decimal)
    except UnicodeDecodeError as error:
        line = error.object.count(b"\n", 0, error.start) + 1
        raise ConfigurationError(f"{shown}, line {line}: not UTF-8 text", "Save it as UTF-8.") from None
    except ValueError as error:  # tomllib.TOMLDecodeError, or an integer of thousands of digits
        raise ConfigurationError(f"{shown} is not TOML: {clean(str(error))}", "Mend that line.") from None
    except RecursionError:
        raise ConfigurationError(f"{shown} is nested too deeply", "Mend it.") from None


def _check(shown: str, document: Document) -> None:
    profiles = document.get("profiles", {})
    if not isinstance(profiles, dict):
        raise ConfigurationError(f"{shown}: profiles is not a table", "Write [profiles.NAME] before a profile.")
    for name, profile in profiles.items():
        if not isinstance(profile, dict):
            raise ConfigurationError(
                f"{shown}: profiles.{clean(name)} is not a table", f"Write [profiles.{clean(name)}] before its members."
            )
    if not isinstance(document.get("default_profile", ""), str):
        raise ConfigurationError(f"{shown}: default_profile is not a string", 'Write default_profile = "NAME".')


@contextmanager
def changed(path: Path) -> Iterator[Document]:
    """The document of a file, to be changed by the caller; written when the block ends without an error.

    Another msgctl that writes at the same time waits. Raises ConfigurationError.
    """
    with private.locked(path):
        document = load(path)
        yield document
        private.write(path, _dump(path, document))


def _dump(path: Path, document: Document) -> bytes:
    import tomli_w

    try:
        return tomli_w.dumps(document).encode()
    except (RecursionError, ValueError):  # nested as deep as can be read, or an integer of thousands of digits
        raise ConfigurationError(
            f"{clean(str(path))} holds something that cannot be written back; it is as it was",
            "Change it with an editor.",
        ) from None


def profiles(document: Document) -> dict[str, Document]:
    """The table of profiles, made where missing, so that a profile can be put into it."""
    table: dict[str, Document] = document.setdefault("profiles", {})
    return table
