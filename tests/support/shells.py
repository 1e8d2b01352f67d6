"""What bash, zsh and fish offer at a TAB, with the completion scripts loaded."""

from __future__ import annotations

import re
import subprocess
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path

import pexpect  # type: ignore[import-untyped]

from support.programs import program

Offers = dict[str, str]
"""The words that are offered, each with its help if the shell shows it."""

RECORDER = Path(__file__).parent / "recorder.zsh"

BREAKS = re.compile(r"[=:]|[<>]+|[^=:<>\s]+")
"""How readline splits a line into words by default."""


def words(line: str) -> list[str]:
    """Return the words of a line as readline passes them to a completion function; the last is at the cursor."""
    found = BREAKS.findall(line)
    return [*found, ""] if line[-1:].isspace() else found


class Bash:
    """bash; its completion function is called as readline calls it."""

    def __init__(self, script: Path, env: Mapping[str, str], cwd: Path) -> None:
        self._script, self._env, self._cwd = script, dict(env), cwd

    def run(self, code: str) -> str:
        """Return what bash prints for some code after loading the script."""
        done = subprocess.run(
            [program("bash"), "--norc", "-u", "-c", f"source {self._script}\n{code}"],
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
        """Return the code that completes a line."""
        parts = words(line)
        current = "" if parts[-1] in ("=", ":") else parts[-1]
        quoted = " ".join(f"'{part}'" for part in parts)
        return (
            f"COMP_LINE='{line}' COMP_POINT={len(line)} COMP_WORDS=({quoted}) COMP_CWORD={len(parts) - 1}\n"
            f"_msgctl_completion msgctl '{current}' '{parts[-2]}'\n"
        )

    def offers(self, lines: Iterable[str]) -> list[Offers]:
        show = 'for word in ${COMPREPLY[@]+"${COMPREPLY[@]}"}; do printf \'%s\\n\' "$word"; done; echo ---\n'
        printed = self.run("".join(self.call(line) + show for line in lines))
        return [dict.fromkeys(part.split("\n")[:-1], "") for part in printed.split("---\n")[:-1]]


def _pair(line: str) -> tuple[str, str]:
    """Return a word and its help as fish prints them."""
    name, _, about = line.partition("\t")
    return name, about


class Fish:
    """fish; `complete -C` prints what it would offer."""

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
    """A shell in a terminal. Ctrl-T makes it print the current line; ``shown`` is the output of the last TAB."""

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
        """Run a line of code and wait for its end."""
        self._child.sendline(f"{code}; printf '%s%s\\n' REA DY")
        self._child.expect("READY\r?\n")

    def tab(self, line: str) -> str:
        """Return the line after a TAB."""
        self._child.send("\x15" + line + "\t\x14")
        self._child.expect(r"<<(.*?)>>")
        return str(self._child.match[1])

    def close(self) -> None:
        self._child.close(force=True)


class Zsh(Terminal):
    """zsh, with the script in a folder of its `fpath`."""

    def __init__(self, folder: Path, env: Mapping[str, str], cwd: Path) -> None:
        super().__init__([program("zsh"), "-f", "-i"], env, cwd)
        self.prepare(
            f"PS1=; unsetopt beep prompt_sp; LISTMAX=0; source {RECORDER}; "
            f"fpath=({folder} $fpath); autoload -Uz compinit; compinit -u -D"
        )

    def offers(self, lines: Iterable[str]) -> list[Offers]:
        return [self._offers(line) for line in lines]

    def _offers(self, line: str) -> Offers:
        self.tab(line)
        self._child.expect("(.*)>>>\r?\n")
        return dict.fromkeys(filter(None, self._child.match[1].splitlines()), "")
