"""The markup of the pages, and its roff."""

from __future__ import annotations

import pytest

from msgctl.reference import roff


def written(text: str, **parts: str) -> list[str]:
    return list(roff.lines(text, parts.__getitem__))


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("# EXIT STATUS\n\nWords of\na sentence.", ['.SH "EXIT STATUS"', "Words of a sentence."]),
        ("## Part", ['.SS "Part"']),
        ("One.\n\nTwo.", [".PP", "One.", ".PP", "Two."]),
        ("- one\n- two\n  goes on", [r".IP \(bu 2", "one", r".IP \(bu 2", "two goes on"]),
        (": `-o`\n  Form of\n  output.", [".TP", r"\fB\%\-o\fR", "Form of output."]),
        ("    a 'b'\n      c", [".PP", ".RS 4", ".EX", r"a \(aqb\(aq", "  c", ".EE", ".RE"]),
        ("Type `msgctl -p NAME`.", [".PP", r"Type \fB\%msgctl \%\-p \%NAME\fR."]),
        ("A *word* and 2 * 3 * 4.", [".PP", r"A \fI\%word\fR and 2 * 3 * 4."]),
        (".dot and \\back", [".PP", r"\&.dot and \eback"]),
        ("'quoted'", [".PP", r"\&'quoted'"]),
        ("    .dot", [".PP", ".RS 4", ".EX", r"\&.dot", ".EE", ".RE"]),
        ("", []),
    ],
)
def test_markup_becomes_roff(text: str, expected: list[str]) -> None:
    assert written(text) == expected


def test_an_include_is_replaced() -> None:
    assert written("# A\n\n%include more\n\nEnd.", more="Begin.\n") == ['.SH "A"', "Begin.", ".PP", "End."]
