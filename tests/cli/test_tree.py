"""The command tree, walked: every command has help, examples that work, and the options of its operation."""

from __future__ import annotations

import csv
import getpass
import re
import shlex
from pathlib import Path
from typing import Any

import pytest

from msgctl import operations as ops
from msgctl.cli.tree import examples_of, is_bulk, operation_of
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

SHORT = {"--message": {"-m"}, "--leave-voicemail": {"--no-leave-voicemail"}, "--premium": {"--no-premium"}}
"""What the surface gives an option beside its long name."""

SENDING = {"--once", "--resend-unknown", "--ignore-optout"}

MORE = {
    "balance check": {"--min"},
    "history": {"--since", "--until", "--phone", "--country-code", "--state", "--command", "--job", "--limit"},
    "history list": {"--since", "--until", "--phone", "--country-code", "--state", "--command", "--job", "--limit"},
    "state get": {"--last"},
    "sms send": {"--message-file", "--gsm7"} | SENDING,
    "call send": {"--message-file"} | SENDING,
    "api": {"-f", "--form", "-q", "--query", "--input", "-i", "--include"},
    "state watch": {"--last", "--until", "--interval", "--max-wait"},
    "block add": {"--country-code"},
    "chatapp send": {"--country-code", "--body"} | SENDING,
    "chatapp order": {"--country-code", "--body"} | SENDING,
    # The account to be stored, and the defaults and permissions that a profile can hold ("Profiles").
    "profile add": {"--base-url", "--client", "--key-stdin", "--key-command", "--check", "--force"}
    | {"--country-code", "--app-name", "--voice", "--allow-http"}
    | {"--no-allow-http", "--keyring", "--timezone"},
}
"""Options that the surface gives a command beside the fields of its operation."""

RULES = {"--exclude", "--window", "--days", "--at", "--foreground", "--again"}
OF_A_JOB = {
    "--name",
    "--country-code",
    "--no-number-check",
    "--phone-column",
    "--skip-invalid",
    "--concurrency",
    "--rate",
}
BULK = {
    "sms bulk": OF_A_JOB | {"-m", "--message", "--message-file", "--gsm7", "--country-code"} | RULES,
    "call bulk": OF_A_JOB
    | {"-m", "--message", "--message-file", "--voice", "--audio-code", "--retries"}
    | {"--leave-voicemail", "--no-leave-voicemail", "--country-code"}
    | RULES,
    "chatapp bulk": OF_A_JOB | {"--template"} | RULES,
    "block bulk": OF_A_JOB | {"--name"},
}
"""Options of the commands that read a file of recipients ("Jobs")."""

PERFORMING = [node for node in COMMANDS if operation_of(node.command) and not is_bulk(node.command)]
MAKING_A_REQUEST_FOR_A_FIELD = [node for node in PERFORMING if node.path != "profile add"]


def test_every_command_of_the_surface_exists() -> None:
    wanted = {" ".join(each.split()) for each in WANTED.split(",")}
    assert wanted <= {node.path for node in COMMANDS}


def test_every_operation_of_the_interface_is_reached_by_a_command() -> None:
    reached = {operation.name for node in PERFORMING if (operation := operation_of(node.command))}
    assert reached == {operation.name for operation in ops.OPERATIONS}


@pytest.mark.parametrize("group", GROUPS, ids=name_of)
def test_each_line_of_a_listing_is_a_sentence_that_fits_80_columns(group: Node, tool: Tool) -> None:
    page = tool(*group.words, "--help").out.splitlines()
    for name in group.command.commands:
        (line,) = [line for line in page if re.match(rf"  {re.escape(name)}  ", line)]
        position = page.index(line) + 1
        assert line.endswith("."), "the sentence goes on in another line"
        assert len(line) <= 80
        assert not page[position].startswith("    "), "something else goes on beneath it"


