"""`msgctl profile list`, `show`, `use`, `remove` and `path`."""

from __future__ import annotations

from pathlib import Path

import pytest

from conftest import KEY
from msgctl.config import profiles
from msgctl.config.file import load
from support.files import URL, config_file, credentials, table, write_config, written
from support.leaks import shows_key
from support.service import Service
from support.tool import Tool


def test_profiles_are_listed_without_their_keys(tool: Tool) -> None:
    command = table("other", 'key_command = "pass show sms"', client=2, key=None)
    write_config(f'default_profile = "main"\n{table("main", key=KEY)}{command}')
    listed = tool("profile", "list", "--json").document
    assert [(each["name"], each["default"], each["key"]) for each in listed] == [
        ("main", True, "stored"),
        ("other", False, "command"),
        ("sandbox", False, "built in"),
    ]
    for form in ("table", "json", "csv", "tsv"):
        assert not shows_key(tool("profile", "list", "-o", form).out)


@pytest.mark.parametrize(
    "arguments", [("profile", "show"), ("profile", "show", "main"), ("-p", "main", "profile", "show")]
)
def test_a_profile_is_shown_without_its_key(tool: Tool, arguments: tuple[str, ...]) -> None:
    write_config(f'default_profile = "main"\n{table("main", "allow_http = true", client=5, key=KEY)}')
    assert tool(*arguments, "--json").document == {
        "name": "main",
        "default": True,
        "base_url": URL,
        "client": 5,
        "key": "stored",
        "allow_http": True,
    }
    for form in ("table", "json", "csv", "tsv"):
        assert not shows_key(tool(*arguments, "-o", form).out)


def test_the_words_of_a_profile_are_shown_and_kept(tool: Tool) -> None:
    setting = 'words = {delivered = ["RECEIVED"], failed = [], verified = ["EXITOSO"]}'
    write_config(table("main", setting) + table("other"))
    words = {"delivered": ["RECEIVED"], "failed": [], "verified": ["EXITOSO"]}
    assert tool("profile", "set", "main", "--client", "5").code == 0
    assert written()["profiles"]["main"]["words"] == words
    assert tool("profile", "show", "main", "--json").document["words"] == words
    assert "EXITOSO" in tool("profile", "show", "main").out
    assert profiles.stored(load(config_file()), "main").words == {
        "delivered": ("RECEIVED",),
        "failed": (),
        "verified": ("EXITOSO",),
    }
    assert profiles.stored(load(config_file()), "other").words == profiles.THE_SANDBOX.words == {}


def test_show_without_a_name_shows_the_profile_in_use(tool: Tool, monkeypatch: pytest.MonkeyPatch) -> None:
    write_config(f'default_profile = "main"\n{table("main")}{table("other", client=2)}')
    monkeypatch.setenv("MSGCTL_PROFILE", "other")
    monkeypatch.setenv("MSGCTL_KEY", KEY)
    monkeypatch.setenv("MSGCTL_CLIENT", "9")
    done = tool("profile", "show", "--json")
    assert (done.document["name"], done.document["client"], done.document["key"]) == ("other", 9, "environment")
    assert tool("profile", "show", "other", "--json").document["client"] == 2


def test_use_changes_the_default(tool: Tool, server: Service) -> None:
    one = table("one", base_url=server.base_url, client=1)
    write_config(f'default_profile = "one"\n{one}{table("two", base_url=server.base_url, client=2)}')
    assert tool("profile", "use", "two").code == 0
    assert tool("balance").code == 0
    assert credentials(server)[0] == "2"


@pytest.mark.parametrize("verb", ["use", "remove"])
def test_the_error_for_an_unknown_profile_lists_the_known_profiles(tool: Tool, verb: str) -> None:
    before = write_config(table("main")).read_bytes()
    done = tool("profile", verb, "nobody\x1b[31m")
    assert done.code == 3
    assert "nobody" in done.err
    assert "main" in done.err
    assert "\x1b" not in done.err
    assert config_file().read_bytes() == before


def test_the_last_remaining_profile_becomes_the_default(tool: Tool) -> None:
    write_config(f'default_profile = "main"\n{table("main", key=KEY)}{table("other")}')
    done = tool("profile", "remove", "main", "--yes")
    assert (done.code, done.err) == (0, "Removed profile main. other is now the default profile.\n")
    assert set(written()["profiles"]) == {"other"}
    assert written()["default_profile"] == "other"
    assert not shows_key(config_file().read_bytes())


def test_removing_the_default_of_several_leaves_no_default(tool: Tool) -> None:
    write_config('default_profile = "main"\n' + "".join(table(name) for name in ("main", "second", "third")))
    done = tool("profile", "remove", "main", "--yes")
    assert (done.code, done.err) == (0, "Removed profile main. No default profile is set.\n")
    assert set(written()) == {"profiles"}


def test_without_a_terminal_remove_needs_yes_after_all_other_checks(tool: Tool) -> None:
    before = write_config(table("main")).read_bytes()
    done = tool("profile", "remove", "main")
    assert (done.code, "--yes" in done.err) == (2, True)
    assert config_file().read_bytes() == before
    assert tool("profile", "remove", "other").code == 3
    assert tool("profile", "remove", "sandbox", "--yes").code == 2


def test_on_a_terminal_remove_asks(tool: Tool) -> None:
    before = write_config(table("main")).read_bytes()
    done = tool("profile", "remove", "main", stdin="n\n", terminal=True)
    assert (done.code, "main" in done.err) == (130, True)
    assert config_file().read_bytes() == before
    assert tool("profile", "remove", "main", stdin="y\n", terminal=True).code == 0
    assert written()["profiles"] == {}


def test_path_prints_the_path_even_if_the_file_is_missing_or_unsafe(tool: Tool) -> None:
    assert tool("profile", "path").out == f"{config_file()}\n"
    write_config("broken [", mode=0o644)
    assert tool("profile", "path").out == f"{config_file()}\n"
    assert tool("profile", "path", "--json").document == {"path": str(config_file())}


@pytest.mark.parametrize("named", ["~/elsewhere/my file.toml", "elsewhere/my file.toml"])
def test_the_environment_can_name_the_file(tool: Tool, home: Path, named: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(home)
    monkeypatch.setenv("MSGCTL_CONFIG", named)
    assert tool("profile", "add", "main", "--base-url", URL, "--client", "1", "--key-stdin", stdin=KEY).code == 0
    assert (home / "elsewhere" / "my file.toml").exists()
    assert not config_file().exists()
    assert tool("profile", "path").out == f"{home}/elsewhere/my file.toml\n"
