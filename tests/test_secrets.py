"""The key is in no output, no file but the configuration, no process list, and shows itself in no object.

The one exception is what the service itself sends back in a 200: a result is printed as it came.
"""

from __future__ import annotations

import copy
import dataclasses
import json
import pickle
import re
import shlex
import subprocess
import sys
import threading
import traceback
from collections.abc import Callable, Iterator
from io import StringIO
from pathlib import Path
from socket import socket
from typing import Any
from urllib.parse import quote, quote_plus

import pytest
from hypothesis import given
from hypothesis import strategies as st

from conftest import KEY
from msgctl import client, config, profiles, request
from msgctl import operations as ops
from msgctl.cli.context import App
from msgctl.cli.tree import operation_of
from msgctl.credential import LEAST_MASKED, MASK, Credential, Secret
from msgctl.errors import ConfigurationError, MsgctlError, NotReachedError, UsageError
from msgctl.exchange import Outgoing
from support.examples import EXAMPLES, FIRST, Example, write_files
from support.files import config_file, table, write_config
from support.leaks import files_with_key, shows_key
from support.service import PATIENCE, Behaviour, Received, Service, answer, drop, raw, reset, running
from support.tool import Outcome, Tool


def in_lower_case(quoted: str) -> str:
    """A percent-encoded text with the digits of the encoding in lower case."""
    return re.sub("%[0-9A-F]{2}", lambda match: match[0].lower(), quoted)


SPELLINGS = {
    "raw": KEY,
    "quoted": quote(KEY),
    "quoted whole": quote(KEY, safe=""),
    "in lower-case hex": in_lower_case(quote(KEY, safe="")),
    "as in a form": quote_plus(KEY),
    "in JSON": json.dumps(KEY)[1:-1],
    "in JSON with escaped slashes": json.dumps(KEY)[1:-1].replace("/", "\\/"),
    "in JSON beyond ASCII": json.dumps(KEY, ensure_ascii=False)[1:-1],
    "in HTML": KEY.replace("&", "&amp;").replace('"', "&quot;").replace("'", "&#39;"),
    "in a shell": shlex.quote(KEY),
    "in a shell, by hand": "'" + KEY.replace("'", "'\\''") + "'",
    "in a URL within a URL": quote(quote(quote(KEY, safe=""))),
    "quoted as Latin-1": quote(KEY.encode("latin-1")),
    "as a header is read": KEY.encode().decode("latin-1"),
    "in hexadecimal HTML": KEY.replace("&", "&amp;").replace('"', "&#x22;").replace("'", "&#x27;"),
}


