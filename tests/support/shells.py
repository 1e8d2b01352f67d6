"""What the shells offer at a TAB: each script in its real shell."""

from __future__ import annotations

import re
import subprocess
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path

import pexpect  # type: ignore[import-untyped]

from support.programs import program

Offers = dict[str, str]
"""What is offered, with its help where the shell shows any."""

RECORDER = Path(__file__).parent / "recorder.zsh"

BREAKS = re.compile(r"[=:]|[<>]+|[^=:<>\s]+")
"""How readline breaks a line into words by default."""


def words(line: str) -> list[str]:
    """The words of a line as readline hands them to a completion function; the last is the one at the cursor."""
    found = BREAKS.findall(line)
    return [*found, ""] if line[-1:].isspace() else found


class Bash:
    """bash, whose completion function is called as readline calls it."""

    def __init__(self, script: Path, env: Mapping[str, str], cwd: Path) -> None:
        self._script, self._env, self._cwd = script, dict(env), cwd

    def run(self, code: str) -> str:
        """What bash prints that has loaded the script and finds no program to run."""
        done = subprocess.run(
            [program("bash"), "--norc", "-u", "-c", f"PATH=/nowhere\nsource {self._script}\n{code}"],
            capture_output=True,
            text=True,
            timeout=60,
            check=True,
            env=self._env,
            cwd=self._cwd,
        )
        assert done.stderr == ""
        return done.stdout

    def call(self, line: str) -> str:
        """The code that presses TAB behind a line."""
        parts = words(line)
        current = "" if parts[-1] in ("=", ":") else parts[-1]
        quoted = " ".join(f"'{part}'" for part in parts)
        return (
            f"COMP_LINE='{line}' COMP_POINT={len(line)} COMP_WORDS=({quoted}) COMP_CWORD={len(parts) - 1}\n"
            f"_msgctl msgctl '{current}' '{parts[-2]}'\n"
        )

    def offers(self, lines: Iterable[str]) -> list[Offers]:
        show = 'for word in ${COMPREPLY[@]+"${COMPREPLY[@]}"}; do printf \'%s\\n\' "$word"; done; echo ---\n'
        printed = self.run("".join(self.call(line) + show for line in lines))
        return [dict.fromkeys(part.split("\n")[:-1], "") for part in printed.split("---\n")[:-1]]


def _pair(line: str) -> tuple[str, str]:
    """A word and its help as fish prints them."""
    name, _, about = line.partition("\t")
    return name, about


class Fish:
    """fish, which tells what it would offer."""

    def __init__(self, script: Path, env: Mapping[str, str], cwd: Path) -> None:
        self._script, self._env, self._cwd = script, dict(env), cwd

    def offers(self, lines: Iterable[str]) -> list[Offers]:
        asked = "".join(f"complete -C '{line}'; echo ---\n" for line in lines)
        done = subprocess.run(
            [program("fish"), "--no-config", "-c", f"source {self._script}\n{asked}"],
            capture_output=True,
            text=True,
            timeout=60,
            check=True,
            env=self._env,
            cwd=self._cwd,
        )
        assert done.stderr == ""
        parts = [part.splitlines() for part in done.stdout.split("---\n")[:-1]]
        return [dict(_pair(line) for line in part) for part in parts]


class Terminal:
    """A shell in a terminal of its own. Ctrl-T makes it show the line that is being typed.

    ``shown`` is what was on the screen after the last TAB.
    """

    shown = ""

    def __init__(self, command: Sequence[str], env: Mapping[str, str], cwd: Path) -> None:
        self._child = pexpect.spawn(
            command[0],
            [*command[1:]],
            env={**env, "TERM": "dumb"},
            cwd=str(cwd),
            dimensions=(500, 250),
            timeout=30,
            encoding="utf-8",
        )

    def prepare(self, code: str) -> None:
        """Type a line of code and wait until it is done."""
        self._child.sendline(f"{code}; printf '%s%s\\n' REA DY")
        self._child.expect("READY\r?\n")

    def tab(self, line: str) -> str:
        """The line after a TAB."""
        self._child.send("\x15" + line + "\t\x14")
        self._child.expect(r"<<(.*?)>>")
        self.shown = self._child.before
        return str(self._child.match[1])

    def close(self) -> None:
        self._child.close(force=True)


class Zsh(Terminal):
    """zsh, which finds the script in a folder of its `fpath`."""

    def __init__(self, folder: Path, env: Mapping[str, str], cwd: Path) -> None:
        super().__init__([program("zsh"), "-f", "-i"], env, cwd)
        self.prepare(
            f"PS1=; unsetopt beep prompt_sp; LISTMAX=0; source {RECORDER}; "
            f"fpath=({folder} $fpath); autoload -Uz compinit; compinit -u -D; PATH=/nowhere"
        )

    def offers(self, lines: Iterable[str]) -> list[Offers]:
        return [self._offers(line) for line in lines]

    def _offers(self, line: str) -> Offers:
        self.tab(line)
        self._child.expect("(.*)>>>\r?\n")
        return dict.fromkeys(filter(None, self._child.match[1].splitlines()), "")
