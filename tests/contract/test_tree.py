"""The whole command tree: every command has help, examples that work, and the options of its operation."""

from __future__ import annotations

import re

from msgctl import operations as ops
from support.tree import COMMANDS, NODES, arguments, options

COMMON = set(
    """
    -p --profile --json -o --output --fields --no-header -n --dry-run -y --yes -q --quiet -v --verbose --timeout
    --no-color -h --help -V --version
    """.split()
)


PERFORMING = [node for node in COMMANDS if node.facts.performs and not node.facts.in_bulk]


def test_every_operation_of_the_interface_is_reached_by_a_command() -> None:
    reached = {node.path: node.facts.performs for node in PERFORMING}
    assert [reached.get(operation.name) for operation in ops.OPERATIONS] == [*ops.OPERATIONS]


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


def test_a_command_offers_every_field_of_its_operation() -> None:
    for node in PERFORMING:
        operation = node.facts.performs
        assert operation is not None
        if node.path != "profile add":
            assert {field.typed for field in operation.fields} <= options(node) | set(arguments(node)), node.path
