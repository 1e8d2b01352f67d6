"""Whatever became of the sandbox's state and of the history: every command that reads or writes them ends well."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fuzz.databases import change, changes, damaged_pages, tables_of
from fuzz.world import World, tries
from msgctl.cli.tree import operation_of
from support.examples import FIRST

SANDBOX = "state/msgctl/sandbox.sqlite3"
HISTORY = "state/msgctl/history.sqlite3"

IN_THE_SANDBOX = [
    ["-p", "sandbox", *example.words, "--yes"]
    for example in FIRST
    if operation_of(example.node.command) or example.node.words[0] == "sandbox"
] + [["-p", "sandbox", "state", "get", "--last"]]
IN_THE_HISTORY = [
    ["history"],
    ["history", "--json", "--limit", "3"],
    ["history", "-o", "csv", "--phone", "573001234567", "--since", "7d"],
    ["-p", "main", "history", "clear", "--yes"],
    ["history", "clear", "--yes"],
    ["state", "get", "--last"],
    ["-p", "sandbox", "state", "get", "--last"],
    ["-p", "main", "sms", "send", "573001234567", "-m", "Hola"],
]


each_file = pytest.mark.parametrize(
    ("name", "lines"), [(SANDBOX, IN_THE_SANDBOX), (HISTORY, IN_THE_HISTORY)], ids=["sandbox", "history"]
)


@pytest.fixture
def used(world: World) -> World:
    """A sandbox and a history in which something has happened."""
    lines = [
        "sms send 573001230003 -m Hola",
        "call send 573001234567 -m Hola --voice Mia",
        "2fa send-sms 573001234567 --app-name Shop",
        "block add 573009999999",
        "url shorten https://example.com/offers --name offers --premium",
        "sandbox click offers --count 3",
        "chatapp send 573001234567 Ana --template t",
    ]
    for line in lines:
        assert world.run(["-p", "sandbox", *line.split()]).code == 0
    for name in (SANDBOX, HISTORY):
        change(world.home / name)
    world.keep()
    return world


@each_file
@tries(100)
@given(data=st.data())
def test_any_rows_end_well(data: st.DataObject, name: str, lines: list[list[str]], used: World) -> None:
    used.renew()
    wanted = data.draw(st.lists(changes(tables_of(used.home / name)), min_size=1, max_size=3))
    line = data.draw(st.sampled_from(lines))
    change(used.home / name, wanted)
    used.run(line)


@each_file
@tries(100)
@given(data=st.data())
def test_any_bytes_end_well(data: st.DataObject, name: str, lines: list[list[str]], used: World) -> None:
    used.renew()
    path = used.home / name
    path.write_bytes(data.draw(damaged_pages(path.read_bytes())))
    used.run(data.draw(st.sampled_from(lines)))
