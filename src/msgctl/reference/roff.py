"""Text as roff takes it, and the few macros of man(7) that the pages are made of."""

from __future__ import annotations

from collections.abc import Iterable

_ALWAYS = str.maketrans({"\\": r"\e"})
# What a person copies has to come out as it is typed, and not as a typographic hyphen, quote or accent.
_LITERAL = str.maketrans(
    {"\\": r"\e", "-": r"\-", "'": r"\(aq", "`": r"\(ga", "^": r"\(ha", "~": r"\(ti", '"': r"\(dq"}
)


def prose(text: str) -> str:
    """Words of a sentence."""
    return text.translate(_ALWAYS)


def literal(text: str) -> str:
    """What is typed or shown as it stands."""
    return text.translate(_LITERAL)


def bold(text: str) -> str:
    return rf"\fB{_unbroken(text)}\fR"


def italic(text: str) -> str:
    return rf"\fI{_unbroken(text)}\fR"


def _unbroken(text: str) -> str:
    """What is typed as it stands, never broken within a word."""
    return " ".join(rf"\%{word}" for word in literal(text).split(" "))


def line(text: str) -> str:
    """A line of text, which no macro begins."""
    return rf"\&{text}" if text[:1] in {".", "'"} else text


def title(name: str, date: str, source: str) -> list[str]:
    """The head of a page; ``date`` is YYYY-MM-DD. Words are not spread over the line."""
    return [f'.TH {literal(name.upper())} 1 {date} "{source}" "msgctl manual"', ".ad l"]


def heading(text: str) -> str:
    return f'.SH "{literal(text)}"' if " " in text else f".SH {literal(text)}"


def subheading(text: str) -> str:
    return f'.SS "{literal(text)}"'


def tagged(tag: str, text: str) -> list[str]:
    """A term, and beside or beneath it what it means."""
    return [".TP", line(tag), line(text)]


def example(lines: Iterable[str]) -> list[str]:
    """Lines as they are typed, set in."""
    return [".PP", ".RS 4", ".EX", *(line(literal(each)) for each in lines), ".EE", ".RE"]
