"""How much is tried: little in every run of the tests, more where somebody has the time."""

from __future__ import annotations

import os

EFFORT = int(os.environ.get("MSGCTL_TEST_EFFORT") or "1")
"""By how much tests that try things at random try more of them. Read before a test clears the variable."""
