"""What checks found, for a person: a line or more a check, and beneath it what to do."""

from __future__ import annotations

from collections.abc import Iterator

from msgctl.output.cells import fold, width_of
from msgctl.output.plain import GAP, Line, Row, Span
from msgctl.output.views import state_style

USUAL_WIDTH = 80
NARROW = 60
"""Columns of a terminal below which the text stands beneath its check, not beside it."""
WIDEST_STATUS = len("warning")
WIDEST_CHECK = len("credentials")


def lines(row: Row, width: int | None) -> Iterator[Line]:
    """A check, how it ended, what it found and what to do, in lines of at most ``width`` columns.

    Those of a pipe, which has no width, suit most terminals. How wide status and check are is known beforehand, so that
    a check can be shown before the next is made.
    """
    check, status, found, fix = row
    width = width or USUAL_WIDTH
    head = [*_padded(status, WIDEST_STATUS, state_style("status", status)), *_padded(check, WIDEST_CHECK, "bold")]
    margin = sum(width_of(span.text) for span in head)
    if width < NARROW:
        yield head
        head, margin = [], GAP
    for text in (found, f"To do: {fix}" if fix else ""):
        for part in fold(text, max(width - margin, 1)) if text else ():
            yield [*(head or [Span(" " * margin)]), Span(part)]
            head = []


def _padded(text: str, width: int, style: str) -> list[Span]:
    return [Span(text, style), Span(" " * (width - width_of(text) + GAP))]
