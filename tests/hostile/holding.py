"""What is true of every run, whatever the server answers."""

from __future__ import annotations

import json
import os
import unicodedata
from enum import Enum

from support.asking import Line, prepare
from support.leaks import shows_key
from support.tool import Outcome, Tool

DOCUMENTED = {0, 1, 2, 3, 4, 5, 6}
HAVE_CODES_OF_THEIR_OWN = ("api", "doctor", "sandbox")
"""Commands whose result is not that of one operation: an unusual answer may be just what they are to show."""

Form = tuple[str, ...]
TABLE, JSON, CSV = ("-o", "table"), ("--json",), ("-o", "csv")
FORMS: tuple[Form, ...] = (TABLE, JSON, CSV)
"""The first two are for a terminal, the last one is for a pipe."""

_LINE_ENDS_AND_JOINERS = "\n\u200c\u200d"


class Verdict(Enum):
    """What an answer amounts to, in the words of the contract ("Exit codes" and "Requests")."""

    READABLE = "a 200 that can be read"
    UNREADABLE = "a 200 that cannot be read"
    REFUSED = "an answer other than 200"
    LOST = "the request went out and no usable answer came back"
    NOT_REACHED = "no name, no connection, no TLS; nothing was sent"


READABLE, UNREADABLE = (Verdict.READABLE,), (Verdict.UNREADABLE,)
REFUSED, LOST = (Verdict.REFUSED,), (Verdict.LOST,)


def codes(line: Line, verdict: Verdict) -> set[int]:
    """The exit codes that a command may end with.

    Not 200: 1. A 200 that cannot be read: 1 for what only reads, 5 for what sends or changes something. No usable
    answer: 5. Not reached: 4. And 6 where a condition is not met: too few credits, a watch without its state, a job
    with recipients that were not accepted, whatever became of them.
    """
    if line.path.split()[0] in HAVE_CODES_OF_THEIR_OWN:
        return DOCUMENTED
    usual = {
        Verdict.READABLE: 0,
        Verdict.UNREADABLE: 1 if line.reads else 5,
        Verdict.REFUSED: 1,
        Verdict.LOST: 5,
        Verdict.NOT_REACHED: 4,
    }[verdict]
    if line.sends_a_job and verdict is not Verdict.NOT_REACHED:
        return {0, 6} if verdict is Verdict.READABLE else {6}
    if line.path == "balance check" and verdict is Verdict.READABLE:
        return {0, 6, 1}  # a balance that is no number cannot be read
    if line.path == "state watch":  # it looks again after what may pass
        return {usual, 6}
    return {usual}


def ran(line: Line, tool: Tool, form: Form, *more: str) -> Outcome:
    if line.path.startswith("job "):
        prepare(os.environ["MSGCTL_BASE_URL"])
    return line.run(tool, "--quiet", "--yes", "--no-color", *form, *more, screen=form != CSV)


def hold(name: str, verdicts: tuple[Verdict, ...], line: Line, form: Form, outcome: Outcome) -> None:
    said = f"{name}: {line.path} {' '.join(form)} ended with {outcome.code} and said {outcome.err[:400]}"
    assert outcome.code in set().union(*(codes(line, verdict) for verdict in verdicts)), said
    assert "Traceback" not in outcome.err, said
    assert "a mistake of its own" not in " ".join(outcome.err.split()), said
    assert unsafe(outcome.out + outcome.err) == set(), said
    assert not shows_key(outcome.stdout + outcome.stderr), said
    assert errors(outcome, form) == (outcome.code != 0), said


def unsafe(text: str) -> set[str]:
    """The characters that would act on a terminal, but for line ends: Unicode's controls, formats and separators."""
    if text.isascii() and text.replace("\n", "").isprintable():
        return set()
    others = set(text) - set(_LINE_ENDS_AND_JOINERS)
    return {char for char in others if unicodedata.category(char) in ("Cc", "Cf", "Cs", "Zl", "Zp")}


def errors(outcome: Outcome, form: Form) -> int:
    """How many errors are on standard error; under --json nothing else is, but for the warnings of a job."""
    said = [line for line in outcome.err.splitlines() if not line.startswith("Warning: ")]
    if form != JSON:
        return sum(line.startswith("Error: ") for line in said)
    return sum({"kind", "message", "exit_code"} <= json.loads(line).keys() for line in said)
