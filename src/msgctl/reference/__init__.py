"""Writes the manual pages, the completion scripts and the first help page from the command tree.

``python -m msgctl.reference [FOLDER]`` writes ``man``, ``completions`` and ``src/msgctl/help.txt`` below FOLDER, which
is the current one if left out. What a page says beyond the help is in ``pages/``, one text a page, in the markup that
`markup` explains.
"""

from __future__ import annotations

import io
from pathlib import Path

from msgctl import cli
from msgctl.cli import shells
from msgctl.cli.context import Context
from msgctl.reference import manual


def files() -> dict[str, str]:
    """The text of every file, by its path below the folder: ``man/msgctl.1``."""
    root = cli.build()
    pages = {f"man/{name}": text for name, text in manual.pages(root).items()}
    scripts = {f"completions/{name}": shells.script(shell, root) for shell, name in shells.FILES.items()}
    return {**pages, **scripts, "src/msgctl/help.txt": _help()}


def _help() -> str:
    """What ``msgctl --help`` prints in a pipe; kept, so that it needs no command tree."""
    page = io.StringIO()
    cli.run(["--help"], Context(stdout=page, environ={}))
    return page.getvalue()


def write(folder: Path) -> None:
    """Write every file below a folder, and the folders that they are in, where it has none."""
    for name, text in files().items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")
