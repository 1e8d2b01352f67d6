"""Hostile responses to every command: the right exit code, one message, and nothing acts on a terminal.

The codes follow from the contract of the command line, see `exit_codes.code`.
"""

from __future__ import annotations

import pytest

from faults.hostile.exit_codes import FORMS, check, run_line
from faults.hostile.responses import RESPONSES, Hostile
from support.request_lines import Line
from support.service import Service
from support.tool import Tool


def name_of(value: object) -> str | None:
    return value.name if isinstance(value, Hostile) else None


FIRST = {hostile.verdict: hostile for hostile in reversed(RESPONSES)}
"""A response of each meaning that every command gets."""


def chosen(hostile: Hostile, lines: list[Line], turn: int) -> list[Line]:
    """Return the lines that get a response. Responses with the same meaning are distributed among the commands. Jobs
    handle all responses in the same way, and so do the commands of the sandbox, so one of each is chosen in turn.
    """
    jobs = [line for line in lines if line.sends_a_job]
    sandbox = [line for line in lines if line.path.startswith("sandbox ")]
    others = [line for line in lines if line not in jobs and line not in sandbox]
    if hostile not in FIRST.values() and not hostile.name.endswith(("in every field", "in every number")):
        others = others[turn % 6 :: 6]
    return [*others, *(alike[turn % len(alike)] for alike in (jobs, sandbox))]


@pytest.mark.parametrize("hostile", RESPONSES, ids=name_of)
def test_every_command_survives_responses_of_every_meaning(
    hostile: Hostile, lines: list[Line], server: Service, tool: Tool
) -> None:
    server.always(hostile.behaviour)
    turn = RESPONSES.index(hostile)
    for number, line in enumerate(chosen(hostile, lines, turn)):
        form = FORMS[(turn + number) % len(FORMS)]
        check(hostile.name, hostile.verdict, line, form, run_line(line, tool, form))
