"""The completion scripts in bash, zsh and fish, and their offers at a TAB."""

from __future__ import annotations

import shlex
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

import msgctl
from msgctl.cli.completion import FILES
from msgctl.config import profiles
from support.examples import JOB, write_job
from support.programs import program
from support.shells import Bash, Fish, Offers, Terminal, Zsh
from support.terminal import in_a_terminal
from support.tool import Tool
from support.tree import NODES

FOLDER = Path(__file__).parent.parent.parent / "completions"
PROFILES = """
default_profile = "main"
[profiles.main]
base_url = "https://service.example/api/v1"
client = 1
key = "a-key"
[profiles."with.dot"]
"""

pytestmark = in_a_terminal
each_shell = pytest.mark.parametrize("shell", FILES)


def env(folder: Path) -> dict[str, str]:
    return {
        "HOME": str(folder),
        "XDG_CONFIG_HOME": str(folder / "config"),
        "XDG_STATE_HOME": str(folder / "state"),
        "PATH": str(folder / "bin"),
        "LANG": "C.UTF-8",
    }


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A home with profiles and a job, a folder `work` with some files, and msgctl as a program."""
    folder = tmp_path_factory.mktemp("home")
    for name in ("config/msgctl", "work", "bin"):
        (folder / name).mkdir(parents=True, mode=0o700)
    (folder / "config/msgctl/config.toml").write_text(PROFILES)
    (folder / "config/msgctl/config.toml").chmod(0o600)
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("XDG_STATE_HOME", str(folder / "state"))
        write_job(profiles.ENVIRONMENT)
    (folder / "work/notice.txt").touch()
    (folder / "work/two words.csv").touch()
    script = folder / "bin/msgctl"
    source = str(Path(msgctl.__file__).parent.parent)
    script.write_text(
        f'#!/bin/sh\nPYTHONPATH={shlex.quote(source)} exec {shlex.quote(sys.executable)} -m msgctl "$@"\n'
    )
    script.chmod(0o755)
    for name in ("env", "ls"):  # the scripts need env, and fish needs ls for file names
        (folder / "bin" / name).symlink_to(program(name))
    return folder


class Shells:
    """The shells; zsh is started when it is first used."""

    def __init__(self, place: Path) -> None:
        self._place = place
        self._zsh: Zsh | None = None

    def offers(self, shell: str, *lines: str) -> list[Offers]:
        """Return what a shell offers at a TAB after each line."""
        more = (env(self._place), self._place / "work")
        if shell == "bash":
            return Bash(FOLDER / "msgctl.bash", *more).offers(lines)
        if shell == "fish":
            return Fish(FOLDER / "msgctl.fish", *more).offers(lines)
        self._zsh = self._zsh or Zsh(FOLDER, *more)
        return self._zsh.offers(lines)

    def close(self) -> None:
        if self._zsh:
            self._zsh.close()


@pytest.fixture(scope="module")
def at(place: Path) -> Iterator[Shells]:
    shells = Shells(place)
    yield shells
    shells.close()


@each_shell
def test_msgctl_prints_the_script_of_the_repository(shell: str, tool: Tool) -> None:
    kept = (FOLDER / FILES[shell]).read_bytes()
    assert tool("completion", shell).stdout == kept, "write it again with: python -m msgctl.reference"


OFFERED: dict[str, set[str]] = {
    "msgctl ": set(NODES[0].command.list_commands(None)),
    "msgctl --json -p main ": set(NODES[0].command.list_commands(None)),
    "msgctl sms s": {"send", "segments"},
    "msgctl call send 573001234567 --voice Mi": {"Mia", "Miguel"},
    "msgctl -o ": {"table", "json", "csv", "tsv"},
    "msgctl completion ": {"bash", "zsh", "fish"},
    "msgctl -p ": {"main", "with.dot", "sandbox"},
    "msgctl profile use ": {"main", "with.dot", "sandbox"},
    "msgctl job show ": {JOB},
    "msgctl sms send --gs": {"--gsm7"},
}


@each_shell
def test_commands_and_values_are_offered(shell: str, at: Shells) -> None:
    # msgctl finds the words; of zsh and fish, a line of each kind is enough.
    lines = (
        [*OFFERED] if shell == "bash" else ["msgctl sms s", "msgctl -p ", "msgctl job show ", "msgctl sms send --gs"]
    )
    for line, offers in zip(lines, at.offers(shell, *lines), strict=True):
        assert set(offers) == OFFERED[line], line


@pytest.mark.parametrize("shell", ["zsh", "fish"])
def test_files_are_offered(shell: str, at: Shells) -> None:
    lines = ["msgctl sms send --message-file n", "msgctl sms bulk n"]
    assert [set(offers) for offers in at.offers(shell, *lines)] == [{"notice.txt"}, {"notice.txt"}]


def test_without_configuration_only_the_sandbox_is_offered(place: Path, tmp_path: Path) -> None:
    (tmp_path / "work").mkdir()
    (tmp_path / "bin").symlink_to(place / "bin")
    profiles, jobs = Shells(tmp_path).offers("bash", "msgctl profile show ", "msgctl job show ")
    assert (set(profiles), set(jobs)) == ({"sandbox"}, set())


@pytest.fixture
def bash(place: Path) -> Iterator[Terminal]:
    terminal = Terminal([program("bash"), "--norc", "-i"], env(place), place / "work")
    terminal.prepare(
        f"PS1=; source {FOLDER / 'msgctl.bash'}; bind 'set bell-style none'; "
        "show() { printf '<<%s>>\\n' \"$READLINE_LINE\"; }; bind -x '\"\\C-t\": show'"
    )
    yield terminal
    terminal.close()


TYPED = {
    "msgctl bal": "msgctl balance ",
    "msgctl sms send --gs": "msgctl sms send --gsm7 ",
    "msgctl call send 1 --voice Lu": "msgctl call send 1 --voice Lucia ",
    "msgctl sms segments < n": "msgctl sms segments < notice.txt ",
}


def test_a_tab_in_bash(bash: Terminal) -> None:
    assert {line: bash.tab(line) for line in TYPED} == TYPED


def test_the_zsh_script_can_be_evaluated_and_autoloaded(place: Path) -> None:
    text = (FOLDER / "_msgctl").read_text(encoding="utf-8")
    assert text.endswith('_msgctl_completion "$@"\n')
    code = f"autoload -Uz compinit; compinit -u -D; source {FOLDER / '_msgctl'} && print fine"
    done = subprocess.run([program("zsh"), "-f", "-c", code], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout, done.stderr) == (0, "fine\n", "")


def test_completion_creates_no_file(place: Path, tmp_path: Path) -> None:
    environment = {**env(tmp_path), "_MSGCTL_COMPLETE": "complete_bash", "COMP_CWORD": "3"}
    for words in ("msgctl job show", "msgctl profile use"):
        done = subprocess.run(
            [str(place / "bin/msgctl")],
            env={**environment, "COMP_WORDS": f"{words} "},
            capture_output=True,
            check=False,
        )
        assert (done.returncode, done.stderr) == (0, b"")
    assert [*tmp_path.iterdir()] == []
