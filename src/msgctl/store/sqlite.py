"""The store in an SQLite file, for the processes of one user on one machine.

SQLite applies the log (``-wal``) beside a database even if the log belongs to another database. This happens if a
backup is restored over a store after a kill. The result would be a damaged store, or one that forgot its last sends. So
each transaction increases the user version of the database, and `SQLite._check_log` compares it with the first version
in the log before SQLite reads it. `_first_version` needs only the frames that SQLite would apply. If SQLite changes the
format of the log, ``tests/store/test_failures.py`` fails, and `_first_version` must change.
"""

from __future__ import annotations

import fcntl
import os
import random
import re
import secrets
import shlex
import sqlite3
import struct
import time
from collections.abc import Collection, Iterator, Sequence
from contextlib import closing, contextmanager, suppress
from pathlib import Path
from threading import Lock
from typing import Any, ClassVar
from weakref import WeakKeyDictionary

from msgctl import files
from msgctl.config.profiles import SANDBOX_STORE
from msgctl.errors import NOTHING_SENT, MissingStoreError, MsgctlError, StoreNotReachedError
from msgctl.store import upgrades
from msgctl.store.database import Database, Row, unusable

APPLICATION = 0x6D736773  # "msgs", in the header of the file

MIN_VERSION = (3, 35)
"""The first SQLite with RETURNING."""
MIN_POLL, MAX_POLL = 0.001, 0.003
"""Seconds between two attempts to get the lock.

SQLite itself waits longer after each attempt. Meanwhile, other processes would take the lock again and again.
"""
NETWORK = frozenset("nfs nfs4 cifs smb3 smbfs 9p afs ceph glusterfs fuse.sshfs fuse.glusterfs fuse.rclone".split())
"""File systems whose memory maps or locks do not reach other machines."""
USER_VERSION = 60
"""The place of the user version in the first page of a database."""
LOG_CHECKS = 20
PAGES_TOGETHER = 500
"""Unused pages that are returned to the file system in one transaction."""
_MISSING = "no such (table|column)|has no column"
SIDE_FILES = ("-wal", "-shm", "-journal")


