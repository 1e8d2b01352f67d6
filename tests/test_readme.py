"""Every command line of the README works, and prints what the README shows.

In a block of `console`, what follows `$ ` is run and has to print the lines below it; identifiers, codes, times and
short URLs differ from run to run and count as equal. A block of `sh` is run as it stands. Both run in bash, in one
folder and one home, against the sandbox, each line after those above it.

A comment before a block says what cannot be run so:

- `<!-- account -->`: needs an account and a terminal. Its lines are run without a request, with `--dry-run`.
- `<!-- first -->`, `<!-- test -->`: makes a virtual environment in a clone. `.ci/run` takes it out and runs it.
"""

from __future__ import annotations

import getpass
import os
import re
import shlex
import subprocess
import sys
from pathlib import Path
from typing import NamedTuple

import pytest

import msgctl
from msgctl import errors
from support.tool import Tool

ROOT = Path(__file__).parent.parent
README = (ROOT / "README.md").read_text(encoding="utf-8")
RUN_ELSEWHERE = {"first", "test"}


class Block(NamedTuple):
    marker: str
    language: str
    text: str


BLOCKS = [
    Block(*found)
    for found in re.findall(r"(?:^<!-- ([a-z]+) -->\n)?^```([a-z]+)\n(.*?)^```$", README, re.MULTILINE | re.DOTALL)
]


def block(marker: str) -> Block:
    (found,) = (block for block in BLOCKS if block.marker == marker)
    return found


class Shell:
    """bash in a folder of its own, with this msgctl as `msgctl`; variables last from line to line."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        command = folder / "bin" / "msgctl"
        command.parent.mkdir()
        command.write_text(f'#!/bin/sh\nexec {shlex.quote(sys.executable)} -m msgctl "$@"\n')
        command.chmod(0o755)
        package = str(Path(msgctl.__file__).parent.parent)
        self._variables: dict[str, str] = {"MSGCTL_PROFILE": "sandbox", "PYTHONPATH": package}

    def run(self, script: str) -> tuple[int, str]:
        """Exit code, and what was printed on both streams."""
        env = {**os.environ, **self._variables, "PATH": f"{self._folder / 'bin'}:{os.environ['PATH']}"}
        done = subprocess.run(
            ["bash", "-euo", "pipefail", "-c", f"exec 2>&1\n{script}"],
            cwd=self._folder,
            env=env,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            timeout=60,
            check=False,
        )
        return done.returncode, done.stdout

    def keep(self, script: str) -> str:
        """Run a line of a session, and keep the variable that it sets, if any."""
        assignment = re.match(r"(?:export )?([a-zA-Z_]+)=", script)
        if not assignment:
            code, printed = self.run(script)
            assert code == 0, printed
            return printed
        code, value = self.run(f'{script}\nprintf %s "${assignment[1]}"')
        assert code == 0, value
        self._variables[assignment[1]] = value
        return ""


def told_apart_by_chance(text: str) -> str:
    """Text in which everything that differs from run to run is the same."""
    text = re.sub(r"\b[0-9a-f]{16}\b", "IDENTIFIER", text)
    text = re.sub(r"\b[0-9]{6}\b", "CODE", text)
    text = re.sub(r"\b[0-9]{4}-[0-9]{2}-[0-9]{2}T[0-9:]{8}Z", "TIME", text)
    return re.sub(r"/u/\w{7}\b", "/u/ALIAS", text)


def session(text: str) -> list[tuple[str, str]]:
    """The commands of a `console` block, each with what it printed."""
    parts = re.split(r"^\$ (.*)\n", text, flags=re.MULTILINE)
    assert parts[0] == "", "a session begins with a command"
    return list(zip(parts[1::2], parts[2::2], strict=True))


def test_what_the_readme_shows_can_be_typed(tmp_path: Path) -> None:
    shell = Shell(tmp_path)
    ran = 0
    for each in BLOCKS:
        if each.language == "console":
            for command, shown in session(each.text):
                assert told_apart_by_chance(shell.keep(command)) == told_apart_by_chance(shown), command
                ran += 1
        elif each.language == "sh" and not each.marker:
            code, printed = shell.run(each.text)
            assert code == 0, printed
            ran += 1
    assert ran > 10


def test_what_needs_an_account_is_understood(tool: Tool, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(getpass, "getpass", lambda _prompt: "a-key")
    for line in block("account").text.splitlines():
        words = shlex.split(line, comments=True)
        assert words[0] == "msgctl"
        dry_run = [] if words[1] == "profile" else ["--dry-run"]
        done = tool(*words[1:], *dry_run, terminal=True)
        assert done.code == 0, done.err
        assert dry_run == [] or "service.example" in done.out


def test_every_msgctl_line_of_the_readme_is_run_by_one_of_these_tests() -> None:
    lines = [line for line in README.splitlines() if re.match(r"(\$ )?(.*[|(] ?)?msgctl [a-z-]", line)]
    fenced = "".join(each.text for each in BLOCKS if each.language in {"console", "sh"})
    assert [line for line in lines if line not in fenced] == []
    assert {each.marker for each in BLOCKS} <= {"", "account", *RUN_ELSEWHERE}
    assert {each.language for each in BLOCKS} == {"console", "sh", "toml"}


def test_the_first_command_sends_an_sms_whose_answer_is_a_table(tmp_path: Path) -> None:
    (line,) = block("first").text.splitlines()
    *preparation, command = line.split(" && ")
    assert preparation == ["python3 -m venv .venv", ".venv/bin/pip install --quiet ."]
    assert command.startswith(".venv/bin/msgctl -p sandbox sms send ")
    code, printed = Shell(tmp_path).run(command.removeprefix(".venv/bin/"))
    assert code == 0
    assert re.search(r"^phone +status +credits +id +sms\n573001234567  queued", printed, re.MULTILINE)


def test_the_second_command_runs_these_tests() -> None:
    (line,) = block("test").text.splitlines()
    assert line.split(" && ") == ["python3 -m venv .venv", ".venv/bin/pip install --quiet '.[dev]'", ".venv/bin/pytest"]


def test_the_profile_file_of_the_readme_is_read(tool: Tool, home: Path) -> None:
    (text,) = (each.text for each in BLOCKS if each.language == "toml")
    file = home / "config" / "msgctl" / "config.toml"
    file.parent.mkdir(parents=True, mode=0o700)
    file.touch(mode=0o600)
    file.write_text(text, encoding="utf-8")
    shown = tool("profile", "show", "--json").document
    assert (shown["name"], shown["default"], shown["key_command"]) == ("main", True, "pass show msgctl/main")
    assert tool("-n", "--json", "sms", "send", "573001234567", "-m", "Hello").document["form"]["country-code"] == "CO"


def test_the_exit_codes_are_those_of_the_errors() -> None:
    kinds = [each for each in vars(errors).values() if isinstance(each, type) and issubclass(each, Exception)]
    codes = {"0", *(str(kind.exit_code) for kind in kinds if issubclass(kind, errors.MsgctlError))}
    assert set(re.findall(r"^\| ([0-9]{1,3}) \|", README, re.MULTILINE)) == codes


def test_links_lead_somewhere() -> None:
    links = re.findall(r"\]\(([^)]+)\)", README)
    assert links
    assert [link for link in links if not (ROOT / link).exists()] == []
