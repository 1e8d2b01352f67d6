"""The manual pages: complete, correct roff, and in step with the command tree."""

from __future__ import annotations

import re
import shlex
import subprocess
from collections.abc import Iterator
from itertools import pairwise
from pathlib import Path

import msgctl
from msgctl import errors
from msgctl.config.profiles import SETTINGS
from msgctl.errors import REASONS
from msgctl.lists.header import WORDS
from msgctl.reference import manual
from msgctl.reference.__main__ import files
from support.programs import program
from support.tree import NODES, Node

ROOT = Path(__file__).parent.parent.parent


def pages() -> dict[str, str]:
    return {Path(name).name: text for name, text in files().items() if name.startswith("man/")}


PAGES = pages()


def plain(roff: str) -> str:
    """Return the text of a page without fonts and escapes."""
    text = re.sub(r"\\f[BIR]|\\%|\\&", "", roff)
    for escape, character in {r"\-": "-", r"\(aq": "'", r"\(ga": "`", r"\(ha": "^", r"\(ti": "~", r"\(dq": '"'}.items():
        text = text.replace(escape, character)
    return text.replace(r"\e", "\\")


def page_of(node: Node) -> str:
    return plain(PAGES.get(f"msgctl-{node.names[0]}.1" if node.names else "", PAGES["msgctl.1"]))


def section(page: str, title: str) -> str:
    """Return the text below a heading, up to the next heading of its level; or an empty string."""
    match = re.search(rf'^\.S([HS]) "?{re.escape(title)}"?\n(.*?)(?=^\.SH|^\.S\1|\Z)', page, re.MULTILINE | re.DOTALL)
    return match[2] if match else ""


def examples(name: str) -> Iterator[str]:
    """Yield the lines of the examples of a page, continued lines joined."""
    for block in re.findall(r"^\.EX\n(.*?)^\.EE$", PAGES[name], re.MULTILINE | re.DOTALL):
        yield from re.sub(r"(\\|(\|))\n +", r"\2 ", plain(block)).splitlines()


def test_the_directory_contains_the_pages_of_the_command_tree() -> None:
    kept = {path.name: path.read_text(encoding="utf-8") for path in (ROOT / "man").iterdir()}
    assert kept == pages(), "write them again with: python -m msgctl.reference"


def test_every_command_and_option_is_on_its_page() -> None:
    for node in NODES:
        page = page_of(node)
        assert f"msgctl {node.path}".strip() in page
        own = [each for each in node.command.params if each.expose_value]
        if own and f"msgctl-{node.names[0]}.1" in PAGES:
            place = section(page, f"msgctl {node.path}") or section(page, "OPTIONS")
            tags = re.split(r"[][,.\s]+", " ".join(re.findall(r"^\.TP\n(.*)$", place, re.MULTILINE)))
            for each in own:
                names = each.opts if each.param_type_name == "option" else [each.metavar.strip("[].")]
                assert [name for name in names if name not in tags] == [], node.path


def test_cross_references_lead_to_pages() -> None:
    for name, text in PAGES.items():
        for page, number in re.findall(r"(msgctl[\w-]*)\((\d)\)", plain(text)):
            assert f"{page}.{number}" in PAGES, name
        assert f"{name.rpartition('.')[0]}(" not in section(plain(text), "SEE ALSO"), name


def test_command_lines_on_a_page_can_be_typed() -> None:
    for name, text in PAGES.items():
        shown = [plain(code) for code in re.findall(r"\\fB\\%(msgctl .*?)\\fR", text)]
        for line in (*shown, *examples(name)):
            for arguments in re.findall(r"(?:^|\| |\$\()msgctl( (?:'[^']*'|\"[^\"]*\"|[^|<>)])*)", line):
                _check_arguments(shlex.split(arguments))


def _check_arguments(arguments: list[str]) -> None:
    """Check that a command line contains a command and only its options."""
    known = {node.path: node.command for node in NODES}
    path, options = "", [word.partition("=")[0] for word in arguments if re.match(r"--?[a-z]", word)]
    for before, word in pairwise(("", *arguments)):
        if before == "-p":
            continue
        longer = f"{path} {word}".strip()
        path = longer if longer in known else path
    assert path or arguments[0].startswith("-"), arguments
    names = {name for each in known[path].params for name in (*each.opts, *each.secondary_opts)}
    assert [option for option in options if option not in names] == [], arguments


