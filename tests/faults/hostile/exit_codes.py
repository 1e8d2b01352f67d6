"""The exit code of every command after a response, and checks that apply to every run."""

from __future__ import annotations

import json
import os
import unicodedata
from dataclasses import dataclass

from support.leaks import shows_key
from support.request_lines import Line, prepare
from support.tool import Clock, Outcome, Tool

Form = tuple[str, ...]
TABLE, JSON, CSV = ("-o", "table"), ("--json",), ("-o", "csv")
FORMS: tuple[Form, ...] = (TABLE, JSON, CSV)
"""The first two are for a terminal, the last one is for a pipe."""

NO_STATE = -1
"""The response has no delivery state yet: `state get` fails, and commands that poll continue."""
_LINE_ENDS_AND_JOINERS = "\n\u200c\u200d"


@dataclass(frozen=True)
class Codes:
    """The exit codes after a response: of a read, of a send or change, of `2fa verify`, and of a job.

    ``api``, ``balance`` and ``state`` are given if they differ from ``read``. ``clicks`` means that the response has a
    number of clicks.
    """

    read: int
    send: int
    verify: int
    api: int | None = None
    balance: int | None = None
    state: int | None = None
    job: int = 6
    clicks: bool = False

    def of(self, line: Line) -> int:
        """Return the exit code of a command."""
        if line.path.startswith("sandbox "):  # the server is not a sandbox
            return 3
        if line.sends_a_job:
            return self.job
        if line.path == "url bulk":
            return 6
        if line.path == "url clicks":
            return 0 if self.clicks else 6
        if line.path.startswith("api"):
            return self._read(self.api)
        if line.path == "2fa verify":
            return self.verify
        if not line.reads:
            return self.send
        return self._of_read(line.path)

    def _of_read(self, path: str) -> int:
        balance, state = self._read(self.balance), self._read(self.state)
        if path == "doctor":
            return int(balance != 0)
        if path == "balance check":  # the account has fewer than --min
            return balance or 6
        if path.startswith(("balance", "profile add")):
            return balance
        if path == "job states":
            return max(state, 0)
        if path == "state get":
            return abs(state)
        if path == "state watch":  # no state is final; the command polls again if the service is unavailable
            return 1 if state == 1 else 6
        return self.read

    def _read(self, code: int | None) -> int:
        return self.read if code is None else code


RECORD = Codes(read=0, send=5, verify=1, clicks=True)
"""A 2xx with a record. Its numbers are plausible, and its other values are not certain."""
TEXTS = Codes(read=0, send=5, verify=1, balance=1)
OTHER_JSON = Codes(read=1, send=5, verify=1, api=0)
ERROR = Codes(read=1, send=1, verify=1)
"""A 2xx with an error and no record."""
NOT_JSON = Codes(read=1, send=5, verify=5, api=0)
INCOMPLETE = Codes(read=1, send=5, verify=5)
"""A 2xx that is cut off, too large or compressed; another status without JSON."""
NO_RESPONSE = Codes(read=4, send=5, verify=5)
UNAVAILABLE = NO_RESPONSE
"""408 and 5xx."""
REFUSED = Codes(read=1, send=1, verify=5)
"""A status that means a refusal, without JSON."""
REDIRECTED = Codes(read=1, send=1, verify=5, job=1)
"""A refusal that is not about recipients: a job pauses at once."""
REFUSED_AND_ACCEPTED = Codes(read=1, send=5, verify=1)
TOO_MANY_AND_ACCEPTED = Codes(read=4, send=5, verify=4)
UNREADABLE = REFUSED_AND_ACCEPTED
"""Another status with JSON."""
BREAKDOWN = UNAVAILABLE
"""A 400 or 520 with JSON that has a word of a breakdown, and none of a failure."""


def form_of(line: Line, turn: int) -> Form:
    """Return the output format for a turn; `api` has no csv."""
    forms = (TABLE, JSON) if line.path.startswith("api") else FORMS
    return forms[turn % len(forms)]


def run_line(line: Line, tool: Tool, form: Form, *options: str) -> Outcome:
    tool.clock = Clock(tool.clock.now)  # a thread of an earlier run may still sleep on its clock
    if line.path.startswith("job ") or line.sends_a_job:  # the same job is not sent twice
        prepare(os.environ["MSGCTL_BASE_URL"])
    return line.run(tool, "--yes", *form, *options, screen=form != CSV)


def check(name: str, code: int, line: Line, form: Form, outcome: Outcome) -> None:
    printed = f"{name}: {line.path} {' '.join(form)} ended with {outcome.code} and printed {outcome.err[:400]}"
    assert outcome.code == code, printed
    assert "Traceback" not in outcome.err, printed
    assert "because of a bug" not in " ".join(outcome.err.split()), printed
    characters = unsafe(outcome.out)
    if form == CSV:  # in a pipe, csv keeps white space and formats
        characters = {char for char in characters if unicodedata.category(char) == "Cc"} - {"\t", "\r"}
    assert characters | unsafe(outcome.err) == set(), printed
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
    """Return the number of errors on standard error; with --json, warnings of a job are allowed."""
    printed = [line for line in outcome.err.splitlines() if not line.startswith("Warning: ")]
    if form != JSON:
        return sum(line.startswith(("Error: ", "✗ ", "x ")) for line in printed)
    return sum({"kind", "message", "exit_code"} <= json.loads(line, parse_int=str).keys() for line in printed)
