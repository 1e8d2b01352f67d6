"""Checks of every run, whatever the server responds."""

from __future__ import annotations

import json
import os
import unicodedata
from enum import Enum

from support.asking import Line, prepare
from support.leaks import shows_key
from support.tool import Outcome, Tool

Form = tuple[str, ...]
TABLE, JSON, CSV = ("-o", "table"), ("--json",), ("-o", "csv")
FORMS: tuple[Form, ...] = (TABLE, JSON, CSV)
"""The first two are for a terminal, the last one is for a pipe."""

_LINE_ENDS_AND_JOINERS = "\n\u200c\u200d"


class Verdict(Enum):
    """The meaning of a response, by the contract of the command line ("Responses")."""

    READABLE = "2xx with the record"
    ERROR = "2xx with an error and no record"
    OTHER_JSON = "2xx with another JSON document"
    UNREADABLE = "2xx with something else than JSON"
    NOT_WHOLE = "2xx with a body that is too large, or compressed"
    REFUSED = "a status of refusal"
    DOUBT = "any other status"
    LOST = "no whole response"
    NOT_REACHED = "no name, no connection, no TLS; nothing was sent"


READABLE, OTHER_JSON, UNREADABLE = (Verdict.READABLE,), (Verdict.OTHER_JSON,), (Verdict.UNREADABLE,)
ERROR, NOT_WHOLE = (Verdict.ERROR,), (Verdict.NOT_WHOLE,)
REFUSED, DOUBT, LOST = (Verdict.REFUSED,), (Verdict.DOUBT,), (Verdict.LOST,)

ALWAYS = {Verdict.READABLE: 0, Verdict.REFUSED: 1, Verdict.ERROR: 1, Verdict.LOST: 5, Verdict.NOT_REACHED: 4}
READS = {**dict.fromkeys(Verdict, 1), **ALWAYS}
MADE_ONCE = {**dict.fromkeys(Verdict, 5), **ALWAYS}
ANY_BODY = {**READS, Verdict.OTHER_JSON: 0, Verdict.UNREADABLE: 0, Verdict.ERROR: 0}
VERIFIES = {**MADE_ONCE, Verdict.OTHER_JSON: 1, Verdict.UNREADABLE: 1, Verdict.NOT_WHOLE: 1}


def codes(line: Line, verdict: Verdict, form: Form) -> set[int]:
    """Return the exit codes that a command may end with."""
    group, command = line.path.split()[0], line.path.split()[-1]
    if line.path == "sandbox shapes":  # it reads only a file
        return {0}
    if group == "sandbox":  # what responds there is never a sandbox
        return {4 if verdict is Verdict.NOT_REACHED else 3}
    if group == "api":
        return {2 if form == CSV else ANY_BODY[verdict]}
    if line.sends_a_job and verdict is not Verdict.NOT_REACHED:
        return {0, 6} if verdict is Verdict.READABLE else {6}
    if line.path == "2fa verify":
        return {0, 1} if verdict is Verdict.READABLE else {VERIFIES[verdict]}
    if not line.reads:
        # A record may say nothing of the recipient, or refuse it.
        return {0, 5, 6} if verdict is Verdict.READABLE else {MADE_ONCE[verdict]}
    usual = {READS[verdict]}
    if form == JSON and verdict is Verdict.OTHER_JSON and group not in ("doctor", "job") and command != "watch":
        usual = {0, 1} if line.path == "balance check" else {0}
    if line.path == "balance check" and verdict is Verdict.READABLE:
        return {0, 6, 1}  # a balance that is not a number cannot be compared
    return {*usual, 6} if line.path == "state watch" else usual  # it checks again after what may pass


def ran(line: Line, tool: Tool, form: Form, *more: str) -> Outcome:
    if line.path.startswith("job ") or line.sends_a_job:  # the same job is not sent twice
        prepare(os.environ["MSGCTL_BASE_URL"])
    return line.run(tool, "--quiet", "--yes", "--no-color", *form, *more, screen=form != CSV)


def hold(name: str, verdicts: tuple[Verdict, ...], line: Line, form: Form, outcome: Outcome) -> None:
    said = f"{name}: {line.path} {' '.join(form)} ended with {outcome.code} and said {outcome.err[:400]}"
    assert outcome.code in set().union(*(codes(line, verdict, form) for verdict in verdicts)), said
    assert "Traceback" not in outcome.err, said
    assert "because of a bug" not in " ".join(outcome.err.split()), said
    assert unsafe(outcome.out + outcome.err) == set(), said
    assert not shows_key(outcome.stdout + outcome.stderr), said
    if line.path == "doctor" and form == TABLE:  # its table shows what failed, and what to do
        assert errors(outcome, form) == 0, said
    else:
        assert errors(outcome, form) == (outcome.code != 0), said


def unsafe(text: str) -> set[str]:
    """Return characters that would act on a terminal, except line ends: Unicode's controls, formats and separators."""
    if text.isascii() and text.replace("\n", "").isprintable():
        return set()
    others = set(text) - set(_LINE_ENDS_AND_JOINERS)
    return {char for char in others if unicodedata.category(char) in ("Cc", "Cf", "Cs", "Zl", "Zp")}


def errors(outcome: Outcome, form: Form) -> int:
    """Return the number of errors on standard error; with --json, only warnings of a job may be there too."""
    said = [line for line in outcome.err.splitlines() if not line.startswith("Warning: ")]
    if form != JSON:
        return sum(line.startswith(("Error: ", "✗ ", "x ")) for line in said)
    return sum({"kind", "message", "exit_code"} <= json.loads(line, parse_int=str).keys() for line in said)
