"""The whole command tree: every command has help, examples that work, and the options of its operation."""

from __future__ import annotations

import csv
import getpass
import re
import shlex
from pathlib import Path
from typing import Any

import pytest

from msgctl import operations as ops
from support.examples import write_files
from support.tool import Tool
from support.tree import COMMANDS, GROUPS, NODES, Node, arguments, name_of, options

WANTED = """
    balance show, balance check, block add, sms send, sms segments, call send, state get, state watch,
    history list, history clear, optout add, optout list, optout remove, optout import,
    2fa send-sms, 2fa send-call, 2fa send-chatapp, 2fa verify, url shorten, url stats, chatapp send, chatapp order,
    profile add, profile list, profile show, profile use, profile remove, profile path,
    sms bulk, call bulk, chatapp bulk, block bulk,
    job list, job show, job resume, job report, job states, job remove, job run-due,
    sandbox inbox, sandbox click, sandbox credit, sandbox reset, api, doctor
"""

COMMON = set(
    """
    -p --profile --json -o --output --fields --no-header -n --dry-run -y --yes -q --quiet -v --verbose --timeout
    --no-color -h --help -V --version
    """.split()
)


PERFORMING = [node for node in COMMANDS if node.facts.performs and not node.facts.in_bulk]


def test_every_command_of_the_surface_exists() -> None:
    wanted = {" ".join(each.split()) for each in WANTED.split(",")}
    assert wanted <= {node.path for node in COMMANDS}


def test_every_operation_of_the_interface_is_reached_by_a_command() -> None:
    reached = {node.path: node.facts.performs for node in PERFORMING}
    assert [reached.get(operation.name) for operation in ops.OPERATIONS] == [*ops.OPERATIONS]


@pytest.mark.parametrize("group", GROUPS[:3], ids=name_of)
def test_each_line_of_a_listing_is_a_sentence_that_fits_80_columns(group: Node, tool: Tool) -> None:
    page = tool(*group.words, "--help").out.splitlines()
    for name in group.command.list_commands(None):
        (line,) = [line for line in page if re.match(rf"  {re.escape(name)}  ", line)]
        position = page.index(line) + 1
        assert line.endswith("."), "the sentence goes on in another line"
        assert len(line) <= 80
        assert not page[position].startswith("    "), "something else goes on beneath it"


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


@pytest.mark.parametrize("node", PERFORMING, ids=name_of)
def test_an_example_is_a_request_of_the_operation(node: Node, tool: Tool) -> None:
    operation = node.facts.performs
    assert operation is not None
    example = node.facts.examples[-1]
    if node.path == "profile add":
        example += " --check"
    done = run_example(tool, example, "-n", "-o", "csv")
    assert done.code == 0, done.err
    first = next(csv.DictReader(done.out.splitlines()))
    assert first["method"] == operation.method
    assert first["url"].endswith("/api/v1" + operation.path)


# --- examples


@pytest.fixture(autouse=True)
def prepared(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The files that examples read, in a folder of the test's own."""
    (home / "work").mkdir()
    monkeypatch.chdir(home / "work")
    monkeypatch.setattr(getpass, "getpass", lambda _prompt: "a-key")
    monkeypatch.setenv("MSGCTL_PROFILE", "sandbox")
    write_files(home / "work")
    Path("key.txt").write_text("a-key\n", encoding="utf-8")


def run_example(tool: Tool, example: str, *more: str) -> Any:
    """Run the msgctl part of a line of shell: in `a | msgctl … < file` and `"$(msgctl …)"` alike."""
    found = re.search(r"msgctl( [^|<>)]*)", example)
    assert found is not None
    redirected = re.search(r"< (\S+)", example)
    words = [*shlex.split(found[1]), *more]
    if redirected:
        return tool(*words, stdin=Path(redirected[1]).read_bytes())
    if "| msgctl" in example:
        return tool(*words, stdin=b"text of another program\n")
    return tool(*words, stdin=b"yes\n", terminal=True)
