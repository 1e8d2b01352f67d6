"""Which profile and credentials a command uses, and errors that name the file, the profile and the setting."""

from __future__ import annotations

import pytest

from conftest import KEY
from msgctl.storage import files
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


@pytest.mark.parametrize(
    ("options", "environ", "sent"),
    [
        ([], {}, ("1", "main-key")),
        (["-p", "other"], {}, ("2", "other-key")),
        ([], {"PROFILE": "other"}, ("2", "other-key")),
        (["-p", "main"], {"PROFILE": "other"}, ("1", "main-key")),
        ([], {"PROFILE": ""}, ("1", "main-key")),
        ([], {"CLIENT": "9"}, ("9", "main-key")),
        ([], {"CLIENT": "", "KEY": ""}, ("1", "main-key")),
        ([], {"PROFILE": "other", "KEY": KEY}, ("2", KEY)),
        (["-p", "other"], {"CLIENT": "9", "KEY": KEY}, ("2", "other-key")),
        (["-p", "other"], {"CLIENT": "not a number"}, ("2", "other-key")),
    ],
)
def test_a_profile_chosen_by_option_is_used_unchanged_and_the_environment_overrides_another(
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


def test_the_base_url_of_the_environment_overrides_a_profile_not_chosen_by_option(
    tool: Tool, two: Service, monkeypatch: pytest.MonkeyPatch
) -> None:
    with running() as elsewhere:
        elsewhere.always(respond({"status": 7}))
        monkeypatch.setenv("MSGCTL_BASE_URL", elsewhere.base_url)
        assert tool("balance").code == 0
        assert (len(elsewhere.received), len(two.received)) == (1, 0)
        assert tool("balance", "-p", "main").code == 0
        assert (len(elsewhere.received), len(two.received)) == (1, 1)


@pytest.mark.parametrize("named", ["", "work"])
def test_with_all_three_variables_no_file_is_needed(
    tool: Tool, service: Service, named: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("MSGCTL_PROFILE", named)
    service.will(respond({"status": 7}))
    assert tool("balance").code == 0
    assert credentials(service) == ("12345", KEY)
    assert not config_file().parent.exists()


@pytest.mark.parametrize("missing", [["BASE_URL"], ["CLIENT"], ["KEY"], ["BASE_URL", "CLIENT"], ["CLIENT", "KEY"]])
def test_without_a_profile_the_missing_variables_are_named(
    tool: Tool, service: Service, missing: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in missing:
        monkeypatch.delenv(f"MSGCTL_{name}")
    done = tool("balance")
    assert done.code == 3
    named = {name for name in ("BASE_URL", "CLIENT", "KEY") if f"MSGCTL_{name}" in done.err}
    assert named == set(missing)
    assert "msgctl profile add" in done.err


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
def test_an_invalid_variable_is_named(
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


@pytest.mark.parametrize(
    ("line", "code"), [("allow_http = true", 0), ("allow_http = false", 3), ('allow_http = "yes"', 3), ("", 3)]
)
def test_plain_http_of_the_environment_needs_a_profile_that_allows_it(
    tool: Tool, line: str, code: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    write_config('default_profile = "main"\n' + table("main", line))
    monkeypatch.setenv("MSGCTL_BASE_URL", "http://service.example/api/v1")
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


def test_without_a_default_the_profiles_are_named(tool: Tool) -> None:
    write_config(table("one") + table("two"))
    done = tool("balance")
    assert done.code == 3
    assert "one, two" in done.err
    assert "msgctl profile use" in done.err


# --- settings of the file


@pytest.mark.parametrize(
    ("setting", "told"),
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
        ("keep_days = 0", "keep_days must be a whole number of days, at least 1, not 0"),
        ('allow_http = "yes"', 'allow_http must be true or false, not "yes"'),
        ("history = 0", "history must be true or false, not 0"),
    ],
)
def test_an_invalid_setting_is_named_with_file_and_profile(tool: Tool, setting: str, told: str) -> None:
    settings = {"base_url": f"'{URL}'", "client": "1", "key": "'a-key'"}
    for line in setting.splitlines():
        settings.pop("key" if line.startswith("key_command") else line.partition(" = ")[0], None)
    lines = [f"{name} = {value}" for name, value in settings.items()]
    path = write_config("\n".join(["[profiles.main]", *lines, setting, ""]))
    done = tool("-p", "main", "balance")
    assert (done.code, done.out) == (3, "")
    assert f"Error: {files.shown(path)}: profile main: " in done.err
    assert told in done.err
    assert "hidden-word" not in done.err
    assert done.err.count("\n") == 2 or setting.partition(" ")[0] in ("allow_http", "history", "keep_days")
    assert tool("profile", "list").code == tool("profile", "show", "main").code == 0


@pytest.mark.parametrize("missing", ["base_url", "client", "key"])
def test_a_missing_setting_is_named_with_the_command_that_fixes_it(tool: Tool, missing: str) -> None:
    lines = {"base_url": f"base_url = '{URL}'", "client": "client = 1", "key": "key = 'a-key'"}
    del lines[missing]
    write_config("\n".join(["[profiles.main]", *lines.values(), ""]))
    done = tool("-p", "main", "balance")
    assert (done.code, f"profile main: {missing} is missing" in done.err) == (3, True)
    assert "msgctl profile set main --" in done.err


# --- the sandbox takes nothing from the environment


@pytest.mark.parametrize("content", [None, table("sandbox", base_url="http://127.0.0.1:1/api/v1")])
@pytest.mark.parametrize("way", ["option", "variable", "default"])
def test_the_sandbox_never_reaches_the_service(
    tool: Tool, service: Service, way: str, content: str | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    if content or way == "default":
        write_config(('default_profile = "sandbox"\n' if way == "default" else "") + (content or ""))
    if way == "variable":
        monkeypatch.setenv("MSGCTL_PROFILE", "sandbox")
    done = tool(*(["-p", "sandbox"] if way == "option" else []), "sms", "send", "573001234567", "-m", "Hola")
    assert (done.code, service.received) == (0, [])
    assert "sandbox" in done.err
    monkeypatch.setenv("MSGCTL_CLIENT", "not a number")
    options = ["-p", "sandbox"] if way == "option" else []
    assert tool("profile", "show", *options, "--json").document["key"] == "built in"
