"""The command lines of the README work and print what it shows.

In a `console` block, each line after `$ ` is run in bash at a terminal and prints the lines below it; identifiers,
codes, times and short URLs may differ. `sh` and `bash` blocks are run as they are. All use the sandbox and one folder.

A comment before a block marks what is run in another way:

- `<!-- account -->`: needs an account. Its lines are run with `--dry-run`.
- `<!-- first -->`, `<!-- test -->`: create a virtual environment in a clone. `.ci/run` runs them.
- `<!-- uv -->`: needs uv. Its syntax is checked.
- `<!-- disk -->`, `<!-- 2fa -->`: run with a full disk, and with a person at a terminal.
- `<!-- campaign -->`: run with recipients in an Excel file.

`sandbox/test_guides.py` runs the `python` and `yaml` blocks.
"""

from __future__ import annotations

import csv
import getpass
import json
import os
import re
import shlex
import subprocess
import sys
from pathlib import Path
from typing import NamedTuple

import pexpect  # type: ignore[import-untyped]
import pytest
from python_calamine import CalamineWorkbook

import msgctl
from msgctl import errors
from support.service import Service
from support.tool import Tool
from support.workbooks import workbook

ROOT = Path(__file__).parent.parent
README = (ROOT / "README.md").read_text(encoding="utf-8")


class Block(NamedTuple):
    marker: str
    language: str
    text: str


BLOCKS = [
    Block(*found)
    for found in re.findall(r"(?:^<!-- ([0-9a-z]+) -->\n)?^```([a-z]+)\n(.*?)^```$", README, re.MULTILINE | re.DOTALL)
]


def block(marker: str) -> Block:
    (found,) = (block for block in BLOCKS if block.marker == marker)
    return found


