"""The configuration file: what msgctl takes from it, what it keeps, and what it leaves alone."""

from __future__ import annotations

import os
import stat
import subprocess
import sys
import tomllib
from contextlib import suppress
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest
import tomli_w
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from conftest import KEY
from msgctl.config import file as config
from msgctl.config.profiles import key_fault
from msgctl.errors import ConfigurationError
from msgctl.storage import paths
from support.examples import FIRST, Example, line_of, write_files
from support.files import URL, config_file, table, write_config, written
from support.leaks import shows_key
from support.tool import Outcome, Tool, process

ADD = ("profile", "add", "new", "--base-url", URL, "--client", "1", "--key-stdin")

NOT_READING = {"sms segments", "profile path", "history list", "history clear", "completion"}
"""Commands that need no profile; those of the sandbox are others."""


OWN_TESTS = {"doctor"}
"""A command that reads the file, and says of a fault in it what others say, but in a listing."""


def reads(example: Example) -> bool:
    return example.node.path not in NOT_READING and example.node.words[0] not in ("sandbox", "job")


READING = [example for example in FIRST if reads(example) and example.node.path not in OWN_TESTS]
OTHERS = [example for example in FIRST if not reads(example)]


def run(tool: Tool, example: Example) -> Outcome:
    """Run an example that is about the profile ``main``; nothing is sent."""
    more = ["--key-stdin", "--force"] if example.node.path == "profile add" else []
    unsent = [] if example.node.words[0] in ("profile", "sandbox", "job", "history") else ["-n"]
    return example.run(tool, *more, *unsent)


def is_one_message(done: Outcome) -> bool:
    return done.err.startswith("Error: ") and done.err.count("Error") == 1 and "Traceback" not in done.err


# --- a file that is not safe


