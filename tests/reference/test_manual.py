"""The manual pages: as written last, complete, correct roff, and true."""

from __future__ import annotations

import re
import shlex
import subprocess
from collections.abc import Iterator
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest

from msgctl import errors, reference
from msgctl.cli import options
from msgctl.cli.profile import MEMBERS
from msgctl.config import profiles
from msgctl.reference import manual
from support.programs import program
from support.tree import COMMANDS, NODES, Node, name_of

ROOT = Path(__file__).parent.parent.parent
PAGES = {Path(name).name: text for name, text in reference.files().items() if name.startswith("man/")}
OF_COMMANDS = [name for name in PAGES if name.endswith(".1")]

each_page = pytest.mark.parametrize("name", PAGES)


def plain(roff: str) -> str:
    """The words of a page, without fonts and escapes."""
    text = re.sub(r"\\f[BIR]|\\%|\\&", "", roff)
    for escape, character in {r"\-": "-", r"\(aq": "'", r"\(ga": "`", r"\(ha": "^", r"\(ti": "~", r"\(dq": '"'}.items():
        text = text.replace(escape, character)
    return text.replace(r"\e", "\\")


def page_of(node: Node) -> str:
    return plain(PAGES[f"msgctl-{node.words[0]}.1" if node.words else "msgctl.1"])


def section(page: str, title: str) -> str:
    """What stands below a heading, up to the next one of its level or above; empty where it is missing."""
    found = re.search(rf'^\.S([HS]) "?{re.escape(title)}"?\n(.*?)(?=^\.SH|^\.S\1|\Z)', page, re.MULTILINE | re.DOTALL)
    return found[2] if found else ""


def examples(name: str) -> Iterator[str]:
    """The lines of the examples of a page, those that go on joined."""
    for block in re.findall(r"^\.EX\n(.*?)^\.EE$", PAGES[name], re.MULTILINE | re.DOTALL):
        yield from re.sub(r"(\\|(\|))\n +", r"\2 ", plain(block)).splitlines()


# --- written again


def test_the_folder_holds_what_is_written_from_the_command_tree(tmp_path: Path) -> None:
    reference.write(tmp_path)
    kept = {path.name: path.read_bytes() for path in (ROOT / "man").iterdir()}
    again = {path.name: path.read_bytes() for path in (tmp_path / "man").iterdir()}
    assert kept == again, "write it again with: python -m msgctl.reference"


# --- complete


@pytest.mark.parametrize("node", [node for node in NODES if node.words], ids=name_of)
def test_every_command_and_option_has_a_line(node: Node) -> None:
    page = page_of(node)
    assert f"msgctl {node.path}" in page
    own = [each for each in node.command.params if each not in options.global_options()]
    if not own:
        return
    place = section(page, f"msgctl {node.path}") or section(page, "OPTIONS")
    tags = re.findall(r"^\.TP\n(.*)\n(.+)$", place, re.MULTILINE)
    for parameter in own:
        if parameter.param_type_name == "argument":
            assert [text for tag, text in tags if tag == parameter.metavar], parameter.metavar
        for option in (*parameter.opts, *parameter.secondary_opts) if parameter.param_type_name == "option" else ():
            assert [text for tag, text in tags if option in re.findall(r"--?[\w-]+", tag)], option


def test_the_options_of_every_command_are_on_the_first_page() -> None:
    tags = re.findall(r"^\.TP\n(.*)\n.+$", section(page_of(NODES[0]), "OPTIONS"), re.MULTILINE)
    names = {name for tag in tags for name in re.findall(r"--?[\w-]+", tag)}
    assert names == {name for option in options.global_options() for name in option.opts}


def test_the_first_page_lists_what_there_is() -> None:
    listed = re.findall(r"^\.TP\nmsgctl (\S+)$", section(page_of(NODES[0]), "COMMANDS"), re.MULTILINE)
    assert sorted(listed) == sorted(NODES[0].command.commands)


@pytest.mark.parametrize("name", OF_COMMANDS)
def test_a_page_says_what_help_cannot(name: str) -> None:
    page = plain(PAGES[name])
    for title in ("EXIT STATUS", "ENVIRONMENT", "FILES", "EXAMPLES"):
        assert section(page, title).strip(), title


def test_every_part_written_by_hand_is_on_a_page() -> None:
    parts = {path.stem for path in manual.PARTS.iterdir()}
    included = {name for part in parts for name in re.findall(r"^%include (\S+)$", manual.part(part), re.MULTILINE)}
    assert parts - included == {re.sub(r"^msgctl-|\.\d$", "", name).removesuffix(".1") for name in PAGES}
    assert included <= parts


# --- true


