"""`msgctl api`: any request, its credentials in the right place, and its response unchanged."""

from __future__ import annotations

import json
from pathlib import Path
from urllib.parse import quote

import pytest

from conftest import KEY
from msgctl import operations as ops
from msgctl.operations import Place
from support.leaks import shows_key
from support.service import Behaviour, Service, drop, raw, respond
from support.tool import Outcome, Tool

CREDENTIALS = [("client", "12345"), ("key", KEY)]
BODY = b'{ "a": 1.00,\n"b": ["\\u00e1", "x"]\t}\n'


def refused(done: Outcome, service: Service, *parts: str) -> None:
    """Exit 2 with a message that has these parts, and no request."""
    assert (done.code, done.out) == (2, ""), done.err
    assert all(part in done.err for part in parts), done.err
    assert service.connections == 0


# --- the request


def test_a_get_has_its_credentials_and_parameters_in_the_query(tool: Tool, service: Service) -> None:
    service.will(respond(BODY))
    assert tool("api", "GET", "/things", "-f", "since=2026-01-01", "-f", "tag=a=b&c", "-f", "tag=ñ").code == 0
    (received,) = service.received
    assert received.query == [*CREDENTIALS, ("since", "2026-01-01"), ("tag", "a=b&c"), ("tag", "ñ")]
    assert (received.body, received.headers.get("content-type")) == (b"", None)


@pytest.mark.parametrize("method", ["POST", "DELETE"])
def test_other_requests_have_their_credentials_in_the_form(method: str, tool: Tool, service: Service) -> None:
    service.will(respond(BODY))
    assert tool("api", method, "/things", "-f", "phone=+57 300", "-f", "x=1", "-f", "x=a=b").code == 0
    (received,) = service.received
    assert received.form == [*CREDENTIALS, ("phone", "+57 300"), ("x", "1"), ("x", "a=b")]
    assert received.query == []
    assert received.headers["content-type"] == "application/x-www-form-urlencoded"


@pytest.mark.parametrize("operation", [ops.SEND_SMS, ops.CHATAPP_SEND], ids=lambda operation: operation.name)
def test_credentials_are_in_the_place_that_the_api_requires(
    operation: ops.Operation, tool: Tool, service: Service
) -> None:
    in_query = operation.path in ("/chatapp/send", "/chatapp/store/order")  # "General rules", 4
    assert in_query == (operation.credentials is Place.QUERY)
    service.will(respond(BODY))
    assert tool("api", "POST", operation.path, "-f", "x=1").code == 0
    (received,) = service.received
    assert (received.query, received.form) == (
        (CREDENTIALS, [("x", "1")]) if in_query else ([], [*CREDENTIALS, ("x", "1")])
    )
    assert received.headers["content-type"] == "application/x-www-form-urlencoded"


@pytest.mark.parametrize("path", ["/things", "/chatapp/send"])
@pytest.mark.parametrize("content", [BODY, b'{"a":1,"a":1e999}', b'\xef\xbb\xbf{"x":"\xc3\xb1"}'])
def test_a_json_body_is_sent_as_it_is_with_the_credentials_in_the_query(
    content: bytes, path: str, tool: Tool, service: Service, tmp_path: Path
) -> None:
    (tmp_path / "body.json").write_bytes(content)
    service.will(respond(BODY), respond(BODY))
    assert tool("api", "POST", path, "-f", "template=t", "--input", str(tmp_path / "body.json")).code == 0
    assert tool("api", "PUT", path, "-f", "template=t", "--input", "-", stdin=content).code == 0
    for received in service.received:
        assert received.query == [*CREDENTIALS, ("template", "t")]
        assert received.body == content.removeprefix(b"\xef\xbb\xbf")
        assert received.headers["content-type"] == "application/json"


# --- invalid requests


@pytest.mark.parametrize(
    "path",
    [
        "", "../x", "/a/../b", "..", "/.", "/%2e%2E/x", "/a/%2e", "/a%2f..%2fb", "/a\\..\\b", "//other.example/x",
        "https://other.example/balance", "http://127.0.0.1/api/v1/balance", "/balance?x=1", "/balance#x", "/a b",
        "/a\nb", "/\x1b[31m", "/\udcff", "/\u202e",
    ],
)  # fmt: skip
def test_a_path_outside_the_api_is_refused(path: str, tool: Tool, service: Service) -> None:
    done = tool("api", "GET", path)
    refused(done, service, "PATH")
    assert "\x1b[31m" not in done.err


def test_a_key_in_a_path_is_not_shown(tool: Tool, service: Service) -> None:
    for path in (f"/balance?client=1&key={quote(KEY)}", f"https://me:{quote(KEY)}@h.example/x", f"/x#key={KEY}"):
        done = tool("api", "GET", path)
        refused(done, service)
        assert not shows_key(done.err)


@pytest.mark.parametrize(
    ("given", "parts"),
    [
        ("phone", ['"phone"', "NAME=VALUE"]),
        ("=s3cret", ["no name", "NAME=VALUE"]),
        (" =x", ["no name"]),
        ("phone=", ['"phone"', "empty"]),
        ("phone= ", ['"phone"', "empty"]),
        ("a=b\x00", ["U+0000"]),
        ("a\n=b", ["U+000A"]),
        ("a=\udcff", ["UTF-8"]),
        ("key=s3cret", ["key", "profile"]),
        ("client=7", ["client", "profile"]),
        ("key: s3cret", ['"key"', "NAME=VALUE"]),
    ],
)
def test_an_invalid_parameter_or_a_credential_is_refused(
    given: str, parts: list[str], tool: Tool, service: Service
) -> None:
    done = tool("api", "POST", "/things", "-f", given)
    refused(done, service, *parts)
    assert "s3cret" not in done.err


