"""Private files: replaced completely or not at all, by one process at a time."""

from __future__ import annotations

import errno
import os
import stat
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from msgctl import files
from msgctl.config.urls import location_of
from msgctl.errors import ConfigurationError
from support.tool import Clock

OTHER = 65534
"""The number of another user, and of a group that this user is not in."""

as_root = pytest.mark.skipif(os.geteuid() != 0, reason="only root can give files to other users")


@pytest.fixture
def file(tmp_path: Path) -> Path:
    path = tmp_path / "folder" / "file.toml"
    path.parent.mkdir(mode=0o700)
    path.write_bytes(b"old")
    path.chmod(0o600)
    return path


# --- writing


@pytest.mark.parametrize("mask", [0o000, 0o022, 0o077])
def test_a_new_file_is_private_with_any_umask(tmp_path: Path, mask: int) -> None:
    path = tmp_path / "one" / "two" / "file.toml"
    before = os.umask(mask)
    try:
        with files.changing(path):
            files.write(path, b"new")
    finally:
        os.umask(before)
    assert path.read_bytes() == b"new"
    modes = [stat.S_IMODE(each.stat().st_mode) for each in (path, path.with_name(".file.toml.lock"), path.parent)]
    assert modes == [0o600, 0o600, 0o700]


def test_a_path_in_the_home_directory_is_quoted_for_a_shell_after_the_tilde(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOME", "/home/ana")
    assert files.typed(Path("/home/ana/a b")) == "~/'a b'"
    assert [files.shown(Path(path)) for path in ("/home/ana/a b", "/home/anabel")] == ["~/a b", "/home/anabel"]
    monkeypatch.setenv("HOME", "/")
    assert files.shown(Path("/etc/passwd")) == "/etc/passwd"


def test_a_new_directory_is_synced_in_its_parent(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    synced: list[Path] = []
    fsync = os.fsync

    def note(descriptor: int) -> None:
        synced.append(Path(f"/proc/self/fd/{descriptor}").readlink())
        fsync(descriptor)

    monkeypatch.setattr(os, "fsync", note)
    files.make_folder(tmp_path / "local" / "state")
    assert synced == [tmp_path, tmp_path / "local"]
    files.make_folder(tmp_path / "local" / "state")
    assert len(synced) == 2


def test_a_directory_is_created_on_a_file_system_that_cannot_sync_directories(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(os, "fsync", failing(OSError(errno.EINVAL, "Invalid argument")))
    files.make_folder(tmp_path / "local" / "state")
    assert (tmp_path / "local" / "state").is_dir()
    monkeypatch.setattr(os, "fsync", failing(OSError(errno.EIO, "Input/output error")))
    with pytest.raises(OSError, match="Input/output error"):
        files.make_folder(tmp_path / "other")


def test_a_new_file_is_whole_on_the_disk_before_it_replaces_the_old_one(
    file: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    synced: list[tuple[bytes, bytes] | Path] = []

    def note(descriptor: int) -> None:
        path = Path(f"/proc/self/fd/{descriptor}").readlink()
        synced.append((path.read_bytes(), file.read_bytes()) if path.is_file() else path)

    monkeypatch.setattr(os, "fsync", note)
    file.with_name(".file.toml.new").write_bytes(b"of a process that was killed")
    files.write(file, b"new")
    assert synced == [(b"new", b"old"), file.parent]
    assert stat.S_IMODE(file.stat().st_mode) == 0o600


def test_a_link_is_kept_and_the_file_that_it_points_to_is_replaced(file: Path, tmp_path: Path) -> None:
    link, dangling = tmp_path / "link", tmp_path / "dangling"
    link.symlink_to(file)
    dangling.symlink_to(tmp_path / "target")
    files.write(link, b"new")
    files.write(dangling, b"new")
    assert link.is_symlink()
    assert dangling.is_symlink()
    assert file.read_bytes() == (tmp_path / "target").read_bytes() == b"new"


@as_root
def test_a_file_that_its_group_can_read_stays_readable(file: Path) -> None:
    os.chown(file, 0, OTHER)
    file.chmod(0o640)
    with files.changing(file):
        files.write(file, b"new")
    status = file.stat()
    assert (file.read_bytes(), stat.S_IMODE(status.st_mode), status.st_gid) == (b"new", 0o640, OTHER)


def failing(error: BaseException) -> Callable[..., Any]:
    def fail(*_: Any, **__: Any) -> Any:
        raise error

    return fail


@pytest.mark.parametrize("error", [OSError(28, "No space left on device"), KeyboardInterrupt()], ids=["full", "ctrl-c"])
@pytest.mark.parametrize("call", ["fsync", "rename", "open"])
def test_a_failed_write_leaves_the_old_file_and_nothing_else(
    file: Path, call: str, error: BaseException, monkeypatch: pytest.MonkeyPatch
) -> None:
    with monkeypatch.context() as patch:
        patch.setattr(os, call, failing(error))
        if call == "rename":  # pathlib uses either
            patch.setattr(os, "replace", failing(error))
        with pytest.raises(ConfigurationError if isinstance(error, OSError) else KeyboardInterrupt) as caught:
            files.write(file, b"new")
    if isinstance(caught.value, ConfigurationError):
        assert caught.value.what.startswith("Cannot write ")
        assert caught.value.hint == files.MAKE_ROOM
    assert file.read_bytes() == b"old"
    assert {each.name for each in file.parent.iterdir()} <= {file.name, f".{file.name}.lock"}


# --- locking


def test_a_file_system_without_locks_is_refused(file: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("fcntl.flock", failing(OSError(37, "No locks available")))
    with pytest.raises(ConfigurationError, match=r"^Cannot lock .*: No locks available"), files.changing(file):
        pytest.fail("it was locked")
    monkeypatch.setattr(os, "open", failing(PermissionError(errno.EACCES, "Permission denied")))
    with pytest.raises(ConfigurationError, match=r"^Cannot lock .*: Permission denied"), files.changing(file):
        pytest.fail("it was locked")


@pytest.mark.parametrize(
    ("error", "what", "hint"),
    [
        (OSError(errno.ENOSPC, "No space"), "No space", files.MAKE_ROOM),
        (OSError(errno.EROFS, "Read-only"), "Read-only", files.READ_ONLY),
        (OSError(errno.EDQUOT, "No quota"), "No quota", files.MAKE_ROOM),
        (OSError(errno.ENOLCK, "No locks"), "No locks", files.NEEDS_LOCKS),
        (OSError(errno.ENOTSUP, "No support"), "No support", files.NEEDS_LOCKS),
        (OSError(errno.EIO, "Input/output error"), "Input/output error", files.CHECK_PERMISSIONS),
        (OSError("without a number"), "OSError", files.CHECK_PERMISSIONS),
    ],
    ids=str,
)
def test_the_error_of_a_file_has_its_path_the_reason_and_the_fix(error: OSError, what: str, hint: str) -> None:
    with pytest.raises(ConfigurationError) as caught, files.explained("read", Path("/a\nb"), "nothing was sent"):
        raise error
    assert caught.value.message == f"Cannot read /a\\nb: {what}; nothing was sent"
    assert caught.value.hint == hint


def test_a_lock_that_is_held_for_too_long_is_an_error(file: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    clock = Clock()
    monkeypatch.setattr(time, "monotonic", clock)
    monkeypatch.setattr(time, "sleep", clock.sleep)
    with files.changing(file), pytest.raises(ConfigurationError, match="Another program"), files.changing(file):
        pytest.fail("both have it")
    assert sum(clock.slept) == pytest.approx(10, abs=0.2)


# --- where they are


def test_the_error_without_a_home_directory_suggests_a_variable(monkeypatch: pytest.MonkeyPatch) -> None:
    def homeless(*_: object) -> Path:
        raise RuntimeError("Could not determine home directory.")

    for function in ("user_config_path", "user_state_path"):
        monkeypatch.setattr(f"platformdirs.{function}", homeless)
    for variable, path in (
        ("MSGCTL_CONFIG", partial(files.config_file, {})),
        ("MSGCTL_STORE", partial(files.state_path, "store.sqlite3", "MSGCTL_STORE")),
    ):
        with pytest.raises(ConfigurationError, match="no home directory") as raised:
            path()
        assert f"Set {variable} to" in (raised.value.hint or "")


def test_a_path_of_an_unknown_user_is_an_error() -> None:
    for find, name in (
        (lambda path: files.config_file({"MSGCTL_CONFIG": path}), "MSGCTL_CONFIG must be a path"),
        (location_of, "The path of the store begins with an unknown user"),
    ):
        assert find("/a/b") == Path("/a/b")
        with pytest.raises(ConfigurationError, match=f'{name}.* "~nobody-here/x"'):
            find("~nobody-here/x")


def test_a_database_is_deleted_with_all_files_beside_it(file: Path) -> None:
    for suffix in ("-wal", "-shm", "-journal", "-owners"):
        file.with_name(file.name + suffix).touch()
    files.delete_database(file)
    assert [*file.parent.iterdir()] == []
    files.delete_database(file)
    file.mkdir()
    with pytest.raises(ConfigurationError, match=r"^Cannot delete .*file\.toml: Is a directory"):
        files.delete_database(file)
