"""Columns are aligned with any cells: every sequence of Unicode's emoji test file, and letters of two columns."""

from __future__ import annotations

import pytest
from emoji import EMOJI_DATA
from rich.cells import cell_len

from golden.views import Terminal, Viewer
from msgctl.output.result import OwnResult

CJK = ("谢谢您的订单", "ご注文の品", "주문이준비되었습니다", "ｆｕｌｌ", "ﾊﾝｶｸ", "é", "e\u0301", "नमस्ते", "ไทย")
JOINED = (
    "👨\u200d👩\u200d👧\u200d👦",
    "👩\u200d💻",
    "🏳\ufe0f\u200d🌈",
    "🏴\u200d☠\ufe0f",
    "🧑\u200d🤝\u200d🧑",
    "🐈\u200d⬛",
)
TAGGED = [each for each in EMOJI_DATA if "\U000e007f" in each]
"""Three flags, whose tags are shown as escapes: tags can hide a text."""
WIDEST = "a cell as wide as any of them is"


def test_every_sequence_is_aligned() -> None:
    cells = [WIDEST, *(each for each in EMOJI_DATA if each not in TAGGED), *CJK]
    assert len(TAGGED) == 3
    viewer = Viewer(Terminal("", 80))
    viewer.print(OwnResult([{"name": cell, "end": "|"} for cell in cells], ("name", "end")))
    rows = viewer.shown().splitlines()[2:]
    assert [row.removesuffix("|").rstrip() for row in rows] == cells
    assert {cell_len(row) for row in rows} == {len(WIDEST) + 3}


@pytest.mark.parametrize("width", [40, 80, 120])
def test_a_wrapped_text_breaks_no_sequence(width: int) -> None:
    words = ["".join([*JOINED, "👍🏽", "🇨🇴", "1\ufe0f\u20e3", cjk]) for cjk in CJK] * 3
    viewer = Viewer(Terminal("", width))
    viewer.print(OwnResult([{"phone": "573001234567", "text": " ".join(words)}, {"text": "b"}], ("phone", "text")))
    lines = viewer.shown().splitlines()
    assert max(map(cell_len, lines)) <= width
    shown = "".join(line.replace("573001234567", "").strip() for line in lines)
    assert all(word in shown.replace(" ", "") for word in words)
