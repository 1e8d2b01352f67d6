"""Sets of numbers that are larger than the memory they take."""

from __future__ import annotations

import random
import subprocess
import sys
from pathlib import Path

import pytest

from msgctl.jobs.exclusions import NumberSet

NUMBERS = {
    "few": ["573001234567", "112", "0112", "573001234567"],
    "none": [],
    "rising": [str(573_000_000_000 + 7 * number) for number in range(300_000)],
    "falling": [str(573_002_100_000 - 7 * number) for number in range(300_000)],
    "mixed": [str(random.Random(5).randrange(10**14)) for _ in range(300_000)],
    "the same": ["573001234567"] * 300_000,
}


@pytest.mark.parametrize("kind", NUMBERS)
def test_a_set_contains_exactly_what_was_added(kind: str) -> None:
    numbers = NUMBERS[kind]
    found = NumberSet()
    assert found.add(numbers[: len(numbers) // 3]) + found.add(numbers[len(numbers) // 3 :]) == len(numbers)
    found.seal()
    members = set(numbers)
    assert all(number in found for number in numbers[::101])
    others = [*(str(int(number) + 1) for number in numbers[::101]), "1", "12", "999999999999999", "00112"]
    assert [number for number in others if (number in found) != (number in members)] == []
    found.close()


@pytest.mark.skipif(not Path("/proc/self/status").exists(), reason="the system does not tell the memory of a process")
def test_a_million_numbers_take_less_than_32_mebibytes() -> None:
    code = """
import sys
from pathlib import Path
from msgctl.jobs.exclusions import NumberSet
numbers = NumberSet()
numbers.add(str(573000000000 + i * 7919 % 1000003) for i in range(1000000))
numbers.seal()
assert "573000000000" in numbers and "572999999999" not in numbers
sys.stdout.write(Path("/proc/self/status").read_text().partition("VmHWM:")[2].split()[0])
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, check=True, timeout=120)
    assert int(done.stdout) < 32 * 1024
