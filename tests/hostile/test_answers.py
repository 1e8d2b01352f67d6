"""Whatever a server answers to whatever command: the right exit code, one message, and nothing that acts on a terminal.

The codes follow from the contract of the command line ("Requests" and "Exit codes"), see `codes`.
"""

from __future__ import annotations

import json
import unicodedata
from collections.abc import Iterator
from pathlib import Path
from time import monotonic

import pytest

from conftest import KEY
from hostile.answers import ANSWERS, SLOW, Hostile, Verdict
from support.asking import Line, asking, prepare
from support.examples import write_files
from support.leaks import shows_key
from support.service import PATIENCE, Service, running
from support.tool import Outcome, Tool

DOCUMENTED = {0, 1, 2, 3, 4, 5, 6}
HAVE_CODES_OF_THEIR_OWN = ("api", "doctor", "sandbox")
"""Commands whose result is not that of one operation: an unusual answer may be just what they are to show."""

FORMS = (("-o", "table"), ("--json",), ("-o", "csv"))
"""The first two are for a terminal, the last one is for a pipe."""

ZERO_WIDTH_JOINERS = "\u200c\u200d"


def codes(line: Line, verdict: Verdict) -> set[int]:
    """The exit codes that a command may end with.

    Not 200: 1. A 200 that cannot be read: 1 for what only reads, 5 for what sends or changes something. No usable
    answer: 5. And 6 where a condition is not met: too few credits, a watch without its state, a job with recipients
    that were not accepted, whatever became of them.
    """
    if line.path.split()[0] in HAVE_CODES_OF_THEIR_OWN:
        return DOCUMENTED
    if line.sends_a_job:
        return {0, 6} if verdict is Verdict.READABLE else {6}
    usual = {Verdict.READABLE: 0, Verdict.UNREADABLE: 1 if line.reads else 5, Verdict.REFUSED: 1, Verdict.LOST: 5}
    if line.path == "balance check" and verdict is Verdict.READABLE:
        return {0, 6, 1}  # a balance that is no number cannot be read
    if line.path == "state watch":  # it looks again after what may pass
        return {usual[verdict], 6}
    return {usual[verdict]}


@pytest.fixture(scope="module")
def server() -> Iterator[Service]:
    with running() as service:
        yield service


@pytest.fixture(scope="module")
def lines(server: Service, tmp_path_factory: pytest.TempPathFactory) -> list[Line]:
    """A line for every command that makes a request."""
    folder = tmp_path_factory.mktemp("asking")
    with pytest.MonkeyPatch.context() as patch:
        for variable in ("HOME", "XDG_CONFIG_HOME", "XDG_STATE_HOME"):
            patch.setenv(variable, str(folder))
        lead_to(server, patch)
        patch.chdir(folder)
        write_files(folder)
        return asking(Tool(), server)


@pytest.fixture(autouse=True)
def work(server: Service, home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The files that the lines read, and the environment that leads to the server."""
    lead_to(server, monkeypatch)
    monkeypatch.chdir(home)
    write_files(home)


def lead_to(server: Service, patch: pytest.MonkeyPatch) -> None:
    patch.setenv("MSGCTL_BASE_URL", server.base_url)
    patch.setenv("MSGCTL_CLIENT", "12345")
    patch.setenv("MSGCTL_KEY", KEY)


def name_of(value: object) -> str | None:
    return value.name if isinstance(value, Hostile) else None


def ran(line: Line, tool: Tool, server: Service, form: tuple[str, ...], *more: str) -> Outcome:
    if line.path.startswith("job "):
        prepare(server.base_url)
    return line.run(tool, "--quiet", "--yes", "--no-color", *form, *more, screen="csv" not in form)


def hold(line: Line, hostile: Hostile, outcome: Outcome, form: tuple[str, ...]) -> None:
    """What is true of every run."""
    said = f"{hostile.name}: {line.path} {' '.join(form)} ended with {outcome.code} and said {outcome.err[:400]}"
    assert outcome.code in set().union(*(codes(line, verdict) for verdict in hostile.verdicts)), said
    assert "Traceback" not in outcome.err, said
    assert "of its own" not in outcome.err, said
    assert unsafe(outcome.out + outcome.err) == set(), said
    assert not shows_key(outcome.stderr), said
    assert outcome.code == 0 or not shows_key(outcome.stdout), said
    assert errors(outcome, form) == (outcome.code != 0), said


def unsafe(text: str) -> set[str]:
    """The characters that would act on a terminal, but for line ends: Unicode's controls, formats and separators."""
    if text.isascii() and text.replace("\n", "").isprintable():
        return set()
    return {
        char
        for char in set(text) - set("\n" + ZERO_WIDTH_JOINERS)
        if unicodedata.category(char) in ("Cc", "Cf", "Cs", "Zl", "Zp")
    }


def errors(outcome: Outcome, form: tuple[str, ...]) -> int:
    """How many errors are on standard error; under --json nothing else is."""
    said = outcome.err.splitlines()
    if form != ("--json",):
        return sum(line.startswith("Error: ") for line in said)
    return sum({"kind", "message", "exit_code"} <= json.loads(line).keys() for line in said)


def test_the_walk_finds_what_makes_requests(lines: list[Line]) -> None:
    assert len(lines) >= 20
    asked = set().union(*(line.asked for line in lines))
    assert len({path for path in asked if path.startswith("/api/v1/")}) == 13
    assert {line.path for line in lines if line.reads} >= {"balance show", "state get", "url stats", "job states"}
    assert {line.path for line in lines if line.sends_a_job} >= {"sms bulk", "block bulk", "job resume"}


def test_the_table_is_large_enough() -> None:
    assert len(ANSWERS) + len(SLOW) >= 60
    assert len({hostile.name for hostile in ANSWERS}) == len(ANSWERS)


@pytest.mark.parametrize("hostile", ANSWERS, ids=name_of)
def test_every_command_survives_every_answer(hostile: Hostile, lines: list[Line], server: Service, tool: Tool) -> None:
    server.always(hostile.behaviour)
    turn = ANSWERS.index(hostile)
    is_shown = hostile.name.endswith("in every field")
    for number, line in enumerate(lines if is_shown else each_kind(lines, turn)):
        # What is shown of an answer is seen in each form; of another one only the error is.
        for form in FORMS if is_shown else [FORMS[(turn + number) % len(FORMS)]]:
            hold(line, hostile, ran(line, tool, server, form), form)


def each_kind(lines: list[Line], turn: int) -> list[Line]:
    """Every line, but of those that begin alike only the one whose turn it is: they hear answers with the same ears."""
    jobs = [line for line in lines if line.sends_a_job]
    sandbox = [line for line in lines if line.path.startswith("sandbox ")]
    others = [line for line in lines if line not in jobs and line not in sandbox]
    return [*others, *(alike[turn % len(alike)] for alike in (jobs, sandbox))]


@pytest.mark.parametrize("hostile", SLOW, ids=name_of)
def test_a_server_does_not_decide_how_long_a_command_takes(
    hostile: Hostile, lines: list[Line], server: Service, tool: Tool
) -> None:
    server.always(hostile.behaviour)
    for line in lines:
        if line.path in ("balance show", "block add", "sandbox credit"):
            started = monotonic()
            outcome = ran(line, tool, server, ("--json",), "--timeout", "0.2")
            hold(line, hostile, outcome, ("--json",))
            assert monotonic() - started < PATIENCE / 2  # the server goes on for longer than that
