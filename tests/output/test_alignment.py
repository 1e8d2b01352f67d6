"""Columns line up whatever the cells hold: emoji sequences of every kind, and letters that take two columns."""

from __future__ import annotations

import unicodedata
from collections.abc import Iterator

import pytest
from rich.cells import cell_len

from msgctl.output.result import OwnResult
from output.views import Terminal, Viewer

CJK = ("谢谢您的订单", "ご注文の品", "주문이준비되었습니다", "ｆｕｌｌ", "ﾊﾝｶｸ", "é", "e\u0301", "नमस्ते", "ไทย")
TONES = tuple(map(chr, range(0x1F3FB, 0x1F400)))
PEOPLE = "👋👍👏💪👂👶👦👩🧑👨🙏🏃🚴🕵💃🤝"
JOINED = (
    "👨\u200d👩\u200d👧\u200d👦",
    "👩\u200d💻",
    "🏳\ufe0f\u200d🌈",
    "🏴\u200d☠\ufe0f",
    "🧑\u200d🤝\u200d🧑",
    "🐈\u200d⬛",
)
WIDEST = "a cell as wide as any of them is"


def sequences() -> Iterator[str]:
    """Every symbol as an emoji, with skin tones, keycaps, flags, and what is joined of several."""
    for code in (*range(0x2600, 0x27C0), *range(0x1F300, 0x1F700), *range(0x1F900, 0x1FB00)):
        if unicodedata.category(chr(code)) == "So":
            yield chr(code) if code > 0xFFFF else f"{chr(code)}\ufe0f"
    yield from (person + tone for person in PEOPLE for tone in TONES)
    yield from (f"{key}\ufe0f\u20e3" for key in "0123456789#*")
    letters = [chr(0x1F1E6 + number) for number in range(26)]
    yield from (first + second for first in letters for second in letters)
    yield from JOINED
    yield from CJK


@pytest.mark.parametrize("width", [40, 80, 120])
def test_every_sequence_lines_up(width: int) -> None:
    cells = [WIDEST, *sequences()]
    viewer = Viewer(Terminal("", width))
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
