"""Manual pages as roff, the language of man(7), from text in a small markup.

A blank line ends a block. A block begins with:

- ``# TITLE``: a section; ``## Title``: a subsection.
- ``- text``: a list item; further lines are indented by two spaces.
- ``: term``: a term, explained in the following lines, which are indented by two spaces.
- four spaces: an example, printed as it is.
- ``%include NAME``: the text that ``part`` returns for NAME.
- anything else: a paragraph; a backslash at the end of a line breaks it.

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


def page(name: str, about: str, text: str, part: Callable[[str], str], *, source: str, date: str) -> str:
    """Return a page with its header and its section NAME; ``date`` is YYYY-MM-DD. Text is not justified."""
    title = f'.TH {_literal(name.upper())} 1 {date} "{source}" "msgctl manual"'
    head = [title, ".ad l", ".SH NAME", rf"{_literal(name)} \- {_inline(about)}"]
    return "\n".join([*head, *lines(text, part)]) + "\n"


def lines(text: str, part: Callable[[str], str]) -> Iterator[str]:
    """Yield the roff lines of a text."""
    whole = re.sub(r"^%include (\S+)$", lambda found: part(found[1]), text, flags=re.MULTILINE)
    after_heading = False
    for block in filter(None, re.split(r"\n(?:[ ]*\n)+", whole.strip("\n"))):
        break_before = [] if after_heading else [".PP"]
        after_heading = block.startswith("#")
        if after_heading:
            yield f'.{"SS" if block.startswith("##") else "SH"} "{_literal(block.lstrip("# "))}"'
        elif block.startswith("    "):
            example = [_line(_literal(line.removeprefix("    "))) for line in block.split("\n")]
            yield from [*break_before, ".RS 4", ".EX", *example, ".EE", ".RE"]
        elif block.startswith(("- ", ": ")):
            yield from _list(block)
        else:
            yield from [*break_before, "\n.br\n".join(map(_paragraph, block.split("\\\n")))]


def _list(block: str) -> Iterator[str]:
    for item in re.split(r"\n(?=[-:] )", block):
        if item.startswith("- "):
            yield from [r".IP \(bu 2", _paragraph(item.removeprefix("- "))]
        else:
            term, _, text = item.removeprefix(": ").partition("\n")
            yield from [".TP", _paragraph(term), _paragraph(text)]


def _paragraph(text: str) -> str:
    """Return a paragraph as one line."""
    return _line(_inline(" ".join(text.split())))


def _inline(text: str) -> str:
    """Return a text with its code in bold and its placeholders in italics, whose words are never hyphenated."""
    written, end = "", 0
    for found in _INLINE.finditer(text):
        words = " ".join(rf"\%{word}" for word in _literal(found[1] or found[2]).split(" "))
        written += text[end : found.start()].replace("\\", r"\e") + rf"\f{'B' if found[1] else 'I'}{words}\fR"
        end = found.end()
    return written + text[end:].replace("\\", r"\e")


def _literal(text: str) -> str:
    """Return text that is printed as it is typed."""
    return text.translate(_LITERAL)


def _line(text: str) -> str:
    """Return a line of text that roff does not mistake for a macro."""
    return rf"\&{text}" if text[:1] in {".", "'"} else text