@pytest.mark.parametrize(
    ("arguments", "parts"),
    [
        (["GET", "/x", "--input", "-"], ["GET", "body"]),
        (["POST", "/x", "--input", "missing.json"], ["missing.json"]),
        (["HEAD", "/x"], ['"HEAD"', "GET, POST, PUT, PATCH, DELETE"]),
        (["GETT", "/x"], ["Did you mean GET?"]),
        (["GET", "/balance?x=1"], ['"/balance?…"', "-f NAME=VALUE"]),
        (["GET", "/x", "-o", "csv"], ["csv"]),
        (["GET", "/x", "-o", "tsv", "-n"], ["tsv"]),
        (["GET", "/x", "--fields", "a"], ["--fields"]),
        (["GET"], ["PATH"]),
        (["/x"], ['"/x"', "GET, POST"]),
    ],
)
def test_options_that_exclude_each_other_are_refused(
    arguments: list[str], parts: list[str], tool: Tool, service: Service
) -> None:
    refused(tool("api", *arguments, stdin=b"{}"), service, *parts)


# --- a dry run


def test_a_dry_run_shows_the_request_and_no_key(tool: Tool, service: Service) -> None:
    done = tool("api", "-n", "--json", "POST", "/a.b", "-f", "x.y=1", "-f", "z=1", "-f", "z=2")
    assert done.code == 0
    assert done.document["method"] == "POST"
    assert done.document["url"] == f"{service.base_url}/a.b"
    assert done.document["form"] == {"client": "***", "key": "***", "x.y": "1", "z": ["1", "2"]}
    lines = tool("api", "-n", "POST", "/a.b", "-f", "x.y=1", "-f", "z=1", "-f", "z=2").out.splitlines()
    names, values = (line.split("\t") for line in lines)
    row = dict(zip(names, values, strict=True))
    assert (row["form.x.y"], row["form.z"], row["form.key"]) == ("1", '["1","2"]', "***")
    assert tool("api", "-n", "--json", "POST", "/x", "--input", "-", stdin=BODY).document["json"] == json.loads(BODY)
    assert service.connections == 0


# --- the response


@pytest.mark.parametrize("status", [200, 204])
def test_the_body_of_a_success_is_printed_unchanged(status: int, tool: Tool, service: Service) -> None:
    for body in (BODY, b"", b"<p>text\x1b[31m\x00\xff"):
        content = b"" if status == 204 else body
        for flags in ([], ["--json"]):
            service.will(respond(content, status))
            done = tool("api", "GET", "/x", *flags)
            end = b"\n" if flags and content and not content.endswith(b"\n") else b""
            assert (done.code, done.stdout, done.err) == (0, content + end, "")


@pytest.mark.parametrize(
    ("body", "shown"),
    [
        (b"one\r\ntwo\tx\n", "one\ntwo     x\n"),
        (b"\x1b]0;title\x07", "\\x1b]0;title\\x07\n"),
        (b"caf\xe9 \xe2\x80\xae", "caf\\xe9 \\u202e\n"),
        (b'{"a": "\x1b[31m"}', '{"a": "\\x1b[31m"}\n'),
        (b"[" * 3000, "[" * 3000 + "\n"),
        (b"", ""),
    ],
)
def test_on_a_terminal_anything_else_is_clean_text(body: bytes, shown: str, tool: Tool, service: Service) -> None:
    service.will(respond(body))
    assert tool("api", "GET", "/x", terminal=True).out == shown


# --- failures


@pytest.mark.parametrize("status", [301, 404, 503, 520])
def test_another_status_is_an_error_and_prints_the_body(status: int, tool: Tool, service: Service) -> None:
    record = {"error": "NO", "msg": "not so"}
    service.will(*[respond(record, status)] * (3 if status in (429, 503) else 1))
    done = tool("api", "GET", "/x")
    assert (done.code, done.stdout) == (1 if status < 500 else 4, json.dumps(record).encode())
    assert str(status) in done.err
    assert "not so" in done.err


@pytest.mark.parametrize(("more", "code"), [({}, 1), ({"error": "", "msg": "ok"}, 0), ({"id": "m1"}, 0)])
def test_a_success_that_is_a_refusal_exits_with_1(
    more: dict[str, str], code: int, tool: Tool, service: Service
) -> None:
    record = {"error": "NO", "msg": "not allowed", **more}
    service.will(respond(record))
    done = tool("api", "POST", "/x")
    assert (done.code, done.stdout, "NO: not allowed" in done.err) == (code, json.dumps(record).encode(), code == 1)


@pytest.mark.parametrize("status", [200, 204, 520])
def test_the_key_is_masked_in_a_response(status: int, tool: Tool, service: Service) -> None:
    for before, key, after in (
        ('\n{"a":1.00, "msg": "wrong key ', quote(KEY), '" ,"a":1e9}'),
        ("", KEY, ""),
    ):
        service.will(raw(f"HTTP/1.1 {status} Said\r\n\r\n{before}{key}{after}".encode()))
        done = tool("api", "POST", "/x", "-v")
        expected = b"" if status == 204 else f"{before}***{after}".encode()
        assert (done.stdout, shows_key(done.err)) == (expected, False)


@pytest.mark.parametrize("behaviour", [drop, respond(b"", 503)], ids=["lost", "503"])
def test_only_a_get_is_retried(behaviour: Behaviour, tool: Tool, service: Service) -> None:
    for method in ("POST", "DELETE"):
        service.will(behaviour)
        done = tool("api", method, "/url/short-statistic", "-f", "x=1")
        assert (done.code, "may have been carried out" in done.err) == (5, True)
    service.will(behaviour, behaviour, respond(BODY))
    assert tool("api", "GET", "/x").stdout == BODY
