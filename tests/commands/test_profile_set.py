"""`msgctl profile set`: it changes only what is given, and rotates the key; and keys in the system's keychain."""

from __future__ import annotations

import importlib
import shelve
import sys
from collections.abc import Iterator, MutableMapping
from pathlib import Path
from typing import Any

import pytest

from conftest import KEY
from msgctl.storage import files
from support.files import URL, config_file, credentials, table, write_config, written
from support.leaks import shows_key
from support.service import Service, respond
from support.tool import Tool

MAIN = {"base_url": URL, "client": 1, "key": "stored-key"}


@pytest.fixture
def profile() -> None:
    write_config(table("main", 'owner = "ops"') + table("other"))


@pytest.mark.usefixtures("profile")
@pytest.mark.parametrize(
    ("options", "changed"),
    [
        (["--base-url", "https://elsewhere.example/api/v1"], {"base_url": "https://elsewhere.example/api/v1"}),
        (["--client", "9"], {"client": 9}),
        (["--voice", "mariana"], {"voice": "Mariana"}),
        (["--timezone", "America/Bogota"], {"timezone": "America/Bogota"}),
        (["--base-url", "http://h/v1", "--allow-http"], {"base_url": "http://h/v1", "allow_http": True}),
        (["--client", "9", "--voice", "Mia"], {"client": 9, "voice": "Mia"}),
    ],
)
def test_only_the_given_settings_change(tool: Tool, options: list[str], changed: dict[str, Any]) -> None:
    done = tool("profile", "set", "main", *options)
    assert (done.code, done.out, done.err) == (0, "", "Changed profile main\n")
    assert written()["profiles"] == {"main": {**MAIN, "owner": "ops", **changed}, "other": MAIN}


@pytest.mark.usefixtures("profile")
@pytest.mark.parametrize(
    "options",
    [
        ["--client", "x"],
        ["--base-url", "http://service.example/api/v1"],
        ["--timezone", "Bogota"],
        ["--key-command", "pass", "--key-stdin"],
        ["--key-command", "pass", "--keyring"],
        ["--keyring"],
        [],
    ],
)
def test_an_invalid_change_is_refused_whole(tool: Tool, options: list[str]) -> None:
    before = config_file().read_bytes()
    done = tool("profile", "set", "main", "--app-name", "Shop", *options) if options else tool("profile", "set", "main")
    assert done.code == 2
    assert config_file().read_bytes() == before


@pytest.mark.usefixtures("profile")
@pytest.mark.parametrize(("name", "code"), [("unknown", 3), ("sandbox", 2)])
def test_only_a_stored_profile_is_changed(tool: Tool, name: str, code: int) -> None:
    assert tool("profile", "set", name, "--client", "2").code == code
    assert name not in written()["profiles"]


@pytest.mark.usefixtures("profile")
def test_a_key_from_standard_input_replaces_the_old_one(tool: Tool) -> None:
    done = tool("profile", "set", "main", "--key-stdin", stdin=f"{KEY}\n")
    assert (done.code, shows_key(done.err)) == (0, False)
    assert written()["profiles"]["main"] == {**MAIN, "owner": "ops", "key": KEY}
    assert tool("profile", "set", "main", "--key-command", "pass show sms").code == 0
    assert written()["profiles"]["main"] == {
        "base_url": URL,
        "client": 1,
        "owner": "ops",
        "key_command": "pass show sms",
    }
    assert tool("profile", "set", "main", "--key-stdin", stdin=KEY).code == 0
    assert written()["profiles"]["main"] == {**MAIN, "owner": "ops", "key": KEY}


def test_a_check_uses_the_new_settings_and_saves_only_if_they_work(tool: Tool, server: Service) -> None:
    write_config(table("main", base_url=server.base_url))
    assert tool("profile", "set", "main", "--client", "7", "--key-stdin", "--check", stdin=KEY).code == 0
    assert credentials(server) == ("7", KEY)
    assert written()["profiles"]["main"]["client"] == 7
    server.always(respond({"error": "denied"}, 401))
    done = tool("profile", "set", "main", "--client", "8", "--check")
    assert (done.code, "nothing was saved" in done.err) == (1, True)
    assert written()["profiles"]["main"]["client"] == 7


# --- the system's keychain


@pytest.fixture
def keychain(tmp_path: Path) -> Iterator[MutableMapping[str, str]]:
    """The keys in a keychain on disk that is the system's in this test."""
    keyring = pytest.importorskip("keyring")
    with shelve.open(tmp_path / "keychain") as keys:

        class Keychain(keyring.backend.KeyringBackend):  # type: ignore[misc, name-defined]
            priority = 1

            def get_password(self, service: str, username: str) -> str | None:
                return keys.get(f"{service}/{username}")

            def set_password(self, service: str, username: str, password: str) -> None:
                keys[f"{service}/{username}"] = password

            def delete_password(self, service: str, username: str) -> None:
                if keys.pop(f"{service}/{username}", None) is None:
                    raise keyring.errors.PasswordDeleteError

        before = keyring.get_keyring()
        keyring.set_keyring(Keychain())
        yield keys
        keyring.set_keyring(before)


