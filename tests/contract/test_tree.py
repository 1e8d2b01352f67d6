"""The whole command tree: every command has help, parsers, global options, and the options of its operation."""

from __future__ import annotations

import re

from msgctl import operations as ops
from msgctl.cli.parsers import parser_of
from support.tree import COMMANDS, NODES, arguments, options

COMMON = set(
    """
    -p --profile --json -o --output --fields --no-header -n --dry-run -y --yes -q --quiet -v --verbose --timeout
    --no-color -h --help -V --version
    """.split()
)
PARSED = frozenset("N S SECONDS DATE CC STATE KEY OUTCOME CHANNEL GROUP KIND LIMIT".split())
"""Placeholders of numbers, times, dates, countries and choices."""


def test_every_operation_of_the_interface_has_a_command_with_its_fields() -> None:
    performing = {node.path: node for node in COMMANDS if node.facts.performs and not node.facts.in_bulk}
    assert [performing[operation.name].facts.performs for operation in ops.OPERATIONS] == [*ops.OPERATIONS]
    del performing["profile add"]  # it reads the balance of its own account
    for node in performing.values():
        operation = node.facts.performs
        assert operation is not None
        assert {field.typed for field in operation.fields} <= options(node) | set(arguments(node)), node.path


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
        assert options(node) >= COMMON, node.path


def test_options_with_a_number_a_time_a_date_or_a_choice_have_a_parser() -> None:
    found = [
        f"{node.path} {each.opts[-1]}"
        for node in NODES
        for each in node.command.params
        if each.param_type_name == "option" and each.metavar in PARSED and not parser_of(each)
    ]
    # The country of a visit may be any text.
    assert found == ["sandbox click --country"]
