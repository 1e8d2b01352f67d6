"""Help pages: in colour on a terminal, plain elsewhere, and readable at 80 and at 40 columns."""

from __future__ import annotations

import re

import pytest

from msgctl.cli.tree import examples_of
from support.tool import Tool, process
from support.tree import COMMANDS, GROUPS, NODES, Node, name_of

ESCAPE = re.compile(r"\x1b\[([0-9;]*)m")
CALM = {"0", "1", "36"}
"""Bold for titles, one colour for names, and the end of both."""

each_page = pytest.mark.parametrize("node", NODES, ids=name_of)
each_width = pytest.mark.parametrize("columns", [40, 80])


def page(tool: Tool, node: Node, *options: str, terminal: bool = False) -> str:
    done = tool(*options, *node.words, "--help", terminal=terminal)
    assert (done.code, done.err) == (0, "")
    return done.out


def plain(text: str) -> str:
    return ESCAPE.sub("", text)


def words(text: str) -> list[str]:
    return text.split()


@each_page
def test_in_a_pipe_help_is_plain_text_of_80_columns(node: Node, tool: Tool) -> None:
    text = page(tool, node)
    assert "\x1b" not in text
    examples = {f"  {example}" for example in examples_of(node.command)}
    assert [line for line in text.splitlines() if len(line) > 80 and line not in examples] == []


@each_page
@each_width
def test_on_a_terminal_help_is_in_calm_colours_and_fits(
    node: Node, columns: int, tool: Tool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", str(columns))
    text = page(tool, node, terminal=True)
    assert set(ESCAPE.findall(text)) <= CALM
    assert "\x1b[1mUsage: \x1b[0m" in text
    assert "\x1b[36m" in text
    examples = {f"  {example}" for example in examples_of(node.command)}
    assert [line for line in plain(text).splitlines() if len(line) > columns and line not in examples] == []


@each_page
@each_width
def test_the_words_are_the_same_everywhere(
    node: Node, columns: int, tool: Tool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Rich takes no bracket for markup, and a narrow terminal loses nothing."""
    monkeypatch.setenv("COLUMNS", str(columns))
    assert words(plain(page(tool, node, terminal=True))) == words(page(tool, node))


@each_page
def test_in_80_columns_of_a_terminal_the_layout_is_that_of_a_pipe(node: Node, tool: Tool) -> None:
    assert plain(page(tool, node, terminal=True)) == page(tool, node)


@each_page
def test_brackets_are_shown(node: Node, tool: Tool) -> None:
    text = plain(page(tool, node, terminal=True))
    assert f"Usage: {' '.join(['msgctl', *node.words])} [OPTIONS]" in text
    for parameter in node.command.params:
        if parameter.param_type_name == "argument":
            assert f"  {parameter.metavar}  " in text
    options = [each for each in node.command.params if each.param_type_name == "option"]
    assert text.count("[required]") == sum(option.required for option in options)


def test_lines_stay_readable_on_a_wide_terminal(tool: Tool, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "250")
    text = plain(page(tool, next(node for node in NODES if node.path == "call send"), terminal=True))
    assert max(len(line) for line in text.splitlines()) <= 100


@pytest.mark.parametrize("columns", [1, 20])
def test_no_terminal_is_too_narrow(columns: int, tool: Tool, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", str(columns))
    for node in NODES:
        text = plain(page(tool, node, terminal=True))
        assert "".join(words(text)) == "".join(words(page(tool, node)))


@pytest.mark.parametrize(
    ("variable", "value"), [("NO_COLOR", "1"), ("TERM", "dumb"), ("TERM", ""), ("TERM", "unknown")]
)
def test_a_terminal_without_colour_gets_plain_help(
    variable: str, value: str, tool: Tool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(variable, value)
    for node in NODES:
        assert "\x1b" not in page(tool, node, terminal=True)


def test_no_color_gives_plain_help(tool: Tool) -> None:
    for node in NODES:
        assert "\x1b" not in page(tool, node, "--no-color", terminal=True)


def test_force_color_colours_help_in_a_pipe(tool: Tool, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("FORCE_COLOR", "1")
    assert "\x1b[1mUsage: \x1b[0m" in page(tool, NODES[0])


def test_no_color_wins_over_force_color(tool: Tool, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("FORCE_COLOR", "1")
    monkeypatch.setenv("NO_COLOR", "1")
    assert "\x1b" not in page(tool, NODES[0], terminal=True)


def titles(text: str) -> list[str]:
    return re.findall(r"^([A-Z][a-z ]+):(?: msgctl |$)", text, re.MULTILINE)


@pytest.mark.parametrize("node", COMMANDS, ids=name_of)
def test_a_command_explains_its_own_before_the_common_options(node: Node, tool: Tool) -> None:
    order = ["Usage", "Arguments", "Options", "Common options", "Examples"]
    shown = titles(page(tool, node))
    assert shown == [title for title in order if title in shown]
    assert {"Usage", "Common options", "Examples"} <= set(shown)


@pytest.mark.parametrize("node", GROUPS, ids=name_of)
def test_a_group_lists_its_commands_first_and_says_where_more_is(node: Node, tool: Tool) -> None:
    text = page(tool, node)
    before, _, after = text.partition("\nCommon options:\n")
    listed = re.findall(r"^  (\S+)  ", before, re.MULTILINE)
    assert listed
    assert sorted(listed) == sorted(node.command.commands)
    assert after.endswith(f"More: {' '.join(['msgctl', *node.words])} COMMAND --help\n")


@pytest.mark.parametrize("node", COMMANDS, ids=name_of)
@each_width
def test_examples_can_be_copied_from_any_terminal(
    node: Node, columns: int, tool: Tool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", str(columns))
    lines = plain(page(tool, node, terminal=True)).splitlines()
    assert [f"  {example}" for example in examples_of(node.command)] == lines[-len(examples_of(node.command)) :]


def test_short_and_long_options_stand_in_line(tool: Tool) -> None:
    lines = page(tool, NODES[0]).splitlines()
    assert "  -h, --help             Show this page." in lines
    assert "      --json             Print the service's JSON unchanged; same as -o json." in lines


def test_help_needs_neither_profile_nor_readable_configuration(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MSGCTL_CONFIG", "/dev/null/none")
    monkeypatch.setenv("MSGCTL_PROFILE", "nobody")
    done = process("sms", "send", "--help")
    assert (done.code, done.err) == (0, "")
    assert done.out.startswith("Usage: msgctl sms send [OPTIONS] PHONE...\n\nSend one SMS to each number")
