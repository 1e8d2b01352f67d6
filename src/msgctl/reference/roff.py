"""Manual pages as roff, the language of man(7), from text in a small markup.

A blank line ends a block. A block begins with:

- ``# TITLE``: a section; ``## Title``: a subsection.
- ``- text``: a list item; further lines are indented by two spaces.
- ``: term``: a term, explained in the following lines, which are indented by two spaces.
- four spaces: an example, printed as it is.
- ``%include NAME``: the text of NAME.txt.
- anything else: a paragraph.

In a text, ```code``` is printed as it is typed, and ``*word*`` is a placeholder.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator

_INLINE = re.compile(r"`([^`]+)`|(?<![\w*])\*([^*\s][^*]*)\*(?![\w*])")
# Without these escapes, roff prints typographic hyphens, quotes and accents, which cannot be pasted into a shell.
_LITERAL = str.maketrans(
    {"\\": r"\e", "-": r"\-", "'": r"\(aq", "`": r"\(ga", "^": r"\(ha", "~": r"\(ti", '"': r"\(dq"}
)


def title(name: str, date: str, source: str) -> list[str]:
    """Return the first lines of a page; ``date`` is YYYY-MM-DD. Text is not justified."""
    return [f'.TH {literal(name.upper())} 1 {date} "{source}" "msgctl manual"', ".ad l"]


def section(text: str) -> str:
    return f'.SH "{literal(text)}"'


def subsection(text: str) -> str:
    return f'.SS "{literal(text)}"'


def tagged(tag: str, text: str) -> list[str]:
    """Return a term and its explanation."""
    return [".TP", _line(tag), _line(text)]


def literal(text: str) -> str:
    """Return text that is printed as it is typed."""
    return text.translate(_LITERAL)


def bold(text: str) -> str:
    return rf"\fB{_unbroken(text)}\fR"


def italic(text: str) -> str:
    return rf"\fI{_unbroken(text)}\fR"


def inline(text: str) -> str:
    """Return a text with its code in bold and its placeholders in italics."""
    written, end = "", 0
    for found in _INLINE.finditer(text):
        written += text[end : found.start()].replace("\\", r"\e")
        written += bold(found[1]) if found[1] else italic(found[2])
        end = found.end()
    return written + text[end:].replace("\\", r"\e")


def lines(text: str, part: Callable[[str], str], *, after_heading: bool = False) -> Iterator[str]:
    """Yield the roff lines of a text; ``part`` returns the text that an include names."""
    whole = re.sub(r"^%include (\S+)$", lambda found: part(found[1]), text, flags=re.MULTILINE)
    for block in filter(None, re.split(r"\n(?:[ ]*\n)+", whole.strip("\n"))):
        paragraph_break = [] if after_heading else [".PP"]
        if block.startswith("#"):
            heading = subsection if block.startswith("##") else section
            yield heading(block.lstrip("# "))
        elif block.startswith("    "):
            example = [_line(literal(line.removeprefix("    "))) for line in block.split("\n")]
            yield from [*paragraph_break, ".RS 4", ".EX", *example, ".EE", ".RE"]
        elif block.startswith(("- ", ": ")):
            yield from _list(block)
        else:
            yield from [*paragraph_break, paragraph(block)]
        after_heading = block.startswith("#")


def paragraph(text: str) -> str:
    """Return a paragraph as one line."""
    return _line(inline(" ".join(text.split())))


def _list(block: str) -> Iterator[str]:
    for item in re.split(r"\n(?=[-:] )", block):
        if item.startswith("- "):
            yield from [r".IP \(bu 2", paragraph(item.removeprefix("- "))]
        else:
            term, _, text = item.removeprefix(": ").partition("\n")
            yield from [".TP", paragraph(term), paragraph(text)]


def _unbroken(text: str) -> str:
    """Return literal text whose words are never hyphenated."""
    return " ".join(rf"\%{word}" for word in literal(text).split(" "))


def _line(text: str) -> str:
    """Return a line of text that roff does not mistake for a macro."""
    return rf"\&{text}" if text[:1] in {".", "'"} else text