class SQLite(Database):
    """A connection to a file, which is created if it is missing. A statement waits up to ``timeout`` seconds.

    Without ``creates``, a missing file raises MissingStoreError.
    """

    _connected: ClassVar[WeakKeyDictionary[SQLite, tuple[int, int]]] = WeakKeyDictionary()
    """The open connections of this process, with their files."""
    _guard: ClassVar[Lock] = Lock()

    def __init__(self, path: Path, timeout: float = 30.0, *, creates: bool = True) -> None:
        self.path = Path(os.path.realpath(path))  # all processes use the same lock file, even through a link
        self.place = files.shown(path)
        self.delete_command = shlex.join(["rm", "-f", *(f"{self.path}{suffix}" for suffix in ("", "-wal", "-shm"))])
        self._locks = self._beside("-owners")
        self._timeout = timeout
        self._owners: set[int] = set()
        self._changes = 0
        if sqlite3.sqlite_version_info < MIN_VERSION:
            raise unusable(
                f"SQLite {sqlite3.sqlite_version} is too old for the store; version 3.35 or later is needed",
                "Update SQLite, or use a Python that contains a newer one.",
            )
        hint = files.access_hint(self.path, files.STORE_ELSEWHERE)
        if self.path.name == SANDBOX_STORE:  # MSGCTL_STORE is another store
            hint = files.access_hint(self.path, files.STATE_ELSEWHERE)
        with files.explained("use the store", path, NOTHING_SENT, hint):
            if creates:
                files.make_folder(self.path.parent)
            if (kind := _file_system(self.path)) in NETWORK:
                raise unusable(
                    f"The store {self.place} is on a network file system ({kind}), where SQLite is not safe",
                    "Use a local disk (MSGCTL_STORE), or PostgreSQL for several machines.",
                )
            # Before the file itself: another process may be creating the store.
            beside = [name for suffix in SIDE_FILES if (name := self._beside(suffix)).exists()]
            if not self.path.exists():
                if beside:
                    raise self.damaged(f"{files.shown(beside[0])} exists without it")
                if not creates:
                    raise MissingStoreError(f"The store {self.place} does not exist yet")
                self._create()
            if not self.path.stat().st_size:
                raise self.damaged("it is empty")
            with self._guard:
                # If this process already has the file open, skip the check: reading and closing the file would release
                # its locks (POSIX).
                if _place(self.path.stat()) not in self._connected.values():
                    self._check_log()
                self._db = self._connect(self.path)
                self._connected[self] = self._file

    def _connect(self, path: Path) -> sqlite3.Connection:
        uri = f"{path.absolute().as_uri()}?mode=rw"
        self._opened, self._file = path, _place(path.stat())
        try:
            db = sqlite3.connect(uri, uri=True, timeout=0, isolation_level=None, check_same_thread=False)
        except sqlite3.Error as error:
            raise self._explained(error) from error
        self._db = db
        try:
            # FULL makes each commit durable. With the default, a power cut may undo the last commits of a log.
            self.change("PRAGMA synchronous = FULL")
        except BaseException:
            db.close()
            raise
        return db

    def _create(self) -> None:
        """Create a complete store under another name, check it, and link it into place.

        So no process finds an empty or incomplete store, and a full disk leaves nothing behind.
        """
        new = self.path.with_name(f".{self.path.name}.{secrets.token_hex(8)}.new")
        try:
            new.touch(0o600, exist_ok=False)
            with closing(self._connect(new)):
                self.change("PRAGMA synchronous = OFF")  # the file is synced once, before it is linked into place
                self.change("PRAGMA auto_vacuum = INCREMENTAL")  # only possible before anything is written
                self.change(f"PRAGMA application_id = {APPLICATION}")
                self.change(f"PRAGMA user_version = {secrets.randbelow(2**30)}")  # see `_check_log`
                with self.transaction():
                    upgrades.create_tables(self)
                # Last: the log would delay the failure of a full disk to a checkpoint, which fails without an error.
                self.change("PRAGMA journal_mode = WAL")
            files.sync(new)
            with closing(self._connect(new)):
                self.check()
            with suppress(FileExistsError):  # another process was faster
                self.path.hardlink_to(new)
        finally:
            for suffix in ("", *SIDE_FILES):
                new.with_name(new.name + suffix).unlink(missing_ok=True)
        with suppress(PermissionError):  # a directory that this user can write but not read
            files.sync(self.path.parent)

    def _beside(self, suffix: str) -> Path:
        return self.path.with_name(self.path.name + suffix)

    # --- checks

    def check(self, *, creates: bool = True) -> None:  # noqa: ARG002 (the file exists)
        application = self.value("PRAGMA application_id")
        tables = self.value("SELECT count(*) FROM sqlite_master WHERE name IN ('meta', 'job', 'result')")
        if application != APPLICATION:
            raise self.damaged("it is a database, but not a store of msgctl")
        if tables != 3:
            raise self.damaged("its tables are missing")

    def _check_log(self) -> None:
        """Refuse the log of another database, for example of the store before a backup was restored.

        SQLite would apply it. Each transaction increases the user version in the first page. So the first version in
        the log follows the version of the database, or is in the database already.
        """
        for _ in range(LOG_CHECKS):  # another process may write in between
            first, frames = _first_version(self._beside("-wal"))
            with self.path.open("rb") as file:
                file.seek(USER_VERSION)
                version = int.from_bytes(file.read(4))
            if first is None or first - 1 <= version <= first + frames:
                return
            time.sleep(MAX_POLL)
        raise self.damaged(
            f"{files.shown(self._beside('-wal'))} belongs to another store, or to this one before a restore"
        )

    # --- statements

    def rows(self, statement: str, values: Sequence[Any] = ()) -> list[Row]:
        return self._execute(statement, values)[0]

    def change(self, statement: str, values: Sequence[Any] = ()) -> int:
        return self._execute(statement, values)[1]

    def columns(self, table: str) -> list[str]:
        return [name for (name,) in self.rows("SELECT name FROM pragma_table_info(?)", (table,))]

    def continue_numbers(self) -> None:
        pass  # AUTOINCREMENT does

    def exclude_others(self) -> None:
        pass  # there is one writer at a time

    def begin(self, lock: str) -> None:
        del lock  # there is one writer at a time
        self._check_place()
        self.change("BEGIN IMMEDIATE")
        self._changes = self._db.total_changes
        if self.refuses_moved:
            try:
                self.refuse_moved()
            except BaseException:
                self.roll_back()
                raise

    def commit(self) -> None:
        if self._db.total_changes > self._changes:
            self.change(f"PRAGMA user_version = {(self.value('PRAGMA user_version') + 1) % 2**31}")  # see `_check_log`
        self.change("COMMIT")
        self._check_place()  # the intents of this transaction are not sent if other processes cannot see them

    def _check_place(self) -> None:
        """Refuse a file that was deleted or replaced, because other processes use another file."""
        with suppress(OSError):
            if _place(self._opened.stat()) == self._file:
                return
        raise self.damaged("it was deleted or replaced while msgctl was using it", "Restore it from a backup.")

    def roll_back(self) -> None:
        with suppress(sqlite3.Error):
            if self._db.in_transaction:
                self._db.execute("ROLLBACK")

    def _execute(self, statement: str, values: Sequence[Any]) -> tuple[list[Row], int]:
        """Execute a statement, and repeat it while the file is locked; return its rows and how many it changed."""
        deadline = None
        while True:
            try:
                cursor = self._db.execute(statement, values)
                return cursor.fetchall(), cursor.rowcount
            except sqlite3.Error as error:
                is_busy = _code(error) in (sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED)
                now = time.monotonic()
                deadline = deadline or now + self._timeout
                if not is_busy or self._db.in_transaction or now > deadline:
                    raise self._explained(error) from error
            time.sleep(random.uniform(MIN_POLL, MAX_POLL))  # noqa: S311 (no secret)

    def _explained(self, error: sqlite3.Error) -> MsgctlError:
        match _code(error):
            case sqlite3.SQLITE_BUSY | sqlite3.SQLITE_LOCKED:
                return StoreNotReachedError(f"Another program is using the store {self.place}", "Try again later.")
            case sqlite3.SQLITE_NOTADB:
                return self.damaged("it is not a database")
            case sqlite3.SQLITE_CORRUPT | sqlite3.SQLITE_CONSTRAINT:
                return self.damaged(str(error))
            case sqlite3.SQLITE_ERROR if re.search(_MISSING, str(error)):
                return self.damaged(str(error))
            case sqlite3.SQLITE_ERROR:
                what = f"msgctl cannot use the store {self.place} because of a bug: {error}"
                return unusable(what, "Please report it.")
            case sqlite3.SQLITE_FULL | sqlite3.SQLITE_IOERR:  # a full disk or quota
                hint = files.MAKE_ROOM
            case _:
                hint = files.access_hint(self.path, files.CHECK_PERMISSIONS)
        return unusable(f"Cannot use the store {self.place}: {error}", hint)

    def shrink(self) -> None:
        while self.value("PRAGMA freelist_count"):
            self.rows(f"PRAGMA incremental_vacuum({PAGES_TOGETHER})")

    # --- locks

    def hold(self, owner: int) -> None:
        hint = files.access_hint(self._locks, files.CHECK_PERMISSIONS)
        with files.explained("lock", self._locks, NOTHING_SENT, hint), _LockFile.used(self._locks) as locks:
            locks.hold(owner)
        self._owners.add(owner)

    def limit_idle(self, is_limited: bool) -> None:
        pass  # all processes are on this machine, and a stopped one keeps its locks

    def alive(self, owners: Collection[int]) -> set[int]:
        if not owners:
            return set()
        with files.explained("lock", self._locks, NOTHING_SENT), _LockFile.used(self._locks) as locks:
            return locks.alive(owners)

    def reconnect(self) -> None:
        pass  # a file stays open

    def close(self, *, is_in_use: bool = False) -> None:
        with suppress(OSError):
            while self._owners:
                with _LockFile.used(self._locks) as locks:
                    locks.release(self._owners.pop())
        if is_in_use:
            return
        with self._guard, suppress(sqlite3.Error):  # all commits are on disk
            self._db.close()
            self._connected.pop(self, None)


