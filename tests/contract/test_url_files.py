"""`url bulk` and `url clicks`: a file in, a file with one more column out."""

from __future__ import annotations

import csv
import json
from pathlib import Path

import pytest

from support.sandbox import Sandbox
from support.service import Service, respond
from support.tool import Outcome, Tool

FILE = "id;name\na&b;Ana\n7;=Luis\n"
TO = ("--to", "https://shop.example/s?c={id}", "--name", "sale-{id}")
NONE = respond({"error": "NOT_FOUND", "msg": "no short URL"}, 520)


@pytest.fixture
def file(home: Path) -> str:
    path = home / "customers.csv"
    path.write_text(FILE)
    return str(path)


def shortened(long_url: str, short: str = "https://s.example/1") -> dict[str, str]:
    return {"urlShort": short, "urlLong": long_url, "msg": "ok"}


def bulk(tool: Tool, file: str, *more: str) -> Outcome:
    return tool("url", "bulk", file, *TO, *more)


def test_the_file_is_read_back_unchanged(sandbox: Sandbox, home: Path) -> None:
    people, links = home / "people.csv", home / "links.csv"
    cells = ["\u202a+57 300 123 4567\u202c", "Mar\xad\u200bía\tJosé", "=1+1", "one\r\ntwo\rthree\n", "\t@", "a\\b"]
    with people.open("w", newline="") as file:
        csv.writer(file).writerows([["phone", *"abcde"], cells])
    done = sandbox("url", "bulk", str(people), "--to", "https://shop.example/{line}", "--name", "sale-{line}")
    links.write_bytes(done.stdout)
    [row] = sandbox.document("url", "clicks", str(links), "--name", "sale-{line}")
    assert [row[name] for name in ["phone", *"abcde"]] == cells
    assert sandbox("sms", "bulk", str(links), "-m", "Hola {a}", "--yes").code == 0


def test_a_link_is_created_only_after_a_look_up_that_finds_none(tool: Tool, service: Service, file: str) -> None:
    urls = ["https://shop.example/s?c=a%26b", "https://shop.example/s?c=7"]
    service.always(NONE)
    Path(file).write_text("id\n7\n")
    service.will(respond({"metrics": []}), respond(shortened(urls[1])))
    done = bulk(tool, file)
    assert (done.code, done.out) == (0, "id,link\n7,https://s.example/1\n")
    assert [each.path.rpartition("/")[2] for each in service.received] == ["short-statistic", "short"]
    assert dict(service.received[1].form).items() >= {"name": "sale-7", "url-long": urls[1]}.items()


@pytest.mark.parametrize(
    ("response", "why"),
    [
        (respond({**shortened("https://other.example/"), "clicksNumber": 0, "metrics": []}), "leads to another URL"),
        (respond(b"<html>Log in</html>"), "Line 2"),
    ],
)
def test_a_row_fails_if_its_look_up_is_uncertain(
    response: object, why: str, tool: Tool, service: Service, file: str
) -> None:
    Path(file).write_text("id\n7\n")
    service.always(response)  # type: ignore[arg-type]
    done = bulk(tool, file, "--json")
    assert (done.code, json.loads(done.out)) == (6, [{"id": "7", "link": None}])
    assert (done.error["reason"], why in done.error["message"]) == ("rows_failed", True)
    assert {each.path.rpartition("/")[2] for each in service.received} == {"short-statistic"}


def test_a_failed_row_leaves_the_others_in_their_order(tool: Tool, sandbox: Sandbox, file: str) -> None:
    sandbox.done("url", "shorten", "https://other.example/", "--name", "sale-a&b")
    done = tool("-p", "sandbox", "url", "bulk", file, *TO, "-o", "csv", "--no-header", "--fields", "id,link")
    first, second = done.out.splitlines()
    assert (done.code, first, second.startswith("7,http")) == (6, "a&b,", True)
    assert done.err.count("Error: ") == 1
    assert 'Line 2 ("sale-a&b"): the short URL' in done.err


@pytest.mark.parametrize(
    ("content", "options", "named"),
    [
        ("id\n1\n1\n", TO, "Line 3 of customers.csv has the same name as line 2"),
        ("id,Link\n1,x\n", TO, "already has a column link"),
        ("id\n1\n", ("--to", "https://{id}.example/", "--name", "x"), "only in its path and query"),
        ("id\n1\n", ("--to", "https://a.example/#{id}", "--name", "x"), "only in its path and query"),
        ("id\n1\n", ("--to", "shop.example", "--name", "x"), "http or https URL"),
        ("id\n1\n", ("--to", "https://a.example/", "--name", "{zzz}"), "{zzz}"),
        ("id,b\n1,\n", ("--to", "https://a.example/{b}", "--name", "{id}"), "column b is empty"),
        ("id,b\n1,..\n", ("--to", "https://a.example/{b}", "--name", "{id}"), "which a URL cannot contain"),
    ],
)
def test_an_error_is_found_before_anything_is_created(
    content: str, options: tuple[str, ...], named: str, tool: Tool, service: Service, file: str
) -> None:
    Path(file).write_text(content)
    tool("url", "bulk", file, *options).refused(2, named)
    assert service.received == []


def test_the_line_in_the_file_can_be_a_part_of_a_name(tool: Tool, sandbox: Sandbox, file: str) -> None:
    sandbox.done("url", "bulk", file, "--to", "https://a.example/", "--name", "line-{line}")
    assert sandbox.document("url", "stats", "line-3")["urlLong"] == "https://a.example/"


def test_a_dry_run_shows_the_requests(tool: Tool, service: Service, file: str) -> None:
    done = bulk(tool, file, "--dry-run", "--json")
    paths = [each["url"].rpartition("/")[2] for each in done.document]
    assert (done.code, paths, service.received) == (0, ["short-statistic", "short"] * 2, [])
    first = tool("url", "clicks", file, "--name", "{id}", "--since", "yesterday", "--dry-run", "--json").document[0]
    assert first["form"]["since"] == "2026-09-20"
