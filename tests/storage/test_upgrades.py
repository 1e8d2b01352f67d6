"""Files that releases have written: every later version reads them, and updates them in place."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from support.tool import Tool

RELEASES = sorted(path for path in Path(__file__).parent.iterdir() if path.name[0].isdecimal())


@pytest.fixture(params=RELEASES, ids=lambda path: path.name)
def release(request: pytest.FixtureRequest, home: Path) -> str:
    """Use copies of the files of a release, private as msgctl requires."""
    shutil.copytree(request.param, home, dirs_exist_ok=True)
    for path in home.rglob("*"):
        path.chmod(0o700 if path.is_dir() else 0o600)
    name: str = request.param.name
    return name


def test_the_files_of_a_release_are_read_and_nothing_is_sent_again(release: str, tool: Tool) -> None:
    assert [profile["name"] for profile in tool("profile", "list", "--json").document] == ["shop", "sandbox"]
    assert [entry["phone"] for entry in tool("history", "--json").document] == [
        "573001234567",
        "573001230001",
        "573001230002",
        "573001234567",
    ]
    optouts = tool("optout", "list", "--json").document
    assert {each["phone"]: each["channel"] for each in optouts} == {"573009999999": "all", "573008888888": "call"}
    jobs = tool("job", "list", "--json").document
    assert [(job["name"], job["state"], job["accepted"]) for job in jobs] == [
        ("orders", "done", 2),
        ("later", "scheduled", 0),
    ]
    assert len(tool("job", "report", "orders", "--json").document) == 3
    # The service of that time no longer runs: a request would end with 4.
    again = tool("sms", "send", "573001234567", "-m", "Order 7 is ready", "--once", "order-7", "--json")
    assert (again.code, again.document["data"][0]["status"]) == (0, "queued")
    (message,) = tool("-p", "sandbox", "sandbox", "inbox", "--json").document
    assert message["text"] == "In the sandbox"


def test_the_files_of_a_release_are_written(release: str, tool: Tool) -> None:
    assert tool("optout", "add", "573007777777").code == 0
    assert tool("profile", "set", "shop", "--voice", "Mia").code == 0
    assert tool("job", "remove", "later", "--yes").code == 0
    assert tool("-p", "sandbox", "sms", "send", "573001234567", "-m", "Hola").code == 0
    assert tool("history", "clear", "--yes").code == 0
    assert tool("doctor", "--dry-run").code == 0
