"""Global options are accepted in every place, and control colours. `stories/output/formats.txt` has the formats."""

from __future__ import annotations

import pytest

from support.tool import Outcome, Tool


@pytest.mark.parametrize("place", [0, 1, 4], ids=["before the group", "after the group", "after the command"])
def test_an_option_is_accepted_in_every_place(place: int, tool: Tool) -> None:
    def run(*options: str) -> Outcome:
        line = ["balance", "check", "--min", "1"]
        return tool(*line[:place], *options, *line[place:])

    tsv = ("-p", "sandbox", "-q", "-o", "tsv", "--fields", "status", "--no-header", "--no-color")
    assert run(*tsv) == Outcome(0, b"1000\n", b"")
    dry = run("-n", "-p", "sandbox", "--output=JSON")
    assert (dry.code, dry.document["query"]) == (0, {"client": "***", "key": "***"})
    assert run("--profile", "nobody").code == 3
    assert run("-p", "sandbox", "--timeout", "0").code == 2
    assert "> GET" in run("-p", "sandbox", "-v").err


@pytest.mark.parametrize(
    ("env", "options", "terminal", "coloured"),
    [
        ({}, (), True, True),
        ({}, (), False, False),
        ({}, ("--no-color",), True, False),
        ({"NO_COLOR": "1"}, (), True, False),
        ({"TERM": "dumb"}, (), True, False),
        ({"FORCE_COLOR": "1"}, (), False, False),
        ({"FORCE_COLOR": "1"}, ("-o", "table"), False, True),
        ({}, ("-o", "table"), False, False),
        ({"FORCE_COLOR": "1"}, ("--no-color",), True, False),
    ],
)
def test_color(
    env: dict[str, str],
    options: tuple[str, ...],
    terminal: bool,
    coloured: bool,
    tool: Tool,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    for name, value in env.items():
        monkeypatch.setenv(name, value)
    for line in (("sms", "send", "573001234567", "-m", "Hello"), ("--help",)):
        done = tool("-p", "sandbox", *options, *line, terminal=terminal)
        if line != ("--help",) or "FORCE_COLOR" not in env:  # Typer reads it once in a process
            assert (done.code, "\x1b" in done.out + done.err) == (0, coloured), line
