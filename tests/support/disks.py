"""Small disks that can be filled or made read-only; tests mount them if their user may do so."""

from __future__ import annotations

import contextlib
import subprocess
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

from support import programs


@dataclass(frozen=True)
class Disk:
    path: Path

    def resize(self, size: str) -> None:
        """Change its size, for example to ``64m``."""
        self._remount(f"size={size}")

    def fill(self) -> None:
        """Fill it completely."""
        with contextlib.suppress(OSError), (self.path / "filler").open("wb", buffering=0) as file:
            while True:
                file.write(bytes(4096))

    def clear(self) -> None:
        """Undo `fill`."""
        (self.path / "filler").unlink()

    @contextlib.contextmanager
    def read_only(self) -> Iterator[None]:
        """Make it read-only, even for root."""
        self._remount("ro")
        try:
            yield
        finally:
            self._remount("rw")

    def _remount(self, options: str) -> None:
        subprocess.run(["mount", "-o", f"remount,{options}", self.path], check=True)


@contextlib.contextmanager
def mounted(path: Path, size: str) -> Iterator[Disk]:
    """A disk at a path. Without the right to mount, the test is skipped, or fails in continuous integration."""
    path.mkdir()
    mounting = subprocess.run(
        ["mount", "-t", "tmpfs", "-o", f"size={size},mode=700", "tmpfs", path], capture_output=True, check=False
    )
    if mounting.returncode:
        if programs.REQUIRED:
            pytest.fail(f"a disk cannot be mounted: {mounting.stderr.decode()}")
        pytest.skip("a disk cannot be mounted by this user")
    try:
        yield Disk(path)
    finally:
        subprocess.run(["umount", "--lazy", path], check=True)
