"""Disks that a power cut may leave, from what the system calls of a run changed.

Only a sync is trusted. What was written to a file since its last sync may be lost or kept, in any combination of
sectors. For names that were created, renamed or removed since the last sync of their directory, any combination of
these changes may be on the disk. This is what POSIX promises; most file systems keep more.
"""

from __future__ import annotations

import re
import shutil
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from random import Random
from typing import TypeVar

T = TypeVar("T")
SECTOR = 512

SHARED_MEMORY = "-shm"
"""SQLite writes these files through memory, and builds them again after a crash. They may have any content."""


@dataclass
class File:
    """``synced`` is its content at the last sync; the changes since then are writes, or new sizes without data."""

    synced: bytes = b""
    changes: list[tuple[int, bytes | None]] = field(default_factory=list)

    def sync(self, number: int) -> None:
        """Keep the first changes for certain."""
        self.synced = _written(self.synced, self.changes[:number])
        del self.changes[:number]

    def left(self, random: Random) -> bytes:
        """Return what a power cut leaves."""
        changes = self.changes
        if random.random() < 0.5:
            changes = [sector for change in changes for sector in _sectors(*change)]
        content = _written(self.synced, _kept(changes, random))
        grown = len(_written(self.synced, self.changes)) - len(content)
        return content + bytes(grown) if grown > 0 and random.random() < 0.3 else content


def _written(content: bytes, changes: Sequence[tuple[int, bytes | None]]) -> bytes:
    written = bytearray(content)
    for place, data in changes:
        end = place if data is None else place + len(data)
        written += bytes(max(0, end - len(written)))
        if data is None:
            del written[place:]
        else:
            written[place:end] = data
    return bytes(written)


def _sectors(place: int, data: bytes | None) -> Iterator[tuple[int, bytes | None]]:
    """Split a write at the boundaries of sectors."""
    if data is None:
        yield place, None
        return
    begin = 0
    while begin < len(data):
        end = begin + SECTOR - (place + begin) % SECTOR
        yield place + begin, data[begin:end]
        begin = end


def _kept(changes: Sequence[T], random: Random) -> Sequence[T]:
    """Choose the changes that survive a power cut: all, none, the first ones, or a random share."""
    match random.randrange(5):
        case 0:
            return changes
        case 1:
            return []
        case 2:
            return changes[: random.randint(0, len(changes))]
        case _:
            share = random.choice((0.1, 0.5, 0.9))
            return [change for change in changes if random.random() < share]


@dataclass
class Directory:
    """``synced`` are its entries at the last sync. A change is an entry to set, or a pair of names of a rename."""

    synced: dict[str, File | Directory] = field(default_factory=dict)
    changes: list[tuple[str, File | Directory | str | None]] = field(default_factory=list)

    @property
    def entries(self) -> dict[str, File | Directory]:
        return self._changed(self.changes)

    def _changed(self, changes: Sequence[tuple[str, File | Directory | str | None]]) -> dict[str, File | Directory]:
        entries = dict(self.synced)
        for name, change in changes:
            if isinstance(change, str):
                if name in entries:
                    entries[change] = entries.pop(name)
            elif change is None:
                entries.pop(name, None)
            else:
                entries[name] = change
        return entries

    def sync(self, number: int) -> None:
        self.synced = self._changed(self.changes[:number])
        del self.changes[:number]

    def left(self, random: Random) -> dict[str, File | Directory]:
        """Return the entries that a power cut leaves."""
        return self._changed(_kept(self.changes, random))


