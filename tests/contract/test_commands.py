"""`msgctl commands --json` describes every command so that a program can use it, and the examples in it work."""

from __future__ import annotations

import getpass
import json
import os
import re
import shlex
import shutil
from collections.abc import Mapping
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest

from support.examples import goes_on, write_files
from support.tool import Outcome, Tool
from support.tree import COMMANDS

DESCRIPTION = Tool()("commands", "--json").document
ALL = {command["name"]: command for command in DESCRIPTION["commands"]}
PHONE = "573001234567"

EXAMPLES = [(name, line) for name, each in ALL.items() for line in each["examples"] if not goes_on(line)]

FIRST = {name: line for name, line in reversed(EXAMPLES) if not re.search("-o |--json|--dry-run|--before", line)} | {
    "call bulk": "msgctl call bulk patients.csv --audio-code A-1029",
    "job remove": "msgctl job remove 20261121-3f9a2c",
    "job resend": "msgctl job resend 20261121-3f9a2c --only undelivered --dry-run",
    "profile add": "msgctl profile add main --base-url https://sms.example/api/v1 --client 12345 --key-stdin < key.txt",
}
"""A line for each command that leaves the output format open."""

LINKS = ("--to", "https://shop.example/?c={name}", "--name", "sale-{name}")


class Program:
    """A program in the sandbox. ``known`` maps identifiers and codes in the examples to real ones."""

    def __init__(self, tool: Tool, known: Mapping[str, str]) -> None:
        self.tool = tool
        self.known = known

    def run(self, example: str, *more: str) -> Outcome:
        """Run the msgctl part of a line of shell, at a terminal unless its input is redirected."""
        example = example.replace("postgresql://msgctl@db.example/msgctl", "another.sqlite3")
        for stands_for, known in self.known.items():
            example = re.sub(rf"\b{stands_for}\b", known, example)
        match = re.search(r"msgctl( [^|<>)]*)", example)
        assert match is not None
        arguments = [*shlex.split(match[1]), *more]
        redirected = re.search(r"< (\S+)", example)
        if redirected:
            text = Path(redirected[1]).read_text(encoding="utf-8")
            return self.tool(*arguments, stdin=text.replace("123456", self.known["123456"]))
        if "| msgctl" in example:
            return self.tool(*arguments, stdin="text of another program\n")
        return self.tool(*arguments, stdin="yes\n", terminal="--json" not in arguments)


@pytest.fixture(scope="module")
def prepared(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, dict[str, str]]:
    """A home directory for the examples: messages, a code, a short URL, a job and a profile."""
    home = tmp_path_factory.mktemp("prepared")
    tool = Tool()
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("XDG_CONFIG_HOME", str(home / "config"))
        patch.setenv("XDG_STATE_HOME", str(home / "state"))
        patch.setenv("MSGCTL_PROFILE", "sandbox")
        (home / "work").mkdir()
        first, second = tool("sms", "send", PHONE, "573007654321", "-m", "Hello", "--json").document["data"]
        write_files(home / "work", first["id"])
        (home / "work" / "key.txt").write_text("a-key\n", encoding="utf-8")
        stored = "profile add main --base-url https://service.example/api/v1 --client 12345 --key-stdin"
        assert tool(*stored.split(), stdin="a-key\n").code == 0
        tool("2fa", "send-sms", PHONE, "--app-name", "Shop")
        tool("url", "shorten", "https://example.com/", "--name", "offers")
        tool("url", "bulk", str(home / "work" / "customers.csv"), *LINKS)
        code = tool("sandbox", "inbox", PHONE, "--json").document[-1]["code"]
    return home, {"8f3c2a71": first["id"], "8f3c2a72": second["id"], "123456": code}


@pytest.fixture
def program(prepared: tuple[Path, dict[str, str]], home: Path, tool: Tool, monkeypatch: pytest.MonkeyPatch) -> Program:
    """A program in a copy of the prepared home."""
    directory, known = prepared
    shutil.copytree(directory, home, dirs_exist_ok=True)
    monkeypatch.chdir(home / "work")
    monkeypatch.setattr(getpass, "getpass", lambda _prompt: "a-key")
    monkeypatch.setenv("MSGCTL_PROFILE", "sandbox")
    return Program(tool, known)


def remove_what_is_made(name: str, home: Path) -> None:
    """Remove the objects that a command would create a second time."""
    if name == "profile add":
        (home / "config/msgctl/config.toml").unlink()
    if name == "url shorten":
        (home / "state/msgctl/sandbox.sqlite3").unlink()


