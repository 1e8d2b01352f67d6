"""`msgctl profile add` and `profile set` save valid settings, refuse others, and never print the key."""

from __future__ import annotations

import tomllib

import pytest

from conftest import KEY
from support.files import URL, config_file, table, write_config, written
from support.leaks import shows_key
from support.terminal import Terminal, in_a_terminal
from support.tool import Tool
from support.tree import COMMANDS

ACCOUNT = ("--base-url", URL, "--client", "12345")
ADD = ("profile", "add", "main", *ACCOUNT, "--key-stdin")
SET = ("profile", "set", "main")
SAVED = {"base_url": URL, "client": 12345, "key": KEY}
MAIN = {"base_url": URL, "client": 1, "key": "stored-key"}


def test_an_account_is_saved_in_a_private_file_and_printed_without_its_key(tool: Tool) -> None:
    done = tool(*ADD, "--json", stdin=KEY)
    assert done.document == {**SAVED, "name": "main", "default": True, "key": "stored"}
    assert written()["profiles"]["main"] == SAVED
    assert (config_file().stat().st_mode & 0o777, config_file().parent.stat().st_mode & 0o777) == (0o600, 0o700)


@pytest.mark.parametrize("typed", [f"{KEY}\n", f"{KEY}\r\nanother line\n", " spaces count "])
def test_the_first_line_of_standard_input_is_the_key(tool: Tool, typed: str) -> None:
    assert tool(*ADD, stdin=typed).code == 0
    assert written()["profiles"]["main"]["key"] == typed.partition("\n")[0].rstrip("\r")


@pytest.mark.parametrize("typed", [b"", b"  \n", b"a\x1b[31mb\n", b"\xff\xfe\n", b"x" * 20_000])
def test_an_invalid_key_is_refused(tool: Tool, typed: bytes) -> None:
    tool(*ADD, stdin=typed).refused(2, "key")
    assert not config_file().exists()


def test_no_option_takes_the_key(tool: Tool) -> None:
    # `sandbox serve --key` is the key that the emulator accepts, which belongs to no account.
    commands = [node.command for node in COMMANDS if node.names[0] != "sandbox"]
    options = {name for command in commands for parameter in command.params for name in parameter.opts}
    assert {name for name in options if "key" in name} == {"--key-stdin", "--key-command"}
    for arguments in (["--key", KEY], [f"--key={KEY}"], ["--key-stdin", KEY], [f"--key-stdin={KEY}"]):
        done = tool("profile", "add", "main", *ACCOUNT, *arguments)
        assert (done.code, shows_key(done.err)) == (2, False)


@in_a_terminal
def test_on_a_terminal_missing_values_are_prompted_for_until_they_are_valid() -> None:
    with Terminal("profile", "add", "main") as terminal:
        terminal.answer("Base URL: ", b"service.example\n")
        terminal.answer("Base URL: ", URL.encode() + b"\n")
        terminal.answer("Client: ", b"twelve\n")
        terminal.answer("Client: ", b"12\n")
        terminal.answer("Key: ", KEY.encode() + b"\n")
        assert terminal.end() == 0
        assert not shows_key(terminal.shown)
        assert written()["profiles"]["main"] == {**SAVED, "client": 12}


@in_a_terminal
def test_without_a_key_nothing_is_saved() -> None:
    with Terminal("profile", "add", "main", *ACCOUNT) as terminal:
        terminal.answer("Key: ", b"\n")
        assert terminal.end() == 2
        assert not config_file().exists()


# --- the rest of the file

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


@pytest.mark.parametrize(
    "arguments",
    [(*ADD, "--force"), ("profile", "use", "main"), ("profile", "remove", "main", "--yes"), (*SET, "--client", "5")],
    ids=" ".join,
)
def test_unknown_settings_and_tables_are_kept(tool: Tool, arguments: tuple[str, ...]) -> None:
    main = table("main", "allow_http = true", 'owner = "ops"', "[profiles.main.extra]", "a = 1")
    other = table("other", "color = 'red'", "app_name = 'Shop'", "store = '/srv/x'")
    path = write_config(FOREIGN.replace("[plugins", f"default_profile = 'other'\n{main}{other}\n[plugins", 1))
    before = tomllib.loads(path.read_text())
    assert tool(*arguments, stdin=KEY).code == 0
    after = written()
    assert [after.pop(name, "") for name in before if name not in ("profiles", "default_profile")] == [
        before[name] for name in before if name not in ("profiles", "default_profile")
    ]
    assert after["profiles"]["other"] == before["profiles"]["other"]
    kept = {"owner": "ops", "extra": {"a": 1}}
    expected = {"add": {**SAVED, **kept}, "set": {**before["profiles"]["main"], "client": 5}, "remove": None}
    assert after["profiles"].get("main") == expected.get(arguments[1], before["profiles"]["main"])