class _LockFile:
    """The lock file of a store: one byte for each owner, at the offset of its number.

    The system releases the bytes of a process when it ends, or when it closes the file. So a process opens the file
    once, and keeps it open as long as it holds a byte.
    """

    _open: ClassVar[dict[tuple[int, int], _LockFile]] = {}
    _guard: ClassVar[Lock] = Lock()

    def __init__(self, descriptor: int) -> None:
        self._descriptor = descriptor
        self._own: set[int] = set()
        self.pid = os.getpid()

    @classmethod
    @contextmanager
    def used(cls, path: Path) -> Iterator[_LockFile]:
        """Open the file for a block, in one thread at a time. Close it afterwards, unless this process locks a byte."""
        with cls._guard:
            lock_file = None
            with suppress(FileNotFoundError):
                lock_file = cls._open.get(_place(path.stat()))
            if lock_file is None or lock_file.pid != os.getpid():  # a child process has none of its parent's locks
                descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW, 0o600)
                lock_file = cls._open[_place(os.fstat(descriptor))] = cls(descriptor)
            try:
                yield lock_file
            finally:
                if not lock_file._own:
                    del cls._open[_place(os.fstat(lock_file._descriptor))]
                    os.close(lock_file._descriptor)

    def hold(self, owner: int) -> None:
        fcntl.lockf(self._descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB, 1, owner)
        self._own.add(owner)

    def release(self, owner: int) -> None:
        self._own.discard(owner)
        fcntl.lockf(self._descriptor, fcntl.LOCK_UN, 1, owner)

    def alive(self, owners: Collection[int]) -> set[int]:
        return {owner for owner in owners if owner in self._own or self._is_held(owner)}

    def _is_held(self, owner: int) -> bool:
        try:
            fcntl.lockf(self._descriptor, fcntl.LOCK_SH | fcntl.LOCK_NB, 1, owner)
        except (BlockingIOError, PermissionError):
            return True
        fcntl.lockf(self._descriptor, fcntl.LOCK_UN, 1, owner)
        return False


