"""Help pages: Typer's own, for every group and command."""

from __future__ import annotations

import os
import re

import pytest

from msgctl.cli.shell.tree import PARTS, children_of
from msgctl.reference.manual import part
from support.tool import Tool
from support.tree import COMMANDS, NODES, Node

ESCAPE = re.compile(r"\x1b\[[0-9;]*m")
GLOBAL_OPTIONS = set(
    """
    -p --profile --json -o --output --fields --no-header -n --dry-run -y --yes -q --quiet -v --verbose --timeout
    --no-color -h --help -V --version
    """.split()
)
BULK = ["Message", "Recipients", "Safety", "When", "Speed", "Global options"]


def page(tool: Tool, node: Node, *, terminal: bool = False) -> str:
    """Return the page of a command, which fits into COLUMNS."""
    done = tool(*node.names, "--help", terminal=terminal)
    assert (done.code, done.err) == (0, "")
    text = ESCAPE.sub("", done.out)
    assert max(map(len, text.splitlines())) <= int(os.environ.get("COLUMNS", "80")), node.path
    assert "…" not in text, node.path
    assert "\\[" not in text, node.path
    assert not re.search("<[a-z]+>", text), node.path  # a type of Python
    return text


def words(text: str) -> str:
    """Return the letters and digits of a text, without its lines and boxes."""
    return re.sub(r"[^A-Za-z0-9'-]+", "", text)


def panels(text: str) -> dict[str, str]:
    """Return the text in each panel of a page by the panel's title."""
    return dict(re.findall(r"^╭─ (.+?) ─+╮\n(.*?)^╰", text, re.MULTILINE | re.DOTALL))


def test_every_parameter_has_help_and_a_name_in_capitals() -> None:
    for node in NODES:
        for parameter in node.command.params:
            # A remark in brackets may follow the sentence.
            assert re.fullmatch(r"[A-Z].*[.](?: \[.*\])?", parameter.help), (node.path, parameter.name)
            if parameter.param_type_name == "argument" or not (parameter.is_flag or parameter.count):
                assert parameter.metavar, (node.path, parameter.name)
                assert parameter.metavar == parameter.metavar.upper()


def test_every_command_accepts_the_global_options() -> None:
    for node in NODES:
        names = {name for each in node.command.params for name in (*each.opts, *each.secondary_opts)}
        assert names >= GLOBAL_OPTIONS, node.path


def test_every_page_fits_and_has_all_help_and_examples_and_each_option_in_its_panel(
    tool: Tool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", "80")
    for node in NODES:
        text = page(tool, node, terminal=True)
        unboxed = words(re.sub("[│─╭╮╰╯]", "", text))
        first = (node.command.help or "").split("\n\n")[0]
        for shown in (first, *node.facts.examples):
            assert words(shown) in unboxed, (node.path, shown)
        if node.is_group and node.path:
            titles = list(panels(text))
            assert (titles[0], titles[-1]) == ("Commands", "Global options"), node.path
        if node in COMMANDS:
            check_panels(node, text)
            columns = words(f"Columns: {','.join(node.facts.columns)}.")
            assert (columns in unboxed) == bool(node.facts.columns), node.path


def check_panels(node: Node, text: str) -> None:
    """Check that each option of a command is in its panel, the global ones last."""
    assert bool(re.search(r"-n  ", text)) == node.facts.has_dry_run, node.path
    assert bool(re.search(r"-y  ", text)) == node.facts.asks, node.path
    texts = panels(text)
    assert list(texts)[-1] == "Global options", node.path
    for option in node.command.params:
        if option.param_type_name == "option" and not option.hidden:
            panel, name = option.rich_help_panel or "Options", max(option.opts, key=len)
            name = name.replace("--", "--[no-]") if option.secondary_opts else name
            assert re.search(rf"^│ +\*? *{re.escape(name)}\b", texts[panel], re.MULTILINE), (node.path, name)
            assert words(option.metavar or "") in words(texts[panel]), (node.path, name)
            if option.name != "dry_run":  # has the help of the command
                assert words(option.help or "") in words(texts[panel]), (node.path, name)
    if node.facts.in_bulk:
        titles = [name for name in texts if name not in ("Arguments", "Options")]
        assert titles == [name for name in BULK if name in titles], node.path


def test_the_page_of_the_tool_has_every_group_and_at_most_60_lines(tool: Tool) -> None:
    text = page(tool, NODES[0])
    assert len(text.splitlines()) <= 60
    assert list(panels(text)) == ["Send", "Follow up", "Account", "Test", "Set up", "Global options"]
    summaries = {part.name: part.summary for part in PARTS}
    for name, command in children_of(NODES[0].command):
        assert command.get_short_help_str(200) == summaries[name]
        assert re.search(rf"^│ {re.escape(name)} +{re.escape(summaries[name][:20])}", text, re.MULTILINE)


@pytest.mark.parametrize("columns", [1, 4])
def test_a_terminal_may_be_narrower_than_the_indentation(
    columns: int, tool: Tool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", str(columns))
    assert tool("--help", terminal=True).code == 0
    wrong = tool("-p", "none", "balance", terminal=True)
    assert wrong.code == 3
    assert "profile" in wrong.err


def test_help_shows_pages_of_the_manual(tool: Tool) -> None:
    pages = {name: tool("help", name).out for name in ("config", "exit-codes", "guarantees", "recipes", "security")}
    text = pages["exit-codes"]
    assert max(map(len, text.splitlines())) <= 80
    assert "\n5, outcome_unknown\n    msgctl sent the request, but no conclusive response" in text
    assert "\n\nREASONS\n\nThe reason of an error" in text
    assert "\nA job sends only in its window.\n    Condition: The clock is right" in pages["guarantees"]
    assert re.search("^- .+\n  [^- ].+\n- ", pages["recipes"], re.MULTILINE)
    examples = [line for line in part("recipes").split("\n") if line.startswith("    ")]
    assert [line for line in pages["recipes"].split("\n") if line.startswith("    ")] == examples
    assert "%include" not in "".join(pages.values())
    assert tool("help", "sms", "send", "--json").document["commands"][0]["name"] == "sms send"
    tool("help", "sandbx").refused(2, 'Unknown command "sandbx"', "Did you mean msgctl sandbox?")
