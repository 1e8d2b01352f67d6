"""A shell that runs the command lines of the README and the manual."""

from __future__ import annotations

import os
import re
import shlex
import subprocess
import sys
from pathlib import Path

import pexpect  # type: ignore[import-untyped]

import msgctl
from support import PATIENCE, forks


class Shell:
    """A shell in a directory, with this msgctl on its PATH; variables are kept between command lines."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        (folder / "bin").mkdir()
        (folder / "bin" / "msgctl").write_text(forks.program())
        (folder / "bin" / "msgctl").chmod(0o755)
        self.variables: dict[str, str] = {"MSGCTL_PROFILE": "sandbox"}

    @property
    def environment(self) -> dict[str, str]:
        return {**os.environ, **self.variables, "PATH": f"{self._folder / 'bin'}:{os.environ['PATH']}"}

    def program(self, name: str, script: str) -> None:
        path = self._folder / "bin" / name
        path.write_text(f"#!/bin/sh\n{script}\n")
        path.chmod(0o755)

    def start_python(self) -> None:
        """Let each msgctl be a process of its own, which gets the user, the limits and the signals of the shell."""
        package = shlex.quote(str(Path(msgctl.__file__).parent.parent))
        self.program("msgctl", f'PYTHONPATH={package} exec {shlex.quote(sys.executable)} -m msgctl "$@"')

    def unreachable(self) -> None:
        """Use an account at an address where nothing listens, without pauses before retries."""
        self.variables.pop("MSGCTL_PROFILE", None)
        self.variables |= {
            forks.NO_PAUSES: "1",
            "MSGCTL_BASE_URL": "http://127.0.0.1:9/api/v1",
            "MSGCTL_CLIENT": "1",
            "MSGCTL_KEY": "a-key",
        }

    def run(self, script: str, shell: str = "bash") -> tuple[int, str]:
        done = subprocess.run(
            [shell, "-eu", "-c", f"exec 2>&1\n{script}"],
            cwd=self._folder,
            env=self.environment,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            timeout=PATIENCE,
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
            timeout=PATIENCE,
            encoding="utf-8",
        )
        child.expect(pexpect.EOF)
        child.close()
        printed = "".join(f"{line.rstrip()}\n" for line in child.before.splitlines())
        assert child.exitstatus == 0, printed
        return printed
