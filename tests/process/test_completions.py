"""The completion scripts complete commands, values and files in bash, zsh and fish."""

from __future__ import annotations

import socket
import subprocess
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

import pexpect  # type: ignore[import-untyped]
import pytest

from msgctl.cli.shell.completion import FILES, complete
from msgctl.cli.shell.context import Context
from msgctl.cli.shell.main import build
from msgctl.config import profiles
from support import PATIENCE, forks
from support.examples import JOB, write_job
from support.programs import program
from support.terminal import in_a_terminal
from support.tool import Stream, Tool
from support.tree import NODES

FOLDER = Path(__file__).parents[2] / "completions"
RECORDER = Path(__file__).parent / "recorder.zsh"
PROFILES = """
default_profile = "main"
[profiles.main]
base_url = "https://service.example/api/v1"
client = 1
key = "a-key"
[profiles."with.dot"]
"""

pytestmark = in_a_terminal


def env(directory: Path) -> dict[str, str]:
    return {
        "HOME": str(directory),
        "XDG_CONFIG_HOME": str(directory / "config"),
        "XDG_STATE_HOME": str(directory / "state"),
        "PATH": str(directory / "bin"),
        "LANG": "C.UTF-8",
        "TERM": "dumb",
    }


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A home directory with profiles, a job, a program msgctl, and a directory `work` with some files."""
    directory = tmp_path_factory.mktemp("home")
    for name in ("config/msgctl", "work", "bin"):
        (directory / name).mkdir(parents=True, mode=0o700)
    (directory / "config/msgctl/config.toml").write_text(PROFILES)
    (directory / "config/msgctl/config.toml").chmod(0o600)
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("XDG_STATE_HOME", str(directory / "state"))
        write_job(profiles.ENVIRONMENT)
    (directory / "work/notice.txt").touch()
    (directory / "work/two words.csv").touch()
    script = directory / "bin/msgctl"
    script.write_text(forks.program())
    script.chmod(0o755)
    for name in ("env", "ls"):  # the scripts need env, and fish needs ls for file names
        (directory / "bin" / name).symlink_to(program(name))
    return directory


class Terminal:
    """A shell in a terminal. Ctrl-T prints the current command line."""

    def __init__(self, command: Sequence[str], home: Path, code: str) -> None:
        self.child = pexpect.spawn(
            command[0],
            [*command[1:]],
            env=env(home),
            cwd=str(home / "work"),
            dimensions=(500, 250),
            timeout=PATIENCE,
            encoding="utf-8",
        )
        self.child.sendline(f"PS1=; {code}; printf '%s%s\\n' REA DY")
        self.child.expect("READY\r?\n")

    def press(self, key: str, line: str) -> str:
        """Type a line and press a key; return the line after it."""
        self.child.send(f"\x15{line}{key}\x14")
        self.child.expect(r"<<(.*?)>>")
        return str(self.child.match[1])


def bash(home: Path) -> Terminal:
    """Start bash, with Ctrl-O as a key that inserts all completions."""
    code = (
        f"source {FOLDER / 'msgctl.bash'}; bind 'set bell-style none'; bind '\"\\C-o\": insert-completions'; "
        "show() { printf '<<%s>>\\n' \"$READLINE_LINE\"; }; bind -x '\"\\C-t\": show'"
    )
    return Terminal([program("bash"), "--norc", "-i"], home, code)


def completions_in_bash(home: Path, lines: Sequence[str]) -> list[set[str]]:
    terminal = bash(home)
    shown = [terminal.press("\x0f", line).removeprefix(line[: line.rindex(" ")]) for line in lines]
    terminal.child.close(force=True)
    # A word that has no completion stays as it is.
    return [set(each.split()) - {line.rpartition(" ")[2]} for line, each in zip(lines, shown, strict=True)]


def completions_in_zsh(home: Path, lines: Sequence[str]) -> list[set[str]]:
    code = f"unsetopt beep prompt_sp; LISTMAX=0; source {RECORDER}; fpath=({FOLDER} $fpath); "
    terminal = Terminal([program("zsh"), "-f", "-i"], home, code + "autoload -Uz compinit; compinit -u -D")
    offered = []
    for line in lines:
        terminal.press("\t", line)
        terminal.child.expect("(.*)>>>\r?\n")
        offered.append(set(filter(None, terminal.child.match[1].splitlines())))
    terminal.child.close(force=True)
    return offered


def completions_in_fish(home: Path, lines: Sequence[str]) -> list[set[str]]:
    code = "".join(f"complete -C '{line}'; echo ---\n" for line in lines)
    command = [program("fish"), "--no-config", "-c", f"source {FOLDER / 'msgctl.fish'}\n{code}"]
    done = subprocess.run(command, capture_output=True, text=True, check=True, env=env(home), cwd=home / "work")
    assert done.stderr == ""
    return [{line.partition("\t")[0] for line in part.splitlines()} for part in done.stdout.split("---\n")[:-1]]


@pytest.mark.parametrize("shell", FILES)
def test_msgctl_prints_the_script_of_the_repository(shell: str, tool: Tool) -> None:
    kept = (FOLDER / FILES[shell]).read_bytes()
    assert tool("completion", shell).stdout == kept, "write it again with: python -m msgctl.reference"


IN_SHELLS: Mapping[str, set[str]] = {
    "msgctl sms send --gs": {"--gsm7"},
    "msgctl job show ": {JOB},
    "msgctl sms bulk n": {"notice.txt"},
    "msgctl sms send n": set(),
    "msgctl sms send -m n": set(),
}
IN_BASH: Mapping[str, set[str]] = {
    "msgctl sms bulk --exclude n": {"notice.txt"},
    "msgctl sandbox exec -- n": {"notice.txt"},
    **IN_SHELLS,
}


@pytest.mark.parametrize(
    ("offered", "expected"),
    [(completions_in_bash, IN_BASH), (completions_in_zsh, IN_SHELLS), (completions_in_fish, IN_SHELLS)],
)
def test_commands_and_files_are_completed(
    offered: Callable[[Path, Sequence[str]], list[set[str]]], expected: Mapping[str, set[str]], place: Path
) -> None:
    assert dict(zip(expected, offered(place, [*expected]), strict=True)) == expected


WORDS: Mapping[str, set[str]] = {
    "msgctl ": set(NODES[0].command.list_commands(None)),
    "msgctl call send 573001234567 --voice Mi": {"Mia", "Miguel"},
    "msgctl -p ": {"main", "with.dot", "sandbox"},
    "msgctl job report --only un": {"unknown", "undelivered"},
    "msgctl job report --only unknown,inv": {"unknown,invalid"},
    "msgctl sandbox fault ga": {"garbage"},
    "msgctl sandbox responses o": {"observed"},
    "msgctl sms send --country-code C": set("CA CC CD CF CG CH CI CK CL CM CN CO CR CU CV CW CX CY CZ".split()),
    "msgctl balance --fields s": {"status"},
    "msgctl history --fields time,ph": {"time,phone"},
    "msgctl help exit": {"exit-codes"},
    "msgctl help sms se": {"send", "segments"},
    "msgctl --help sms se": {"send", "segments"},
}


def test_words_are_completed(place: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.setenv("XDG_CONFIG_HOME", str(place / "config"))
    monkeypatch.setenv("_MSGCTL_COMPLETE", "complete_bash")
    offered, stdout = {}, Stream()
    for line in WORDS:
        words = line.split(" ")
        monkeypatch.setenv("COMP_WORDS", "\n".join(words))
        monkeypatch.setenv("COMP_CWORD", str(len(words) - 1))
        with pytest.raises(SystemExit):
            complete(build(), Context(stdin=Stream(), stdout=stdout, stderr=Stream()))
        offered[line] = set(capsys.readouterr().out.split())
    assert (offered, stdout.bytes()) == (WORDS, b"")


TYPED = {
    "msgctl call send 1 --voice Lu": "msgctl call send 1 --voice Lucia ",
    "msgctl sms segments < n": "msgctl sms segments < notice.txt ",
}


def test_tab_completes_a_word_in_bash(place: Path) -> None:
    terminal = bash(place)
    assert {line: terminal.press("\t", line) for line in TYPED} == TYPED
    terminal.child.close(force=True)


def test_the_zsh_script_can_be_evaluated_and_autoloaded(place: Path) -> None:
    text = (FOLDER / "_msgctl").read_text(encoding="utf-8")
    assert text.endswith('_msgctl_completion "$@"\n')
    code = f"autoload -Uz compinit; compinit -u -D; source {FOLDER / '_msgctl'} && print fine"
    done = subprocess.run([program("zsh"), "-f", "-c", code], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout, done.stderr) == (0, "fine\n", "")


@pytest.mark.parametrize(
    ("words", "code", "offered"), [("msgctl job show", 1, ""), ("msgctl profile use", 0, "sandbox\n")]
)
def test_without_configuration_only_the_sandbox_is_completed_and_no_file_is_created(
    words: str, code: int, offered: str, place: Path, tmp_path: Path
) -> None:
    variables = {"_MSGCTL_COMPLETE": "complete_bash", "COMP_WORDS": f"{words} ", "COMP_CWORD": "3"}
    command = [str(place / "bin/msgctl")]
    done = subprocess.run(command, env={**env(tmp_path), **variables}, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout, done.stderr) == (code, offered, "")
    assert [*tmp_path.iterdir()] == []


def test_tab_does_not_wait_for_a_database_that_does_not_respond(place: Path, tmp_path: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as silent:
        store = f"postgresql://app@127.0.0.1:{silent.getsockname()[1]}/msgctl?sslmode=disable"
        words = {"_MSGCTL_COMPLETE": "complete_bash", "COMP_WORDS": "msgctl job show ", "COMP_CWORD": "3"}
        variables = {**env(tmp_path), **words, "MSGCTL_STORE": store}
        command = [str(place / "bin/msgctl")]
        done = subprocess.run(command, env=variables, capture_output=True, timeout=20, check=False)  # --timeout is 30
    assert (done.returncode, done.stdout, done.stderr) == (1, b"", b"")
