"""Writes the manual pages and completion scripts: ``python -m msgctl.reference [FOLDER]``."""

from __future__ import annotations

import sys
from pathlib import Path

from msgctl.cli.shell import completion
from msgctl.cli.shell.main import build
from msgctl.reference import manual
from msgctl.reference.description import describe


def files() -> dict[str, str]:
    """Return the text of each file by its path, such as ``man/msgctl.1``."""
    nodes = describe(build())
    pages = {f"man/{name}": text for name, text in manual.manual_pages(nodes).items()}
    scripts = {f"completions/{name}": completion.script(shell) for shell, name in completion.FILES.items()}
    return {**pages, **scripts}


if __name__ == "__main__":
    for name, text in files().items():
        path = Path(*sys.argv[1:2], name)
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")
