"""Writes the manual pages and the completion scripts from the command tree.

``python -m msgctl.reference [FOLDER]`` writes ``FOLDER/man`` and ``FOLDER/completions``; FOLDER is the current one if
left out. What a page says beyond the help is in ``pages/``, one text a page, in the markup that `markup` explains.
"""

from __future__ import annotations

from pathlib import Path

from msgctl import cli
from msgctl.cli import shells
from msgctl.reference import manual


def files() -> dict[str, str]:
    """The text of every file, by its path below the folder: ``man/msgctl.1``."""
    root = cli.build()
    pages = {f"man/{name}": text for name, text in manual.pages(root).items()}
    return pages | {f"completions/{name}": shells.script(shell, root) for shell, name in shells.FILES.items()}


def write(folder: Path) -> None:
    """Write every file below a folder, which gets `man` and `completions` where it has none."""
    for name, text in files().items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")
