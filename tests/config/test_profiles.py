"""Which profile and credentials a command uses, and errors that name the file, the profile and the setting."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from conftest import KEY
from msgctl.config.profiles import account
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


def test_an_account_has_one_spelling() -> None:
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


def test_the_base_url_and_key_of_the_environment_override_a_profile_not_chosen_by_option(
    tool: Tool, two: Service, monkeypatch: pytest.MonkeyPatch
) -> None:
    with running() as elsewhere:
        elsewhere.always(respond({"status": 7}))
        monkeypatch.setenv("MSGCTL_BASE_URL", elsewhere.base_url)
        monkeypatch.setenv("MSGCTL_KEY", KEY)
        assert tool("balance").code == 0
        assert (credentials(elsewhere), two.received) == (("1", KEY), [])
        assert tool("balance", "-p", "main").code == 0
        assert (len(elsewhere.received), credentials(two)) == (1, ("1", "main-key"))


# --- a variable by itself never sends a stored key to another address


@pytest.fixture
def redirected(server: Service, home: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Service]:
    """Another server than the default profile's, with its address in MSGCTL_BASE_URL; a key command leaves a file."""
    command = f"key_command = 'touch {home}/ran; echo stored-key'"
    write_config('default_profile = "main"\n' + table("main", command, base_url=server.base_url, key=None))
    with running() as elsewhere:
        monkeypatch.setenv("MSGCTL_BASE_URL", elsewhere.base_url)
        yield elsewhere


@pytest.mark.parametrize(
    "arguments",
    [
        ["balance"],
        ["--json", "balance"],
        ["sms", "send", "573001234567", "-m", "Hola"],
        ["sms", "send", "573001234567", "-m", "Hola", "--once", "k"],
        ["sms", "bulk", "file.csv", "-m", "Hola", "--yes"],
        ["state", "get", "1"],
        ["2fa", "verify", "573001234567", "--app-name", "Shop", "--code", "123456"],
        ["api", "GET", "/balance"],
        ["doctor"],
    ],
    ids=" ".join,
)
def test_a_stored_key_is_not_sent_to_the_address_in_a_variable(
    tool: Tool, server: Service, redirected: Service, home: Path, arguments: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(home)
    (home / "file.csv").write_text("phone\n573001234567\n")
    monkeypatch.setenv("MSGCTL_CLIENT", "9")
    done = tool(*arguments)
    assert done.code == 3
    text = done.out + done.err
    assert [part for part in (server.base_url, redirected.base_url, "MSGCTL_KEY", "-p") if part not in text] == []
    assert (server.received, redirected.received, (home / "ran").exists()) == ([], [], False)
    left = {each.name for each in (home / "state").rglob("*.sqlite3")}
    assert left <= {"once.sqlite3"}  # without the key: no history, no job


def test_only_the_scheme_host_and_port_decide_whether_the_stored_key_is_sent(
    tool: Tool, two: Service, monkeypatch: pytest.MonkeyPatch
) -> None:
    for same in (f"http://127.0.0.1:{two.port}/other/v2/", f"HTTP://127.0.0.1:{two.port}"):
        monkeypatch.setenv("MSGCTL_BASE_URL", same)
        assert tool("balance").code == 0
        assert credentials(two) == ("1", "main-key")
    two.received.clear()
    for other in (f"https://127.0.0.1:{two.port}/api/v1", f"http://localhost:{two.port}/api/v1", "http://127.0.0.1/"):
        monkeypatch.setenv("MSGCTL_BASE_URL", other)
        tool("balance").refused(3, two.base_url, other.rstrip("/"))
    assert two.received == []


def test_a_profile_without_an_address_does_not_send_its_key_to_the_address_in_a_variable(
    tool: Tool, server: Service, monkeypatch: pytest.MonkeyPatch
) -> None:
    write_config('default_profile = "main"\n[profiles.main]\nclient = 1\nkey = "stored-key"\n')
    monkeypatch.setenv("MSGCTL_BASE_URL", server.base_url)
    tool("balance").refused(3, "profile main: base_url is missing")
    assert server.received == []


def test_commands_that_send_no_key_use_the_address_in_the_variable(
    tool: Tool, server: Service, redirected: Service, home: Path
) -> None:
    done = tool("balance", "--dry-run", "--json")
    assert done.document["url"] == f"{redirected.base_url}/balance"
    tool("sandbox", "inbox").refused(3, "No sandbox at", redirected.base_url.removesuffix("/api/v1"))
    assert [request.path for request in redirected.received] == ["/sandbox"]
    assert (server.received, (home / "ran").exists()) == ([], False)


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
    ("line", "url", "code"),
    [
        ("allow_http = true", "http://service.example/other", 0),
        ("allow_http = false", "http://service.example/other", 3),
        ('allow_http = "yes"', "http://service.example/other", 3),
        ("", "http://service.example/other", 3),
        ("allow_http = true", "http://elsewhere.example/api/v1", 3),
        ("allow_http = true", "http://service.example:8080/api/v1", 3),
    ],
)
def test_plain_http_of_the_environment_needs_a_profile_that_allows_it_for_this_address(
    tool: Tool, line: str, url: str, code: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    write_config('default_profile = "main"\n' + table("main", line, base_url="http://service.example/api/v1"))
    monkeypatch.setenv("MSGCTL_BASE_URL", url)
    monkeypatch.setenv("MSGCTL_KEY", KEY)
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
        ("keep_days = 0", "keep_days must be a whole number of days, at least 1, not 0"),
        ('words = "RECEIVED"', "words must be a table of lists of strings, with the keys delivered, failed, verified"),
        ('words = {delivered = "RECEIVED"}', "words must be"),
        ('words = {failed = ["FAILED", 5]}', "words must be"),
        ('words = {verified = [" "]}', "words must be"),
        ('words = {deliverd = ["RECEIVED"]}', "words must be"),
        ('allow_http = "yes"', 'allow_http must be true or false, not "yes"'),
        ("history = 0", "history must be true or false, not 0"),
    ],
)
def test_an_invalid_setting_is_named_with_file_and_profile(tool: Tool, setting: str, expected: str) -> None:
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
