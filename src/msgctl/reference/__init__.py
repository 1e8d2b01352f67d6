"""The manual pages and completion scripts, written from the command tree.

``python -m msgctl.reference [FOLDER]`` writes ``man`` and ``completions`` below FOLDER, by default the current one.
The text of a manual page beyond the help is in ``pages/``.
"""

from __future__ import annotations

from msgctl import cli
from msgctl.reference import completions, manual
from msgctl.reference.description import describe


def files() -> dict[str, str]:
    """Return the text of every file by its path: ``man/msgctl.1``."""
    nodes = describe(cli.build())
    pages = {f"man/{name}": text for name, text in manual.pages(nodes).items()}
    scripts = {f"completions/{name}": completions.script(shell, nodes) for shell, name in completions.FILES.items()}
    return {**pages, **scripts}