class Disk:
    """The files in a directory, which change with the system calls of a log."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.root = _read(path)
        self._positions: dict[str, int] = {}
        self._covered: dict[int, int] = {}

    def _find(self, path: str) -> File | Directory | None:
        node: File | Directory | None = self.root
        for name in Path(path).relative_to(self.path).parts:
            node = node.entries.get(name) if isinstance(node, Directory) else None
        return node

    def _parent(self, path: str) -> Directory:
        parent = self._find(str(Path(path).parent))
        assert isinstance(parent, Directory), path
        return parent

    def begin(self, thread: int, call: Call) -> None:
        """Store how many changes a sync that begins now covers."""
        node = self._find(call.path) if call.name in SYNCS and self._has(call.path) else None
        self._covered[thread] = len(node.changes) if node else 0

    def _has(self, path: str) -> bool:
        """Return whether a path is on the disk, and survives a power cut at all."""
        return f"{path}/".startswith(f"{self.path}/") and not path.endswith((SHARED_MEMORY, " (deleted)"))

    def end(self, thread: int, call: Call) -> None:  # noqa: PLR0912 (one case per system call)
        """Do what a call did."""
        if not self._has(call.path):
            return
        node, name = self._find(call.path), Path(call.path).name
        match call.name:
            case "openat" | "creat":
                if node is None:
                    node = File()
                    self._parent(call.path).changes.append((name, node))
                if "O_TRUNC" in call.text and isinstance(node, File):
                    node.changes.append((0, None))
                assert "O_APPEND" not in call.text, call
                self._positions[call.path] = 0
            case "mkdir" | "mkdirat":
                self._parent(call.path).changes.append((name, Directory()))
            case "write" | "pwrite64":
                assert isinstance(node, File), call
                place = self._positions[call.path] if call.name == "write" else call.numbers[-1]
                node.changes.append((place, call.data))
                if call.name == "write":
                    self._positions[call.path] = place + len(call.data)
            case "ftruncate":
                assert isinstance(node, File), call
                node.changes.append((call.numbers[-1], None))
            case "fsync" | "fdatasync":
                assert node is not None, call
                node.sync(self._covered[thread])
            case "link" | "linkat":
                assert node is not None, call
                self._parent(call.paths[-1]).changes.append((Path(call.paths[-1]).name, node))
            case "unlink" | "unlinkat":
                self._parent(call.path).changes.append((name, None))
            case "rename" | "renameat" | "renameat2":
                target = Path(call.paths[-1])
                assert target.parent == Path(call.path).parent, call
                self._parent(call.path).changes.append((name, target.name))
            case _:
                raise AssertionError(call)

    def write(self, random: Random, path: Path) -> None:
        """Write a disk that a power cut may leave now."""
        shutil.rmtree(path, ignore_errors=True)
        _write(self.root, random, path)


def _read(path: Path) -> Directory:
    """Read a directory, all of which is synced."""
    tree = Directory()
    for each in path.iterdir():
        if not each.name.endswith(SHARED_MEMORY):
            tree.synced[each.name] = _read(each) if each.is_dir() else File(each.read_bytes())
    return tree


def _write(directory: Directory, random: Random, path: Path) -> None:
    path.mkdir(mode=0o700)
    for name, node in directory.left(random).items():
        if isinstance(node, Directory):
            _write(node, random, path / name)
            continue
        (path / name).touch(0o600)
        (path / name).write_bytes(node.left(random))
        if name.endswith("-wal") and (shared := random.choice((None, b"", bytes(32768), random.randbytes(32768)))):
            beside = path / (name.removesuffix("-wal") + SHARED_MEMORY)
            beside.touch(0o600)
            beside.write_bytes(shared)


# --- the log of strace

SYNCS = ("fsync", "fdatasync")
TRACED = (
    "openat,creat,write,pwrite64,writev,pwritev,fsync,fdatasync,sync_file_range,rename,renameat,renameat2,unlink,"
    "unlinkat,rmdir,ftruncate,truncate,fallocate,link,linkat,symlink,mkdir,mkdirat,copy_file_range,sendfile"
)

_LINE = re.compile(r"(\d+) +(?:<\.\.\. (\w+) resumed>)?(.*)", re.DOTALL)
_STRING = re.compile(r"""<((?:\\x[0-9a-f]{2})*)(?:\(deleted\))?>|"((?:\\x[0-9a-f]{2})*)"(\.\.\.)?""")


_RESULT = re.compile(r"\)\s+= (?=[^=]*\Z)")


@dataclass(frozen=True)
class Call:
    """A system call that succeeded: the paths and the data in its arguments, and its last arguments if numbers."""

    name: str
    text: str
    paths: tuple[str, ...]
    data: bytes
    numbers: tuple[int, ...]

    @property
    def path(self) -> str:
        """The file that it is about."""
        return self.paths[0] if self.paths else ""


_BY_DESCRIPTOR = (*SYNCS, "write", "pwrite64", "ftruncate", "writev", "pwritev", "fallocate")


def _parsed(text: str) -> Call | None:
    """Parse a whole call; None if it failed or changed nothing."""
    name, _, rest = text.partition("(")
    arguments, result = _RESULT.split(rest, maxsplit=1)
    if result.startswith(("-1", "?")) or (name == "openat" and "O_CREAT" not in text and "O_TRUNC" not in text):
        return None
    descriptors: list[bytes] = []
    strings: list[bytes] = []
    for match in _STRING.finditer(arguments):
        assert not match[3], "strace has cut a string"
        content = bytes.fromhex((match[2] if match[1] is None else match[1]).replace("\\x", ""))
        (descriptors if match[1] is not None else strings).append(content)
    if name in _BY_DESCRIPTOR:
        deleted = " (deleted)" if "(deleted)" in arguments else ""
        paths = [each.decode() + deleted for each in descriptors[:1]]
    else:
        paths = [each.decode() for each in strings]
        assert all(each.startswith("/") for each in paths) or "AT_FDCWD" in arguments or len(descriptors) < 1, text
    plain = _STRING.sub("", arguments)
    numbers = [int(each) for each in plain.replace(",", " ").split() if each.isdigit()]
    return Call(name, plain, tuple(paths), strings[0] if strings else b"", tuple(numbers))


def calls(log: Path) -> Iterator[tuple[int, str, Call]]:
    """Yield the begin and the end of each call in a log, in their order: thread, "begin" or "end", and the call."""
    begun: dict[str, str] = {}
    for line in log.read_text("ascii", "replace").splitlines():
        thread, resumed, text = _LINE.fullmatch(line).groups()  # type: ignore[union-attr]
        if text.startswith(("+++", "---")):
            continue
        if resumed:
            if call := _parsed(begun.pop(thread) + text):
                yield int(thread), "end", call
        elif text.endswith("<unfinished ...>"):
            begun[thread] = text.removesuffix("<unfinished ...>").rstrip()
            if call := _parsed(f"{begun[thread]}) = 0"):  # its result is not known yet
                yield int(thread), "begin", call
        elif call := _parsed(text):
            yield int(thread), "begin", call
            yield int(thread), "end", call
