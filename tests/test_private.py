"""Private files: read only when nobody else can read them, replaced whole or not at all, one writer after the other."""

from __future__ import annotations

import os
import stat
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from msgctl.errors import ConfigurationError
from msgctl.storage import files as private


@pytest.fixture
def file(tmp_path: Path) -> Path:
    path = tmp_path / "folder" / "file.toml"
    path.parent.mkdir(mode=0o700)
    path.write_bytes(b"old")
    path.chmod(0o600)
    return path


def left(path: Path) -> set[str]:
    """What is in the folder beside the file and its lock."""
    return {each.name for each in path.parent.iterdir()} - {path.name, f".{path.name}.lock"}


# --- reading


def test_a_private_file_is_read_whole(file: Path) -> None:
    assert private.read(file) == b"old"


def test_a_file_that_is_not_there_is_nothing(tmp_path: Path) -> None:
    assert private.read(tmp_path / "nothing") is None
    assert private.read(tmp_path / "no-folder" / "nothing") is None


@pytest.mark.parametrize("mode", [0o644, 0o640, 0o604, 0o620, 0o602, 0o610, 0o601, 0o666, 0o777])
def test_a_file_that_others_have_a_right_to_is_refused_with_the_command_that_mends_it(file: Path, mode: int) -> None:
    file.chmod(mode)
    with pytest.raises(ConfigurationError) as raised:
        private.read(file)
    assert raised.value.hint is not None
    command = raised.value.hint.partition(": ")[2]
    subprocess.run(command, shell=True, check=True)
    assert private.read(file) == b"old"


@pytest.mark.parametrize("name", ["with space.toml", "it's.toml", "$HOME.toml", "-n.toml"])
def test_the_command_that_mends_it_can_be_pasted_whatever_the_name(tmp_path: Path, name: str) -> None:
    path = tmp_path / name
    path.write_bytes(b"x")
    path.chmod(0o644)
    with pytest.raises(ConfigurationError) as raised:
        private.read(path)
    subprocess.run(str(raised.value.hint).partition(": ")[2], shell=True, check=True)
    assert stat.S_IMODE(path.stat().st_mode) == 0o600


def test_a_name_cannot_act_on_the_terminal(tmp_path: Path) -> None:
    path = tmp_path / "a\x1b[31m.toml"
    path.write_bytes(b"x")
    path.chmod(0o644)
    with pytest.raises(ConfigurationError) as raised:
        private.read(path)
    assert "\x1b" not in raised.value.message + str(raised.value.hint)


def test_a_file_of_another_user_is_refused(file: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "geteuid", lambda: file.stat().st_uid + 1)
    with pytest.raises(ConfigurationError, match="another user"):
        private.read(file)


def test_a_file_that_cannot_be_opened_is_refused(file: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_: Any, **__: Any) -> int:
        raise PermissionError(13, "Permission denied")

    monkeypatch.setattr(os, "open", refuse)
    with pytest.raises(ConfigurationError, match="Permission denied"):
        private.read(file)


def test_what_is_not_a_plain_file_is_refused(tmp_path: Path) -> None:
    with pytest.raises(ConfigurationError, match="not a plain file"):
        private.read(tmp_path)
    with pytest.raises(ConfigurationError, match="not a plain file"):
        private.read(Path(os.devnull))
    with pytest.raises(ConfigurationError, match=r"cannot read"):
        private.read(Path(sys.executable) / "file.toml")


def test_a_named_pipe_is_refused_at_once(tmp_path: Path) -> None:
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe, 0o600)
    code = f"from pathlib import Path; from msgctl.storage import files as private; private.read(Path({str(pipe)!r}))"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, timeout=30, check=False)
    assert b"not a plain file" in done.stderr


def test_a_link_that_leads_in_a_circle_is_refused(tmp_path: Path) -> None:
    link = tmp_path / "link"
    link.symlink_to(link)
    with pytest.raises(ConfigurationError):
        private.read(link)


def test_a_file_of_endless_length_is_not_read_whole(file: Path) -> None:
    with file.open("wb") as opened:
        opened.truncate(10 * 2**30)
    with pytest.raises(ConfigurationError, match=str(private.MOST_BYTES)):
        private.read(file)


def test_a_link_to_a_private_file_is_followed_and_to_an_open_one_is_not(file: Path, tmp_path: Path) -> None:
    link = tmp_path / "link"
    link.symlink_to(file)
    assert private.read(link) == b"old"
    file.chmod(0o644)
    with pytest.raises(ConfigurationError):
        private.read(link)


def descriptors() -> int:
    """How many descriptors are open."""
    return sum(1 for _ in Path("/proc/self/fd").iterdir())


def test_reading_leaves_no_descriptor_open(file: Path, tmp_path: Path) -> None:
    before = descriptors()
    for path in (file, tmp_path, Path(os.devnull)):
        for _ in range(5):
            try:
                private.read(path)
            except ConfigurationError:
                continue
    assert descriptors() == before


# --- writing


@pytest.mark.parametrize("mask", [0o000, 0o022, 0o077])
def test_a_new_file_is_private_whatever_the_mask_says(tmp_path: Path, mask: int) -> None:
    path = tmp_path / "one" / "two" / "file.toml"
    before = os.umask(mask)
    try:
        with private.locked(path):
            private.write(path, b"new")
    finally:
        os.umask(before)
    assert private.read(path) == b"new"
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert stat.S_IMODE(path.parent.stat().st_mode) == 0o700
    assert stat.S_IMODE(path.with_name(".file.toml.lock").stat().st_mode) == 0o600