@pytest.mark.parametrize("example", READING, ids=line_of)
def test_every_command_that_reads_the_file_refuses_one_that_others_can_read(
    tool: Tool, example: Example, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    write_files(tmp_path)
    path = write_config(f'default_profile = "main"\n{table("main", key=KEY)}', mode=0o644)
    before = path.read_bytes()
    done = run(tool, example)
    assert (done.code, done.out) == (3, "")
    assert is_one_message(done)
    assert f"chmod 600 {paths.typed(path)}" in done.err
    assert (path.read_bytes(), stat.S_IMODE(path.stat().st_mode)) == (before, 0o644)
    path.chmod(0o600)
    assert run(tool, example).code != 3


@pytest.mark.parametrize("example", OTHERS, ids=line_of)
def test_the_others_do_not_mind_the_file(tool: Tool, example: Example) -> None:
    write_config("broken [", mode=0o644)
    assert run(tool, example).code in (0, 1, 2)


def test_a_profile_written_by_msgctl_is_private_in_a_private_folder(home: Path) -> None:
    mask = os.umask(0)
    try:
        assert process(*ADD, stdin=KEY.encode()).code == 0
    finally:
        os.umask(mask)
    assert stat.S_IMODE(config_file().stat().st_mode) == 0o600
    assert stat.S_IMODE(config_file().parent.stat().st_mode) == 0o700
    assert all(stat.S_IMODE(path.stat().st_mode) == 0o600 for path in config_file().parent.iterdir())


# --- a file that is broken is exit 3 with the place of the mistake, and is left alone

WRITING = (ADD, ("profile", "use", "main"), ("profile", "remove", "main"))
ANY = (*WRITING, ("profile", "list"), ("profile", "show", "main"), ("balance", "-n"), ("-p", "main", "balance", "-n"))

BROKEN = [
    (b'[profiles.main]\nbase_url = "x"\nkey "hidden-word"\n', "line 3, column 5"),
    (b'[profiles.main]\nkey = "hidden-word\n', "line 2"),
    (b"[profiles.main\nclient = 1\n", "line 1"),
    (b"[profiles.main]\nclient = 1\nclient = 2\n", "line 3"),
    (b"[profiles.main]\nclient = 1\n[profiles.main]\n", "line 3"),
    (b"client = 0123\n", "line 1"),
    (b"x = " + b"9" * 5000, "not TOML"),
    (b"x = " + b"[" * 5000 + b"]" * 5000, "nested too deeply"),
    (b"\x00", "line 1"),
    (b"x = 1\n\x1b[31m = 2\n", "line 2"),
    (b'[profiles.main]\n# \xff\nkey = "hidden-word"\n', "line 2"),
    (b"\xef\xbb\xbf# a\n# b\n\xe9\n", "line 3"),
    ('key = "hidden-word"'.encode("utf-16"), "line 1"),
    (b"profiles = 5\n", "profiles"),
    (b"profiles = [1]\n", "profiles"),
    (b"[[profiles]]\n", "profiles"),
    (b'[profiles]\nmain = "hidden-word"\n', "profiles.main"),
    (b'[profiles]\n"a\\u001b[31m" = 1\n', "not a table"),
    (b"default_profile = 5\n", "default_profile"),
    (b'default_profile = ["main"]\n', "default_profile"),
]


@pytest.mark.parametrize(("content", "place"), BROKEN)
def test_a_broken_file_is_one_message_with_the_place_and_is_left_alone(tool: Tool, content: bytes, place: str) -> None:
    path = write_config(content)
    for words in ANY:
        done = tool(*words, stdin=KEY)
        assert (done.code, done.out) == (3, ""), words
        assert is_one_message(done)
        assert place in done.err
        assert paths.shown(path) in done.err
        assert "hidden-word" not in done.err
        assert "\x1b" not in done.err
        assert path.read_bytes() == content


@pytest.mark.parametrize(
    ("member", "named"),
    [
        ("base_url = 5", "base_url of profile main is not a string"),
        ('base_url = ["x"]', "base_url"),
        ('base_url = ""', "base_url"),
        ('base_url = "service.example"', "base_url"),
        ('base_url = "http://service.example/api/v1"', "allow_http"),
        ('base_url = "https://ana:hidden-word@service.example/api/v1"', "user name"),
        ('base_url = "https://service.example/api/v1?key=hidden-word"', "query"),
        ('base_url = "https://service.example/api/v1#hidden-word"', "fragment"),
        ('base_url = "https://service.example/\\u001b[31m"', "base_url"),
        ('client = "12345"', "client of profile main is not a whole number (int64)"),
        ("client = true", "client of profile main is not a whole number (int64)"),
        ("client = 1.0", "client of profile main is not a whole number (int64)"),
        ("client = -1", "client of profile main is not a whole number (int64)"),
        ("client = 9223372036854775808", "client of profile main is not a whole number (int64)"),
        ("client = 1979-05-27", "client of profile main is not a whole number (int64)"),
        ("key = 5", "key"),
        ('key = ""', "key"),
        ('key = ["hidden-word"]', "key"),
        ("key_command = 5", "key_command"),
        ('key_command = ""', "key_command"),
        ('key = "hidden-word"\nkey_command = "pass"', "key and key_command"),
        ("country_code = 57", "country_code of profile main is not a string"),
        ("app_name = true", "app_name of profile main is not a string"),
        ("voice = {}", "voice of profile main is not a string"),
        ('allow_http = "yes"', "allow_http of profile main is neither true nor false"),
        ("allow_http = 1", "allow_http of profile main is neither true nor false"),
        ('history = "no"', "history of profile main is neither true nor false"),
        ("history = 0", "history of profile main is neither true nor false"),
    ],
)
def test_a_member_of_a_wrong_kind_is_named(tool: Tool, member: str, named: str) -> None:
    members = {"base_url": f"'{URL}'", "client": "1", "key": "'a-key'"}
    for line in member.splitlines():
        members.pop(line.partition(" = ")[0], None)
    if "key_command" in member:
        members.pop("key", None)
    lines = [f"{name} = {value}" for name, value in members.items()]
    path = write_config("\n".join(["[profiles.main]", *lines, member, ""]))
    before = path.read_bytes()
    for words in (("-p", "main", "balance", "-n"), ("-p", "main", "balance")):
        done = tool(*words)
        assert (done.code, done.out) == (3, "")
        assert is_one_message(done)
        assert "main" in done.err
        assert named in done.err
        assert "hidden-word" not in done.err
        assert "\x1b" not in done.err
    assert tool("profile", "list").code == 0
    assert tool("profile", "show", "main").code == 0
    assert path.read_bytes() == before


@pytest.mark.parametrize("missing", ["base_url", "client", "key"])
def test_a_member_that_is_missing_is_named(tool: Tool, missing: str) -> None:
    lines = {"base_url": f"base_url = '{URL}'", "client": "client = 1", "key": "key = 'a-key'"}
    del lines[missing]
    write_config("\n".join(["[profiles.main]", *lines.values(), ""]))
    done = tool("-p", "main", "balance")
    assert (done.code, f"{missing} of profile main is missing" in done.err) == (3, True)
    assert "msgctl profile add main --base-url URL" in done.err


@pytest.mark.parametrize(
    ("key", "fault"),
    [
        ("a\\u001bb", "it holds control characters"),
        ("   ", "it is empty"),
        ("a\\nb", "it holds control characters"),
        ("\\u202e", "it holds control characters"),
        ("x" * 4097, "it is longer than 4096 characters"),
    ],
)
def test_a_key_that_no_account_has_is_refused_and_not_shown(tool: Tool, key: str, fault: str) -> None:
    write_config(f'[profiles.main]\nbase_url = "{URL}"\nclient = 1\nkey = "{key}"\n')
    done = tool("-p", "main", "balance")
    assert (done.code, is_one_message(done)) == (3, True)
    assert f"the key of profile main cannot be used: {fault}" in done.err
    assert "security menu" in done.err
    assert key_fault("x" * 4096) is None
    assert "xxx" not in done.err


@pytest.mark.parametrize("allow", ["", "allow_http = false"])
def test_plain_http_to_elsewhere_needs_a_profile_that_allows_it(tool: Tool, allow: str) -> None:
    url = "http://service.example/api/v1"
    write_config(table("main", allow, base_url=url))
    assert tool("-p", "main", "balance", "-n").code == 3
    write_config(table("main", "allow_http = true", base_url=url))
    done = tool("-p", "main", "balance", "-n", "--json")
    assert (done.code, done.document["url"]) == (0, f"{url}/balance")


def test_a_mark_at_the_beginning_does_not_matter(tool: Tool) -> None:
    write_config(b"\xef\xbb\xbf" + table("main").encode())
    assert tool("profile", "use", "main").code == 0
    assert tool("balance", "-n").code == 0


@pytest.mark.parametrize("content", [b"", b"\n", b"# nothing yet\r\n"])
def test_an_empty_file_is_one_without_profiles(tool: Tool, content: bytes) -> None:
    write_config(content)
    assert "profile add" in tool("balance").err
    assert tool(*ADD, stdin=KEY).code == 0
    assert written()["default_profile"] == "new"


@settings(max_examples=150, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(content=st.one_of(st.binary(max_size=60), st.text(st.sampled_from("[]\"'={}.#\n\\ upx1é-:"), max_size=40)))
def test_no_content_is_a_crash_and_none_is_changed_by_reading(home: Path, content: bytes | str) -> None:
    path = write_config(content)
    before = path.read_bytes()
    with suppress(ConfigurationError):
        config.load(path)
    assert path.read_bytes() == before


# --- what is not a file


@pytest.mark.parametrize("words", ANY, ids=" ".join)
def test_a_folder_in_the_place_of_the_file_is_refused(tool: Tool, words: tuple[str, ...]) -> None:
    config_file().mkdir(parents=True)
    done = tool(*words, stdin=KEY)
    assert (done.code, is_one_message(done)) == (3, True)
    assert "not a regular file" in done.err
    assert config_file().is_dir()


@pytest.mark.parametrize("words", [ADD, ("profile", "list")], ids=" ".join)
def test_a_named_pipe_in_the_place_of_the_file_does_not_hang(words: tuple[str, ...]) -> None:
    config_file().parent.mkdir(parents=True)
    os.mkfifo(config_file(), 0o600)
    done = process(*words, stdin=KEY.encode())
    assert (done.code, "not a regular file" in done.err) == (3, True)
    assert stat.S_ISFIFO(config_file().stat().st_mode)


@pytest.mark.parametrize("words", ANY, ids=" ".join)
def test_a_file_that_cannot_be_opened_is_refused(
    tool: Tool, words: tuple[str, ...], monkeypatch: pytest.MonkeyPatch
) -> None:
    path = write_config(table("main"))
    before = path.read_bytes()
    really_open = os.open

    def refuse(name: Any, *rest: Any, **more: Any) -> int:
        if Path(name) == path:
            raise PermissionError(13, "Permission denied")
        return really_open(name, *rest, **more)

    with monkeypatch.context() as patch:
        patch.setattr(os, "open", refuse)
        done = tool(*words, stdin=KEY)
    assert (done.code, is_one_message(done)) == (3, True)
    assert paths.shown(path) in done.err
    assert "Permission denied" in done.err
    assert path.read_bytes() == before


def test_a_file_where_the_folder_should_be_is_refused(tool: Tool, home: Path) -> None:
    (home / "config").write_text("a file")
    for words in ANY:
        done = tool(*words, stdin=KEY)
        assert (done.code, is_one_message(done)) == (3, True)
    assert (home / "config").read_text() == "a file"


def test_a_link_is_kept_and_the_file_that_it_leads_to_is_changed(tool: Tool, home: Path) -> None:
    target = home / "dotfiles" / "msgctl.toml"
    target.parent.mkdir()
    target.write_text(table("main"))
    target.chmod(0o600)
    config_file().parent.mkdir(parents=True)
    config_file().symlink_to(target)
    assert tool(*ADD, stdin=KEY).code == 0
    assert config_file().is_symlink()
    assert set(tomllib.loads(target.read_text(encoding="utf-8"))["profiles"]) == {"main", "new"}
    assert stat.S_IMODE(target.stat().st_mode) == 0o600


# --- what msgctl does not know is kept

FOREIGN = """
version = 3
schedule = 1979-05-27T07:32:00-08:00
ratio = 0.10000000000000000555
text = '''with "quotes" and \\\\'''

[plugins.other]
list = [1, "two", { three = 3.0 }]

[[entries]]
name = "first"

[[entries]]
name = "é\\u0007"
"""


def foreign(document: dict[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in document.items() if name not in ("profiles", "default_profile")}


@pytest.mark.parametrize("words", WRITING, ids=" ".join)
def test_members_and_tables_that_msgctl_does_not_know_are_kept(tool: Tool, words: tuple[str, ...]) -> None:
    main = table("main", 'owner = "ops"', "[profiles.main.extra]", "a = 1")
    other = table("other", "color = 'red'", "app_name = 'Shop'")
    path = write_config(FOREIGN.replace("[plugins", f"default_profile = 'other'\n{main}{other}\n[plugins", 1))
    before = tomllib.loads(path.read_text(), parse_float=Decimal)
    assert tool(*words, stdin=KEY).code == 0
    after = tomllib.loads(path.read_text(encoding="utf-8"), parse_float=Decimal)
    assert foreign(after) == foreign(before)
    assert after["profiles"]["other"] == before["profiles"]["other"]
    if words[1] != "remove":
        assert after["profiles"]["main"] == before["profiles"]["main"]


TEXT = st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\r"), max_size=8)
VALUES = st.recursive(
    st.booleans() | st.integers(-(2**63), 2**63 - 1) | st.floats(allow_nan=False) | TEXT | st.dates() | st.datetimes(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(TEXT, inner, max_size=3),
    max_leaves=8,
)


@settings(max_examples=100, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(document=st.dictionaries(TEXT, VALUES, max_size=5))
def test_every_other_document_is_kept(tmp_path: Path, document: dict[str, Any]) -> None:
    path = tmp_path / "any.toml"
    path.write_text(tomli_w.dumps(foreign(document)), encoding="utf-8")
    path.chmod(0o600)
    with config.changed(path) as changed:
        changed["default_profile"] = "main"
    assert tomllib.loads(path.read_text(encoding="utf-8")) == {**foreign(document), "default_profile": "main"}


@pytest.mark.parametrize("value", ["0x" + "f" * 5000, "[" * 200 + "]" * 200])
def test_what_can_be_read_and_not_be_written_back_is_left_alone(
    tool: Tool, value: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = write_config(f"x = {value}\n{table('main')}")
    before = path.read_bytes()
    if value.startswith("["):
        monkeypatch.setattr(tomli_w, "dumps", too_deep)
    done = tool("profile", "use", "main")
    assert (done.code, is_one_message(done)) == (3, True)
    assert path.read_bytes() == before


def too_deep(_: object) -> str:
    raise RecursionError


# --- whole or not at all, and nothing lost


def test_thirty_processes_at_once_lose_no_profile() -> None:
    names = [f"profile-{number}" for number in range(30)]
    command = [sys.executable, "-m", "msgctl", "profile", "add"]
    account = ["--base-url", URL, "--client", "1", "--key-stdin"]
    pipe = subprocess.PIPE
    started = [subprocess.Popen([*command, name, *account], stdin=pipe, stdout=pipe, stderr=pipe) for name in names]
    for name, process_ in zip(names, started, strict=True):  # each waits for its key: from here on they race
        assert process_.stdin is not None
        process_.stdin.write(f"key of {name}\n".encode())
        process_.stdin.flush()
    ended = [(process_.communicate(timeout=60), process_.returncode) for process_ in started]
    assert [code for _, code in ended] == [0] * 30, ended
    stored = written()
    assert {name: profile["key"] for name, profile in stored["profiles"].items()} == {
        name: f"key of {name}" for name in names
    }
    assert stored["default_profile"] in names
    assert sum(b"as the default" in err for (_, err), _ in ended) == 1


def test_of_two_who_add_the_same_name_one_is_refused(tool: Tool, monkeypatch: pytest.MonkeyPatch) -> None:
    really = config.load

    def and_another_is_faster(path: Path) -> config.Document:
        monkeypatch.setattr(config, "load", really)
        found = really(path)
        write_config(table("new", key="of the other"))
        return found

    monkeypatch.setattr(config, "load", and_another_is_faster)
    done = tool(*ADD, stdin=KEY)
    assert (done.code, "already" in done.err) == (2, True)
    assert written()["profiles"]["new"]["key"] == "of the other"


@pytest.mark.parametrize("words", WRITING, ids=" ".join)
def test_a_full_disk_leaves_the_old_file_and_no_other(words: tuple[str, ...]) -> None:
    path = write_config(table("main"))
    before = path.read_bytes()
    # A file-size limit of zero makes every write to a file fail, as a full disk does.
    limited = ["sh", "-c", 'ulimit -f 0; exec "$@"', "sh", sys.executable, "-m", "msgctl", *words]
    done = subprocess.run(limited, input=KEY.encode(), capture_output=True, timeout=60, check=False)
    outcome = Outcome(done.returncode, done.stdout, done.stderr)
    assert (outcome.code, is_one_message(outcome)) == (3, True), outcome.err
    assert "nothing was changed" in outcome.err
    assert path.read_bytes() == before
    assert not any(shows_key(each.read_bytes()) for each in path.parent.iterdir())
    assert {each.name for each in path.parent.iterdir()} <= {path.name, f".{path.name}.lock"}


@pytest.mark.parametrize("call", ["os.fsync", "os.replace", "os.open", "fcntl.flock", "os.fdopen"])
@pytest.mark.parametrize("words", WRITING, ids=" ".join)
def test_a_write_that_fails_at_any_step_leaves_the_old_file_and_no_other(
    tool: Tool, words: tuple[str, ...], call: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = write_config(table("main"))
    before = path.read_bytes()

    def fail(*_: Any, **__: Any) -> None:
        raise OSError(5, "Input/output error")

    with monkeypatch.context() as patch:
        patch.setattr(call, fail)
        done = tool(*words, stdin=KEY)
    assert (done.code, is_one_message(done)) == (3, True)
    assert "Input/output error" in done.err
    assert path.read_bytes() == before
    assert {each.name for each in path.parent.iterdir()} <= {path.name, f".{path.name}.lock"}


def test_an_error_within_a_change_writes_nothing(tmp_path: Path) -> None:
    path = tmp_path / "config.toml"
    with pytest.raises(KeyError), config.changed(path) as document:
        document.update(x=1, y=document["z"])
    with pytest.raises(KeyError), config.changed(path) as document:
        document.setdefault("x", {}).pop("y")
    assert not path.exists()
