"""The markup of the hand-written parts of the manual.

A blank line ends a block. What a block is shows from how it begins:

- ``# TITLE``: a section; ``## Title``: a subsection.
- ``- text``: an item of a list. Its further lines are set in by two blanks.
- ``: term``: what is explained, and on the next lines, set in by two blanks, the explanation.
- four blanks: lines as they are typed, an example.
- ``%include NAME``: the part ``NAME.txt`` in this place.
- anything else: a paragraph.

In a text, ```code``` is what is typed as it stands, and ``*word*`` a word that stands for another.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator

from msgctl.reference import roff

_INLINE = re.compile(r"`([^`]+)`|(?<![\w*])\*([^*\s][^*]*)\*(?![\w*])")
EXAMPLE = "    "


def inline(text: str) -> str:
    """A text with code and words set off, as roff."""
    written, end = "", 0
    for found in _INLINE.finditer(text):
        written += roff.prose(text[end : found.start()])
        written += roff.bold(found[1]) if found[1] else roff.italic(found[2])
        end = found.end()
    return written + roff.prose(text[end:])


def lines(text: str, part: Callable[[str], str], *, after_heading: bool = False) -> Iterator[str]:
    """The roff lines of a text; ``part`` gives the text of a part by its name."""
    whole = re.sub(r"^%include (\S+)$", lambda found: part(found[1]), text, flags=re.MULTILINE)
    for block in filter(None, re.split(r"\n(?:[ ]*\n)+", whole.strip("\n"))):
        if block.startswith("#"):
            yield _heading(block)
        elif block.startswith((EXAMPLE, "- ", ": ")):
            yield from _set_in(block)
        else:
            yield from [] if after_heading else [".PP"]
            yield roff.line(inline(_joined(block)))
        after_heading = block.startswith("#")


def _heading(block: str) -> str:
    if block.startswith("## "):
        return roff.subheading(block.removeprefix("## "))
    return roff.heading(block.removeprefix("# "))


def _set_in(block: str) -> Iterator[str]:
    if block.startswith(EXAMPLE):
        yield from roff.example(line.removeprefix(EXAMPLE) for line in block.split("\n"))
        return
    for item in re.split(r"\n(?=[-:] )", block):
        first, _, more = item.partition("\n")
        if item.startswith("- "):
            yield r".IP \(bu 2"
            yield roff.line(inline(_joined(item.removeprefix("- "))))
        else:
            yield from roff.tagged(inline(first.removeprefix(": ")), inline(_joined(more)))


def _joined(text: str) -> str:
    return " ".join(text.split())
