"""The guides of the manual page, run as written."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
import textwrap
from importlib.resources import files
from pathlib import Path

import pytest

PAGE = files("msgctl.reference").joinpath("pages/sandbox.txt").read_text(encoding="utf-8")


def block(heading: str) -> str:
    """Return the code below a sentence of the page."""
    (code,) = re.findall(rf"^{re.escape(heading)}.*?:\n\n((?:    .*\n|\n)+)", PAGE, re.MULTILINE)
    return textwrap.dedent(code)


@pytest.fixture
def program(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Put a `msgctl` of this checkout first in the path, and work in an empty folder."""
    program = tmp_path / "bin" / "msgctl"
    program.parent.mkdir()
    program.write_text(f'#!/bin/sh\nexec {sys.executable} -m msgctl "$@"\n')
    program.chmod(0o755)
    monkeypatch.setenv("PATH", f"{program.parent}:{os.environ['PATH']}")
    monkeypatch.chdir(tmp_path)
    return tmp_path


def test_the_pytest_fixture_and_the_test_that_reads_a_code(program: Path) -> None:
    code = block("A pytest fixture") + "\n\n" + block("A test that asks for a code")
    (program / "test_shop.py").write_text(code)
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "test_shop.py"]
    done = subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    assert "1 passed" in done.stdout


def test_the_steps_of_github_actions(program: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    steps = block("GitHub Actions").partition("- run: |\n")[2]
    start, _, then = steps.partition("  - run: ")
    start = (
        textwrap.dedent(start)
        .replace("--port 8520", "--port 0")
        .replace("sandbox.env &", "sandbox.env & echo $! > pid")
    )
    monkeypatch.setenv("GITHUB_ENV", str(program / "github.env"))
    with (program / "log").open("wb") as log:
        subprocess.run(["sh", "-euc", start], stdout=log, stderr=log, timeout=60, check=True)
    try:
        for line in (program / "github.env").read_text().splitlines():
            monkeypatch.setenv(*line.split("=", 1))
        sent = subprocess.run(["sh", "-euc", then], capture_output=True, text=True, timeout=60, check=False)
    finally:
        os.kill(int((program / "pid").read_text()), signal.SIGTERM)
    assert (sent.returncode, "573001234567" in sent.stdout) == (0, True), sent.stderr
