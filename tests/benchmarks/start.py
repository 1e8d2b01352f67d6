"""Measure how long short commands take, as multiples of a bare ``python -c pass`` or another tool in the same run.

Run it as ``python tests/benchmarks/start.py``. It installs msgctl and httpie into a separate environment, compiles
everything, and serves the responses on loopback. It prints medians of 15 interleaved runs. Compare the ratios: the
milliseconds depend on the machine.
"""

from __future__ import annotations

import statistics
import subprocess
import sys
import tempfile
import time
import venv
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from benchmarks.jobs import environment, peak, responding

ROUNDS = 15
WARM_UP = 2
ROOT = Path(__file__).resolve().parents[2]
SEND = ("-q", "-p", "sandbox", "sms", "send", "573001234567", "-m", "Hello", "--json")


class Subject(NamedTuple):
    """A command. Its time should be at most ``most`` times the time of the subject ``against``."""

    name: str
    command: Sequence[str]
    most: float | None = None
    against: str = "python -c pass"


def installed(directory: Path) -> Path:
    """Install msgctl and httpie into a new environment, compiled, and return the directory of its programs."""
    venv.create(directory, with_pip=True)
    programs = directory / "bin"
    subprocess.run([programs / "pip", "install", "--quiet", "--compile", str(ROOT), "httpie"], check=True)
    return programs


def subjects(programs: Path, base_url: str) -> list[Subject]:
    msgctl, python = str(programs / "msgctl"), str(programs / "python")
    url = f"{base_url}/balance?client=1&key=0123456789"
    return [
        Subject("python -c pass", [python, "-c", "pass"]),
        Subject("msgctl --version", [msgctl, "--version"], 1.8),
        Subject("msgctl --help", [msgctl, "--help"], 8.5),
        Subject("msgctl balance --json", [msgctl, "balance", "--json"]),
        Subject("msgctl balance", [msgctl, "balance"], 11.8),
        Subject("msgctl sms send --json", [msgctl, *SEND], 13.5),
        Subject("httpie", [str(programs / "http"), "--ignore-stdin", "GET", url]),
        Subject("… against httpie", [msgctl, "balance", "--json"], 0.47, "httpie"),
        Subject("httpx", [python, "-c", f"import httpx; print(httpx.get({url!r}).text)"]),
        Subject("… against httpx", [msgctl, "balance", "--json"], 1, "httpx"),
    ]


def medians(wanted: Sequence[Subject], environ: Mapping[str, str]) -> dict[str, float]:
    """Return each subject's median time in seconds. Each runs once per round, so a disturbance affects all alike."""
    runs: dict[str, list[float]] = {each.name: [] for each in wanted}
    for _ in range(WARM_UP + ROUNDS):
        for each in wanted:
            began = time.perf_counter()
            subprocess.run(each.command, env=environ, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, check=True)
            runs[each.name].append(time.perf_counter() - began)
    return {name: statistics.median(times[WARM_UP:]) for name, times in runs.items()}


def main() -> None:
    with tempfile.TemporaryDirectory() as directory, responding() as server:
        environ = environment(server, Path(directory))
        wanted = subjects(installed(Path(directory) / "environment"), server.base_url)
        seconds = medians(wanted, environ)
        for each in wanted:
            ratio = seconds[each.name] / seconds[each.against]
            verdict = "" if each.most is None else f"wanted {each.most:g}  {'ok' if ratio <= each.most else 'TOO SLOW'}"
            print(
                f"{each.name:24} {seconds[each.name] * 1000:7.1f} ms  {ratio:6.2f} x {each.against:15}"
                f" {peak(each.command, environ)[0]:5.1f} MiB  {verdict}"
            )


if __name__ == "__main__":
    main()