def test_a_replaced_file_is_a_new_one_so_that_who_reads_the_old_one_reads_it_whole(file: Path) -> None:
    with file.open("rb") as opened:
        private.write(file, b"new and longer")
        assert opened.read() == b"old"
    assert file.read_bytes() == b"new and longer"
    assert left(file) == set()


def test_a_link_stays_and_what_it_leads_to_is_replaced(file: Path, tmp_path: Path) -> None:
    link = tmp_path / "link"
    link.symlink_to(file)
    private.write(link, b"new")
    assert link.is_symlink()
    assert file.read_bytes() == b"new"


def test_a_link_to_nothing_yet_is_filled(tmp_path: Path) -> None:
    link = tmp_path / "link"
    link.symlink_to(tmp_path / "target")
    assert private.read(link) is None
    private.write(link, b"new")
    assert (link.is_symlink(), (tmp_path / "target").read_bytes()) == (True, b"new")


def failing(error: BaseException) -> Callable[..., Any]:
    def fail(*_: Any, **__: Any) -> Any:
        raise error

    return fail


@pytest.mark.parametrize("error", [OSError(28, "No space left on device"), KeyboardInterrupt()])
@pytest.mark.parametrize(("module", "call"), [(os, "fsync"), (os, "replace"), (os, "rename"), (os, "open")])
def test_a_write_that_fails_leaves_the_old_file_and_nothing_else(
    file: Path, module: Any, call: str, error: BaseException, monkeypatch: pytest.MonkeyPatch
) -> None:
    with monkeypatch.context() as patch:
        patch.setattr(module, call, failing(error))
        if call == "rename":  # whichever of the two does it
            patch.setattr(os, "replace", failing(error))
        with pytest.raises(ConfigurationError if isinstance(error, OSError) else KeyboardInterrupt):
            private.write(file, b"new")
    assert file.read_bytes() == b"old"
    assert left(file) == set()


@pytest.mark.parametrize("method", ["write", "flush", "__exit__"])
def test_a_disk_that_fills_up_within_a_write_leaves_the_old_file(
    file: Path, method: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    open_descriptor = os.fdopen

    class Full:
        def __init__(self, descriptor: int, *_: Any, **__: Any) -> None:
            self._file = open_descriptor(descriptor, "wb")

        def __getattr__(self, name: str) -> Any:
            return failing(OSError(28, "No space left on device")) if name == method else getattr(self._file, name)

        def __enter__(self) -> Full:
            return self

        def __exit__(self, *_: object) -> None:
            self._file.close()
            if method == "__exit__":
                raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "fdopen", Full)
    with pytest.raises(ConfigurationError, match="No space left"):
        private.write(file, b"new")
    assert file.read_bytes() == b"old"
    assert left(file) == set()


def test_a_folder_that_cannot_be_synced_does_not_deny_what_was_written(
    file: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    sync = os.fsync

    def refuse_folders(descriptor: int) -> None:
        if stat.S_ISDIR(os.fstat(descriptor).st_mode):
            raise OSError(22, "Invalid argument")
        sync(descriptor)

    monkeypatch.setattr(os, "fsync", refuse_folders)
    private.write(file, b"new")
    assert file.read_bytes() == b"new"


def test_a_folder_that_is_not_one_is_refused(file: Path) -> None:
    with pytest.raises(ConfigurationError), private.locked(file / "more" / "file.toml"):
        pytest.fail("there is nothing to lock")


# --- locking


def test_a_lock_that_cannot_be_had_is_refused(file: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("fcntl.flock", failing(OSError(37, "No locks available")))
    with pytest.raises(ConfigurationError, match="No locks available"), private.locked(file):
        pytest.fail("it is not locked")


def test_whoever_comes_second_waits_for_the_first(file: Path) -> None:
    code = (
        "import sys; from pathlib import Path; from msgctl.storage import files as private\n"
        f"path = Path({str(file)!r}); print('ready', flush=True)\n"
        "with private.locked(path): private.write(path, private.read(path) + b' second')"
    )
    with private.locked(file):
        second = subprocess.Popen([sys.executable, "-c", code], stdout=subprocess.PIPE)
        assert second.stdout is not None
        assert second.stdout.readline() == b"ready\n"
        private.write(file, (private.read(file) or b"") + b" first")
    second.communicate(timeout=30)
    assert file.read_bytes() == b"old first second"


@pytest.mark.parametrize("path", [Path("/"), Path("/dev/null"), Path("folder")], ids=str)
def test_what_is_no_plain_file_gets_no_lock_beside_it(
    path: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("folder").mkdir()
    before = {each.name for each in path.absolute().parent.iterdir()}
    with pytest.raises(ConfigurationError, match="not a plain file"), private.locked(path.absolute()):
        pytest.fail("it was locked")
    assert f".{path.name}.lock" not in {each.name for each in path.absolute().parent.iterdir()} - before


def test_a_lock_is_free_after_an_error(file: Path) -> None:
    with pytest.raises(ZeroDivisionError), private.locked(file):
        raise ZeroDivisionError
    with private.locked(file):
        private.write(file, b"new")
    assert file.read_bytes() == b"new"