def _first_version(log: Path) -> tuple[int | None, int]:
    """Return the user version of the first page 1 in a log, and the maximum number of transactions in the log.

    The version is None if SQLite ignores the log, or if the log has no page 1. (https://www.sqlite.org/fileformat2.html#walformat)
    """
    with suppress(FileNotFoundError, struct.error), log.open("rb") as file:  # no log, or a short one
        header = file.read(32)
        magic, _, page_size, _, *salts = struct.unpack(">6I", header[:24])
        order = {0x377F0682: "<", 0x377F0683: ">"}.get(magic, "")
        checksum = _checksum(order, header[:24], (0, 0))
        frames = 0
        if order and checksum == struct.unpack(">2I", header[24:]):
            frames = (os.fstat(file.fileno()).st_size - 32) // (24 + page_size)
        for _ in range(frames):
            head, page = file.read(24), file.read(page_size)
            number, _, *frame_salts = struct.unpack(">4I", head[:16])
            checksum = _checksum(order, head[:8] + page, checksum)
            if frame_salts != salts or checksum != struct.unpack(">2I", head[16:]):
                break
            if number == 1:
                return int.from_bytes(page[USER_VERSION : USER_VERSION + 4]), frames
    return None, 0


def _checksum(order: str, data: bytes, before: tuple[int, int]) -> tuple[int, int]:
    first, second = before
    words = iter(struct.unpack(f"{order}{len(data) // 4}I", data))
    for word in words:
        first = (first + word + second) & 0xFFFFFFFF
        second = (second + next(words) + first) & 0xFFFFFFFF
    return first, second


def _place(status: os.stat_result) -> tuple[int, int]:
    """Return the device and the number of a file, which are the same under any path."""
    return status.st_dev, status.st_ino


def _file_system(path: Path) -> str:
    """Return the kind of file system of a file, or an empty string if the system does not list it (macOS)."""
    try:
        lines = Path("/proc/self/mountinfo").read_text(encoding="utf-8", errors="surrogateescape").splitlines()
    except OSError:
        return ""
    kind, longest = "", 0
    for line in lines:
        fields, _, rest = line.partition(" - ")
        mount = fields.split()[4].replace("\\040", " ").rstrip("/") + "/"
        if str(path).startswith(mount) and len(mount) >= longest:  # a later mount hides an earlier one
            kind, longest = rest.split()[0], len(mount)
    return kind


def _code(error: sqlite3.Error) -> int:
    """Return the primary code of an error, which is the low byte of the extended one."""
    return getattr(error, "sqlite_errorcode", sqlite3.SQLITE_MISUSE) & 0xFF
