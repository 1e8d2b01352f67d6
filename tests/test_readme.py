"""The command lines of the README work and print what it shows.

In a `console` block, each line after `$ ` is run in bash at a terminal and prints the lines below it; identifiers,
codes, times and short URLs may differ. All use the sandbox and one directory.

A comment before a block marks what is run in another way:

- `<!-- first -->`, `<!-- test -->`: create a virtual environment in a clone. `.ci/run` runs them.
- `<!-- account -->`: needs an account. Its lines are run with `--dry-run`.
- `<!-- campaign -->`: run with recipients in an Excel file.
- `<!-- loop -->`: run with a service that is not reached, too.
- `<!-- cron -->`: lines of the recipes, which `test_recipes.py` runs.
- `<!-- store -->`: run with a server on loopback, without the installation.
"""

from __future__ import annotations

import csv
import getpass
import json
import re
import shlex
from pathlib import Path
from typing import NamedTuple

import pytest
from python_calamine import CalamineWorkbook

from conftest import KEY
from msgctl import errors
from msgctl.reference import manual
from support.postgres import README_USER, SUPERUSER, Cluster
from support.postgres import program as postgres_program
from support.programs import program
from support.service import Service, respond
from support.shell import Shell
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


def test_the_commands_print_the_output_in_the_readme(shell: Shell) -> None:
    ran = 0
    for each in BLOCKS:
        if each.language == "console":
            for command, shown in session(each.text):
                if "| jq" in command:
                    program("jq")
                assert stable(shell.keep(command)) == stable(shown), command
                ran += 1
    assert ran > 6


def test_the_commands_that_add_and_try_an_account_are_valid(
    service: Service, tool: Tool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(getpass, "getpass", lambda _prompt: "a-key")
    for line in block("account").text.splitlines():
        _, *arguments = shlex.split(line, comments=True)
        dry_run = [] if arguments[0] == "profile" else ["--dry-run"]
        done = tool(*arguments, *dry_run, terminal=True)
        assert done.code == 0, done.err
    assert service.received == []


def test_every_block_is_run() -> None:
    runners = {"", "first", "test", "account", "campaign", "loop", "cron", "store"}
    assert {each.marker for each in BLOCKS} == runners
    assert {each.language for each in BLOCKS if not each.marker} == {"console"}


def test_the_commands_for_several_machines_create_a_store(
    shell: Shell, service: Service, postgres: Cluster, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("MSGCTL_BASE_URL", "MSGCTL_CLIENT", "MSGCTL_KEY"):
        monkeypatch.delenv(name)
    for name in ("createuser", "createdb"):
        shell.program(name, f'{postgres_program(name)} --username {SUPERUSER} "$@"')
    shell.program("pipx", ":")
    del shell.variables["MSGCTL_PROFILE"]
    shell.variables |= {"PGHOST": "127.0.0.1", "PGPORT": str(postgres.port), "PGPASSWORD": KEY}
    shell.variables["MSGCTL_CONFIG"] = str(tmp_path / "config.toml")
    add = f"echo a-secret | msgctl profile add main --base-url {service.base_url} --client 1 --key-stdin"
    assert shell.run(add)[0] == 0
    service.always(respond({"status": "99"}))
    create, *others = block("store").text.replace("db.example", f"127.0.0.1:{postgres.port}").splitlines()
    with postgres.lending_names():
        code, printed = shell.run(create.replace("--pwprompt", ""))  # it prompts on the terminal
        assert code == 0, printed
        postgres.admin(f"ALTER ROLE {README_USER} PASSWORD 'a-secret'")
        shell.variables["PGPASSWORD"] = "a-secret"
        code, printed = shell.run("\n".join(others))
        assert code == 0, printed
        assert f"127.0.0.1:{postgres.port}/msgctl" in printed, printed


def test_the_loop_sends_once_and_tries_again_if_the_service_is_not_reached(shell: Shell) -> None:
    shell.program("sleep", "echo slept")
    assert [shell.run(block("loop").text, "sh")[0] for _ in range(2)] == [0, 0]
    assert shell.run("msgctl sandbox inbox -o csv --fields phone")[1] == "phone\n573001234567\n"
    shell.unreachable()
    # A terminal's shell, which ignores errors, stays open if the loop is pasted into it.
    code, printed = shell.run(f'set +e\n{block("loop").text}\nlast=$?; echo open; exit "$last"', "sh")
    assert (code, printed.count("slept")) == (4, 3)
    assert printed.endswith("open\n")


def test_the_crontab_consists_of_recipes() -> None:
    recipes = manual.part("recipes").splitlines()
    assert [line for line in block("cron").text.splitlines() if f"    {line}" not in recipes] == []


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


def test_the_exit_codes_match_the_errors() -> None:
    kinds = [each for each in vars(errors).values() if isinstance(each, type) and issubclass(each, Exception)]
    codes = {"0", *(str(kind.exit_code) for kind in kinds if issubclass(kind, errors.MsgctlError))}
    assert set(re.findall(r"^\| ([0-9]{1,3}) \|", README, re.MULTILINE)) == codes


@pytest.mark.parametrize("page", ["README.md", ".github/CONTRIBUTING.md", "tests/README.md"])
def test_links_and_names_of_tests_lead_to_files(page: str) -> None:
    text = (ROOT / page).read_text(encoding="utf-8")
    linked = re.findall(r"\]\(([^)#:]+)\)", text)
    named = re.findall(r"`((?:[a-z]+/)+test_\w+\.py)`", text)
    assert linked
    assert [link for link in linked if not (ROOT / page).parent.joinpath(link).exists()] == []
    assert [name for name in named if not (ROOT / "tests" / name.removeprefix("tests/")).exists()] == []
