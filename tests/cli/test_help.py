"""Help pages: Typer's own, with Rich on a terminal and plain elsewhere."""

from __future__ import annotations

import re

import pytest
from rich.spinner import Spinner

from support.tool import Tool, process
from support.tree import COMMANDS, NODES, Node

ESCAPE = re.compile(r"\x1b\[[0-9;]*m")


def page(tool: Tool, node: Node, *options: str, terminal: bool = False) -> str:
    done = tool(*options, *node.names, "--help", terminal=terminal)
    assert (done.code, done.err) == (0, "")
    return done.out


def words(text: str) -> str:
    return re.sub(r"[^A-Za-z0-9'-]+", "", ESCAPE.sub("", text))


def test_in_a_pipe_a_page_is_plain_text_of_80_columns(tool: Tool) -> None:
    for node in NODES:
        text = page(tool, node)
        assert text.startswith(f"Usage: {' '.join(['msgctl', *node.names])} ")
        assert "\x1b" not in text
        assert "{" not in text.splitlines()[0]
        examples = [f"    {example}" for example in node.facts.examples]
        assert [line for line in text.splitlines() if len(line) > 80 and line not in examples] == [], node.path


def test_on_a_terminal_a_page_says_the_same_and_fits(tool: Tool, monkeypatch: pytest.MonkeyPatch) -> None:
    for node in NODES:
        for columns in (40, 60, 80, 100) if node.is_group else (40, 80):
            monkeypatch.setenv("COLUMNS", str(columns))
            text = ESCAPE.sub("", page(tool, node, terminal=True))
            lines = [line for line in text.splitlines() if "--no-" not in line]  # of plain pages: --premium / --no-…
            assert max(map(len, lines)) <= min(columns, 100), (node.path, columns)
            assert "…" not in text, (node.path, columns)
            first = (node.command.help or "").split("\n\n")[0]
            assert words(first) in words(re.sub("[│─╭╮╰╯]", "", text)), (node.path, columns)


def test_examples_fit_on_a_line_of_a_terminal(tool: Tool, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "80")
    for node in COMMANDS:
        lines = [line.strip() for line in ESCAPE.sub("", page(tool, node, terminal=True)).splitlines()]
        start = lines.index("Examples:") + 1
        assert lines[start : start + len(node.facts.examples)] == [*node.facts.examples]
        assert "<" not in "".join(lines[:start]), node.path  # no names of Python's types


@pytest.mark.parametrize("columns", [1, 4])
def test_a_terminal_may_be_narrower_than_the_indentation(
    columns: int, tool: Tool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", str(columns))
    assert tool("--help", terminal=True).code == 0
    wrong = tool("-p", "none", "balance", terminal=True)
    assert wrong.code == 3
    assert "profile" in wrong.err


def test_on_a_terminal_the_lines_of_every_paragraph_are_filled(tool: Tool, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "100")
    assert "only messages of that profile. Without" in ESCAPE.sub("", tool("usage", "--help", terminal=True).out)


def test_a_command_shows_its_examples_and_the_global_options_that_matter_to_it(tool: Tool) -> None:
    for node in COMMANDS:
        text = page(tool, node)
        assert {*node.facts.examples} <= {line.strip() for line in text.splitlines()}, node.path
        assert bool(re.search(r"-n, --dry-run", text)) == node.facts.has_dry_run, node.path
        assert bool(re.search(r"-y, --yes", text)) == node.facts.asks, node.path
        assert not re.search(r"^ +-v, --verbose", text, re.MULTILINE), node.path
        assert text.rstrip().endswith("msgctl --help"), node.path


def test_doctor_explains_its_dry_run(tool: Tool) -> None:
    assert "-n, --dry-run  Skip the checks that need the network.\n" in tool("doctor", "--help").out


def test_the_page_of_each_command_that_asks_shows_how_to_skip_the_question() -> None:
    assert {node.path for node in COMMANDS if node.facts.asks} == {
        *("sms bulk", "call bulk", "chatapp bulk", "block bulk", "job resume", "job resend", "job remove", "job prune"),
        *("history clear", "profile remove", "sandbox reset"),
    }


def test_the_page_of_the_tool_lists_every_group_and_every_global_option(tool: Tool) -> None:
    text = page(tool, NODES[0])
    for name in NODES[0].command.list_commands(None):
        assert re.search(rf"^  {re.escape(name)} +[A-Z]", text, re.MULTILINE)
    for option in ("--profile", "--no-header", "--verbose", "--timeout"):
        assert option in text
    assert text.endswith("Exit codes and more: man msgctl\n")


@pytest.mark.parametrize("columns", ["80", "100"])
def test_the_page_of_the_tool_has_45_lines(columns: str, tool: Tool, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", columns)
    for terminal in (False, True):
        assert len(page(tool, NODES[0], terminal=terminal).splitlines()) <= 45


@pytest.mark.parametrize("terminal", [False, True])
def test_more_than_eight_options_are_in_panels_of_at_most_eight(terminal: bool, tool: Tool) -> None:
    for node in COMMANDS:
        text = ESCAPE.sub("", page(tool, node, terminal=terminal))
        starts = r"^╭─ (\w+)|^│ +-" if terminal else r"^(\w+):$|^  -"
        panels: list[tuple[str, int]] = []
        for found in re.finditer(starts, text, re.MULTILINE):
            if found[1]:
                panels.append((found[1], 0))
            elif panels:  # a line of the description may begin with an option too
                panels[-1] = (panels[-1][0], panels[-1][1] + 1)
        shown = {name: number for name, number in panels if number and name != "Arguments"}
        assert max(shown.values(), default=0) <= 8, node.path
        if node.facts.in_bulk:
            names = ["Message", "Recipients", "Safety", "When", "Speed"]
            assert list(shown) == [each for each in names if each != "When" or node.path != "block bulk"]


def test_help_needs_neither_a_profile_nor_a_readable_configuration(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MSGCTL_CONFIG", "/dev/null/none")
    monkeypatch.setenv("MSGCTL_PROFILE", "missing")
    done = process("sms", "send", "--help")
    assert (done.code, done.err) == (0, "")


def test_in_the_c_locale_boxes_and_spinners_are_ascii(tool: Tool) -> None:
    assert "?" not in page(tool, NODES[0], terminal=True).encode("ascii", "msgctl").decode()
    assert "".join(Spinner("dots").frames).encode("ascii", "msgctl") == b"*" * 10
