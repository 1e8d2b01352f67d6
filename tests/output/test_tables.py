"""Tables hold everything, at every width, and nothing in them acts on the terminal."""

from __future__ import annotations

import io
import os
import pty
import re
import subprocess
import sys
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from msgctl import operations
from msgctl.operations import OPERATIONS
from msgctl.output import views
from msgctl.output.cells import width_of
from msgctl.output.form import Format
from msgctl.output.printer import MOST_PAINTED
from msgctl.output.screen import Screen
from msgctl.text import clean, is_unsafe
from output.support import FIRST, SECOND, answer, dispatch, printed, state

_texts = st.text(max_size=120) | st.sampled_from(
    ["[red]x[/red]", "\x1b]0;title\x07", ":smile:", "\u202eabc", "漢" * 50]
)
_ESCAPES = re.compile(r"\x1b\[[0-9;]*m")


def joined(text: str) -> str:
    return "".join(text.split())


@given(text=_texts, width=st.sampled_from([None, 20, 40, 80, 90, 120]), color=st.booleans())
def test_any_text_is_shown_whole_and_clean(text: str, width: int | None, color: bool) -> None:
    output = printed(lambda printer: printer.answer(dispatch(text)), width, color=color)
    plain = _ESCAPES.sub("", output)
    assert not any(is_unsafe(char) for char in plain if char != "\n")
    assert joined(clean(text)) in joined(plain)
    if width is not None:
        assert max(map(width_of, plain.split("\n"))) <= width


@given(
    name=st.text(min_size=1, max_size=50),
    value=st.recursive(_texts | st.integers() | st.none(), lambda inner: st.lists(inner, max_size=3), max_leaves=5),
    width=st.sampled_from([1, 20, 40, None]),
)
def test_unknown_members_of_any_name_and_value_are_shown(name: str, value: Any, width: int | None) -> None:
    added = answer(operations.VERIFY_2FA, {"status": "verified", name: value})
    output = printed(lambda printer: printer.answer(added), width)
    assert not any(is_unsafe(char) for char in output if char != "\n")
    assert joined(clean(name)) in joined(output)


@pytest.mark.parametrize("width", [None, 200, 120, 80, 60, 40])
def test_identifiers_and_phones_are_never_broken(width: int | None) -> None:
    for output in (
        printed(lambda printer: printer.answer(dispatch()), width),
        printed(lambda printer: printer.answers([state(FIRST, "sent"), state(SECOND, "sent")]), width),
    ):
        assert {FIRST, SECOND, "573001234567"} <= set(output.split())


def test_colour_changes_no_character() -> None:
    plain = printed(lambda printer: printer.answer(dispatch()), 80)
    painted = printed(lambda printer: printer.answer(dispatch()), 80, color=True)
    assert _ESCAPES.sub("", painted) == plain
    assert "\x1b[31mrejected\x1b[0m" in painted
    assert "\x1b[33msent\x1b[0m" in painted


def test_colour_can_be_forced_where_there_is_no_terminal() -> None:
    output = printed(lambda printer: printer.answer(dispatch("x" * 500)), color=True)
    assert "x" * 500 in output
    assert "\x1b[1mphone\x1b[0m" in output


@pytest.mark.parametrize(
    ("column", "value", "style"),
    [
        ("state", "delivered", "green"),
        ("data.status", "Not Answered", "red"),
        ("status", "queued", "yellow"),
        ("status", "1", ""),
        ("sms", "delivered", ""),
    ],
)
def test_states_are_coloured_and_nothing_else(column: str, value: str, style: str) -> None:
    assert views.state_style(column, value) == style


def test_a_long_table_is_plain() -> None:
    rows = [{"line": number, "state": "sent"} for number in range(MOST_PAINTED + 1)]
    assert "\x1b" not in printed(lambda printer: printer.own(rows, ("line", "state")), 80, color=True)
    assert "\x1b" in printed(lambda printer: printer.own(rows[1:], ("line", "state")), 80, color=True)


def test_columns_that_may_not_wrap_become_a_listing() -> None:
    rows = [{"state": "sent", "id": FIRST}, {"state": "queued", "id": SECOND}]
    assert printed(lambda printer: printer.own(rows, ("state", "id")), 38) == (
        f"state  sent\nid\n  {FIRST}\n\nstate  queued\nid\n  {SECOND}\n"
    )


def test_a_state_alone_among_the_fields_is_a_column() -> None:
    states = [state(FIRST, "sent"), state(SECOND, "queued")]
    assert printed(lambda printer: printer.answers(states), 40, fields=("state",)) == "state\nsent\nqueued\n"


@pytest.mark.parametrize("data", [[], None])
def test_a_dispatch_without_entries_is_its_summary(data: list[Any] | None) -> None:
    empty = answer(operations.SEND_SMS, {"id": "d1", "status": 0, "data": data})
    assert printed(lambda printer: printer.answer(empty), 80) == "id d1   status 0\n"


@pytest.mark.parametrize("format", list(Format))
def test_no_answers_are_no_output(format: Format) -> None:
    assert printed(lambda printer: printer.answers([]), None, format) == ""


@pytest.mark.parametrize("operation", OPERATIONS, ids=lambda operation: operation.name)
def test_every_view_shows_every_member_of_its_record(operation: operations.Operation) -> None:
    record = operation.answer
    view = views.view_of(record)
    assert sorted(view.columns) == sorted(views.names(record))
    if record.entries:
        assert {*view.summary, "data"} == {member.name for member in record.members}


def test_an_answer_that_names_a_new_member_in_every_entry_has_a_bound() -> None:
    entries = [{f"member{number}": number} for number in range(500)]
    wild = answer(operations.SEND_SMS, {"id": "d1", "data": entries})
    header = printed(lambda printer: printer.answer(wild), None, Format.CSV).splitlines()[0]
    assert header.count(",") == 4 + views.MOST_UNKNOWN


def test_a_pipe_without_colour_does_not_load_rich() -> None:
    program = """
import sys
from msgctl import operations
from msgctl.http.response import read
from msgctl.output.form import Format
from msgctl.output.printer import Printer
from msgctl.output.screen import Screen
answer = read(operations.BALANCE, b'{"status": 3}')
for format in Format:
    Printer(Screen.of(sys.stdout, False), format).answer(answer)
sys.exit("rich" in sys.modules or "http.client" in sys.modules)
"""
    env = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}
    result = subprocess.run([sys.executable, "-c", program], env=env, capture_output=True, text=True, check=False)
    assert (result.returncode, result.stderr) == (0, "")
    assert result.stdout.startswith("status  3 credits\n")


def test_a_screen_knows_a_pipe_from_a_terminal_and_its_width(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("COLUMNS", raising=False)
    assert Screen.of(io.TextIOWrapper(io.BytesIO(), encoding="ascii"), False).width is None
    leader, follower = pty.openpty()
    with open(leader, "rb", 0), open(follower, "w", encoding="utf-8") as terminal:  # noqa: PTH123 - descriptors
        assert Screen.of(terminal, True) == Screen(terminal, 80, True, True)
        monkeypatch.setenv("COLUMNS", "40")
        assert Screen.of(terminal, False).width == 40
        monkeypatch.setenv("COLUMNS", "wide")
        assert Screen.of(terminal, False).width == 80


@pytest.mark.parametrize(("encoding", "unicode"), [("utf-8", True), ("ascii", False), ("latin-1", False)])
def test_a_screen_knows_whether_block_characters_can_be_shown(encoding: str, unicode: bool) -> None:
    assert Screen.of(io.TextIOWrapper(io.BytesIO(), encoding=encoding), False).unicode is unicode
