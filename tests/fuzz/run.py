"""Fuzz the parsers, guided by coverage, for as long as you have: python tests/fuzz/run.py --seconds 60

``--only NAME`` takes one target of `fuzz.targets`, or several when repeated. It needs atheris (pip install atheris);
without it hypothesis tries what it can think of. What is found is kept in the folder of ``--found``, and the exit code
is 1. Samples that reached something new are kept in ``--corpus`` from run to run. It is no part of the tests.
"""

from __future__ import annotations

import argparse
import importlib.util
import subprocess
import sys
from collections.abc import Iterable
from pathlib import Path

TESTS = Path(__file__).resolve().parents[1]
CODE = """
import sys
import atheris
with atheris.instrument_imports(include=["msgctl", "tomllib", "csv", "json"]):
    import tomllib  # what is imported later is not guided by
    from fuzz.targets import TARGETS
target, _ = TARGETS[sys.argv.pop(1)]
atheris.Setup(sys.argv, lambda data: target(data))
atheris.Fuzz()
"""


def main() -> int:
    sys.path[:0] = [str(TESTS), str(TESTS.parent / "src")]
    from fuzz.targets import TARGETS

    arguments = _parse(TARGETS)
    fuzz = _by_coverage if importlib.util.find_spec("atheris") else _by_hypothesis
    failed = [name for name in arguments.only or TARGETS if not fuzz(name, arguments)]
    _tell(f"failed: {', '.join(failed)}" if failed else "nothing found")
    return 1 if failed else 0


def _parse(targets: Iterable[str]) -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--seconds", type=int, default=60, help="for each target")
    parser.add_argument("--only", action="append", choices=list(targets), help="a target")
    parser.add_argument("--corpus", type=Path, default=Path("fuzz-corpus"), metavar="FOLDER")
    parser.add_argument("--found", type=Path, default=Path("fuzz-found"), metavar="FOLDER")
    return parser.parse_args()


def _tell(text: str) -> None:
    sys.stdout.write(f"{text}\n")
    sys.stdout.flush()


def _by_coverage(name: str, arguments: argparse.Namespace) -> bool:
    from fuzz.targets import TARGETS

    corpus, found = arguments.corpus / name, arguments.found / name
    for folder in (corpus, found):
        folder.mkdir(parents=True, exist_ok=True)
    for number, sample in enumerate(TARGETS[name][1]):
        (corpus / f"sample-{number}").write_bytes(sample)
    options = [f"-max_total_time={arguments.seconds}", f"-artifact_prefix={found}/", "-max_len=4096", "-timeout=20"]
    command = [
        sys.executable,
        "-c",
        f"import sys; sys.path[:0] = {sys.path[:2]!r}\n{CODE}",
        name,
        str(corpus),
        *options,
    ]
    _tell(f"--- {name}")
    return subprocess.run(command, check=False).returncode == 0


def _by_hypothesis(name: str, arguments: argparse.Namespace) -> bool:
    import time

    from hypothesis import HealthCheck, given, settings

    from fuzz.damage import contents
    from fuzz.targets import TARGETS

    target, samples = TARGETS[name]
    end = time.monotonic() + arguments.seconds

    @settings(max_examples=1000, deadline=None, database=None, suppress_health_check=[*HealthCheck])
    @given(data=contents(*samples))
    def attempt(data: bytes) -> None:
        target(data)

    _tell(f"--- {name}, without atheris")
    while time.monotonic() < end:
        try:
            attempt()
        except Exception as error:  # noqa: BLE001 (whatever it is, it was found)
            _tell(f"{type(error).__name__}: {error}")
            return False
    return True


if __name__ == "__main__":
    sys.exit(main())
