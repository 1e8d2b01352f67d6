"""The exit code of every command after a response, and checks that apply to every run."""

from __future__ import annotations

import json
import os
import unicodedata
from enum import Enum

from support.leaks import shows_key
from support.request_lines import Line, prepare
from support.tool import Clock, Outcome, Tool

Form = tuple[str, ...]
TABLE, JSON, CSV = ("-o", "table"), ("--json",), ("-o", "csv")
FORMS: tuple[Form, ...] = (TABLE, JSON, CSV)
"""The first two are for a terminal, the last one is for a pipe."""

_LINE_ENDS_AND_JOINERS = "\n\u200c\u200d"


class Verdict(Enum):
    """The meaning of a response, by the contract of the command line ("Responses")."""

    READABLE = "2xx with the record"
    TEXTS = "2xx with the record, and no number in it is plausible"
    FAILED = "2xx with the record, and every text mentions an error"
    BLANK = "2xx with the record, and every text is empty"
    ERROR = "2xx with an error and no record"
    OTHER_JSON = "2xx with another JSON document"
    UNREADABLE = "2xx with something else than JSON"
    NOT_WHOLE = "2xx with a body that is too large, or compressed"
    REFUSED = "a status of refusal"
    REFUSED_AND_ACCEPTED = "a status of refusal, with an accepted record"
    TOO_MANY_AND_ACCEPTED = "429, with an accepted record"
    DOUBT = "any other status"
    UNAVAILABLE = "503"
    LOST = "no whole response"
    NOT_REACHED = "no connection that can be trusted, or no proxy; nothing was sent"
    NO_HANDSHAKE = "the TLS handshake failed; nothing was sent"


OF_STATUS = {
    Verdict.REFUSED: ({1}, {1}),
    Verdict.REFUSED_AND_ACCEPTED: ({1}, {5}),
    Verdict.TOO_MANY_AND_ACCEPTED: ({4}, {5}),
    Verdict.UNREADABLE: ({1}, {5}),
    Verdict.DOUBT: ({1, 4}, {5}),  # 4 for 408 and 5xx
    Verdict.UNAVAILABLE: ({4}, {5}),
    Verdict.LOST: ({1, 4}, {5}),  # 1 if the response was cut off, 4 if there was none
    Verdict.NOT_WHOLE: ({1}, {5}),
    Verdict.NOT_REACHED: ({4}, {4}),
    Verdict.NO_HANDSHAKE: ({4}, {4}),
}
"""The exit codes of a read and of a send or change, if they do not depend on words."""


def codes(line: Line, verdict: Verdict, form: Form) -> set[int]:
    """Return the possible exit codes of a command after a response."""
    is_not_reached = verdict in (Verdict.NOT_REACHED, Verdict.NO_HANDSHAKE)
    if line.path.startswith("sandbox "):  # the server there is never a sandbox
        return {4} if is_not_reached else {3}
    if line.path.startswith("api") and form == CSV:
        return {2}
    if line.path == "job states":
        return codes(Line("state get", (), reads=True), verdict, form)
    if line.sends_a_job:  # also `url bulk`, in which rows fail
        return {6}
    if line.path == "doctor":
        return {0} if verdict is Verdict.READABLE else {1}
    if line.path == "url clicks":  # a number is a count in one of the numbers of `bodies`
        return {Verdict.READABLE: {0}, Verdict.TEXTS: {0, 6}}.get(verdict, {6})
    if (
        line.path == "state watch" and verdict is not Verdict.NOT_REACHED
    ):  # it polls again if the service is not available
        return {6 if code in (0, 4) else code for code in codes(Line("state get", (), reads=True), verdict, form)}
    if verdict not in OF_STATUS:
        return of_success(line, verdict)
    if line.path.startswith("api") and verdict is Verdict.UNREADABLE:  # it prints any body
        return {0}
    if line.path == "2fa verify":
        return {1, 4, 5}
    of_read, of_send = OF_STATUS[verdict]
    return of_read if line.reads else of_send


def of_success(line: Line, verdict: Verdict) -> set[int]:
    """Return the possible exit codes after a 2xx with JSON: no record of `bodies` is certain, except a balance."""
    if line.path == "2fa verify":
        return {1}
    if not line.reads:
        return {1} if verdict is Verdict.ERROR else {5}
    if line.path.startswith(("balance", "profile add")):
        readable = {6} if line.path == "balance check" else {0}
        return readable if verdict is Verdict.READABLE else {1}
    return {1} if verdict is Verdict.ERROR else {0, 1}


def run_line(line: Line, tool: Tool, form: Form, *more: str) -> Outcome:
    tool.clock = Clock(tool.clock.now)  # a thread of an earlier run may still sleep on its clock
    if line.path.startswith("job ") or line.sends_a_job:  # the same job is not sent twice
        prepare(os.environ["MSGCTL_BASE_URL"])
    return line.run(tool, "--quiet", "--yes", "--no-color", *form, *more, screen=form != CSV)


def check(name: str, verdict: Verdict, line: Line, form: Form, outcome: Outcome) -> None:
    printed = f"{name}: {line.path} {' '.join(form)} ended with {outcome.code} and printed {outcome.err[:400]}"
    assert outcome.code in codes(line, verdict, form), printed
    assert "Traceback" not in outcome.err, printed
    assert "because of a bug" not in " ".join(outcome.err.split()), printed
    found = unsafe(outcome.out)
    if form == CSV:  # in a pipe, csv keeps white space and formats
        found = {char for char in found if unicodedata.category(char) == "Cc"} - {"\t", "\r"}
    assert found | unsafe(outcome.err) == set(), printed
    assert not shows_key(outcome.stdout + outcome.stderr), printed
    if line.path == "doctor" and form == TABLE:  # its table shows failures and fixes
        assert errors(outcome, form) == 0, printed
    else:
        assert bool(errors(outcome, form)) == (outcome.code != 0), printed


def unsafe(text: str) -> set[str]:
    """Return characters that would act on a terminal, except line ends: Unicode's controls, formats and separators."""
    if text.isascii() and text.replace("\n", "").isprintable():
        return set()
    others = set(text) - set(_LINE_ENDS_AND_JOINERS)
    return {char for char in others if unicodedata.category(char) in ("Cc", "Cf", "Cs", "Zl", "Zp")}


def errors(outcome: Outcome, form: Form) -> int:
    """Return the number of errors on standard error; with --json, only warnings of a job may be there too."""
    printed = [line for line in outcome.err.splitlines() if not line.startswith("Warning: ")]
    if form != JSON:
        return sum(line.startswith(("Error: ", "✗ ", "x ")) for line in printed)
    return sum({"kind", "message", "exit_code"} <= json.loads(line, parse_int=str).keys() for line in printed)
