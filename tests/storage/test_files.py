"""Private files: refused if others can read or replace them, replaced whole or not at all, one writer at a time."""

from __future__ import annotations

import errno
import os
import stat
import subprocess
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from msgctl.errors import ConfigurationError
from msgctl.storage import files
from support.service import Service
from support.tool import Tool

PHONE = "573001234567"
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


def others(path: Path) -> set[str]:
    """Return the names in the folder of a file, but for the file and its lock."""
    return {each.name for each in path.parent.iterdir()} - {path.name, f".{path.name}.lock"}


def give_away(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Give a file to another user; without the right to do that, become another user."""
    if os.geteuid() == 0:
        os.chown(path, OTHER, -1)
    else:
        monkeypatch.setattr(os, "geteuid", lambda: OTHER)


def refusal(path: Path) -> ConfigurationError:
    with pytest.raises(ConfigurationError) as raised:
        files.read(path)
    return raised.value


# --- reading


@pytest.mark.parametrize("mode", [0o644, 0o604, 0o620, 0o602, 0o610, 0o601, 0o777])
def test_a_file_open_to_others_is_refused_with_the_command_that_fixes_it(file: Path, mode: int) -> None:
    file.chmod(mode)
    subprocess.run(refusal(file).hint or "", shell=True, check=True)
    assert stat.S_IMODE(file.stat().st_mode) == 0o600
    assert files.read(file) == b"old"


def test_the_group_may_read_only_a_file_of_root(file: Path) -> None:
    file.chmod(0o640)
    if os.geteuid() == 0:
        assert files.read(file) == b"old"
    else:
        assert "readable by other users" in refusal(file).message


def test_a_file_of_another_user_is_refused(file: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    give_away(file, monkeypatch)
    error = refusal(file)
    assert f"{files.shown(file)} belongs to another user" in error.message
    assert f"chown {'root' if os.geteuid() == 0 else '$USER'} {files.typed(file)}" in (error.hint or "")


def test_a_file_in_a_directory_of_another_user_is_refused(file: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    give_away(file.parent, monkeypatch)
    if os.geteuid() != 0:  # then the file seems to be another user's too
        file.chmod(0o600)
    assert "belongs to another user" in refusal(file).message
    with pytest.raises(ConfigurationError, match="belongs to another user"), files.locked(file):
        pytest.fail("it was locked")


@as_root
def test_a_directory_that_another_group_can_write_to_is_refused(file: Path) -> None:
    os.chown(file.parent, -1, OTHER)
    file.parent.chmod(0o770)
    error = refusal(file)
    assert "writable by another group (mode 0770)" in error.message
    subprocess.run(error.hint or "", shell=True, check=True)
    assert stat.S_IMODE(file.parent.stat().st_mode) == 0o750
    assert files.read(file) == b"old"


def test_a_link_in_a_directory_that_everyone_can_write_to_is_refused(file: Path, tmp_path: Path) -> None:
    (first := tmp_path / "first").symlink_to("shared/second")
    (shared := tmp_path / "shared").mkdir()
    (shared / "second").symlink_to(file)
    assert files.read(first) == b"old"
    shared.chmod(0o777)
    assert f"The directory {files.shown(shared)} is writable by every user" in refusal(first).message


def test_a_link_that_changes_after_the_check_does_not_change_the_content(
    file: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (other := tmp_path / "other").write_bytes(b"key_command = ...")
    (link := tmp_path / "link").symlink_to(file)
    check = files.check

    def check_and_change(*arguments: Any, **options: Any) -> None:
        check(*arguments, **options)
        link.unlink()
        link.symlink_to(other)

    monkeypatch.setattr(files, "check", check_and_change)
    assert files.read(link) == b"old"


@as_root
def test_a_user_reads_a_file_of_root_only_if_other_users_cannot(tmp_path: Path) -> None:
    with tempfile.TemporaryDirectory() as directory:  # pytest's own directory is closed to other users
        Path(directory).chmod(0o755)
        file = Path(directory, "config.toml")
        file.write_bytes(b"of root")

        def read(owner: int, mode: int) -> str:
            os.chown(file, owner, OTHER)
            file.chmod(mode)
            os.setegid(OTHER)
            os.seteuid(OTHER)
            try:
                return str(files.read(file))
            except ConfigurationError as error:
                return error.message
            finally:
                os.seteuid(0)
                os.setegid(0)

        assert "of root" in read(0, 0o640)
        assert "of root" in read(OTHER, 0o600)
        assert "readable by other users (mode 0644)" in read(0, 0o644)
        assert "writable by other users (mode 0660)" in read(0, 0o660)
        assert "readable by other users (mode 0640)" in read(OTHER, 0o640)
        assert "belongs to another user" in read(OTHER - 1, 0o600)
        assert "belongs to another user" in read(OTHER - 1, 0o644)


@pytest.mark.parametrize("mode", [0o777, 0o703, 0o702])
def test_a_folder_that_everyone_can_write_to_is_refused_with_the_command_that_fixes_it(file: Path, mode: int) -> None:
    file.parent.chmod(mode)
    with pytest.raises(ConfigurationError, match="writable"), files.locked(file):
        pytest.fail("it was locked")
    subprocess.run(refusal(file).hint or "", shell=True, check=True)
    assert files.read(file) == b"old"


@pytest.mark.parametrize("mode", [0o755, 0o770, 0o1777])
def test_a_folder_in_which_others_cannot_replace_the_file_is_accepted(file: Path, mode: int) -> None:
    file.parent.chmod(mode)
    assert files.read(file) == b"old"


@pytest.mark.parametrize("name", ["with space.toml", "it's.toml", "$HOME.toml", "-n.toml"])
@pytest.mark.parametrize("is_at_home", [True, False])
def test_the_command_that_fixes_it_can_be_pasted(
    tmp_path: Path, is_at_home: bool, name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HOME", str(tmp_path if is_at_home else tmp_path / "home"))
    path = tmp_path / name
    path.write_bytes(b"x")
    path.chmod(0o644)
    subprocess.run(refusal(path).hint or "", shell=True, check=True)
    assert stat.S_IMODE(path.stat().st_mode) == 0o600


def test_what_is_not_a_regular_file_is_refused(tmp_path: Path) -> None:
    link = tmp_path / "circle"
    link.symlink_to(link)
    assert "not a regular file" in refusal(tmp_path).message
    assert "not a regular file" in refusal(Path(os.devnull)).message
    assert "Cannot read" in refusal(Path(sys.executable) / "file.toml").message
    assert "Cannot read" in refusal(link).message


def test_a_named_pipe_is_refused_at_once(tmp_path: Path) -> None:
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe, 0o600)
    code = f"from pathlib import Path; from msgctl.storage import files; files.read(Path({str(pipe)!r}))"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, timeout=30, check=False)
    assert b"not a regular file" in done.stderr


def test_a_link_to_a_private_file_is_followed(file: Path, tmp_path: Path) -> None:
    link = tmp_path / "link"
    link.symlink_to(file)
    assert files.read(link) == b"old"
    file.chmod(0o644)
    assert "readable by other users" in refusal(link).message


# --- writing


@pytest.mark.parametrize("mask", [0o000, 0o022, 0o077])
def test_a_new_file_is_private_whatever_the_umask(tmp_path: Path, mask: int) -> None:
    path = tmp_path / "one" / "two" / "file.toml"
    before = os.umask(mask)
    try:
        with files.locked(path):
            files.write(path, b"new")
    finally:
        os.umask(before)
    assert files.read(path) == b"new"
    modes = [stat.S_IMODE(each.stat().st_mode) for each in (path, path.with_name(".file.toml.lock"), path.parent)]
    assert modes == [0o600, 0o600, 0o700]


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


def test_a_link_stays_and_the_file_behind_it_is_replaced(file: Path, tmp_path: Path) -> None:
    link, dangling = tmp_path / "link", tmp_path / "dangling"
    link.symlink_to(file)
    dangling.symlink_to(tmp_path / "target")
    assert files.read(dangling) is None
    files.write(link, b"new")
    files.write(dangling, b"new")
    assert link.is_symlink()
    assert dangling.is_symlink()
    assert file.read_bytes() == (tmp_path / "target").read_bytes() == b"new"


@as_root
def test_a_file_that_its_group_can_read_stays_readable(file: Path) -> None:
    os.chown(file, 0, OTHER)
    file.chmod(0o640)
    with files.locked(file):
        files.write(file, b"new")
    status = file.stat()
    assert (files.read(file), stat.S_IMODE(status.st_mode), status.st_gid) == (b"new", 0o640, OTHER)


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
        with pytest.raises(ConfigurationError if isinstance(error, OSError) else KeyboardInterrupt):
            files.write(file, b"new")
    assert file.read_bytes() == b"old"
    assert others(file) == set()


# --- locking


def test_a_file_system_without_locks_is_refused(file: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("fcntl.flock", failing(OSError(37, "No locks available")))
    with pytest.raises(ConfigurationError, match="No locks available"), files.locked(file):
        pytest.fail("it was locked")


def test_a_lock_that_is_held_for_long_is_given_up(file: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(files, "MAX_WAIT", 0)
    with files.locked(file), pytest.raises(ConfigurationError, match="Another program"), files.locked(file):
        pytest.fail("both have it")


# --- the state directory


@pytest.mark.parametrize(
    "arguments",
    [
        ("sms", "send", PHONE, "-m", "Hola"),
        ("sms", "send", PHONE, "-m", "Hola", "--once", "k", "--ignore-optout"),
        ("call", "send", PHONE, "--audio-code", "A-1029"),
        ("optout", "list"),
        ("history",),
        ("usage",),
        ("job", "list"),
        ("job", "run-due"),
        ("-p", "sandbox", "balance"),
        ("-p", "sandbox", "sandbox", "inbox"),
    ],
    ids=" ".join,
)
def test_a_state_directory_that_everyone_can_write_to_is_refused(
    tool: Tool, service: Service, arguments: tuple[str, ...]
) -> None:
    directory = files.state("")
    directory.mkdir(mode=0o700, parents=True)
    directory.chmod(0o777)
    tool(*arguments).refused(3, f"The directory {files.shown(directory)} is writable by every user", "chmod go-w")
    assert service.received == []
    assert [*directory.iterdir()] == []


# --- where they are


def test_the_error_without_a_home_directory_suggests_setting_it(monkeypatch: pytest.MonkeyPatch) -> None:
    def homeless(*_: object) -> Path:
        raise RuntimeError("Could not determine home directory.")

    for function in ("user_config_path", "user_state_path"):
        monkeypatch.setattr(f"platformdirs.{function}", homeless)
    with pytest.raises(ConfigurationError, match="no home directory") as raised:
        files.config_file({})
    assert "HOME" in (raised.value.hint or "")
    with pytest.raises(ConfigurationError, match="no home directory"):
        files.state("history.sqlite3")
