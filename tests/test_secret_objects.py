"""No object shows the key: not in a repr, a pickle, an error or a traceback with its locals."""

from __future__ import annotations

import copy
import gc
import json
import pickle
import traceback
from collections.abc import Callable, Iterator
from io import StringIO
from pathlib import Path
from socket import socket
from typing import Any

import pytest

from conftest import KEY
from msgctl import operations as ops
from msgctl.cli.context import Context
from msgctl.config import file as config
from msgctl.config import profiles
from msgctl.config.credential import Credential, Secret
from msgctl.errors import ConfigurationError, MsgctlError, NotReachedError, UsageError
from msgctl.http import client, connection, request
from msgctl.http.exchange import LocalLine, Outgoing, Reply
from support.examples import write_files
from support.files import write_config
from support.leaks import shows_key
from support.service import Behaviour, Service, answer, drop, reset, running
from support.tool import Tool


@pytest.fixture
def objects(service: Service) -> dict[str, Any]:
    """What handles a key, with the key in it."""
    app = Context(stdin=StringIO(), stdout=StringIO(), stderr=StringIO())
    profile = app.profile
    credential = profile.credential()
    assert credential.parameters() == (("client", "12345"), ("key", KEY))
    return {
        "Secret": credential.key,
        "Credential": credential,
        "Profile": profile,
        "Client": app.client,
        "Request": request.build(ops.BALANCE, {}),
        "Outgoing": Outgoing("POST", "/api/v1/send-sms", f"key={KEY}", {}, KEY.encode()),
        "Context": app,
    }


NAMES = ("Secret", "Credential", "Profile", "Client", "Request", "Outgoing", "Context")


def in_percent(it: object) -> str:
    return "%s" % (it,)  # noqa: UP031 (logging does it like this)


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("show", [repr, str, format, ascii, "{!r}".format, in_percent, lambda it: repr([it])])
def test_no_object_shows_the_key(objects: dict[str, Any], name: str, show: Callable[[Any], str]) -> None:
    assert not shows_key(show(objects[name]))


@pytest.mark.parametrize("name", ["Secret", "Credential", "Profile", "Client", "Context"])
@pytest.mark.parametrize("protocol", range(pickle.HIGHEST_PROTOCOL + 1))
def test_no_object_with_a_key_is_pickled(objects: dict[str, Any], name: str, protocol: int) -> None:
    with pytest.raises((TypeError, AttributeError, pickle.PicklingError)):
        pickle.dumps(objects[name], protocol)


@pytest.mark.parametrize("name", ["Credential", "Profile"])
def test_no_object_with_a_key_is_taken_apart(objects: dict[str, Any], name: str) -> None:
    assert not shows_key(repr(objects[name]._asdict()))
    assert not shows_key(repr([*objects[name]]))
    with pytest.raises(TypeError):
        json.dumps(objects[name])


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
        http.parse(made, http.fetch(made))
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
        http.parse(SEND, http.fetch(SEND))
    assert not shows_key(with_locals(raised.value))


def test_a_request_that_is_too_long_does_not_show_the_key(objects: dict[str, Any]) -> None:
    with pytest.raises(UsageError) as raised:
        objects["Client"].send(ops.MESSAGES_STATE, {"id": "m" * 70_000})
    assert not shows_key(with_locals(raised.value))


def chain(error: BaseException | None) -> Iterator[BaseException]:
    """An error and what it came from, as far as a traceback shows it."""
    while error is not None:
        yield error
        error = error.__cause__ or (None if error.__suppress_context__ else error.__context__)


# --- whatever there is while a command runs

ALIVE = {
    ("sms", "send", "573001234567", "-m", "Hola", "-v"): {
        "Context", "Client", "Connection", "Credential", "Dialer", "History", "Outgoing", "Profile",
        "Request", "Secret",
    },
    ("sms", "bulk", "customers.csv", "-m", "Hola", "--yes"): {"Desk", "Intent", "Ledger", "Runner"},
    ("doctor",): {"Case", "Choice", "Client", "Dialer"},
    ("api", "-i", "POST", "/send-sms"): {"Client", "Outgoing", "Request"},
    ("balance", "-p", "sandbox"): {"Emulator", "LocalLine", "Reply", "State"},
}  # fmt: skip
"""Commands, and objects that have to be there while their requests are under way."""


@pytest.mark.parametrize("words", ALIVE, ids=" ".join)
def test_no_object_that_is_alive_during_a_request_shows_the_key(
    tool: Tool, service: Service, monkeypatch: pytest.MonkeyPatch, words: tuple[str, ...], tmp_path: Path
) -> None:
    monkeypatch.chdir(tmp_path)
    write_files(tmp_path)
    monkeypatch.setattr(profiles, "SANDBOX_KEY", KEY)
    service.always(answer({"status": 7, "id": KEY, "key": KEY}, headers={"X-Key": KEY.encode().decode("latin-1")}))
    seen: set[str] = set()
    shown: set[str] = set()

    def look(exchange: Callable[..., Reply]) -> Callable[..., Reply]:
        def exchanged(*arguments: Any) -> Reply:
            reply = exchange(*arguments)
            for each in gc.get_objects():
                if type(each).__module__.startswith("msgctl"):
                    seen.add(type(each).__name__)
                    shown.update([type(each).__name__] if shows_key(f"{each!r} {each!s}") else [])
            return reply

        return exchanged

    monkeypatch.setattr(connection.Connection, "exchange", look(connection.Connection.exchange))
    monkeypatch.setattr(LocalLine, "exchange", look(LocalLine.exchange))
    assert tool(*words).code in (0, 6)
    assert seen >= ALIVE[words]
    assert shown == set()
