"""Writes the manual pages and completion scripts: ``python -m msgctl.reference [FOLDER]``."""

from __future__ import annotations

import sys
from pathlib import Path

from msgctl import reference

if __name__ == "__main__":
    reference.write(Path(*sys.argv[1:2]))
