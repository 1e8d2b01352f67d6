"""Writes the manual pages and completion scripts: ``python -m msgctl.reference [FOLDER]``."""

from __future__ import annotations

import sys
from pathlib import Path

from msgctl import reference

if __name__ == "__main__":
    for name, text in reference.files().items():
        path = Path(*sys.argv[1:2], name)
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")
