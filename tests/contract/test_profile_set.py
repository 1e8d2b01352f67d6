"""`msgctl profile set`: it changes only the given settings, and rotates the key."""

from __future__ import annotations

from typing import Any

import pytest

from conftest import KEY
from support.files import URL, config_file, table, write_config, written
from support.leaks import shows_key
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
        (["--store", "/srv/msgctl.sqlite3"], {"store": "/srv/msgctl.sqlite3"}),
        (["--client", "9", "--voice", "Mia"], {"client": 9, "voice": "Mia"}),
    ],
)
def test_only_the_given_settings_change(tool: Tool, options: list[str], changed: dict[str, Any]) -> None:
    done = tool("profile", "set", "main", *options)
    assert (done.code, done.out, done.err.endswith("Changed profile main\n")) == (0, "", True)
    assert written()["profiles"] == {"main": {**MAIN, "owner": "ops", **changed}, "other": MAIN}


@pytest.mark.usefixtures("profile")
@pytest.mark.parametrize(
    "options",
    [
        ["--client", "x"],
        ["--base-url", "http://service.example/api/v1"],
        ["--timezone", "Bogota"],
        ["--key-command", "pass", "--key-stdin"],
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


# --- words and the store


@pytest.mark.usefixtures("profile")
def test_words_are_added_and_removed_by_kind(tool: Tool) -> None:
    words = ("--word", "delivered=RECEIVED", "--word", "accepted=EN ESTUDIO", "--word", "delivered=LISTO = OK")
    done = tool("profile", "set", "main", *words, "--json")
    expected = {"delivered": ["RECEIVED", "LISTO = OK"], "accepted": ["EN ESTUDIO"]}
    assert (done.document["words"], written()["profiles"]["main"]["words"]) == (expected, expected)
    assert tool("profile", "set", "main", "--word", "delivered=RECEIVED", "--word", "failed=NO").code == 0
    assert written()["profiles"]["main"]["words"] == {**expected, "failed": ["NO"]}
    assert tool("profile", "set", "main", "--word", "delivered=", "--word", "failed=", "--client", "3").code == 0
    assert written()["profiles"]["main"]["words"] == {"accepted": ["EN ESTUDIO"]}
    assert tool("profile", "set", "main", "--word", "accepted=").code == 0
    assert "words" not in written()["profiles"]["main"]


@pytest.mark.parametrize(
    ("option", "part"),
    [
        ("--word=RECEIVED", "KIND=TEXT"),
        ("--word=deliverd=RECEIVED", "Did you mean delivered?"),
        ("--word=delivered=  ", "--word"),
        ("--store=mysql://db.example/x", "postgresql://"),
        ("--store=", "--store"),
    ],
)
@pytest.mark.usefixtures("profile")
def test_an_invalid_option_is_refused(tool: Tool, option: str, part: str) -> None:
    tool("profile", "set", "main", option).refused(2, part)


def test_plain_http_needs_a_profile_that_allows_it(tool: Tool) -> None:
    write_config(table("main", "allow_http = true") + table("other"))
    url = "http://service.example/api/v1"
    assert tool("profile", "set", "main", "--base-url", url).code == 0
    tool("profile", "set", "other", "--base-url", url).refused(2, "plain http", "allow_http = true")