@pytest.mark.parametrize("node", NODES, ids=name_of)
def test_help_is_in_whole_sentences(node: Node) -> None:
    paragraphs = (node.command.help or "").split("\n\n")
    assert all(re.fullmatch(r"[A-Z2].*\.", " ".join(paragraph.split())) for paragraph in paragraphs)


@pytest.mark.parametrize("node", NODES, ids=name_of)
def test_each_argument_and_option_is_explained_in_a_sentence_and_named_in_capitals(node: Node) -> None:
    for parameter in node.command.params:
        # A remark in brackets may follow the sentence.
        assert re.fullmatch(r"[A-Z].*[.](?: \[.*\])?", parameter.help), parameter.name
        if parameter.param_type_name == "argument" or not (parameter.is_flag or parameter.count):
            assert parameter.metavar, parameter.name
            assert parameter.metavar == parameter.metavar.upper()


@pytest.mark.parametrize("node", NODES, ids=name_of)
def test_the_common_options_are_taken_everywhere(node: Node) -> None:
    assert options(node) >= COMMON


@pytest.mark.parametrize("node", GROUPS, ids=name_of)
def test_a_group_has_no_option_of_its_own_but_those_it_takes_alone(node: Node) -> None:
    assert options(node) - COMMON == MORE.get(node.path, set())
    assert arguments(node) == []


@pytest.mark.parametrize("node", MAKING_A_REQUEST_FOR_A_FIELD, ids=name_of)
def test_a_command_offers_each_field_of_its_operation_and_nothing_else(node: Node) -> None:
    operation = operation_of(node.command)
    assert operation is not None
    typed = {field.typed for field in operation.fields}
    named = {name for name in typed if name.startswith("--")}
    others: set[str] = set().union(*(SHORT.get(name, set()) for name in named), MORE.get(node.path, set()))
    if any(name.startswith("PHONE") for name in typed):
        others |= {"--no-number-check"}
    assert sorted(arguments(node)) == sorted(typed - named)
    assert options(node) - COMMON == named | others


@pytest.mark.parametrize("node", [node for node in COMMANDS if is_bulk(node.command)], ids=name_of)
def test_a_bulk_command_takes_a_file_and_what_is_the_same_for_all(node: Node) -> None:
    paid = {"--max-credits", "--name"} if node.path != "block bulk" else set()
    shared = {"--batch-size"} if node.path in ("sms bulk", "call bulk") else set()
    assert options(node) - COMMON == BULK[node.path] | paid | shared
    assert arguments(node)[0] == "FILE"


def test_the_options_of_the_history() -> None:
    found = {node.path: options(node) - COMMON for node in COMMANDS if node.words[0] == "history"}
    assert found == {"history list": MORE["history list"], "history clear": {"--before"}}


def test_the_options_of_any_request() -> None:
    (node,) = (node for node in COMMANDS if node.path == "api")
    assert options(node) - COMMON == MORE["api"] - {"-q"}
    assert arguments(node) == ["METHOD", "PATH"]
    (quiet,) = (each for each in node.command.params if "--quiet" in each.opts)
    assert quiet.opts == ["--quiet"]


def test_the_options_of_storing_a_profile() -> None:
    (node,) = (node for node in COMMANDS if node.path == "profile add")
    assert options(node) - COMMON == MORE[node.path]
    assert arguments(node) == ["NAME"]


@pytest.mark.parametrize("node", PERFORMING, ids=name_of)
def test_an_example_is_a_request_of_the_operation(node: Node, tool: Tool) -> None:
    operation = operation_of(node.command)
    assert operation is not None
    example = examples_of(node.command)[-1]
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


@pytest.mark.parametrize("node", COMMANDS, ids=name_of)
def test_every_command_has_an_example_of_itself(node: Node) -> None:
    assert any(f"msgctl {node.path}" in example for example in examples_of(node.command))
    assert all(re.search(r"msgctl\b.* " + node.words[0], example) for example in examples_of(node.command))
