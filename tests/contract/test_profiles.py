"""The profile and credentials of a command, and errors that mention the file, the profile and the setting."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from conftest import KEY
from msgctl import files
from msgctl.config.profiles import account
from support.files import URL, config_file, credentials, table, write_config
from support.service import Service, respond, running
from support.tool import Tool


@pytest.fixture
def two(server: Service) -> Service:
    """Two profiles on one server, ``main`` being the default."""
    main = table("main", 'country_code = "CO"', base_url=server.base_url, client=1, key="main-key")
    other = table("other", base_url=server.base_url, client=2, key="other-key")
    write_config(f'default_profile = "main"\n{main}{other}')
    return server


def test_spellings_of_a_url_are_the_same_account() -> None:
    same = [
        "https://service.example/api/v1",
        "HTTPS://Service.Example:443/api/v1/",
        "https://service.example/./api/v0/../v1",
        "https://service.example/api/v1/.",
    ]
    assert {account(each, 7) for each in same} == {"https://service.example/api/v1 7"}
    others = [
        "http://service.example/api/v1",
        "https://service.example:8443/api/v1",
        "https://service.example/api",
        "https://service.example/api/V1",
        "https://service.example//api/v1",
    ]
    assert len({account(each, 7) for each in (*others, same[0])} | {account(same[0], 8)}) == 7
    assert account("http://[::1]:80", 7) == account("http://[0:0:0:0:0:0:0:1]/", 7)


@pytest.mark.parametrize(
    ("options", "environ", "sent"),
    [
        ([], {}, ("1", "main-key")),
        (["-p", "other"], {}, ("2", "other-key")),
        ([], {"PROFILE": "other"}, ("2", "other-key")),
        (["-p", "main"], {"PROFILE": "other"}, ("1", "main-key")),
        ([], {"PROFILE": ""}, ("1", "main-key")),
        ([], {"CLIENT": "", "KEY": ""}, ("1", "main-key")),
        (["-p", "other"], {"CLIENT": "9", "KEY": KEY}, ("2", "other-key")),
        (["-p", "other"], {"BASE_URL": "https://elsewhere.example", "CLIENT": "x", "KEY": KEY}, ("2", "other-key")),
    ],
)
def test_a_profile_chosen_by_option_is_used_with_any_variables(
    tool: Tool,
    two: Service,
    options: list[str],
    environ: dict[str, str],
    sent: tuple[str, str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    for name, value in environ.items():
        monkeypatch.setenv(f"MSGCTL_{name}", value)
    done = tool("balance", *options)
    assert done.code == 0, done.err
    assert credentials(two) == sent


def test_the_three_variables_come_before_the_default_and_need_no_file(
    tool: Tool, service: Service, two: Service
) -> None:
    service.will(*[respond({"status": 7})] * 2)
    assert tool("balance").code == 0
    assert (credentials(service), two.received) == (("12345", KEY), [])
    write_config("broken [", mode=0o644)
    assert tool("balance").code == 0
    assert tool("balance", "-p", "main").code == 3


@pytest.mark.parametrize("missing", [["BASE_URL"], ["CLIENT"], ["KEY"], ["BASE_URL", "CLIENT"]], ids=",".join)
def test_one_or_two_variables_are_refused_with_the_missing_ones(
    tool: Tool, service: Service, two: Service, missing: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("MSGCTL_PROFILE", "other")
    for name in missing:
        monkeypatch.delenv(f"MSGCTL_{name}")
    done = tool("balance", "--json")
    assert (done.code, done.error["reason"], service.received, two.received) == (3, "no_credentials", [], [])
    stated = done.error["message"].partition(" not set")[0]
    assert {name for name in ("BASE_URL", "CLIENT", "KEY") if f"MSGCTL_{name}" in stated} == set(missing)


@pytest.mark.parametrize(
    "arguments",
    [
        ["balance"],
        ["sms", "send", "573001234567", "-m", "Hola"],
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


@pytest.mark.parametrize(
    ("variable", "value"),
    [
        ("BASE_URL", "http://service.example/api/v1"),
        ("BASE_URL", "https://ana:hidden-word@service.example/"),
        ("CLIENT", "x"),
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
    assert (done.code, service.received) == (3, [])
    assert f"MSGCTL_{variable}" in done.err
    assert "hidden-word" not in done.err
    assert "\x1b" not in done.err
    assert len(done.err) < 500
    assert {"BASE_URL": "https://HOST/api/v1", "KEY": "Security menu", "CLIENT": "int64"}[variable] in done.err


@pytest.mark.parametrize(("line", "code"), [("allow_http = true", 0), ("allow_http = false", 3), ("", 3)])
def test_plain_http_needs_a_profile_that_allows_it(tool: Tool, line: str, code: int) -> None:
    write_config('default_profile = "main"\n' + table("main", line, base_url="http://service.example/api/v1"))
    assert tool("balance", "-n").code == code


@pytest.mark.parametrize("arguments", [["-p", "nobody"], []])
def test_an_unknown_profile_is_never_replaced_by_another(
    tool: Tool, two: Service, arguments: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("MSGCTL_PROFILE", "nobody")
    done = tool("balance", *arguments)
    assert (done.code, two.received) == (3, [])
    source = "" if arguments else " (from MSGCTL_PROFILE)"
    assert done.err == f'Error: There is no profile "nobody"{source}\nProfiles: main, other, sandbox\n'


def test_without_a_default_the_error_lists_the_profiles(tool: Tool) -> None:
    write_config(table("one") + table("two"))
    done = tool("balance")
    assert done.code == 3
    assert "one, two" in done.err
    assert "msgctl profile use" in done.err


# --- settings of the file


@pytest.mark.parametrize(
    ("setting", "expected"),
    [
        ("base_url = 5", "base_url must be a non-empty string"),
        ('base_url = "http://service.example/api/v1"', "allow_http"),
        ('base_url = "https://ana:hidden-word@service.example/api/v1"', "user name"),
        ('client = "abc"', 'client must be a whole number (int64), not "abc"'),
        ('key = ["hidden-word"]', "key must be a non-empty string"),
        ('key = "   "', "key is empty"),
        ('key = "hidden-word\\u202e"', "key contains control characters"),
        (f'key = "{"hidden-word" * 400}"', "key is longer than 4096 characters"),
        ('key_command = ""', "key_command must be a non-empty string"),
        ('key = "hidden-word"\nkey_command = "pass"', "key and key_command are both set"),
        ('country_code = ""', 'country_code must be a non-empty string, not ""'),
        ("country_code = 57", "country_code must be a non-empty string, not 57"),
        ('timezone = "Bogota"', 'timezone must be a time zone such as America/Bogota, not "Bogota"'),
        ("store = 5", "store must be a path, or a URL"),
        ('store = "mysql://db.example"', "store must be a path, or a URL"),
        ('store = "/srv/a\\u0000b"', "store must be a path, or a URL"),
        (
            'words = "RECEIVED"',
            "words must be a table of lists of strings, with the keys accepted, refused, delivered, failed, verified",
        ),
        ('words = {delivered = "RECEIVED"}', "words must be"),
        ('words = {failed = ["FAILED", 5]}', "words must be"),
        ('words = {verified = [" "]}', "words must be"),
        ('words = {deliverd = ["RECEIVED"]}', "words must be"),
        ('allow_http = "yes"', 'allow_http must be true or false, not "yes"'),
    ],
)
def test_the_error_for_an_invalid_setting_mentions_the_file_and_the_profile(
    tool: Tool, setting: str, expected: str
) -> None:
    settings = {"base_url": f"'{URL}'", "client": "1", "key": "'a-key'"}
    for line in setting.splitlines():
        settings.pop("key" if line.startswith("key_command") else line.partition(" = ")[0], None)
    lines = [f"{name} = {value}" for name, value in settings.items()]
    path = write_config("\n".join(["[profiles.main]", *lines, setting, ""]))
    done = tool("-p", "main", "balance")
    assert (done.code, done.out) == (3, "")
    assert f"Error: {files.shown(path)}: profile main: " in done.err
    assert expected in done.err
    assert "hidden-word" not in done.err
    assert done.err.count("\n") == 2 or setting.partition(" ")[0] in ("allow_http", "store")
    assert tool("profile", "list").code == tool("profile", "show", "main").code == 0


@pytest.mark.parametrize("missing", ["base_url", "client", "key"])
def test_the_error_for_a_missing_setting_has_the_command_that_fixes_it(tool: Tool, missing: str) -> None:
    lines = {"base_url": f"base_url = '{URL}'", "client": "client = 1", "key": "key = 'a-key'"}
    del lines[missing]
    write_config("\n".join(["[profiles.main]", *lines.values(), ""]))
    done = tool("-p", "main", "balance")
    assert (done.code, f"profile main: {missing} is missing" in done.err) == (3, True)
    assert "msgctl profile set main --" in done.err


# --- unknown settings


def test_an_unknown_setting_gets_one_warning_with_a_suggestion(tool: Tool, server: Service) -> None:
    write_config("plugin = 1\n" + table("main", 'contry_code = "CO"', "xyz = 1", base_url=server.base_url))
    done = tool("balance", "-p", "main")
    place = f"{files.shown(config_file())}: profile main: unknown setting"
    assert done.code == 0
    assert done.err.count("Warning") == 3
    assert f"Warning: {place} contry_code: did you mean country_code?\n" in done.err
    assert f"Warning: {place} xyz\n" in done.err
    assert tool("balance", "-p", "main", "--json").err == ""
    assert tool("-p", "sandbox", "balance", "-q").err == ""


# --- a file that other users can access


@pytest.mark.parametrize("setting", ["key = 'k'", "key_command = 'pass'", "store = 'postgresql://a:b@c/d'"])
@pytest.mark.parametrize("mode", [0o644, 0o620, 0o601])
def test_a_file_with_a_secret_is_refused_if_others_have_a_permission(tool: Tool, setting: str, mode: int) -> None:
    path = write_config(table("main", setting, key=None), mode=mode)
    done = tool("profile", "list", "--json")
    assert (done.code, done.error["reason"]) == (3, "unsafe_file")
    assert done.error["hint"] == f"chmod 600 {files.typed(path)}"
    path.chmod(0o600)
    assert tool("profile", "list").code == 0


def test_a_file_without_a_secret_may_be_readable(tool: Tool) -> None:
    write_config(table("main", "store = 'postgresql://a@c/d'", key=None), mode=0o644)
    assert tool("profile", "list").code == 0


@pytest.mark.skipif(os.geteuid() != 0, reason="only root has files of root")
@pytest.mark.parametrize(("mode", "code"), [(0o640, 0), (0o440, 0), (0o660, 3), (0o644, 3)])
def test_the_group_may_read_a_file_of_root(tool: Tool, mode: int, code: int) -> None:
    write_config(table("main"), mode=mode)
    assert tool("profile", "list").code == code


# --- the sandbox takes nothing from the environment


@pytest.mark.parametrize("content", [None, table("sandbox", base_url="http://127.0.0.1:1/api/v1")])
@pytest.mark.parametrize("way", ["option", "variable", "default"])
def test_the_sandbox_never_reaches_the_service(
    tool: Tool, service: Service, way: str, content: str | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    if content or way == "default":
        write_config(('default_profile = "sandbox"\n' if way == "default" else "") + (content or ""))
    if way != "option":
        for name in ("BASE_URL", "CLIENT", "KEY"):
            monkeypatch.delenv(f"MSGCTL_{name}")
    if way == "variable":
        monkeypatch.setenv("MSGCTL_PROFILE", "sandbox")
        monkeypatch.setenv("MSGCTL_BASE_URL", service.base_url)
    done = tool(*(["-p", "sandbox"] if way == "option" else []), "sms", "send", "573001234567", "-m", "Hola")
    assert (done.code, service.received) == (0, [])
    assert "sandbox" in done.err
    options = ["-p", "sandbox"] if way == "option" else []
    assert tool("profile", "show", *options, "--json").document["key"] == "built in"
