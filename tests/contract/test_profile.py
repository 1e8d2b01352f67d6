"""`msgctl profile list`, `show`, `use`, `remove` and `path`."""

from __future__ import annotations

from pathlib import Path

import pytest

from conftest import KEY
from support.files import URL, config_file, table, write_config, written
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
    document = tool(*arguments, "--json").document
    sources = document.pop("sources")
    assert document == {
        "name": "main",
        "default": True,
        "base_url": URL,
        "client": 5,
        "key": "stored",
        "allow_http": True,
    }
    assert {sources[setting] for setting in ("base_url", "client", "key", "allow_http")} == {"file"}
    assert sources["country_code"] == "default"
    for form in ("table", "json", "csv", "tsv"):
        assert not shows_key(tool(*arguments, "-o", form).out)


def test_show_without_a_name_shows_the_profile_in_use(tool: Tool, monkeypatch: pytest.MonkeyPatch) -> None:
    write_config(f'default_profile = "main"\n{table("main")}{table("other", client=2)}')
    monkeypatch.setenv("MSGCTL_PROFILE", "other")
    assert tool("profile", "show", "--json").document["name"] == "other"
    assert tool("profile", "show", "main", "--json").document["client"] == 1


def test_show_reports_the_variables_that_apply_to_a_run(
    tool: Tool, service: Service, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("MSGCTL_COUNTRY_CODE", "MX")
    monkeypatch.setenv("MSGCTL_STORE", "postgresql://app:s3cret@db.example/msgctl")
    done = tool("profile", "show", "--json")
    document, sources = done.document, done.document["sources"]
    assert (document["base_url"], document["client"]) == (service.base_url, 12345)
    assert (document["country_code"], sources["country_code"]) == ("MX", "MSGCTL_COUNTRY_CODE")
    assert (sources["key"], sources["store"]) == ("MSGCTL_KEY", "MSGCTL_STORE")
    assert document["store"] == "postgresql://db.example/msgctl (with a password)"
    rows = tool("profile", "show", "-o", "csv").out.splitlines()
    assert rows[0] == "setting,value,source"
    assert "country_code,MX,MSGCTL_COUNTRY_CODE" in rows
    assert "s3cret" not in done.out + tool("profile", "show").out
    assert not shows_key(done.out)


def test_a_password_in_the_url_of_the_store_is_never_shown(tool: Tool) -> None:
    for url in ("postgresql://app:s3cret@db.example/msgctl", "postgresql://db.example/msgctl?user=a&password=s3cret"):
        write_config(table("main"))
        done = tool("profile", "set", "main", "--store", url, "--json")
        assert written()["profiles"]["main"]["store"] == url
        assert "db.example" in done.document["store"]
        shown = tool("profile", "show", "main").out + tool("profile", "show", "main", "--json").out
        assert "s3cret" not in done.out + shown + tool("profile", "list", "--json").out


@pytest.mark.parametrize("verb", ["use", "remove"])
def test_the_error_for_an_unknown_profile_lists_the_known_profiles(tool: Tool, verb: str) -> None:
    before = write_config(table("main")).read_bytes()
    done = tool("profile", verb, "nobody\x1b[31m")
    assert done.code == 3
    assert "nobody" in done.err
    assert "main" in done.err
    assert "\x1b" not in done.err
    assert config_file().read_bytes() == before


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
def test_a_variable_selects_the_file(tool: Tool, home: Path, named: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(home)
    monkeypatch.setenv("MSGCTL_CONFIG", named)
    assert tool("profile", "add", "main", "--base-url", URL, "--client", "1", "--key-stdin", stdin=KEY).code == 0
    assert (home / "elsewhere" / "my file.toml").exists()
    assert not config_file().exists()
    assert tool("profile", "path").out == f"{home}/elsewhere/my file.toml\n"
