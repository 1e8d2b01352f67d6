"""After a hostile response, every command has the right exit code and one message, and controls no terminal."""

from __future__ import annotations

import pytest

from faults.hostile.exit_codes import check, form_of, run_line
from faults.hostile.responses import RESPONSES, Hostile
from support.request_lines import Line
from support.service import Service
from support.tool import Tool

FIRST = {hostile.codes: hostile for hostile in reversed(RESPONSES)}
"""The first response with each set of exit codes."""


def chosen(hostile: Hostile, lines: list[Line], turn: int) -> list[Line]:
    """Return the command lines that get a response: all if no earlier response has the same codes, else every eleventh.

    All jobs handle a response in the same way, and so do the commands of the sandbox: one of each is chosen.
    """
    if hostile is not FIRST[hostile.codes] and not hostile.is_for_all:
        return lines[turn % 11 :: 11]
    jobs = [line for line in lines if line.sends_a_job]
    sandbox = [line for line in lines if line.path.startswith("sandbox ")]
    others = [line for line in lines if line not in jobs and line not in sandbox]
    return [*others, *(alike[turn % len(alike)] for alike in (jobs, sandbox))]


@pytest.mark.parametrize("hostile", RESPONSES, ids=[hostile.name for hostile in RESPONSES])
def test_every_command_survives_hostile_responses(
    hostile: Hostile, lines: list[Line], server: Service, tool: Tool
) -> None:
    server.always(hostile.behaviour)
    turn = RESPONSES.index(hostile)
    for number, line in enumerate(chosen(hostile, lines, turn)):
        form = form_of(line, turn + number)
        outcome = run_line(line, tool, form, "--quiet", "--no-color")
        check(hostile.name, hostile.codes.of(line), line, form, outcome)