class Shell:
    """A shell in a folder of its own, with this msgctl on its PATH; variables last from line to line."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        (folder / "bin").mkdir()
        self.program("msgctl", f'exec {shlex.quote(sys.executable)} -m msgctl "$@"')
        package = str(Path(msgctl.__file__).parent.parent)
        self.variables: dict[str, str] = {"MSGCTL_PROFILE": "sandbox", "PYTHONPATH": package}

    @property
    def environment(self) -> dict[str, str]:
        return {**os.environ, **self.variables, "PATH": f"{self._folder / 'bin'}:{os.environ['PATH']}"}

    def program(self, name: str, script: str) -> None:
        """Put a program on the PATH."""
        path = self._folder / "bin" / name
        path.write_text(f"#!/bin/sh\n{script}\n")
        path.chmod(0o755)

    def run(self, script: str, shell: str = "bash") -> tuple[int, str]:
        """Return the exit code of a script, and what it printed on both streams."""
        done = subprocess.run(
            [shell, "-eu", "-c", f"exec 2>&1\n{script}"],
            cwd=self._folder,
            env=self.environment,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            timeout=60,
            check=False,
        )
        return done.returncode, done.stdout

    def keep(self, script: str) -> str:
        """Run a line of a session at a terminal of 100 columns, and remember the variable that it sets, if any."""
        assignment = re.match(r"(?:export )?([a-zA-Z_]+)=", script)
        if assignment:
            code, value = self.run(f'{script}\nprintf %s "${assignment[1]}"')
            assert code == 0, value
            self.variables[assignment[1]] = value
            return ""
        child = pexpect.spawn(
            "bash",
            ["-euc", script],
            cwd=str(self._folder),
            env={**self.environment, "NO_COLOR": "1", "LC_ALL": "C.UTF-8"},
            dimensions=(50, 100),
            timeout=60,
            encoding="utf-8",
        )
        child.expect(pexpect.EOF)
        child.close()
        printed = "".join(f"{line.rstrip()}\n" for line in child.before.splitlines())
        assert child.exitstatus == 0, printed
        return printed


@pytest.fixture
def shell(tmp_path: Path) -> Shell:
    return Shell(tmp_path)


def stable(text: str) -> str:
    """Return a text without what differs from run to run."""
    text = re.sub(r"\b[0-9]{8}-[0-9a-f]{6}\b", "JOB", text)
    text = re.sub(r"\b[0-9a-f]{16}\b", "IDENTIFIER", text)
    text = re.sub(r"\b[0-9]{6}\b", "CODE", text)
    text = re.sub(r"(?:[0-9]{4}-[0-9]{2}-[0-9]{2}T|\b)[0-9]{2}:[0-9]{2}(:[0-9]{2}Z?)?\b", "TIME", text)
    text = re.sub(r"TIME +([0-9]+ (s|min) ago|now)", "TIME", text)
    text = re.sub(r" {2,}|─+", "  ", text)  # widths follow the times
    return re.sub(r"/u/\w{7}\b", "/u/ALIAS", text)


def session(text: str) -> list[tuple[str, str]]:
    """Return the commands of a `console` block, each with its output."""
    parts = re.split(r"^\$ (.*)\n", text, flags=re.MULTILINE)
    assert parts[0] == "", "a session begins with a command"
    return list(zip(parts[1::2], parts[2::2], strict=True))


def test_the_commands_print_what_the_readme_shows(shell: Shell) -> None:
    ran = 0
    for each in BLOCKS:
        if each.language == "console":
            for command, shown in session(each.text):
                assert stable(shell.keep(command)) == stable(shown), command
                ran += 1
        elif each.language in {"sh", "bash"} and not each.marker:
            code, printed = shell.run(each.text, each.language)
            assert code == 0, printed
            ran += 1
    assert ran > 10


def test_the_commands_for_an_account_are_valid(tool: Tool, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(getpass, "getpass", lambda _prompt: "a-key")
    for line in block("account").text.splitlines():
        _, *arguments = shlex.split(line, comments=True)
        dry_run = [] if arguments[0] == "profile" else ["--dry-run"]
        done = tool(*arguments, *dry_run, terminal=True)
        assert done.code == 0, done.err


def test_the_commands_to_try_a_service_are_valid(service: Service, tool: Tool) -> None:
    for line in block("try").text.splitlines():
        done = tool(*shlex.split(line, comments=True)[1:], "--dry-run")
        assert done.code == 0, done.err
    assert service.received == []


def test_every_block_is_run_or_checked() -> None:
    assert {each.marker for each in BLOCKS} == {
        "",
        "account",
        "try",
        "first",
        "test",
        "uv",
        "disk",
        "2fa",
        "balance",
        "campaign",
        "event",
        "release",
    }
    assert {each.language for each in BLOCKS} == {
        "console",
        "sh",
        "bash",
        "toml",
        "yaml",
        "python",
        "dockerfile",
    }
    for marker in ("uv", "release"):
        assert subprocess.run(["sh", "-n", "-c", block(marker).text], check=False).returncode == 0


@pytest.mark.parametrize(
    ("balance", "base_url", "alarm"),
    [(101, None, False), (99, None, True), (99, "http://127.0.0.1:9/api/v1", False)],
    ids=["enough", "low", "not reached"],
)
def test_only_a_low_balance_raises_the_balance_alarm(
    balance: int, base_url: str | None, alarm: bool, shell: Shell
) -> None:
    recipe = block("balance").text
    shell.run(f"msgctl sandbox credit {balance}")
    if base_url:
        shell.variables |= {"MSGCTL_PROFILE": "", "MSGCTL_BASE_URL": base_url, "MSGCTL_CLIENT": "1", "MSGCTL_KEY": "k"}
    code, printed = shell.run(recipe, "sh")
    assert (code, printed) == (0, "Credits are running low\n" if alarm else "")


def test_the_balance_alarm_reports_a_wrong_configuration(shell: Shell) -> None:
    shell.variables["MSGCTL_PROFILE"] = "nobody"
    code, printed = shell.run(block("balance").text, "sh")
    assert (code, "nobody" in printed) == (0, True)


def test_the_file_for_prometheus_contains_the_credits(shell: Shell, tmp_path: Path) -> None:
    shell.run("msgctl sandbox responses observed")
    (recipe,) = (each.text for each in BLOCKS if "msgctl.prom" in each.text)
    assert shell.run(recipe, "sh") == (0, "")
    assert (tmp_path / "msgctl.prom").read_text() == "# TYPE msgctl_credits gauge\nmsgctl_credits 1000\n"


def test_an_event_reaches_a_phone_once_if_the_monitoring_program_tries_again(shell: Shell) -> None:
    shell.run("msgctl sandbox fault drop:next=1:/send-sms")
    recipe = f"set -- 573001234567 4711 'The disk is full'\n{block('event').text}"
    assert [shell.run(recipe, "sh")[0] for _ in range(2)] == [5, 5]
    assert shell.run("msgctl sandbox inbox -o csv --fields phone")[1] == "phone\n573001234567\n"


def test_the_cron_job_sends_once_a_day(shell: Shell, tmp_path: Path) -> None:
    (line,) = re.findall(r"^ *command: (\[\"sh\", .*\])$", README, re.MULTILINE)
    (tmp_path / "today.csv").write_text("phone,name\n573001234567,Ana\n", encoding="utf-8")
    command = shlex.join(json.loads(line.replace("/data", str(tmp_path))))
    assert [shell.run(command)[0] for _ in range(2)] == [0, 0]
    assert shell.run("msgctl sandbox inbox -o csv --fields text")[1] == "text\nHello Ana\n"


@pytest.fixture
def full_disk(shell: Shell) -> Shell:
    shell.program("df", "printf 'Filesystem\\n/dev/sda1 1 1 1 95%% /\\n'")
    shell.program("sleep", "echo slept")
    return shell


def test_the_disk_alarm_is_sent_once_a_day(full_disk: Shell) -> None:
    assert [full_disk.run(block("disk").text, "sh")[0] for _ in range(2)] == [0, 0]
    assert full_disk.run("msgctl sandbox inbox -o csv --fields phone")[1] == "phone\n573001234567\n"


@pytest.mark.slow
def test_the_disk_alarm_is_tried_three_times(full_disk: Shell) -> None:
    variables = {"MSGCTL_PROFILE": "", "MSGCTL_BASE_URL": "http://127.0.0.1:9/api/v1"}
    full_disk.variables |= {**variables, "MSGCTL_CLIENT": "1", "MSGCTL_KEY": "k"}
    code, printed = full_disk.run(block("disk").text, "sh")
    assert (code, printed.count("slept")) == (4, 3)


def test_the_disk_alarm_is_sent_once_if_a_response_is_lost(full_disk: Shell) -> None:
    shell = full_disk
    shell.run("msgctl sandbox fault drop:next=1:/send-sms")
    for _ in range(2):
        code, printed = shell.run(block("disk").text, "sh")
        assert (code, "slept" in printed) == (5, False)
    assert shell.run("msgctl sandbox inbox -o csv --fields phone")[1] == "phone\n573001234567\n"


def test_a_campaign_ends_with_a_list_of_clicks(shell: Shell, tmp_path: Path) -> None:
    people = [("573001234567", "Ana", "a&b"), ("573009990001", "Eva", "e"), ("573007654321", "Luis", "l")]
    book = workbook(("Phone", "Name", "ID"), *people, ("573001112222", "Out", "o"))
    (tmp_path / "customers.xlsx").write_bytes(book)
    (tmp_path / "do-not-contact.csv").write_text("phone\n573001112222\n", encoding="utf-8")
    text = block("campaign").text
    assert 0 < len(re.findall("^msgctl ", text, re.MULTILINE)) <= 10
    # All delivery states are final at the first check.
    text = text.replace("msgctl job states", "msgctl sandbox clock +1m\nmsgctl job states")
    text = text.replace("msgctl url clicks", "msgctl sandbox click 'sale-a&b' --count 2\nmsgctl url clicks")
    code, printed = shell.run(text)
    assert code == 0, printed
    clicked = list(csv.DictReader((tmp_path / "clicks.csv").read_text().splitlines()))
    assert {row["ID"]: row["clicks"] for row in clicked} == {"a&b": "2", "e": "0", "l": "0", "o": "0"}
    header, *rows = CalamineWorkbook.from_path(tmp_path / "report.xlsx").get_sheet_by_index(0).to_python()
    assert [(row[header.index("phone")], row[header.index("outcome")]) for row in rows] == [
        ("573001234567", "accepted"),
        ("573009990001", "accepted"),
        ("573007654321", "accepted"),
        ("573001112222", "excluded"),
    ]
    received = json.loads(shell.run("msgctl -q sandbox inbox --json")[1])
    assert sorted(each["phone"] for each in received) == ["573001234567", "573007654321"]


def test_the_2fa_script_accepts_the_right_code(shell: Shell) -> None:
    right = "$(msgctl sandbox inbox -o tsv --fields code | tail -n 1)"
    for code, verdict in ((right, "Welcome"), ("1", "Access denied")):
        child = pexpect.spawn("sh", ["-c", block("2fa").text], env=shell.environment, timeout=30, encoding="utf-8")
        child.expect_exact("Phone number: ")
        child.sendline("573001234567")
        child.expect_exact("Code: ")
        child.sendline(shell.run(f"printf %s {code}")[1])
        child.expect_exact(verdict)
        child.expect(pexpect.EOF)
        child.close()


def test_the_profile_file_is_valid(tool: Tool, home: Path) -> None:
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


def test_links_lead_to_files() -> None:
    links = re.findall(r"\]\(([^)]+)\)", README)
    assert links
    assert [link for link in links if link[0] != "#" and not (ROOT / link).exists()] == []
