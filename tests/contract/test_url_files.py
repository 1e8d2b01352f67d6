"""`url bulk` and `url clicks`: cells that stay as they are, and errors before anything is created.

The stories in `personal-links` have the rest.
"""

from __future__ import annotations

import csv
from pathlib import Path

import pytest

from support.sandbox import Sandbox
from support.service import Service
from support.tool import Tool


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
    assert sandbox.document("url", "stats", "sale-2")["urlLong"] == "https://shop.example/2"


@pytest.mark.parametrize(
    ("content", "to", "name"),
    [
        ("id\n1\n", "https://{id}.example/", "x"),
        ("id\n1\n", "https://a.example/#{id}", "x"),
        ("id\n1\n", "https://a.example/", "{zzz}"),
        ("id,b\n1,\n", "https://a.example/{b}", "{id}"),
        ("id,b\n1,..\n", "https://a.example/{b}", "{id}"),
    ],
)
def test_an_error_is_found_before_anything_is_created(
    content: str, to: str, name: str, tool: Tool, service: Service, home: Path
) -> None:
    file = home / "customers.csv"
    file.write_text(content)
    tool("url", "bulk", str(file), "--to", to, "--name", name).refused(2)
    assert service.received == []
