"""The completion scripts in bash, zsh and fish: what each offers at a TAB."""

from __future__ import annotations

import re
import shlex
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

import msgctl
from msgctl import operations as ops
from msgctl import phones
from msgctl.reference import completions
from support.examples import JOB, write_job
from support.programs import program
from support.shells import Bash, Fish, Offers, Terminal, Zsh
from support.terminal import in_a_terminal
from support.tool import Tool
from support.tree import NODES, options

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
each_shell = pytest.mark.parametrize("shell", completions.FILES)


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
        write_job()
    (folder / "work/notice.txt").touch()
    (folder / "work/two words.csv").touch()
    script = folder / "bin/msgctl"
    source = str(Path(msgctl.__file__).parent.parent)
    script.write_text(
        f'#!/bin/sh\nPYTHONPATH={shlex.quote(source)} exec {shlex.quote(sys.executable)} -m msgctl "$@"\n'
    )
    script.chmod(0o755)
    (folder / "bin/ls").symlink_to(program("ls"))  # fish needs it for file names
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
    kept = (FOLDER / completions.FILES[shell]).read_bytes()
    assert tool("completion", shell).stdout == kept, "write it again with: python -m msgctl.reference"


OFFERED: dict[str, set[str]] = {
    "msgctl ": set(NODES[0].command.commands),
    "msgctl --json -p main ": set(NODES[0].command.commands),
    "msgctl -vp main ": set(NODES[0].command.commands),
    "msgctl sms s": {"send", "segments"},
    "msgctl sms x": set(),
    "msgctl --profile=main sms s": {"send", "segments"},
    "msgctl call send 573001234567 --voice ": set(ops.CALL_VOICES),
    "msgctl call send 573001234567 --voice mi": {"Mia", "Miguel"},
    "msgctl 2fa send-call 573001234567 --voice ": set(ops.VERIFICATION_VOICES),
    "msgctl profile add new --voice ": {*ops.CALL_VOICES, *ops.VERIFICATION_VOICES},
    "msgctl url stats offers --category ": {*ops.PLAIN_CATEGORIES, *ops.PREMIUM_CATEGORIES},
    "msgctl -o ": {"table", "json", "csv", "tsv"},
    "msgctl sms send --country-code ": set(phones.country_names()),
    "msgctl sms send --country-code cO": {"CO"},
    "msgctl completion ": {"bash", "zsh", "fish"},
    "msgctl -p ": {"main", "with.dot", "sandbox"},
    "msgctl profile use ": {"main", "with.dot", "sandbox"},
    "msgctl profile remove ": {"main", "with.dot"},
    "msgctl job show ": {JOB},
    f"msgctl job show {JOB} x": set(),
    "msgctl job report --only re": {"refused"},
    "msgctl sms send -m ": set(),
    "msgctl sms send -- --": set(),
    "msgctl sms send -m -- --gs": {"--gsm7"},
}


@each_shell
def test_commands_and_values_are_offered(shell: str, at: Shells) -> None:
    got = {line: set(offers) for line, offers in zip(OFFERED, at.offers(shell, *OFFERED), strict=True)}
    assert got == OFFERED


@pytest.mark.slow
@each_shell
def test_every_command_has_its_options(shell: str, at: Shells) -> None:
    lines = [f"{' '.join(['msgctl', *node.names])} -" for node in NODES]
    for node, offers in zip(NODES, at.offers(shell, *lines), strict=True):
        assert set(offers) == options(node), node.path


@each_shell
def test_a_value_after_an_equals_sign(shell: str, at: Shells) -> None:
    before = "" if shell == "bash" else "--output="  # readline starts a new word after the sign
    (offers,) = at.offers(shell, "msgctl balance --output=js")
    assert set(offers) == {f"{before}json"}


GIVEN = {
    "msgctl -qojson sms send --": {"--output", "--quiet"},
    "msgctl --output=json sms send -m Hello --country-code CO --": {"--output", "--message", "--country-code"},
    "msgctl call send 1 --no-leave-voicemail --": {"--leave-voicemail", "--no-leave-voicemail"},
    "msgctl sms send -m --gsm7 --": {"--message"},
    "msgctl state watch m1 --until sent --": set(),
    "msgctl sandbox serve --fault drop --fault 503 --allow-ip ::1 --seed 1 --": {"--seed"},
    "msgctl -q api GET /balance --": {"--quiet"},
}


@each_shell
def test_options_that_were_given_are_not_offered_again_unless_repeatable(shell: str, at: Shells) -> None:
    by_path = {node.path: node for node in NODES}
    for (line, given), offers in zip(GIVEN.items(), at.offers(shell, *GIVEN), strict=True):
        path = max((path for path in by_path if f" {path} " in line), key=len)
        long = {name for name in options(by_path[path]) if name.startswith("--")}
        assert set(offers) == long - given, line


def test_fish_shows_the_help_of_commands_and_options(at: Shells) -> None:
    groups, own = at.offers("fish", "msgctl ", "msgctl sms send -")
    for name, child in NODES[0].command.commands.items():
        assert groups[name] == child.get_short_help_str(200).replace("`", "").partition(". ")[0].rstrip(".")
    assert own["-m"] == own["--message"] != ""


@pytest.mark.parametrize("shell", ["zsh", "fish"])
def test_files_are_offered(shell: str, at: Shells) -> None:
    lines = ["msgctl sms send --message-file n", "msgctl sms send --message-file=n", "msgctl sms bulk n"]
    assert [set(offers) for offers in at.offers(shell, *lines)] == [
        {"notice.txt"},
        {"--message-file=notice.txt"},
        {"notice.txt"},
    ]


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
    "msgctl call send 1 --voice lu": "msgctl call send 1 --voice Lucia ",
    "msgctl --output=j": "msgctl --output=json ",
    "msgctl --profile=with": "msgctl --profile=with.dot ",
    "msgctl profile add x --base-url https://service.example/api/v1 --key-s": (
        "msgctl profile add x --base-url https://service.example/api/v1 --key-stdin "
    ),
    "msgctl sandbox serve --fault de": "msgctl sandbox serve --fault delay=",
    "msgctl sms send --message-file=n": "msgctl sms send --message-file=notice.txt ",
    "msgctl chatapp send --body tw": r"msgctl chatapp send --body two\ words.csv ",
    "msgctl sms segments < n": "msgctl sms segments < notice.txt ",
    "msgctl sms segments 2>n": "msgctl sms segments 2>notice.txt ",
    "echo x | msgctl sms send 'a b' -m \"x y\" --gs": "echo x | msgctl sms send 'a b' -m \"x y\" --gsm7 ",
}


def test_a_tab_in_bash(bash: Terminal) -> None:
    assert {line: bash.tab(line) for line in TYPED} == TYPED


def test_bash_starts_a_process_only_to_list_profiles_and_jobs() -> None:
    code = re.sub(r"(?m)^ *#.*", "", (FOLDER / "msgctl.bash").read_text())
    assert len(re.findall(r"\$\((?!\()|<\(|`", code)) == 1