def test_the_description_is_complete(tool: Tool) -> None:
    assert tool("commands", "--json").document == DESCRIPTION
    assert list(DESCRIPTION) == ["version", "exit_codes", "reasons", "global_options", "commands"]
    for command in ALL.values():
        assert list(command) == (
            ["name", "summary", "effect", "costs_credits", "arguments", "options", "output", "json", "examples"]
        )
        for argument in command["arguments"]:
            assert list(argument) == ["name", "help", "required", "multiple"]
        for option in command["options"]:
            names = ["names", "off", "type", "value", "help", "choices", "default", "required", "multiple"]
            assert list(option) == names
            assert (option["value"] is None) == (option["type"] == "flag"), option
    assert set(ALL) == {node.path for node in COMMANDS}
    assert [name for name, each in ALL.items() if not each["summary"] or not each["examples"]] == []
    sends = ALL["sms send"]
    assert (sends["effect"], sends["costs_credits"]) == ("sends", True)
    assert sends["output"] == ["id", "status", "credits", "sms", "phone", "dispatch.id", "dispatch.status"]
    assert sends["arguments"][0]["name"] == "PHONE"
    assert ALL["job resend"]["output"] == ALL["sms bulk"]["output"]
    required = {
        (name, option["names"][-1]) for name, each in ALL.items() for option in each["options"] if option["required"]
    }
    assert {("url shorten", "--name"), ("balance check", "--min")} <= required
    assert ALL["call send"]["options"][0]["names"] == ["-m", "--message"]
    (voicemail,) = (each for each in ALL["call send"]["options"] if each["off"])
    assert (voicemail["names"], voicemail["off"]) == (["--leave-voicemail"], ["--no-leave-voicemail"])
    types = {max(option["names"], key=len): option["type"] for each in ALL.values() for option in each["options"]}
    expected = {"--max-wait": "duration", "--since": "date", "--at": "time", "--exclude": "file", "--phone": "phone"}
    expected |= {"--base-url": "url", "--batch-size": "integer", "--message": "text", "--rate": "number"}
    assert types | expected == types
    (fault,) = (each for each in ALL["sandbox serve"]["options"] if each["names"] == ["--fault"])
    assert fault["choices"] == [], "503:0.1 is allowed, too"
    (by,) = (each for each in ALL["usage"]["options"] if each["names"] == ["--by"])
    assert by["choices"] == ["day", "month", "command", "job", "country", "profile"]
    (until,) = (each for each in ALL["url stats"]["options"] if each["names"] == ["--until"])
    assert until["default"] == "today"
    defaults = {each["default"] for command in ALL.values() for each in command["options"]}
    assert [text for text in defaults if text and " " in text] == [], "a default is a value that can be given"


def test_every_command_that_takes_a_number_takes_its_country() -> None:
    numbers = {name for name, each in ALL.items() if any("PHONE" in argument["name"] for argument in each["arguments"])}
    assert len(numbers) > 10
    options = {name: {long for option in ALL[name]["options"] for long in option["names"]} for name in numbers}
    assert [name for name in numbers if "--country-code" not in options[name]] == []


@pytest.mark.parametrize(("name", "example"), EXAMPLES)
def test_every_example_works(name: str, example: str, program: Program, home: Path) -> None:
    """Only a local command makes no request."""
    remove_what_is_made(name, home)
    done = program.run(example.replace("msgctl ", "msgctl -v ", 1))
    assert (done.code, done.err.count("Error")) == (0, 0), done.err
    assert ALL[name]["effect"] != "local" or "\n> " not in f"\n{done.err}"


def test_the_options_of_every_example_are_described() -> None:
    for name, line in EXAMPLES:
        described = [*DESCRIPTION["global_options"], *ALL[name]["options"]]
        options = {each: option for option in described for each in (*option["names"], *option["off"])}
        words = shlex.split(re.split(r"msgctl|[|<>)]", line)[1 + line.partition("msgctl")[0].count("|")])
        used = [(options[word], value) for word, value in pairwise([*words, ""]) if re.match("--?[a-z]", word)]
        for option, value in used:
            assert option["type"] != "integer" or value.isdecimal(), line
            assert not option["choices"] or value in option["choices"], line
        required = [option for option in ALL[name]["options"] if option["required"]]
        assert [option for option in required if option not in [each for each, _ in used]] == [], line


def decoded(shape: str, text: str) -> Any:
    """Return what --json printed, which must have this shape."""
    if shape == "lines":
        return [json.loads(line) for line in text.splitlines()]
    decoder, documents = json.JSONDecoder(), []
    while text := text.lstrip():
        document, end = decoder.raw_decode(text)
        documents.append(document)
        text = text[end:]
    if shape == "responses":
        return documents
    (document,) = documents
    assert isinstance(document, list if shape == "list" else dict)
    return document


def test_a_program_gets_the_shape_of_json_and_the_columns_that_are_described(
    program: Program, home: Path, tmp_path_factory: pytest.TempPathFactory
) -> None:
    assert ALL.keys() - FIRST.keys() == {"sandbox serve", "sandbox exec"}
    kept = shutil.copytree(home, tmp_path_factory.mktemp("kept"), dirs_exist_ok=True)
    for name, example in FIRST.items():
        for options in (["--json"], ["-o", "tsv"]):
            if (name, options) == ("api", ["-o", "tsv"]):
                continue  # it prints every response unchanged
            shutil.rmtree(home)
            os.chdir(shutil.copytree(kept, home) / "work")
            remove_what_is_made(name, home)
            if name == "job remove":
                program.run("msgctl job cancel 20261121-3f9a2c --yes")
            done = program.run(example, "--yes", *options)
            assert done.code == 0, (name, done.err)
            if options == ["--json"]:
                decoded(ALL[name]["json"], done.out)
            elif columns := ALL[name]["output"]:  # the columns of a file come before or after them
                assert set(columns) <= {*done.out.partition("\n")[0].split("\t")}, name


def test_an_unknown_field_is_refused_before_a_request(program: Program) -> None:
    for name, each in ALL.items():
        if each["output"] and name not in ("job resend", "profile add"):  # they print rows only after a resend or check
            examples = [line for line in each["examples"] if not goes_on(line) and not re.search("-o |--dry-run", line)]
            line = examples[0].replace("msgctl ", "msgctl -v ", 1)
            done = program.run(line, "-o", "csv", "--yes", "--fields", "eaten")
            assert (done.code, done.out, "eaten" in done.err) == (2, "", True), (name, done.err)
            assert "\n> " not in f"\n{done.err}", name
