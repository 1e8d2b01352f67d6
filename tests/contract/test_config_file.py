"""The configuration file: reading it, and keeping its unknown content."""

from __future__ import annotations

import tomllib
from pathlib import Path
from typing import Any

import pytest

from conftest import KEY
from msgctl import files
from support.files import URL, table, write_config, written
from support.tool import Outcome, Tool

ADD = ("profile", "add", "new", "--base-url", URL, "--client", "1", "--key-stdin")
WRITING = (ADD, ("profile", "use", "main"), ("profile", "remove", "main", "--yes"))
ANY = (*WRITING, ("profile", "list"), ("profile", "show", "main"), ("balance", "-n"), ("-p", "main", "balance", "-n"))


def is_one_message(done: Outcome) -> bool:
    return done.err.startswith("Error: ") and done.err.count("Error") == 1 and "Traceback" not in done.err


# --- a file that is not safe


@pytest.mark.parametrize("arguments", [("-p", "sandbox", "balance"), ("sms", "segments", "Hola"), ("profile", "path")])
def test_commands_that_need_no_profile_ignore_the_file(tool: Tool, arguments: tuple[str, ...]) -> None:
    write_config("broken [", mode=0o644)
    assert tool(*arguments).code == 0


# --- a file that cannot be understood

BROKEN = [
    (b'[profiles.main]\nbase_url = "x"\nkey "hidden-word"\n', "line 3, column 5"),
    (b'[profiles.main]\nkey = "hidden-word\n', "line 2"),
    (b'[profiles.main]\nkey = "hidden-word"\nkey = "hidden-word"\n', "line 3"),
    (b"x = " + b"[" * 5000 + b"]" * 5000, "not valid TOML"),
    (b'[profiles.main]\n# \xff\nkey = "hidden-word"\n', "line 2 is not UTF-8"),
    ('key = "hidden-word"'.encode("utf-16"), "line 1"),
    (b"profiles = 5\n", "profiles must be"),
    (b'[profiles]\nmain = "hidden-word"\n', "profiles must be"),
    (b"default_profile = 5\n", "default_profile must be a string"),
]


@pytest.mark.parametrize(("content", "place"), BROKEN)
def test_the_error_for_a_broken_file_has_the_place_and_the_file_is_unchanged(
    tool: Tool, content: bytes, place: str
) -> None:
    path = write_config(content)
    for arguments in ANY:
        done = tool(*arguments, stdin=KEY)
        assert (done.code, done.out) == (3, ""), arguments
        assert is_one_message(done)
        assert place in done.err
        assert files.shown(path) in done.err
        assert "hidden-word" not in done.err
        assert path.read_bytes() == content


@pytest.mark.parametrize("content", [b"", b"\n", b"# nothing yet\r\n", b"\xef\xbb\xbf# with a mark\n"])
def test_an_empty_file_has_no_profiles(tool: Tool, content: bytes) -> None:
    write_config(content)
    assert "profile add" in tool("balance").err
    assert tool(*ADD, stdin=KEY).code == 0
    assert written()["default_profile"] == "new"


# --- what is not a file


def test_a_file_instead_of_the_directory_is_refused(tool: Tool, home: Path) -> None:
    (home / "config").write_text("a file")
    for arguments in ANY:
        done = tool(*arguments, stdin=KEY)
        assert (done.code, is_one_message(done)) == (3, True)
    assert (home / "config").read_text() == "a file"


# --- unknown settings

FOREIGN = """
version = 3
schedule = 1979-05-27T07:32:00-08:00
ratio = 0.1
text = '''with "quotes" and \\\\'''

[plugins.other]
list = [1, "two", { three = 3.0 }]

[[entries]]
name = "é\\u0007"
"""


def foreign(document: dict[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in document.items() if name not in ("profiles", "default_profile")}


@pytest.mark.parametrize("arguments", [*WRITING, ("profile", "set", "other", "--client", "5")], ids=" ".join)
def test_unknown_settings_and_tables_are_kept(tool: Tool, arguments: tuple[str, ...]) -> None:
    main = table("main", 'owner = "ops"', "[profiles.main.extra]", "a = 1")
    other = table("other", "color = 'red'", "app_name = 'Shop'", "store = '/srv/x'")
    path = write_config(FOREIGN.replace("[plugins", f"default_profile = 'other'\n{main}{other}\n[plugins", 1))
    before = tomllib.loads(path.read_text())
    assert tool(*arguments, stdin=KEY).code == 0
    after = written()
    assert foreign(after) == foreign(before)
    assert after["profiles"]["other"] | {"client": 1} == before["profiles"]["other"]
    if arguments[1] != "remove":
        assert after["profiles"]["main"] == before["profiles"]["main"]
