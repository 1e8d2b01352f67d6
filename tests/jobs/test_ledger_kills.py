"""A process that is killed at any line leaves a ledger that can be resumed, and that contains the intent."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from contextlib import closing
from functools import partial
from pathlib import Path

import pytest

from jobs.ledgers import opened, outcomes, rows, write
from msgctl.jobs.model import RequestResult
from msgctl.outcomes.judge import RecipientOutcome
from support.kills import in_a_process

TRACED = {"ledger.py", "schema.py"}


@pytest.mark.slow
def test_a_kill_at_any_line_leaves_a_ledger_that_can_be_resumed(tmp_path: Path) -> None:
    write(tmp_path / "new.sqlite3", rows(2))
    command = [sys.executable, "-m", "jobs.test_ledger_kills", str(tmp_path)]
    subprocess.run(command, cwd=Path(__file__).parents[1], timeout=300, check=True)
    assert len((tmp_path / "kills").read_text()) > 50


def _kill_at_every_line(folder: Path) -> None:
    """Kill a process at its first, second, third… new line, and resume the job after each."""
    number = 0
    is_killed = True
    while is_killed:
        number += 1
        path = folder / f"{number}.sqlite3"
        shutil.copy(folder / "new.sqlite3", path)
        is_killed = os.WIFSIGNALED(in_a_process(partial(_send, path), TRACED, number))
        is_sent = path.with_suffix(".sent").exists()
        for _ in range(2):  # the second time, after a clean end
            with closing(opened(path)) as ledger:
                ledger.recover()
                unsent = outcomes(ledger)["pending"]
        assert unsent == 1 or not is_sent, number
    (folder / "kills").write_text("x" * number)


def _send(path: Path) -> None:
    """Send to one recipient, and close the ledger."""
    with closing(opened(path)) as ledger:
        with ledger.transaction():
            intent = ledger.intend(1)
        assert intent is not None
        path.with_suffix(".sent").write_text("x")
        with ledger.transaction():
            ledger.record(RequestResult(intent, [RecipientOutcome(None, "accepted", "m1")]))


if __name__ == "__main__":
    _kill_at_every_line(Path(sys.argv[1]))
