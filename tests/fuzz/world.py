"""A small world that is as new before each run of the tool in it, and what has to hold after each."""

from __future__ import annotations

import shutil
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from hypothesis import HealthCheck, settings

from contract.requests import faults
from support.runs import ended_well
from support.service import Received, Service
from support.tool import Outcome, Tool

MOST_SLEEPS = 20
"""Pauses after which somebody loses patience with a command that goes on for ever, and presses Ctrl-C."""

OUTSIDE = ("sandbox", "api")
"""Groups and commands that reach more than the interface has: a sandbox that is served, and whatever is asked for."""


def tries(number: int) -> settings:
    """How many examples a test tries, in an environment that its examples share."""
    return settings(max_examples=number, deadline=None, suppress_health_check=[*HealthCheck], print_blob=True)


class World:
    """A folder with all that the tool keeps, put back before each run, and a server that takes every request."""

    def __init__(self, home: Path, service: Service, tool: Tool) -> None:
        self.home = home
        self.service = service
        self.tool = tool
        self._kept: Path | None = None

    def keep(self) -> None:
        """From here on, every run begins with what the folder holds now."""
        kept = self.home.with_name(f"{self.home.name}-kept")
        shutil.rmtree(kept, ignore_errors=True)
        shutil.copytree(self.home, kept)
        self._kept = kept

    def renew(self) -> None:
        assert self._kept is not None
        for each in self.home.iterdir():
            shutil.rmtree(each) if each.is_dir() and not each.is_symlink() else each.unlink()
        shutil.copytree(self._kept, self.home, dirs_exist_ok=True)
        self.service.received.clear()

    def run(self, words: Sequence[str], **streams: Any) -> Outcome:
        """Run a command line that may be anything; an AssertionError names what no run may do."""
        patience = iter(range(MOST_SLEEPS))

        def sleep(seconds: float) -> None:
            self.tool.clock.sleep(seconds)
            if next(patience, None) is None:
                raise KeyboardInterrupt

        outcome = self.tool(*words, sleep=sleep, **streams)
        assert ended_well(outcome.code, outcome.out, outcome.err)
        assert forbidden(self.service.received, words) == []
        if outcome.code in (2, 3):
            assert sent(self.service.received, words) == []
        return outcome


def forbidden(received: Sequence[Received], words: Sequence[str]) -> list[str]:
    """What the interface forbids in the requests that a command line led to."""
    beyond = not set(OUTSIDE).isdisjoint(words)
    return [f"{each.target}: {fault}" for each in received for fault in faults(each) if not beyond]


def sent(received: Sequence[Received], words: Sequence[str]) -> list[str]:
    """The requests that did more than read, by their paths."""
    reads = ("/balance", "/messages-state", "/url/short-statistic")
    beyond = not set(OUTSIDE).isdisjoint(words)
    return [each.path for each in received if not each.path.endswith(reads) and not beyond]
