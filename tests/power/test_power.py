"""Power cuts: nothing that was synced is lost, and msgctl syncs what it promises."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from random import Random

import pytest

from power.disks import Disk, calls
from power.run import strace
from support.programs import program

SCRIPT = """
import os, sys
folder = sys.argv[1]
descriptor = os.open(f"{folder}/file", os.O_WRONLY)
os.pwrite(descriptor, b"b" * 1024, 0)
os.fsync(descriptor)
os.pwrite(descriptor, b"c" * 1024, 512)
os.mkdir(f"{folder}/synced")
parent = os.open(folder, os.O_RDONLY)
os.fsync(parent)
os.rename(f"{folder}/file", f"{folder}/renamed")
os.mkdir(f"{folder}/lost")
"""


def test_a_cut_keeps_what_was_synced_and_any_part_of_the_rest(tmp_path: Path) -> None:
    program("strace")
    folder = tmp_path / "disk"
    folder.mkdir()
    (folder / "file").write_bytes(b"a" * 1024)
    disk = Disk(folder)
    log = tmp_path / "log"
    subprocess.run([*strace(log), sys.executable, "-c", SCRIPT, str(folder)], check=True)
    for _, phase, call in calls(log):
        if phase == "end":
            disk.do(call, disk.begin(call))
    found: set[tuple[str, ...]] = set()
    for seed in range(300):
        left = tmp_path / "left"
        disk.write(Random(seed), left)
        (file,) = [each for each in left.iterdir() if each.is_file()]
        content = file.read_bytes()
        assert content[:512] == b"b" * 512
        found.add((*sorted(each.name for each in left.iterdir()), *(chr(each) for each in content[512::512])))
    names = [("file", "lost", "synced"), ("file", "synced"), ("lost", "renamed", "synced"), ("renamed", "synced")]
    contents = ["b", "c", "b\0", "bc", "c\0", "cc"]
    assert found <= {(*each, *content) for each in names for content in contents}
    assert {each[:-1] for each in found} >= {(*each, "c") for each in names}
    assert {each[-2:] for each in found} >= {("synced", "b"), ("b", "c"), ("c", "\0"), ("c", "c")}


@pytest.mark.slow
@pytest.mark.parametrize("seed", [0, 1])
def test_a_power_cut_loses_nothing_and_nobody_gets_a_message_twice(seed: int) -> None:
    program("strace")
    options = ("--disks", "24", "--per-record", "12", "--workers", "1", "--seed", str(seed))
    done = subprocess.run(
        [sys.executable, Path(__file__).with_name("run.py"), *options], capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stdout + done.stderr