def test_every_reason_in_the_source_is_described_and_in_the_manual() -> None:
    source = Path(msgctl.__file__).parent
    used = {name for file in source.rglob("*.py") for name in re.findall(r'reason="(\w+)"', file.read_text("utf-8"))}
    assert used <= REASONS.keys()
    page = PAGES["msgctl-exit-codes.1"].replace("\\-", "-")
    assert [name for name in REASONS if name.replace("_", r"_") not in page] == []


def test_the_exit_codes_match_the_errors() -> None:
    kinds = [each for each in vars(errors).values() if isinstance(each, type) and issubclass(each, errors.MsgctlError)]
    raised = [
        each for each in kinds if each not in {errors.MsgctlError, errors.ServiceError} and each.__name__[0] != "_"
    ]
    tags = re.findall(r"^\.TP\n([0-9].*)$", section(plain(PAGES["msgctl-exit-codes.1"]), "DESCRIPTION"), re.MULTILINE)
    printed = {(int(tag.split(",")[0]), kind) for tag in tags for kind in re.findall(r"[a-z_]{3,}", tag)}
    assert printed == {(each.exit_code, each.kind) for each in raised}


def test_the_guarantees_have_existing_tests_and_the_counts_of_the_proofs() -> None:
    rows = [line.split(" | ") for line in manual.part("guarantees").splitlines() if line.startswith("| ")]
    tests = [row[2] for row in rows if not row[2].startswith("Test,")]
    named = [name for test in tests for name in re.findall(r"`([\w/.]+)`", test)]
    assert len(named) >= len(tests)
    assert [name for name in named if not (ROOT / "tests" / name).exists()] == []
    proofs = (ROOT / "tests" / "README.md").read_text(encoding="utf-8").partition("## Proof\n")[2]
    counts = [count for test in tests for count in re.findall(r"\d[\d,]*(?= [a-z])", test)]
    assert counts
    assert [count for count in counts if not re.search(rf"\| {count}(?: states.*?)? \|", proofs)] == []


def test_every_setting_of_a_profile_is_explained() -> None:
    settings = section(plain(PAGES["msgctl-config.1"]), "SETTINGS OF A PROFILE")
    assert set(re.findall(r"^\.TP\n(\w+)$", settings, re.MULTILINE)) == {*SETTINGS}


def test_every_variable_that_the_program_reads_is_explained() -> None:
    sources = [path.read_text(encoding="utf-8") for path in (ROOT / "src").rglob("*.py")]
    read = {name for text in sources for name in re.findall(r"\bMSGCTL_[A-Z_]*[A-Z]\b", text)}
    printed = section(plain(PAGES["msgctl.1"]), "ENVIRONMENT")
    assert set(re.findall(r"^(MSGCTL_\w+)$", printed, re.MULTILINE)) == read
    assert {"NO_COLOR", "FORCE_COLOR", "SSL_CERT_FILE", "HTTPS_PROXY", "NO_PROXY"} <= set(re.findall(r"\w+", printed))


def mandoc(directory: Path, *options: str) -> subprocess.CompletedProcess[str]:
    for name, text in PAGES.items():
        (directory / name).write_text(text, encoding="utf-8")
    pages = [str(directory / name) for name in PAGES]
    return subprocess.run([program("mandoc"), *options, *pages], capture_output=True, text=True, check=False)


def test_mandoc_accepts_every_page(tmp_path: Path) -> None:
    checked = mandoc(tmp_path, "-T", "lint", "-W", "warning")
    assert (checked.returncode, checked.stdout, checked.stderr) == (0, "", "")


def test_pages_fit_80_columns(tmp_path: Path) -> None:
    lines = re.sub(".\b", "", mandoc(tmp_path, "-T", "utf8", "-O", "width=80").stdout).splitlines()
    assert [line for line in lines if len(line) > 80] == []
    assert any("á" in line for line in lines)


def test_the_manual_lists_the_words_for_phones() -> None:
    listed = re.search("with or without accents:\\s+([a-z,\\s]+)\\.", plain(PAGES["msgctl-job.1"]))
    assert listed is not None
    assert sorted(" ".join(listed[1].split()).split(", ")) == sorted(WORDS)
