"""`msgctl api` makes any request with the credentials in the right place, and prints the response unchanged."""

from __future__ import annotations

import json
from pathlib import Path
from urllib.parse import quote

import pytest

from conftest import KEY
from support.leaks import shows_key
from support.service import Service, drop, raw, respond
from support.tool import Outcome, Tool

CREDENTIALS = [("client", "12345"), ("key", KEY)]
BODY = b'{ "a": 1.00,\n"b": ["\\u00e1", "x"]\t}\n'


def check_refused(done: Outcome, service: Service) -> None:
    done.refused(2)
    assert service.connections == 0
    assert "\x1b[31m" not in done.err
    assert not shows_key(done.err)


def test_a_get_has_its_credentials_and_parameters_in_the_query(tool: Tool, service: Service) -> None:
    service.will(respond(BODY))
    assert tool("api", "GET", "/things", "-f", "since=2026-01-01", "-f", "tag=a=b&c", "-f", "tag=ñ").code == 0
    (received,) = service.received
    assert received.query == [*CREDENTIALS, ("since", "2026-01-01"), ("tag", "a=b&c"), ("tag", "ñ")]
    assert (received.body, received.headers.get("content-type")) == (b"", None)


@pytest.mark.parametrize(("method", "path"), [("POST", "/send-sms"), ("DELETE", "/things"), ("POST", "/chatapp/send")])
def test_other_requests_have_the_credentials_where_the_api_requires_them(
    method: str, path: str, tool: Tool, service: Service
) -> None:
    service.will(respond(BODY))
    assert tool("api", method, path, "-f", "phone=+57 300", "-f", "x=1", "-f", "x=a=b").code == 0
    (received,) = service.received
    parameters = [("phone", "+57 300"), ("x", "1"), ("x", "a=b")]
    in_query = path == "/chatapp/send"  # "General rules", 4
    assert received.query == (CREDENTIALS if in_query else [])
    assert received.form == (parameters if in_query else [*CREDENTIALS, *parameters])
    assert received.headers["content-type"] == "application/x-www-form-urlencoded"


@pytest.mark.parametrize("content", [BODY, b'{"a":1,"a":1e999}', b'\xef\xbb\xbf{"x":"\xc3\xb1"}'])
def test_a_json_body_is_sent_unchanged_with_the_credentials_in_the_query(
    content: bytes, tool: Tool, service: Service, tmp_path: Path
) -> None:
    (tmp_path / "body.json").write_bytes(content)
    service.always(respond(BODY))
    assert tool("api", "POST", "/chatapp/send", "-f", "x=t", "--input", str(tmp_path / "body.json")).code == 0
    assert tool("api", "PUT", "/things", "-f", "x=t", "--input", "-", stdin=content).code == 0
    for received in service.received:
        assert received.query == [*CREDENTIALS, ("x", "t")]
        assert received.body == content.removeprefix(b"\xef\xbb\xbf")
        assert received.headers["content-type"] == "application/json"


# --- invalid requests


@pytest.mark.parametrize(
    "path",
    [
        "", "../x", "/a/../b", "/.", "/%2e%2E/x", "/a%2f..%2fb", "/a\\..\\b", "//other.example/x",
        "https://other.example/balance", "/balance?x=1", "/a b", "/a\nb", "/\x1b[31m", "/\udcff", "/\u202e",
        f"/balance?client=1&key={quote(KEY)}", f"https://me:{quote(KEY)}@h.example/x", f"/x#key={KEY}",
    ],
)  # fmt: skip
def test_a_path_outside_the_api_is_refused_without_showing_a_key(path: str, tool: Tool, service: Service) -> None:
    check_refused(tool("api", "GET", path), service)


@pytest.mark.parametrize(
    "given",
    [
        "phone", "=s3cret", " =x", "phone=", "phone= ", "a=b\x00", "a\n=b", "a=\udcff", "key=s3cret", "client=7",
        "key: s3cret",
    ],
)  # fmt: skip
def test_an_invalid_parameter_or_a_credential_is_refused(given: str, tool: Tool, service: Service) -> None:
    done = tool("api", "POST", "/things", "-f", given)
    check_refused(done, service)
    assert "s3cret" not in done.err


def test_a_dry_run_shows_the_request_and_no_key(tool: Tool, service: Service) -> None:
    command = ("api", "-n", "POST", "/a.b", "-f", "x.y=1", "-f", "z=1", "-f", "z=2")
    shown = tool(*command, "--json").document
    assert (shown["method"], shown["url"]) == ("POST", f"{service.base_url}/a.b")
    assert shown["form"] == {"client": "***", "key": "***", "x.y": "1", "z": ["1", "2"]}
    names, values = (line.split("\t") for line in tool(*command).out.splitlines())
    row = dict(zip(names, values, strict=True))
    assert (row["form.x.y"], row["form.z"], row["form.key"]) == ("1", '["1","2"]', "***")
    assert tool("api", "-n", "--json", "POST", "/x", "--input", "-", stdin=BODY).document["json"] == json.loads(BODY)
    assert service.connections == 0


# --- the response


def test_the_body_of_a_success_is_printed_unchanged(tool: Tool, service: Service) -> None:
    for status, body in ((200, BODY), (200, b""), (204, b""), (200, b"<p>text\x1b[31m\x00\xff")):
        service.always(respond(body, status))
        assert tool("api", "GET", "/x") == Outcome(0, body, b"")
        end = b"\n" if body and not body.endswith(b"\n") else b""
        assert tool("api", "GET", "/x", "--json") == Outcome(0, body + end, b"")


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


def test_a_failure_or_a_refusal_is_an_error_and_prints_the_body(tool: Tool, service: Service) -> None:
    failure, refusal = {"error": "NO", "msg": "not so"}, {"error": "NO", "msg": "not allowed"}
    for method, status, body, code in (
        ("GET", 301, failure, 1),
        ("GET", 404, failure, 1),
        ("GET", 503, failure, 4),
        ("GET", 520, failure, 1),
        ("GET", 200, failure, 0),
        ("GET", 200, refusal, 1),
        ("POST", 200, refusal, 1),
        ("POST", 200, {"error": "", "msg": "ok"}, 0),
        ("POST", 200, {**refusal, "id": "m1"}, 0),
    ):
        service.always(respond(body, status))
        done = tool("api", method, "/x")
        assert (done.code, done.stdout, body["msg"] in done.err) == (code, json.dumps(body).encode(), code > 0), body


@pytest.mark.parametrize("status", [200, 204, 520])
def test_the_key_is_masked_in_a_response(status: int, tool: Tool, service: Service) -> None:
    for before, key, after in (('\n{"a":1.00, "msg": "wrong key ', quote(KEY), '" ,"a":1e9}'), ("", KEY, "")):
        service.will(raw(f"HTTP/1.1 {status} Said\r\n\r\n{before}{key}{after}".encode()))
        done = tool("api", "POST", "/x", "-v")
        expected = b"" if status == 204 else f"{before}***{after}".encode()
        assert (done.stdout, shows_key(done.err)) == (expected, False)


def test_only_a_get_is_retried(tool: Tool, service: Service) -> None:
    for behaviour in (drop, respond(b"", 503)):
        for method in ("POST", "DELETE"):
            service.will(behaviour)
            assert tool("api", method, "/url/short-statistic", "-f", "x=1").code == 5
        service.will(behaviour, behaviour, respond(BODY))
        assert tool("api", "GET", "/x").stdout == BODY
