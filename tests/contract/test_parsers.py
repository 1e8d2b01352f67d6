"""The values of options are parsed by Typer, before a command runs."""

from __future__ import annotations

import pytest

from msgctl.cli.parsers import parser_of
from support.tool import Tool
from support.tree import NODES

PLACEHOLDERS = frozenset("N S SECONDS DATE CC STATE KEY OUTCOME CHANNEL GROUP KIND LIMIT".split())
"""Placeholders of numbers, times, dates, countries and choices."""


def test_options_with_a_number_a_time_a_date_or_a_choice_have_a_parser() -> None:
    found = [
        f"{node.path} {each.opts[-1]}"
        for node in NODES
        for each in node.command.params
        if each.param_type_name == "option" and each.metavar in PLACEHOLDERS and not parser_of(each)
    ]
    # The country of a visit may be any text.
    assert found == ["sandbox click --country"]


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ("sandbox click offers --count 0", '--count must be from 1 to 100,000, not "0"'),
        ("job resume x --rate 0", '--rate must be from 0.001 to 100,000, not "0"'),
        (
            "job remove --before soon",
            '"soon" is not a date: use YYYY-MM-DD, today, yesterday, or 7d for seven days ago',
        ),
        ("balance check --min 1_0", '--min must be a whole number, 0 or more, not "1_0"'),
    ],
)
@pytest.mark.parametrize("form", ["table", "json"])
def test_an_error_of_a_parser_is_a_usage_error(line: str, message: str, form: str, tool: Tool) -> None:
    done = tool("-p", "sandbox", "-o", form, *line.split())
    assert (done.code, done.out) == (2, "")
    if form == "table":
        assert done.err.splitlines()[0] == f"Error: {message}"
    else:
        assert (done.error["kind"], done.error["reason"], done.error["message"]) == ("usage", "usage", message)


def test_completions_offer_only_choices_that_the_option_accepts(tool: Tool) -> None:
    commands = {each["name"]: each for each in tool("commands", "--json").document["commands"]}
    call = {each["names"][-1]: each for each in commands["2fa send-call"]["options"]}
    assert call["--voice"]["choices"][0] == "Mariana"
    assert "Marian" not in call["--voice"]["choices"]
    serve = {each["names"][-1]: each for each in commands["sandbox serve"]["options"]}
    assert serve["--port"]["default"] == "8520"