@each_page
def test_pages_that_are_named_exist(name: str) -> None:
    for page, number in re.findall(r"(msgctl[\w-]*)\((\d)\)", plain(PAGES[name])):
        assert f"{page}.{number}" in PAGES
    assert f"{name.rpartition('.')[0]}(" not in section(plain(PAGES[name]), "SEE ALSO")


@each_page
def test_command_lines_on_a_page_can_be_typed(name: str) -> None:
    shown = [plain(code) for code in re.findall(r"\\fB\\%(msgctl .*?)\\fR", PAGES[name])]
    for line in (*shown, *examples(name)):
        for words in re.findall(r"(?:^|\| |\$\()msgctl( [^|<>)]*)", line):
            _check_words(shlex.split(words))


def _check_words(words: list[str]) -> None:
    """Follow the words of a command line down the tree; every option has to be one of the command."""
    known = {node.path: node.command for node in NODES}
    path, options = "", [word.partition("=")[0] for word in words if re.match(r"--?[a-z]", word)]
    for before, word in pairwise(("", *words)):
        if before == "-p":
            continue
        longer = f"{path} {word}".strip()
        path = longer if longer in known else path
    assert path or words[0].startswith("-"), words
    names = {name for each in known[path].params for name in (*each.opts, *each.secondary_opts)}
    assert [option for option in options if option not in names] == [], words


@pytest.mark.parametrize("name", OF_COMMANDS)
def test_every_page_of_commands_shows_one_of_them(name: str) -> None:
    group = name.removesuffix(".1").removeprefix("msgctl").removeprefix("-")
    assert any(re.search(rf"msgctl\b.* {group}", line) for line in examples(name))


def test_the_exit_codes_are_those_of_the_errors() -> None:
    kinds: list[Any] = [each for each in vars(errors).values() if isinstance(each, type)]
    parents = {base for each in kinds for base in each.__bases__}
    leaves = [each for each in kinds if issubclass(each, errors.MsgctlError) and each not in parents]
    tags = re.findall(r"^\.TP\n([0-9].*)$", section(plain(PAGES["msgctl-exit-codes.1"]), "DESCRIPTION"), re.MULTILINE)
    told = {(int(tag.split(",")[0]), kind) for tag in tags for kind in re.findall(r"[a-z_]{3,}", tag)}
    assert told == {(each.exit_code, each.kind) for each in leaves}
    short = re.findall(r"^\.TP\n([0-9]+)$", section(plain(PAGES["msgctl.1"]), "EXIT STATUS"), re.MULTILINE)
    assert {int(code) for code in short} == {0, *(each.exit_code for each in leaves)}


def test_every_member_of_a_profile_is_explained() -> None:
    read = re.findall(r'\bmembers\.get\("(\w+)"', Path(profiles.__file__).read_text(encoding="utf-8"))
    members = section(plain(PAGES["msgctl-config.1"]), "MEMBERS OF A PROFILE")
    assert set(re.findall(r"^\.TP\n(\w+)$", members, re.MULTILINE)) == {*MEMBERS, *read}


def test_every_variable_that_the_program_reads_is_explained() -> None:
    sources = [path.read_text(encoding="utf-8") for path in (ROOT / "src").rglob("*.py")]
    read = {name for text in sources for name in re.findall(r"\bMSGCTL_[A-Z_]*[A-Z]\b", text)}
    told = section(plain(PAGES["msgctl.1"]), "ENVIRONMENT")
    assert set(re.findall(r"^(MSGCTL_\w+)$", told, re.MULTILINE)) == read
    assert {"NO_COLOR", "FORCE_COLOR", "SSL_CERT_FILE", "HTTPS_PROXY", "NO_PROXY"} <= set(re.findall(r"\w+", told))


# --- readable


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    reference.write(tmp_path)
    return tmp_path / "man"


def test_mandoc_finds_no_fault(folder: Path) -> None:
    checked = subprocess.run(
        [program("mandoc"), "-T", "lint", "-W", "warning", *sorted(map(str, folder.iterdir()))],
        capture_output=True,
        text=True,
        check=False,
    )
    assert (checked.returncode, checked.stdout, checked.stderr) == (0, "", "")


def test_pages_fit_80_columns(folder: Path) -> None:
    shown = subprocess.run(
        [program("mandoc"), "-T", "utf8", "-O", "width=80", *map(str, folder.iterdir())],
        capture_output=True,
        text=True,
        check=True,
    ).stdout
    lines = [re.sub(".\b", "", line) for line in shown.splitlines()]
    assert [line for line in lines if len(line) > 80] == []
    assert any("á" in line for line in lines)


def test_a_command_shows_its_examples_in_help_and_its_page_in_the_manual() -> None:
    assert {f"msgctl-{node.words[0]}.1" for node in COMMANDS} <= set(PAGES)
