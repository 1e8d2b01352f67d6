"""Programs other than Python that a test needs: shells, a checker of manual pages, strace, PostgreSQL."""

from __future__ import annotations

import os
import shutil

import pytest

REQUIRED = bool(os.environ.get("MSGCTL_TEST_PROGRAMS"))
"""Whether a missing program fails a test, as in continuous integration. Read before a test clears the variable."""


def program(name: str) -> str:
    """Return the path of a program. Without it, the test is skipped, or fails if all programs are required."""
    path = shutil.which(name)
    if path is None:
        if REQUIRED:
            pytest.fail(f"{name} is not installed")
        pytest.skip(f"{name} is not installed")
    return path
