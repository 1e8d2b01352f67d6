"""Play histories of a simulated world and check each: `python tests/simulation/run.py --seconds 60`.

A history that goes wrong is printed from its beginning, with the command that plays it again. `machine` simulates the
machine, `service` records what really happened, and `history` has the steps and checks.
"""

from __future__ import annotations

import argparse
import gc
import math
import os
import shutil
import sys
import tempfile
import time
import traceback
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import ExitStack, closing, contextmanager
from functools import lru_cache
from multiprocessing import get_context
from pathlib import Path
from typing import Any
from unittest import mock

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

import msgctl.history.contacts
import msgctl.http.client
import msgctl.jobs.index
import msgctl.jobs.runner  # with all that is replaced
from msgctl.cli import main as cli
from msgctl.cli import tree
from simulation.history import History
from simulation.machine import patches
from simulation.service import Service


@contextmanager
def simulation() -> Iterator[tuple[Path, Service]]:
    """Make this process ready for histories, in a folder in memory."""
    memory = Path("/dev/shm")
    with ExitStack() as stack:
        name = stack.enter_context(tempfile.TemporaryDirectory(dir=memory if memory.is_dir() else None))
        service = Service(Path(name))
        stack.enter_context(closing(service.emulator))
        variables = {"HOME": name, "XDG_STATE_HOME": f"{name}/disk", "XDG_CONFIG_HOME": f"{name}/disk", "TZ": "UTC"}
        stack.callback(time.tzset)
        stack.enter_context(mock.patch.dict(os.environ, variables))
        time.tzset()
        build = lru_cache(cli.build)  # once: it takes longer than most commands
        network = mock.patch.object(msgctl.http.client, "NetworkTransport", return_value=service)
        settled = mock.patch.object(msgctl.jobs.index, "SETTLED", math.inf)  # the times of files are real
        own = mock.patch.object(cli, "build", build), network, settled
        parsers = [
            mock.patch.object(kind, "make_parser", once_for_each(kind.make_parser))
            for kind in (tree.Command, tree.CommandGroup)
        ]
        for patch in (*own, *parsers, *patches()):
            stack.enter_context(patch)
        cli.build()
        gc.freeze()  # what was imported is never garbage
        stack.callback(gc.unfreeze)
        yield Path(name), service


def once_for_each(make: Callable[..., Any]) -> Callable[..., Any]:
    """Return a `make_parser` method that creates the parser of each command once."""
    parsers: dict[Any, Any] = {}

    def make_parser(command: Any, ctx: Any) -> Any:
        if command not in parsers:
            parsers[command] = make(command, ctx)
        parsers[command].ctx = ctx
        return parsers[command]

    return make_parser


Doubts = Counter[tuple[str, bool]]


def told(seed: int, folder: Path, service: Service, doubts: Doubts | None = None) -> tuple[str, str]:
    """Play the history of a seed. Return what happened in it, and what is wrong with it, if anything is.

    ``doubts`` counts the recipients who stay unknown: see `History.doubts_by_cause`.
    """
    for name in ("disk", "copy"):
        shutil.rmtree(folder / name, ignore_errors=True)
    history = History(seed, folder / "disk", service)
    wrong = ""
    try:
        history.play()
    except AssertionError as error:
        wrong = str(error)
    except Exception:  # noqa: BLE001 (printed with its history)
        wrong = traceback.format_exc()
    if doubts is not None:
        doubts += history.doubts_by_cause
    return "\n".join(history.world.trace), wrong


def work(first: int, step: int, number: int, seconds: float) -> tuple[int, str, Doubts]:
    """Play the histories of every ``step``-th seed.

    Return how many, the story of the one that went wrong, and the recipients who stayed unknown.
    """
    doubts: Doubts = Counter()
    end = time.monotonic() + seconds
    with simulation() as ready:
        for done in range(number):
            seed = first + done * step
            trace, wrong = told(seed, *ready, doubts)
            if wrong:
                again = f"python tests/simulation/run.py --seed {seed} --histories 1"
                return done, f"{trace}\n\nWRONG in seed {seed}: {wrong}\nPlay it again: {again}\n", doubts
            if time.monotonic() > end:
                return done + 1, "", doubts
    return number, "", doubts


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seconds", type=float, default=1e9)
    parser.add_argument("--histories", type=int, default=10**9)
    parser.add_argument("--seed", type=int, default=int(time.time()) % 10**6 * 1000)
    parser.add_argument("--workers", type=int, default=os.cpu_count() or 1)
    parser.add_argument("--doubts", action="store_true", help="count the unknown recipients by cause")
    given = parser.parse_args()
    began = time.monotonic()
    workers = min(given.workers, given.histories)
    shares = [(given.histories + workers - 1 - number) // workers for number in range(workers)]
    jobs = [(given.seed + number, workers, shares[number], given.seconds) for number in range(workers)]
    with get_context("fork").Pool(workers) as pool:
        results = pool.starmap(work, jobs)
    stories = [story for _, story, _ in results if story]
    print(*stories, sep="\n")
    if given.doubts:
        doubts = sum((each for _, _, each in results), Counter())
        for cause in sorted({cause for cause, _ in doubts}):
            unknown = doubts[cause, True] + doubts[cause, False]
            print(f"{cause}: {unknown:,} unknown, {doubts[cause, True] / unknown:.0%} had got the message")
    done, took = sum(done for done, _, _ in results), time.monotonic() - began
    print(f"{done:,} histories from seed {given.seed} in {took:.0f} s, {len(stories)} wrong")
    return 1 if stories else 0


if __name__ == "__main__":
    sys.exit(main())