@pytest.fixture(autouse=True)
def files(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The files that the examples read."""
    (home / "work").mkdir()
    monkeypatch.chdir(home / "work")
    write_files(Path.cwd())


# --- however the key came in, and whatever the command

ANY_RECORD = {"status": "7", "state": "delivered", "urlShort": "x", "id": "x"}
"""Members of the records of all operations."""


@pytest.fixture(params=["environment", "file", "standard input", "key command"])
def planted(
    request: pytest.FixtureRequest, tool: Tool, server: Service, monkeypatch: pytest.MonkeyPatch, home: Path
) -> Iterator[set[str]]:
    """The key, come to msgctl in each way; gives the names of the files that may hold it then."""
    server.always(answer(ANY_RECORD))
    account = ["--base-url", server.base_url, "--client", "12345"]
    outside = home.parent / f"{home.name}-key"
    outside.write_text(KEY, encoding="utf-8")
    if request.param == "environment":
        monkeypatch.setenv("MSGCTL_BASE_URL", server.base_url)
        monkeypatch.setenv("MSGCTL_CLIENT", "12345")
        monkeypatch.setenv("MSGCTL_KEY", KEY)
    elif request.param == "file":
        main = table("main", f"key = {json.dumps(KEY, ensure_ascii=False)}", base_url=server.base_url, key=None)
        write_config(f'default_profile = "main"\n{main}')
    elif request.param == "standard input":
        assert is_clean(tool("profile", "add", "main", *account, "--key-stdin", "--check", stdin=KEY))
    else:
        assert is_clean(tool("profile", "add", "main", *account, "--key-command", f"cat '{outside}'", "--check"))
    yield {"config.toml"} if request.param in ("file", "standard input") else set()
    outside.unlink()


def is_clean(done: Outcome) -> bool:
    assert done.code == 0, done.err
    return not shows_key(done.stdout) and not shows_key(done.stderr)


def run(tool: Tool, example: Example, *more: str) -> Outcome:
    """Run an example; the key of `profile add` comes from standard input."""
    if example.node.path == "profile add":
        key = [] if "--key-command" in example.words or "--key-stdin" in example.words else ["--key-stdin"]
        return tool(*example.words, *key, "--force", *more, stdin=KEY)
    return example.run(tool, *more)


CHANGING = ("profile add", "profile use", "profile remove")
FLAGS = [(), ("-v",), ("-v", "--json"), ("-q", "-o", "csv"), ("-n", "-v")]


@pytest.mark.parametrize("flags", FLAGS, ids=" ".join)
def test_no_command_shows_or_stores_the_key_however_it_came_in(
    tool: Tool, server: Service, planted: set[str], home: Path, flags: tuple[str, ...]
) -> None:
    for example in FIRST:
        if example.node.path in CHANGING:  # they change what is planted, and have a test of their own
            continue
        done = run(tool, example, *flags)
        assert not shows_key(done.stdout), example.line
        assert not shows_key(done.stderr), example.line
        assert files_with_key(home) == planted, example.line
        assert done.code in (0, 6) or operation_of(example.node.command) is None, done.err
    if "-n" not in flags:
        # The sandbox commands ask the server of the environment whether it is a sandbox, and tell it nothing.
        asked = [request for request in server.received if request.path != "/sandbox"]
        assert {request.path for request in asked} == {f"/api/v1{each.path}" for each in ops.OPERATIONS}
        assert {key_of(request) for request in asked} == {KEY}
        assert {key_of(request) for request in server.received if request not in asked} <= {None}


def key_of(received: Received) -> str | None:
    """The key that travelled with a request."""
    return dict(received.query).get("key") or dict(received.form).get("key")


@pytest.mark.parametrize("flags", [(), ("-v",), ("-v", "--json")], ids=" ".join)
def test_storing_choosing_and_removing_a_profile_does_not_show_the_key(
    tool: Tool, planted: set[str], home: Path, flags: tuple[str, ...]
) -> None:
    about_profiles = [example for example in EXAMPLES if example.node.words[0] == "profile"]
    assert {example.node.path for example in about_profiles} >= {"profile add", "profile remove", "profile use"}
    for example in about_profiles:
        done = run(tool, example, *flags)
        assert not shows_key(done.stdout), example.line
        assert not shows_key(done.stderr), example.line
        assert files_with_key(home) <= {"config.toml"}, example.line


def test_a_removed_key_is_in_no_file(tool: Tool, home: Path) -> None:
    write_config(table("main", key="k3y-that-is-awkward"))
    assert files_with_key(home) == {"config.toml"}
    assert tool("profile", "remove", "main").code == 0
    assert files_with_key(home) == set()


# --- whatever the service says back

REQUESTS = [example for example in FIRST if example.node.words[0] not in ("profile", "sandbox")]


def echo_of_the_request(service: Service) -> Behaviour:
    """A refusal that tells the caller what it sent, to the letter."""

    def behave(connection: socket) -> None:
        received = service.received[-1]
        record = {"error": f"cannot understand {received.target}", "msg": received.body.decode()}
        answer(record, 520, {"X-Request": received.target})(connection)

    return behave


def refusals(service: Service) -> dict[str, Behaviour]:
    said = " and ".join(SPELLINGS.values())
    page = f"<html>{said}</html>".encode()
    where = {"Location": f"https://other.example/?key={quote_plus(KEY)}&again={quote(KEY)}"}
    return {
        "the request": echo_of_the_request(service),
        "520": answer({"error": said, "msg": said}, 520),
        "400": answer({"error": said, "msg": said}, 400),
        "503": answer({"error": said, "msg": said}, 503),
        "a page": answer(page, 520),
        "a page for a record": answer(page),
        "another record": answer({KEY: KEY, quote(KEY): [said]}),
        "a member of another kind": answer({"status": {KEY: said}, "data": said, "metrics": said}),
        "not JSON": answer(f'{{"status": "{said}'.encode()),
        "a redirect": answer(b"", 302, where),
        "a reason": raw(f"HTTP/1.1 520 {quote(KEY)}\r\nContent-Length: 0\r\n\r\n".encode()),
        "a header": raw(f"HTTP/1.1 520 No\r\n{quote(KEY)}\r\nX: {quote(KEY)}\r\n\r\n".encode()),
        "no HTTP": raw(f"{KEY}\r\n{KEY}\r\n\r\n".encode()),
        "a coding": answer(page, 200, {"Content-Encoding": quote(KEY)}),
        "less than announced": answer(page, 200, {"Content-Length": "100000"}),
        "nothing": drop,
        "a reset": reset,
    }


@pytest.mark.parametrize("said", refusals(Service.__new__(Service)))
def test_an_error_does_not_show_the_key_whatever_comes_back(
    tool: Tool, service: Service, said: str, home: Path
) -> None:
    service.always(refusals(service)[said])
    for example in REQUESTS:
        more = ["--max-wait", "1"] if example.node.path == "state watch" else []
        in_each_form = operation_of(example.node.command) in (ops.BALANCE, ops.SEND_SMS)  # one GET and one POST
        for flags in (("-v", "--json"), *((("-v",), ("-q", "-o", "csv")) if in_each_form else ())):
            done = run(tool, example, *flags, *more)
            assert not shows_key(done.stderr), example.line
            if example.node.path != "api" or done.code != 0:  # the body of a success is its result
                assert not shows_key(done.stdout), example.line
    assert service.received
    assert files_with_key(home) == set()


@pytest.mark.parametrize("spelling", SPELLINGS)
def test_the_rest_of_what_the_service_says_stays(tool: Tool, service: Service, spelling: str) -> None:
    service.will(answer({"error": "denied", "msg": f"the key {SPELLINGS[spelling]} is not of this account"}, 520))
    done = tool("balance", "--json")
    assert done.code == 1
    assert done.error["msg"].replace("'", "") == f"the key {MASK} is not of this account"


def test_a_number_that_is_the_key_is_not_shown_either(
    tool: Tool, service: Service, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("MSGCTL_KEY", "8675309")
    service.always(answer({"error": 8675309, "msg": "no"}, 520))
    for flags in ((), ("--json",)):
        assert "8675309" not in tool("balance", *flags).err


def test_a_result_is_printed_as_it_came_and_nothing_more_is_said_of_it(tool: Tool, service: Service) -> None:
    body = json.dumps({"status": KEY, "more": quote(KEY)}).encode()
    service.always(answer(body))
    done = tool("balance", "--json", "-v")
    assert (done.code, done.stdout) == (0, body)
    assert not shows_key(done.stderr)
    assert not shows_key(tool("balance", "-v").stderr)


def test_a_mistake_of_msgctls_own_does_not_show_the_key(
    tool: Tool, service: Service, monkeypatch: pytest.MonkeyPatch
) -> None:
    def crash(self: client.Client, made: request.Request) -> None:
        raise RuntimeError(f"{self._credential.parameters()} {made}")

    monkeypatch.setattr(client.Client, "perform", crash)
    for flags in (("-v",), ("-v", "--json")):
        done = tool("balance", *flags)
        assert done.code != 0
        assert not shows_key(done.stdout + done.stderr)


@given(
    key=st.text(st.characters(exclude_categories=["Cc", "Cs"]), min_size=LEAST_MASKED, max_size=12).filter(str.strip)
)
def test_every_key_is_masked_in_every_spelling(key: str) -> None:
    credential = Credential(1, Secret(key))
    spellings = [key, quote(key), quote(key, safe=""), quote_plus(key), json.dumps(key)[1:-1]]
    for spelling in [*spellings, json.dumps(key, ensure_ascii=False)[1:-1], in_lower_case(quote(key, safe=""))]:
        assert credential.mask(f"\x00{spelling}\x01") == f"\x00{MASK}\x01"


def test_a_key_too_short_to_be_one_does_not_garble_what_the_service_says() -> None:
    assert Credential(1, Secret("key")).mask("client or key is wrong") == "client or key is wrong"


# --- objects


@pytest.fixture
def objects(service: Service) -> dict[str, Any]:
    """What handles a key, with the key in it."""
    app = App(stdin=StringIO(), stdout=StringIO(), stderr=StringIO())
    profile = app.profile
    credential = profile.credential()
    assert credential.parameters() == (("client", "12345"), ("key", KEY))
    return {
        "Secret": credential.key,
        "Credential": credential,
        "Profile": profile,
        "Choice": profiles.Choice("main", "-p", {"key": KEY}, {"key": KEY}),
        "Client": app.client,
        "Request": request.build(ops.BALANCE, {}),
        "Outgoing": Outgoing("POST", "/api/v1/send-sms", f"key={KEY}", {}, KEY.encode()),
        "App": app,
    }


NAMES = ("Secret", "Credential", "Profile", "Choice", "Client", "Request", "Outgoing", "App")


def in_percent(it: object) -> str:
    return "%s" % (it,)  # noqa: UP031 (logging does it like this)


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("show", [repr, str, format, ascii, "{!r}".format, in_percent, lambda it: repr([it])])
def test_no_object_shows_the_key(objects: dict[str, Any], name: str, show: Callable[[Any], str]) -> None:
    assert not shows_key(show(objects[name]))


@pytest.mark.parametrize("name", ["Secret", "Credential", "Profile", "Client", "App"])
@pytest.mark.parametrize("protocol", range(pickle.HIGHEST_PROTOCOL + 1))
def test_no_object_with_a_key_is_pickled(objects: dict[str, Any], name: str, protocol: int) -> None:
    with pytest.raises((TypeError, AttributeError, pickle.PicklingError)):
        pickle.dumps(objects[name], protocol)


@pytest.mark.parametrize("name", ["Credential", "Profile"])
def test_no_object_with_a_key_is_taken_apart(objects: dict[str, Any], name: str) -> None:
    members = {each.name: getattr(objects[name], each.name) for each in dataclasses.fields(objects[name])}
    assert not shows_key(repr(members))
    try:
        assert not shows_key(repr(dataclasses.asdict(objects[name])))
    except TypeError as error:
        assert "a secret" in str(error)  # noqa: PT017 (either is right)


def test_a_secret_is_not_copied_into_plain_text(objects: dict[str, Any]) -> None:
    for do in (copy.copy, copy.deepcopy):
        with pytest.raises(TypeError):
            do(objects["Secret"])
    with pytest.raises(TypeError):
        json.dumps(objects["Secret"])


def with_locals(error: BaseException) -> str:
    """The traceback as a tool that shows locals would print it, without those of the test."""
    assert error.__traceback__ is not None
    error = error.with_traceback(error.__traceback__.tb_next)
    return "".join(traceback.TracebackException.from_exception(error, capture_locals=True).format())


def test_a_traceback_with_its_locals_does_not_show_the_key(objects: dict[str, Any]) -> None:
    def fail(secret: Secret, credential: Credential, *others: Any) -> None:
        raise RuntimeError(f"{secret} {credential} {others}")

    with pytest.raises(RuntimeError) as raised:
        fail(*objects.values())
    shown = with_locals(raised.value)
    assert "credential = " in shown
    assert not shows_key(shown)


@pytest.mark.parametrize("lines", ["{key}\\u0007", "{key}" * 400])
def test_a_key_that_cannot_be_used_is_not_in_the_locals_of_its_error(lines: str) -> None:
    key = lines.format(key="k3y-awkward")
    path = write_config(f'[profiles.main]\nbase_url = "https://service.example/"\nclient = 1\nkey = "{key}"\n')
    profile = profiles.find(config.load(path), {}, "main")
    with pytest.raises(ConfigurationError) as raised:
        profile.credential()
    assert not shows_key(with_locals(raised.value))


@pytest.mark.parametrize("command", ["cat {}; exit 3", "cat {}; kill $$", "cat {}; printf '\\007\\n'"])
def test_what_a_key_command_printed_is_not_in_the_locals_of_its_error(command: str, home: Path) -> None:
    (home / "key").write_text("k3y-awkward", encoding="utf-8")
    members = {"base_url": "https://service.example/", "client": 1, "key_command": command.format(home / "key")}
    with pytest.raises(ConfigurationError) as raised:
        profiles.made_of("main", members).credential()
    assert not shows_key(with_locals(raised.value))


def echo(service: Service, head: bytes) -> Behaviour:
    """What was sent, after something, and the end of the connection."""

    def behave(connection: socket) -> None:
        received = service.received[-1]
        connection.sendall(head + received.target.encode() + b" " + received.body)

    return behave


HEADS = {
    "nothing": b"",
    "a first line": b"HTTP/1.1 ",
    "a status": b"HTTP/1.1 2x0 ",
    "a header": b"HTTP/1.1 200 OK\r\n",
    "a length": b"HTTP/1.1 200 OK\r\nContent-Length: ",
    "half a body": b"HTTP/1.1 200 OK\r\nContent-Length: 9999\r\n\r\n",
    "a chunk": b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n",
    "a body": b"HTTP/1.1 200 OK\r\n\r\n",
    "a body of no encoding": b"HTTP/1.1 200 OK\r\n\r\n\xff",
    "a body of JSON": b'HTTP/1.1 200 OK\r\n\r\n{"status": NaN, "',
    "an error": b"HTTP/1.1 520 No\r\n\r\n",
}
SEND = request.build(ops.SEND_SMS, {"phone": ("573001234567",), "sms": "Hola"})


@pytest.mark.parametrize("made", [request.build(ops.BALANCE, {}), SEND], ids=["a read", "a send"])
@pytest.mark.parametrize("head", [*HEADS, "no answer", "a reset"])
def test_an_error_and_what_it_came_from_do_not_carry_the_key(
    objects: dict[str, Any], service: Service, head: str, made: request.Request
) -> None:
    ends = {"no answer": drop, "a reset": reset}
    service.always(ends.get(head) or echo(service, HEADS[head]))
    http = client.Client(service.base_url, objects["Credential"], sleep=lambda _: None)
    with pytest.raises(MsgctlError) as raised:
        http.perform(made)
    http.close()
    error = raised.value
    assert not shows_key(f"{error.message} {error.hint} {error.details()} {vars(error)}")
    for each in chain(error):
        assert not shows_key(f"{each} {each!r} {each.args!r} {vars(each)}")
    assert not shows_key(with_locals(error))


def test_an_error_on_the_way_does_not_carry_the_key(objects: dict[str, Any], service: Service) -> None:
    with running() as gone:
        base_url = gone.base_url
    http = client.Client(base_url, objects["Credential"], sleep=lambda _: None)
    with pytest.raises(NotReachedError) as raised:
        http.perform(SEND)
    assert not shows_key(with_locals(raised.value))


def test_a_request_that_is_too_long_does_not_show_the_key(objects: dict[str, Any]) -> None:
    with pytest.raises(UsageError) as raised:
        objects["Client"].perform(request.build(ops.MESSAGES_STATE, {"id": "m" * 70_000}))
    assert not shows_key(with_locals(raised.value))


def chain(error: BaseException | None) -> Iterator[BaseException]:
    """An error and what it came from, as far as a traceback shows it."""
    while error is not None:
        yield error
        error = error.__cause__ or (None if error.__suppress_context__ else error.__context__)


# --- processes


def test_no_process_of_msgctl_has_the_key_in_its_arguments_or_environment(server: Service, home: Path) -> None:
    arrived, go_on = threading.Event(), threading.Event()

    def hold(connection: socket) -> None:
        arrived.set()
        go_on.wait(PATIENCE)
        answer({"status": 7})(connection)

    server.always(hold)
    words = ["profile", "add", "main", "--base-url", server.base_url, "--client", "1", "--key-stdin", "--check", "-v"]
    pipe = subprocess.PIPE
    with subprocess.Popen([sys.executable, "-m", "msgctl", *words], stdin=pipe, stdout=pipe, stderr=pipe) as running:
        assert running.stdin is not None
        running.stdin.write(KEY.encode() + b"\n")
        running.stdin.flush()
        assert arrived.wait(PATIENCE)
        arguments = Path(f"/proc/{running.pid}/cmdline").read_bytes()
        environment = Path(f"/proc/{running.pid}/environ").read_bytes()
        go_on.set()
        out, err = running.communicate(timeout=60)
    assert b"--key-stdin" in arguments
    assert not shows_key(arguments + environment)
    assert running.returncode == 0
    assert not shows_key(out + err)
    assert files_with_key(home) == {config_file().name}


def test_the_process_of_a_key_command_knows_no_key(
    tool: Tool, server: Service, home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("MSGCTL_KEY", KEY)
    seen = f"cat /proc/self/environ /proc/$$/environ /proc/$$/cmdline /proc/$PPID/cmdline > '{home}/seen'"
    members = json.dumps(f"{seen}; echo another")
    write_config(table("main", f"key_command = {members}", base_url=server.base_url, key=None))
    assert tool("-p", "main", "balance").code == 0
    assert (home / "seen").stat().st_size > 0
    assert files_with_key(home) == set()