def test_a_key_in_the_keychain_is_used_rotated_and_removed_with_its_profile(
    tool: Tool, server: Service, keychain: MutableMapping[str, str]
) -> None:
    account = ("--base-url", server.base_url, "--client", "5")
    assert tool("profile", "add", "main", *account, "--keyring", "--key-stdin", stdin="first-key").code == 0
    assert written()["profiles"]["main"] == {"base_url": server.base_url, "client": 5, "keyring": True}
    address = server.base_url.removesuffix("/api/v1")
    assert keychain == {f"msgctl/main {address}": "first-key"}
    assert tool("balance").code == 0
    assert credentials(server) == ("5", "first-key")
    assert tool("profile", "show", "main", "--json").document["key"] == "keychain"
    assert tool("profile", "set", "main", "--key-stdin", stdin="second-key").code == 0
    assert keychain == {f"msgctl/main {address}": "second-key"}
    assert "second-key" not in config_file().read_text()
    assert tool("balance", "-v").code == 0
    assert credentials(server) == ("5", "second-key")
    assert tool("profile", "remove", "main", "--yes").code == 0
    assert keychain == {}


def test_a_key_moves_into_the_keychain_and_out_of_it(tool: Tool, keychain: MutableMapping[str, str]) -> None:
    write_config(table("main", key=KEY))
    assert tool("profile", "set", "main", "--keyring", "--key-stdin", stdin="new-key").code == 0
    assert not shows_key(config_file().read_bytes())
    assert keychain == {"msgctl/main https://service.example": "new-key"}
    assert tool("profile", "set", "main", "--key-command", "pass show sms").code == 0
    assert keychain == {}
    assert written()["profiles"]["main"]["key_command"] == "pass show sms"


def test_a_key_that_is_not_in_the_keychain_is_reported(tool: Tool, keychain: MutableMapping[str, str]) -> None:
    write_config(table("main", "keyring = true", key=None))
    done = tool("-p", "main", "balance")
    assert (done.code, "profile main: keyring: the keychain has no key" in done.err) == (3, True)
    assert "msgctl profile set main --keyring" in done.err
    assert keychain == {}


def test_a_key_in_the_keychain_belongs_to_one_address(
    tool: Tool, server: Service, keychain: MutableMapping[str, str]
) -> None:
    keychain["msgctl/main https://service.example"] = "first-key"
    write_config(table("main", "keyring = true", base_url=server.base_url, key=None))
    address = server.base_url.removesuffix("/api/v1")
    place = f"{files.shown(config_file())}: profile main: keyring: the keychain has no key for {address}"
    tool("-p", "main", "balance").refused(3, place, "msgctl profile set main --keyring")
    assert server.received == []
    assert tool("profile", "set", "main", "--keyring", "--key-stdin", stdin=KEY).code == 0
    assert tool("-p", "main", "balance").code == 0
    assert credentials(server) == ("1", KEY)


def test_a_new_address_needs_its_own_key_in_the_keychain(tool: Tool, keychain: MutableMapping[str, str]) -> None:
    keychain["msgctl/main https://service.example"] = "first-key"
    before = write_config(table("main", "keyring = true", key=None)).read_bytes()
    move = ("profile", "set", "main", "--base-url", "https://elsewhere.example/api/v1")
    tool(*move).refused(2, "https://service.example", "--keyring")
    assert config_file().read_bytes() == before
    assert tool("profile", "set", "main", "--base-url", "https://service.example/api/v2").code == 0
    assert tool(*move, "--key-stdin", stdin="second-key").code == 0
    assert keychain == {"msgctl/main https://elsewhere.example": "second-key"}


def test_a_key_of_an_earlier_version_without_an_address_is_entered_again(
    tool: Tool, server: Service, keychain: MutableMapping[str, str]
) -> None:
    keychain["msgctl/main"] = "old-key"
    write_config(table("main", "keyring = true", base_url=server.base_url, key=None))
    done = tool("-p", "main", "balance")
    done.refused(3, "without an address", "msgctl profile set main --keyring")
    assert server.received == []
    assert tool("profile", "set", "main", "--keyring", "--key-stdin", stdin="new-key").code == 0
    assert [*keychain.values()] == ["new-key"]


@pytest.mark.parametrize("backend", ["null", "fail"])
def test_a_keychain_that_stores_nothing_is_noticed(
    tool: Tool, keychain: MutableMapping[str, str], backend: str
) -> None:
    keyring = pytest.importorskip("keyring")
    keyring.set_keyring(importlib.import_module(f"keyring.backends.{backend}").Keyring())
    done = tool("profile", "add", "main", "--base-url", URL, "--client", "1", "--keyring", "--key-stdin", stdin=KEY)
    done.refused(3, "keychain", "keyring diagnose")
    assert not config_file().exists()
    write_config(table("main", "keyring = true", key=None))
    tool("-p", "main", "balance").refused(3, f"{files.shown(config_file())}: profile main: keyring")


def test_without_the_extra_it_explains_how_to_install_it(tool: Tool, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "keyring", None)
    done = tool("profile", "add", "main", "--base-url", URL, "--client", "1", "--keyring", "--key-stdin", stdin=KEY)
    assert (done.code, "[keyring]'" in done.err) == (3, True)
    assert not config_file().exists()
