"""`msgctl profile add`: saved and refused settings, and the key."""

from __future__ import annotations

from pathlib import Path

import pytest

from conftest import KEY
from support.files import URL, config_file, table, write_config, written
from support.leaks import shows_key
from support.service import Behaviour, Service, drop, respond
from support.terminal import Terminal, in_a_terminal
from support.tool import Outcome, Tool
from support.tree import COMMANDS

ACCOUNT = ("--base-url", URL, "--client", "12345")


def add(tool: Tool, name: str, *options: str, key: str | bytes = KEY) -> Outcome:
    return tool("profile", "add", name, *ACCOUNT, "--key-stdin", *options, stdin=key)


def test_the_account_is_saved_and_printed_as_json_without_its_key(tool: Tool) -> None:
    done = add(tool, "main", "--json")
    assert done.document == {"name": "main", "default": True, "base_url": URL, "client": 12345, "key": "stored"}
    assert written()["profiles"]["main"] == {"base_url": URL, "client": 12345, "key": KEY}
    assert (config_file().stat().st_mode & 0o777, config_file().parent.stat().st_mode & 0o777) == (0o600, 0o700)


def test_force_replaces_a_profile_and_keeps_unknown_settings(tool: Tool) -> None:
    write_config(
        table("main", "allow_http = true", 'country_code = "CO"', 'owner = "ops"', "[profiles.main.more]", "a=1")
    )
    assert add(tool, "main", "--force").code == 0
    assert written()["profiles"]["main"] == {
        "base_url": URL,
        "client": 12345,
        "key": KEY,
        "owner": "ops",
        "more": {"a": 1},
    }


@pytest.mark.parametrize(
    "name",
    ["sandbox", "", "my profile", "../x", ".hidden", "señal", "\x1b[31mred", "x" * 65],
)
def test_an_unsafe_name_is_refused(tool: Tool, name: str) -> None:
    done = tool("profile", "add", *ACCOUNT, "--key-stdin", "--", name, stdin=KEY)
    assert done.code == 2
    assert "\x1b" not in done.err
    assert not config_file().exists()


@pytest.mark.parametrize("client", ["", "x", "-5", "1.5", "٣", str(2**63)])
def test_an_invalid_client_is_refused(tool: Tool, client: str) -> None:
    done = tool("profile", "add", "main", "--base-url", URL, "--client", client, "--key-stdin", stdin=KEY)
    assert (done.code, "client" in done.err) == (2, True)
    assert not config_file().exists()


# --- the key


@pytest.mark.parametrize(
    ("typed", "key"),
    [
        (f"{KEY}\n", KEY),
        (KEY, KEY),
        (f"{KEY}\nanother line\n", KEY),
        (" spaces count \n", " spaces count "),
    ],
)
def test_key_stdin_reads_the_first_line(tool: Tool, typed: str, key: str) -> None:
    assert add(tool, "main", key=typed).code == 0
    assert written()["profiles"]["main"]["key"] == key


@pytest.mark.parametrize("typed", [b"", b"  \n", b"a\x1b[31mb\n", b"\xff\xfe\n", b"x" * 20_000])
def test_an_invalid_key_is_refused(tool: Tool, typed: bytes) -> None:
    done = add(tool, "main", key=typed)
    assert (done.code, "key" in done.err) == (2, True)
    assert not config_file().exists()


def test_no_option_takes_the_key(tool: Tool) -> None:
    # `sandbox serve --key` is the key that the emulator accepts, which belongs to no account.
    commands = [node.command for node in COMMANDS if node.names[0] != "sandbox"]
    options = {name for command in commands for parameter in command.params for name in parameter.opts}
    assert {name for name in options if "key" in name} == {"--key-stdin", "--key-command"}
    for arguments in (["--key", KEY], [f"--key={KEY}"], ["--key-stdin", KEY], [f"--key-stdin={KEY}"]):
        done = tool("profile", "add", "main", *ACCOUNT, *arguments)
        assert (done.code, shows_key(done.err)) == (2, False)


@pytest.mark.parametrize(
    ("given", "missing"),
    [
        ((), ["--base-url", "--client", "--key-stdin"]),
        (("--base-url", URL), ["--client", "--key-stdin"]),
        (("--client", "1", "--key-stdin"), ["--base-url"]),
        (("--base-url", URL, "--key-command", "pass"), ["--client"]),
        (ACCOUNT, ["--key-stdin"]),
    ],
)
def test_without_a_terminal_one_error_lists_all_missing_options(
    tool: Tool, given: tuple[str, ...], missing: list[str]
) -> None:
    done = tool("profile", "add", "main", *given, stdin=KEY)
    assert done.code == 2
    assert [option for option in ("--base-url", "--client", "--key-stdin") if option in done.err] == missing
    assert not config_file().exists()


@in_a_terminal
def test_on_a_terminal_missing_values_are_prompted_for_until_they_are_valid() -> None:
    terminal = Terminal("profile", "add", "main")
    terminal.answer("Base URL: ", b"service.example\n")
    terminal.answer("Base URL: ", URL.encode() + b"\n")
    terminal.answer("Client: ", b"twelve\n")
    terminal.answer("Client: ", b"12\n")
    terminal.answer("Key: ", KEY.encode() + b"\n")
    assert terminal.end() == 0
    assert b"does not begin with https://" in terminal.shown
    assert b"--client must be" in terminal.shown
    assert not shows_key(terminal.shown)
    assert written()["profiles"]["main"] == {"base_url": URL, "client": 12, "key": KEY}


@in_a_terminal
@pytest.mark.parametrize(("typed", "code"), [(b"\x03", 130), (b"\n", 2)])
def test_without_a_key_nothing_is_saved(typed: bytes, code: int) -> None:
    terminal = Terminal("profile", "add", "main", *ACCOUNT)
    terminal.answer("Key: ", typed)
    assert terminal.end() == code
    assert b"Traceback" not in terminal.shown
    assert not config_file().exists()


# --- add --dry-run and --check


def test_a_dry_run_of_the_check_shows_its_request_and_saves_nothing(tool: Tool, server: Service, home: Path) -> None:
    done = tool(
        *("profile", "add", "main", "--base-url", server.base_url, "--client", "12345", "--check", "-n", "--json"),
        *("--key-command", f"touch {home}/ran"),
    )
    assert done.code == 0
    assert done.document["url"] == f"{server.base_url}/balance"
    assert (server.received, config_file().exists(), (home / "ran").exists()) == ([], False, False)


@pytest.mark.parametrize(
    ("behaviour", "code"),
    [
        (respond({"error": "denied", "msg": "wrong key"}, 520), 1),
        (respond(b"<html>", 404), 1),
        (respond(b"not JSON"), 1),
        (respond({"status": "seven"}), 1),
        (drop, 4),
    ],
)
@pytest.mark.parametrize("form", [[], ["--json"]], ids=["table", "json"])
def test_a_failed_check_saves_nothing(
    tool: Tool, server: Service, behaviour: Behaviour, code: int, form: list[str]
) -> None:
    before = write_config(table("main")).read_bytes()
    server.always(behaviour)
    arguments = ["--base-url", server.base_url, "--client", "1", "--key-stdin", "--check", "--force"]
    done = tool("profile", "add", "main", *arguments, *form, stdin=KEY)
    assert (done.code, "nothing was saved" in done.err) == (code, True)
    assert config_file().read_bytes() == before
