"""Completion scripts for bash, zsh and fish, written from the command tree.

A script knows everything that does not depend on its user, and starts no program to complete. Names of profiles it
reads from the configuration file, identifiers of jobs from the names of their files. What a script does is in its
template; the lists of commands, options and values are put into it here.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

from msgctl.cli.shells import tables
from msgctl.cli.shells.dialects import Bash, Fish, Zsh
from msgctl.cli.shells.outline import outline

FILES = {"bash": "msgctl.bash", "zsh": "_msgctl", "fish": "msgctl.fish"}
"""The name of each shell's script, as the shell looks for it or as the repository keeps it."""

_DIALECTS: dict[str, tables.Dialect] = {"bash": Bash(), "zsh": Zsh(), "fish": Fish()}


def script(shell: str, root: Any) -> str:
    """The completion script of a shell, one of `FILES`, for a command tree."""
    template = (Path(__file__).parent / f"template.{shell}").read_text(encoding="utf-8")
    for name, lines in tables.of(_DIALECTS[shell], outline(root)).items():
        template = template.replace(f"    @{name}@\n", "".join(f"    {line}\n" for line in lines))
    return template
