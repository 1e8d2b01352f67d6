"""The global options: their places, conflicts, and refused values."""

from __future__ import annotations

import pytest

from msgctl import __version__
from support.service import Service
from support.tool import Outcome, Tool, process


def placed(options: tuple[str, ...], place: str) -> tuple[str, ...]:
    """`balance check` of the sandbox with options before the group, after the group, or after the command."""
    least = ("--min", "1")
    arguments = {
        "before the group": [*options, "balance", "check", *least],
        "after the group": ["balance", *options, "check", *least],
    }
    return tuple(arguments.get(place, ["balance", "check", *least, *options]))


everywhere = pytest.mark.parametrize("place", ["before the group", "after the group", "after the command"])


# --- each option, in each place


@everywhere
def test_an_option_is_accepted_in_every_place(place: str, tool: Tool) -> None:
    options = ("-p", "sandbox", "-q", "-o", "tsv", "--fields", "status", "--no-header", "--no-color")
    assert tool(*placed(options, place)) == Outcome(0, b"1000\n", b"")
    dry = tool(*placed(("-n", "-p", "sandbox", "--output=JSON"), place))
    assert (dry.code, dry.document["query"]) == (0, {"client": "***", "key": "***"})
    assert tool(*placed(("--profile", "nobody"), place)).code == 3
    assert tool(*placed(("-p", "sandbox", "--timeout", "0"), place)).code == 2
    assert "> GET" in tool(*placed(("-p", "sandbox", "-v"), place)).err


@pytest.mark.parametrize(
    ("env", "options", "terminal", "coloured"),
    [
        ({}, (), True, True),
        ({}, (), False, False),
        ({}, ("--no-color",), True, False),
        ({"NO_COLOR": "1"}, (), True, False),
        ({"TERM": "dumb"}, (), True, False),
        ({"FORCE_COLOR": "1"}, (), False, True),
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


# --- the later wins


@pytest.mark.parametrize(
    ("arguments", "printed"),
    [
        (("--json", "balance", "-o", "csv"), "status\n1000\n"),
        (("-o", "csv", "balance", "--json"), '{"status":1000}\n'),
        (("-o", "csv", "balance", "-o", "table"), "status\n1000\n"),
        (("balance", "-o", "csv", "-o", "table"), "status\n1000\n"),
        (("balance", "--json", "-o", "table"), "status\n1000\n"),
    ],
)
def test_the_later_format_wins(arguments: tuple[str, ...], printed: str, tool: Tool) -> None:
    done = tool("-p", "sandbox", *arguments)
    assert done.out.replace("\r", "").rstrip("\n") == printed.rstrip("\n")


# --- help and version


@pytest.mark.parametrize("arguments", [[], ["sms"], ["sms", "send"]], ids=" ".join)
def test_commands_and_groups_have_help_and_the_version(arguments: list[str], tool: Tool) -> None:
    for option in ("-h", "--help"):
        done = tool(*arguments, option)
        assert (done.code, done.err) == (0, "")
        assert done.out.split()[: len(arguments) + 2] == ["Usage:", "msgctl", *arguments]
    for option in ("-V", "--version"):
        done = tool(*arguments, option)
        assert (done.code, done.out, done.err) == (0, f"msgctl {__version__}\n", "")


def test_the_version_of_a_process_is_the_same(tool: Tool) -> None:
    assert process("--version").stdout == tool("-V").stdout


# --- what is refused


@pytest.mark.parametrize("form", ["xml", ""])
def test_an_unknown_output_format(form: str, tool: Tool, service: Service) -> None:
    tool("balance", f"--output={form}").refused(2, f'"{form}"', "table, json, csv, tsv")
    assert service.received == []


# --- what the parser finds
