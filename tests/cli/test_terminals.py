"""Commands with closed pipes, closed streams, and terminals of any size and encoding."""

from __future__ import annotations

import getpass
import io
import os
import subprocess
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import TextIO

import pytest

from conftest import KEY
from msgctl import cli
from msgctl.cli.context import Context
from msgctl.cli.process import Sink
from support.examples import OF_EACH_KIND, Example, line_of, write_files
from support.files import table, write_config
from support.runs import ended_well
from support.service import Service, answer
from support.tool import Clock
from support.tty import PATIENCE, RUN, Tty, forks

READABLE = {"id": "m1", "status": "7", "state": "delivered", "urlShort": "https://s.example/ñ"}
"""A response that every command can read."""

each_kind = pytest.mark.parametrize("example", OF_EACH_KIND, ids=line_of)


@pytest.fixture(autouse=True)
def world(service: Service, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Service:
    """Write the files and the job of the examples, and a profile for a server."""
    monkeypatch.chdir(tmp_path)
    write_files(tmp_path)
    write_config(f'default_profile = "main"\n{table("main", base_url=service.base_url, key=KEY)}')
    service.always(answer(READABLE))
    return service


# --- in this process


def run_with(example: Example, streams: Sequence[TextIO], *more: str) -> int:
    stdout, stderr = streams
    clock = Clock()
    source = io.TextIOWrapper(io.BytesIO(example.stdin))
    app = Context(stdin=source, stdout=stdout, stderr=stderr, clock=clock, monotonic=clock, sleep=clock.sleep)
    return cli.run([*example.words, *more], app)


@pytest.fixture
def unread() -> Iterator[TextIO]:
    """Return a pipe whose reader has closed it, as the tool writes to one."""
    reader, writer = os.pipe()
    os.close(reader)
    with io.TextIOWrapper(io.BufferedWriter(Sink(writer, "wb"))) as pipe:
        yield pipe


@each_kind
@pytest.mark.parametrize("read", ["stdout", "stderr", "neither"])
def test_a_closed_pipe_is_not_an_error(read: str, example: Example, unread: TextIO) -> None:
    content = io.BytesIO()
    stream = io.TextIOWrapper(content, write_through=True)
    code = run_with(example, [stream if read == name else unread for name in ("stdout", "stderr")], "-v")
    assert ended_well(code, content.getvalue().decode())
    assert b"could not be written" not in content.getvalue()


class Screen(io.TextIOWrapper):
    """A terminal of any encoding."""

    def isatty(self) -> bool:
        return True


@each_kind
@pytest.mark.parametrize(("encoding", "term"), [("ascii", "dumb"), ("utf-8", "xterm")])
def test_a_narrow_terminal_of_any_encoding_shows_a_result(
    encoding: str, term: str, example: Example, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(getpass, "getpass", lambda _: KEY)
    monkeypatch.setenv("COLUMNS", "20")
    monkeypatch.setenv("TERM", term)
    screens = [io.BytesIO(), io.BytesIO()]
    code = run_with(example, [Screen(each, encoding, write_through=True) for each in screens])
    shown = [each.getvalue().decode(encoding).replace("\r", "") for each in screens]
    assert ended_well(code, *shown, coloured=term == "xterm")


# --- as a process


def in_shell(example: Example, streams: str, **env: str) -> tuple[int, str]:
    """Run an example with streams that a shell redirects; return its exit code and output."""
    done = subprocess.run(
        ["sh", "-c", f'exec "$0" "$@" {streams}', *RUN, *example.words],
        input=example.stdin,
        capture_output=True,
        timeout=PATIENCE,
        check=False,
        env={**os.environ, **env},
    )
    encoding = env.get("PYTHONIOENCODING", "utf-8")
    return done.returncode, (done.stdout + done.stderr).decode(encoding)


QUESTION = rb"(Key: |Code: |\[y/N\] )$"


def on_tty(example: Example, term: str) -> tuple[int, str]:
    """Run an example on a terminal, and reply to its questions with Ctrl-D."""
    tty = Tty(*example.words, TERM=term)
    while tty.read_until(QUESTION):
        tty.shown += b"\n"
        tty.write(b"\x04")
    return tty.end(), tty.shown.decode().replace("\r", "")


ASCII = {"LC_ALL": "C", "PYTHONUTF8": "0", "PYTHONCOERCECLOCALE": "0", "MSGCTL_KEY": "plain"}
PLACES: dict[str, Callable[[Example], tuple[int, str]]] = {
    "no input": lambda example: in_shell(example, "<&-"),
    "an xterm": lambda example: on_tty(example, "xterm"),
    "no streams": lambda example: in_shell(example, "<&- >&- 2>&-"),
    "a dumb terminal": lambda example: on_tty(example, "dumb"),
    "C": lambda example: in_shell(example, "", LC_ALL="C"),
    "ASCII": lambda example: in_shell(example, "", **ASCII),
    "Latin-1": lambda example: in_shell(example, "", PYTHONIOENCODING="latin-1"),
}
VISITS = [
    (example, place) for place in PLACES for example in OF_EACH_KIND if example.node.path in ("sms send", "sms bulk")
]


@forks
@pytest.mark.parametrize(("example", "place"), VISITS, ids=lambda each: line_of(each) or each)
def test_a_command_ends_well_in_any_environment(example: Example, place: str) -> None:
    code, said = PLACES[place](example)
    assert ended_well(code, said, coloured=place == "an xterm")
