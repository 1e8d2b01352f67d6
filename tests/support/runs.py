"""Checks for every run of the tool."""

from __future__ import annotations

import re

DOCUMENTED = {0, 1, 2, 3, 4, 5, 6, 130}
"""The exit codes that msgctl may return."""

RAW_CONTROL = re.compile(r"[\x00-\x08\x0b-\x1f\x7f-\x9f\u2028\u2029\u202a-\u202e\u2066-\u2069\ud800-\udfff]")
"""Characters that act on a terminal; line ends and tabs are the form of a result."""

COLOUR = re.compile(r"\r?\x1b\[(?:[0-9;]*[mKAJ]|\?25[hl])")
"""Escape sequences for colours, and for the cursor of a progress bar."""
NEVER_PRINTED = ("Traceback", "Exception ignored", "because of a bug")


def ended_well(code: int, *streams: str, coloured: bool = False) -> bool:
    assert code in DOCUMENTED, f"exit {code}: {streams}"
    for text in streams:
        assert [part for part in NEVER_PRINTED if part in text] == [], text[-3000:]
        shown = COLOUR.sub("", text) if coloured else text
        assert text.rfind("\x1b[?25l") <= text.rfind("\x1b[?25h"), "the cursor stays hidden"
        found = RAW_CONTROL.search(shown)
        assert found is None, f"{found[0]!r} in {shown[max(0, found.start() - 200) : found.end() + 20]!r}"
    return True
