"""Invalid settings, unsafe files and variables are refused. `stories/profiles` has the choice of the account."""

from __future__ import annotations

import os
from itertools import combinations
from pathlib import Path

import pytest

from conftest import KEY
from msgctl import files
from support.files import URL, credentials, table, write_config, written
from support.service import Service, running
from support.tool import Tool

ADD = ("profile", "add", "new", "--base-url", URL, "--client", "1", "--key-stdin")
ANY = (ADD, ("profile", "use", "main"), ("profile", "remove", "main", "--yes"), ("profile", "list"), ("balance", "-n"))


@pytest.mark.parametrize(
    "arguments",
    [
        ["sms", "send", "573001234567", "-m", "Hola", "--once", "k"],
        ["sms", "bulk", "file.csv", "-m", "Hola", "--yes"],
        ["state", "get", "1"],
        ["2fa", "verify", "573001234567", "--app-name", "Shop", "--code", "123456"],
        ["api", "GET", "/balance"],
        ["profile", "show"],
    ],
    ids=" ".join,
)
def test_a_variable_never_sends_a_stored_key_to_another_address(
    tool: Tool, server: Service, home: Path, arguments: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    command = f"key_command = 'touch {home}/ran; echo stored-key'"
    write_config('default_profile = "main"\n' + table("main", command, base_url=server.base_url, key=None))
    monkeypatch.chdir(home)
    (home / "file.csv").write_text("phone\n573001234567\n")
    with running() as elsewhere:
        monkeypatch.setenv("MSGCTL_BASE_URL", elsewhere.base_url)
        tool(*arguments).refused(3, "MSGCTL_CLIENT", "MSGCTL_KEY")
        assert (server.received, elsewhere.received, (home / "ran").exists()) == ([], [], False)


@pytest.mark.parametrize("profile", [None, "main", "sandbox"])
@pytest.mark.parametrize("number", range(4))
def test_one_or_two_of_the_three_variables_are_an_error_and_all_three_exclude_another_profile(
    tool: Tool, server: Service, profile: str | None, number: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    write_config('default_profile = "main"\n' + table("main", base_url=server.base_url))
    if profile is not None:
        monkeypatch.setenv("MSGCTL_PROFILE", profile)
    values = {"MSGCTL_BASE_URL": server.base_url, "MSGCTL_CLIENT": "2", "MSGCTL_KEY": "another-key"}
    account = {0: ("1", "stored-key"), 3: ("2", "another-key")}
    for names in combinations(values, number):
        for name in values:
            monkeypatch.delenv(name, raising=False)
        for name in names:
            monkeypatch.setenv(name, values[name])
        server.received.clear()
        done = tool("balance", "--json")
        if profile is not None and number == 3:
            done.refused(3, "Unset MSGCTL_PROFILE")
        elif profile == "sandbox":  # reads none of them
            assert done.code == 0
        elif number in account:
            assert (done.code, credentials(server)) == (0, account[number])
            continue
        else:
            done.refused(3, *values)
            assert done.error["reason"] == "no_credentials"
        assert server.received == []
        assert (tool("-p", "main", "balance").code, credentials(server)) == (0, account[0])


@pytest.mark.parametrize(
    ("variable", "value"),
    [
        ("BASE_URL", "http://service.example/api/v1"),
        ("BASE_URL", "https://ana:hidden-word@service.example/"),
        ("BASE_URL", "https://straße.example/api/v1"),  # IDNA 2003 would look up strasse.example
        ("CLIENT", str(2**63)),
        ("KEY", "  "),
        ("KEY", "hidden-word\x1b"),
        ("KEY", "hidden-word\udcff"),
    ],
)
def test_the_error_mentions_an_invalid_variable(
    tool: Tool, service: Service, variable: str, value: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(f"MSGCTL_{variable}", value)
    done = tool("balance")
    done.refused(3, f"MSGCTL_{variable}")
    assert not [part for part in ("hidden-word", "\x1b") if part in done.err]
    assert service.received == []


# --- a file that other users can access


@pytest.mark.parametrize(
    ("setting", "mode", "access"),
    [
        ("key = 'k'", 0o644, "readable"),
        ("key = 'k'", 0o602, "writable"),
        ("key_command = 'pass'", 0o620, "writable"),
        ("store = 'postgresql://a:b@c/d'", 0o601, "readable"),
    ],
)
def test_a_file_with_a_secret_is_refused_if_other_users_have_any_permission(
    tool: Tool, setting: str, mode: int, access: str
) -> None:
    path = write_config(table("main", setting, key=None), mode=mode)
    error = tool("profile", "list", "--json").error
    assert f"contains a secret and is {access} by other users (mode {mode:04o})" in error["message"]
    assert (error["exit_code"], error["reason"], error["hint"]) == (3, "unsafe_file", f"chmod 600 {files.typed(path)}")
    path.chmod(0o600)
    assert tool("profile", "list").code == 0


@pytest.mark.skipif(os.geteuid() != 0, reason="only root has files of root")
def test_the_group_may_read_a_file_of_root(tool: Tool) -> None:
    for mode, code in ((0o640, 0), (0o440, 0), (0o660, 3), (0o644, 3)):
        write_config(table("main"), mode=mode)
        assert tool("profile", "list").code == code, oct(mode)
    os.chown(write_config(table("main"), mode=0o640), 12345, -1)
    assert tool("profile", "list").code == 3


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can give a file away")
def test_a_key_command_in_a_file_of_another_user_is_refused(
    tool: Tool, home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = write_config(table("main", f"key_command = 'touch {home}/ran'", key=None))
    os.chown(path, 12345, -1)
    error = tool("-p", "main", "balance", "--json").error
    assert (error["exit_code"], error["reason"], (home / "ran").exists()) == (3, "unsafe_file", False)
    write_config(table("main"))
    os.chown(path, 12345, -1)
    assert tool("profile", "list").code == 0
    write_config(table("main", "key_command = 'true'", key=None))
    os.chown(path, 0, -1)
    monkeypatch.setattr(os, "geteuid", lambda: 12345)
    assert tool("profile", "list").code == 0


@pytest.mark.usefixtures("service")
def test_a_file_with_a_secret_that_others_can_read_is_refused_even_if_the_variables_are_the_account(
    tool: Tool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("MSGCTL_STORE", "store.sqlite3")
    path = write_config(table("main", "store = 'postgresql://app:s3cret/db'", key=None), mode=0o644)
    assert tool("balance", "--json").error["reason"] == "unsafe_file"
    for content, mode in ((path.read_bytes(), 0o600), (b"broken [", 0o644)):
        write_config(content, mode=mode)
        assert tool("profile", "show").code == 0


@pytest.mark.parametrize(
    ("store", "shown"),
    [
        ("postgresql://app:s3cret@db.example:5432,db2.example/x", "db.example:5432,db2.example/x"),
        ("postgresql://db.example/x?user=app&pass%77ord=s3cret", "db.example/x"),
        ("postgresql://db.example/x?sslpassword=s3cret", "db.example/x"),
        ("postgresql://app:s3cret/x", "***"),
        ("postgresql://app:s3#cret@db.example/x", "***"),
        ("postgresql://app:5432/s3cret@db.example/x", "***"),
        ("postgresql://app:s3cret@@db.example/x", "***"),
    ],
)
@pytest.mark.parametrize("form", ["table", "json", "csv", "jsonl"])
def test_no_format_shows_the_password_in_the_url_of_a_store(tool: Tool, store: str, shown: str, form: str) -> None:
    write_config(table("main", f"store = '{store}'"))
    done = tool("profile", "show", "main", "-o", form)
    assert (done.code, "s3" in done.out, "cret" in done.out) == (0, False, False)
    assert f"postgresql://{shown} (with a password)" in done.out


# --- a file that cannot be understood


@pytest.mark.parametrize(
    ("content", "place"),
    [
        (b'[profiles.main]\nbase_url = "x"\nkey "hidden-word"\n', "line 3, column 5"),
        (b'[profiles.main]\nkey = "hidden-word\n', "line 2"),
        (b"x = " + b"[" * 5000 + b"]" * 5000, "not valid TOML"),
        (b'[profiles.main]\n# \xff\nkey = "hidden-word"\n', "line 2 is not UTF-8"),
        (b'[profiles]\nmain = "hidden-word"\n', "profiles must be"),
        (b"default_profile = 5\n", "default_profile must be a string"),
    ],
)
def test_the_error_for_a_broken_file_has_the_place_and_the_file_is_unchanged(
    tool: Tool, content: bytes, place: str
) -> None:
    path = write_config(content)
    for arguments in ANY:
        done = tool(*arguments, stdin=KEY)
        done.refused(3, place, files.shown(path))
        assert "hidden-word" not in done.err
        assert path.read_bytes() == content


@pytest.mark.parametrize("content", [b"", b"\xef\xbb\xbf# with a mark\r\n"])
def test_an_empty_file_has_no_profiles(tool: Tool, content: bytes) -> None:
    write_config(content)
    assert "profile add" in tool("balance").err
    assert tool(*ADD, stdin=KEY).code == 0
    assert written()["default_profile"] == "new"


def test_a_file_instead_of_the_directory_is_refused(tool: Tool, home: Path) -> None:
    (home / "config").write_text("a file")
    for arguments in ANY:
        tool(*arguments, stdin=KEY).refused(3)
    assert (home / "config").read_text() == "a file"
