"""Play histories of a simulated world and check each: `python tests/simulation/run.py --seconds 60`.

A history that goes wrong is told from its beginning, with the command that plays it again. See `world` for what a world
is, `service` for its truth, and `history` for what happens in it.
"""

from __future__ import annotations

import argparse
import gc
import os
import shutil
import sys
import tempfile
import time
import traceback
from collections.abc import Iterator
from contextlib import closing, contextmanager
from multiprocessing import get_context
from pathlib import Path
from unittest import mock

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

import msgctl.http.client
import msgctl.jobs.runner
from msgctl import cli
from simulation.history import History
from simulation.service import Service
from simulation.world import entered, patched


class _Route:
    """In place of `msgctl.http.transport.Route`: every way leads to the simulated service."""

    service: Service

    def __init__(self, base_url: str) -> None:
        self.transport = self.service.transport


@contextmanager
def simulation() -> Iterator[tuple[Path, Service]]:
    """Make this process ready for histories, in a folder in memory."""
    memory = Path("/dev/shm")
    with tempfile.TemporaryDirectory(dir=memory if memory.is_dir() else None) as name:
        folder = Path(name)
        service = _Route.service = Service(folder)
        variables = {"HOME": name, "XDG_STATE_HOME": f"{name}/disk", "XDG_CONFIG_HOME": f"{name}/disk", "TZ": "UTC"}
        tree = cli.build()  # once: it takes longer than most commands
        gc.freeze()  # what was imported is never garbage
        try:
            with (
                mock.patch.dict(os.environ, variables),
                patched((msgctl.http.client, "Route", _Route), (cli, "build", lambda: tree)),
                closing(service.state),
            ):
                time.tzset()
                yield folder, service
        finally:
            gc.unfreeze()
            time.tzset()


def work(first: int, step: int, number: int, seconds: float) -> tuple[int, str]:
    """Play the histories of every ``step``-th seed. Return how many, and the story of the one that went wrong."""
    end = time.monotonic() + seconds
    done = 0
    with simulation() as (folder, service):
        while done < number and time.monotonic() < end:
            seed = first + done * step
            if story := told(seed, folder, service):
                return done, story
            done += 1
    return done, ""


def told(seed: int, folder: Path, service: Service) -> str:
    """Play the history of a seed; return its story if something is wrong in it."""
    history = fresh(seed, folder, service)
    try:
        with entered(history.world):
            history.play()
    except Exception as error:  # noqa: BLE001 (told with its history)
        trace = "" if isinstance(error, AssertionError) else "".join(traceback.format_exception(error))
        again = f"python tests/simulation/run.py --seed {seed} --histories 1"
        return "\n".join([*history.world.trace, f"{trace}\nWRONG in seed {seed}: {error}", f"Play it again: {again}"])
    return ""


def fresh(seed: int, folder: Path, service: Service) -> History:
    """Return the history of a seed, on an empty disk."""
    for name in ("disk", "copy"):
        shutil.rmtree(folder / name, ignore_errors=True)
    return History(seed, folder / "disk", service)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seconds", type=float, default=1e9)
    parser.add_argument("--histories", type=int, default=10**9)
    parser.add_argument("--seed", type=int, default=int(time.time()) % 10**6 * 1000)
    parser.add_argument("--workers", type=int, default=os.cpu_count() or 1)
    given = parser.parse_args()
    began = time.monotonic()
    workers = min(given.workers, given.histories)
    shares = [(given.histories + workers - 1 - number) // workers for number in range(workers)]
    jobs = [(given.seed + number, workers, shares[number], given.seconds) for number in range(workers)]
    with get_context("fork").Pool(workers) as pool:
        results = pool.starmap(work, jobs)
    done, stories = sum(done for done, _ in results), [story for _, story in results if story]
    took = time.monotonic() - began
    print(*stories, sep="\n\n")
    print(f"{done:,} histories from seed {given.seed} in {took:.0f} s, {len(stories)} wrong")
    return 1 if stories else 0


if __name__ == "__main__":
    sys.exit(main())
