"""The words that begin the lines of stories, which README.md explains."""

from __future__ import annotations

import csv
import json
import re
import shlex
import shutil
import signal
import sqlite3
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import closing
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from support import PATIENCE
from support.forks import Process
from support.runs import COLOUR, ended_well
from support.server import Server
from support.tool import Tool, error_of
from support.workbooks import workbook

LISTS = Path(__file__).parent / "lists" / "files"
KEY = "story-key-that-never-shows"
Word = Callable[..., None]
WORDS: list[tuple[re.Pattern[str], Word]] = []


def word(pattern: str) -> Callable[[Word], Word]:
    """Register a method for the lines that match a pattern; its groups are the arguments, before the block."""

    def register(method: Word) -> Word:
        WORDS.append((re.compile(pattern), method))
        return method

    return register


class Scene:
    """A directory, a service, a clock, and the result of the last command."""

    def __init__(self, home: Path, environment: pytest.MonkeyPatch, *, observed: bool) -> None:
        self.home = home
        self.environment = environment
        self.server = Server(observed=observed)
        self.base_url = self.server.base_url
        self.tool = Tool()
        self.processes: list[Process] = []
        self.code = 0
        self.out = self.err = ""
        self.is_open = False
        self.step = self.command = ""
        variables = {"BASE_URL": self.base_url, "CLIENT": "12345", "KEY": KEY, "COUNTRY_CODE": "CO"}
        for name, value in variables.items():
            environment.setenv(f"MSGCTL_{name}", value)
        environment.setenv("TZ", "UTC")
        time.tzset()
        environment.chdir(home)
        if observed:
            self.tool("-p", "sandbox", "sandbox", "responses", "observed")

    def close(self) -> None:
        for process in self.processes:
            process.signal(signal.SIGKILL)
            process.end()
        self.server.stop()
        self.set(None, "TZ=UTC")

    def perform(self, place: str, line: str, block: list[str]) -> None:
        """Perform one line, with the indented lines below it; ``step`` is its place until an expectation fails."""
        self.step = f"{place}: {line}"
        soon = datetime.fromtimestamp(self.tool.clock.now + 60, UTC).isoformat()
        names = {"{service}": self.base_url, "{home}": str(self.home), "{in a minute}": soon}
        for name, text in names.items():
            line, *block = (part.replace(name, text) for part in (line, *block))
        for pattern, method in WORDS:
            if match := pattern.fullmatch(line):
                method(self, *match.groups(), *([block] if block else []))
                return
        raise ValueError(f"no word of the stories begins this line: {line}")

    # --- before a command

    @word(r"file (\S+)(?: of mode (\d+))?")
    def file(self, name: str, mode: str | None, lines: Sequence[str] = ()) -> None:
        path = self.home / name
        if path.suffix == ".xlsx":
            path.write_bytes(workbook(*csv.reader(lines)))
        else:
            path.write_text("".join(f"{line}\n" for line in lines), encoding="utf-8")
        path.chmod(int(mode or "600", 8))

    @word(r"list (\S+)")
    def copy_list(self, name: str) -> None:
        shutil.copy(LISTS / name, self.home)

    @word(r"a newer version used (\S+)")
    def newer(self, store: str) -> None:
        with closing(sqlite3.connect(self.home / store)) as db, db:
            db.execute("UPDATE meta SET value = '9999' WHERE name = 'version'")

    @word(r"(un)?set (.*)")
    def set(self, undone: str | None, variables: str) -> None:
        for name, _, value in (variable.partition("=") for variable in variables.split()):
            if undone:
                self.environment.delenv(name)
            else:
                self.environment.setenv(name, value)
        time.tzset()

    @word(r"clock (?:([+-]\d+)(s|m|h|d)|(.*))")
    def clock(self, number: str | None, unit: str, when: str) -> None:
        if number:
            self.tool.clock.now += int(number) * {"s": 1, "m": 60, "h": 3600, "d": 86400}[unit]
        else:
            self.tool.clock.now = datetime.fromisoformat(when).replace(tzinfo=UTC).timestamp()

    @word(r"the service (goes down|comes back|continues)")
    def reach(self, change: str) -> None:
        if change == "goes down":
            self.server.go_down()
        elif change == "comes back":
            self.server.come_back()
        else:
            self.server.released.set()

    @word(
        r"the service (responds|is silent|hangs up|waits)(?: (\d{3}))?(?: with ([\w-]+: \S+))?(?: (to .*?))?(?:: (.*))?"
    )
    def service(self, action: str, status: str | None, header: str | None, to: str | None, body: str | None) -> None:
        self.server.script(action, int(status or 200), header or "", to, body or "")

    # --- commands

    @word(r"run(?: on a terminal(?:, typing (.*?))?(:))? msgctl (.*)")
    def run(self, typed: str | None, terminal: str | None, line: str) -> None:
        self.settle()
        arguments, source, target = split(line)
        stdin = (self.home / source).read_bytes() if source else b""
        if typed:
            stdin = (typed.replace(", ", "\n") + "\n").encode()
        sleep: Callable[[float], None] = self.tool.clock.sleep
        if self.processes:
            self.tool.clock.now, sleep = time.time(), time.sleep
        done = self.tool(*arguments, stdin=stdin, terminal=bool(terminal), sleep=sleep)
        assert ended_well(done.code, done.out, done.err, coloured=bool(terminal))
        if target:
            (self.home / target).write_bytes(done.stdout)
        self.finish(done.code, done.out, done.err)

    @word(r"start msgctl (.*)")
    def start(self, line: str) -> None:
        self.settle()
        self.tool.clock.now = time.time()
        self.processes.append(Process(shlex.split(line)))

    @word(r"wait for (\d+) (requests?|seconds?)(?: to (\S+))?")
    def wait(self, number: str, unit: str, path: str | None) -> None:
        if unit.startswith("second"):
            time.sleep(int(number))
        else:
            assert self.server.wait_for(int(number), path, PATIENCE), f"{len(self.server.requests(path))} arrived"

    @word(r"(kill|interrupt|terminate)")
    def signal(self, name: str) -> None:
        numbers = {"kill": signal.SIGKILL, "interrupt": signal.SIGINT, "terminate": signal.SIGTERM}
        self.processes[0].signal(numbers[name])
        if name == "kill":
            self.processes.pop(0).end()

    @word(r"(the process exits|exit) (\d+(?: or \d+)?)")
    def exit(self, which: str, codes: str) -> None:
        if which != "exit":
            self.settle()
            self.finish(*self.processes.pop(0).end())
        self.is_open = False
        assert str(self.code) in codes.split(" or "), f"exit {self.code}\n{self.out}\n{self.err}"

    def finish(self, code: int, out: str, err: str) -> None:
        """Keep the result of a command for the expectations that follow."""
        self.code, self.out, self.err, self.is_open = code, COLOUR.sub("", out), COLOUR.sub("", err), True
        self.command = self.step
        assert KEY not in out + err

    def settle(self) -> None:
        """Expect exit code 0 if no ``exit`` line follows the last command."""
        if self.is_open:
            step, self.step = self.step, self.command
            self.exit("exit", "0")
            self.step = step

    # --- expectations

    @word(r"(prints|does not print)( on standard error)?(?: (.*))?")
    def prints(self, verb: str, error: str | None, text: str | None, lines: list[str] | None = None) -> None:
        shown = self.err if error else self.out
        if text == "nothing":
            lines = []
        if text is None or lines is not None:
            assert shown.replace("\t", "  ").splitlines() == lines, f"{shown}\n{self.err}"
        else:
            assert (text in shown) == (verb == "prints"), f"{shown}\n{self.err}"

    @word(r"shows (.*)")
    def shows(self, fields: str) -> None:
        assert any(fields_of(fields).items() <= row.items() for row in self.rows()), f"{self.out}\n{self.err}"

    @word(r"(\d+) rows?")
    def count(self, number: str) -> None:
        assert len(list(self.rows())) == int(number), f"{self.out}\n{self.err}"

    @word(r"error (.*)")
    def error(self, fields: str) -> None:
        error = error_of(self.err)
        assert error["exit_code"] == self.code
        assert fields_of(fields).items() <= {name: text_of(error[name]) for name in error}.items(), error

    @word(r"arrived(?: (nothing|\d+ requests?)(?: to (\S+))?)?")
    def arrived(self, number: str | None, path: str | None, lines: list[str] | None = None) -> None:
        if number is None:
            messages = sorted(self.server.messages)
            assert messages == sorted(lines or []), "\n".join(["arrived", *messages, self.err])
            return
        requests = self.server.requests(path)
        expected = 0 if number == "nothing" else int(number.split()[0])
        assert len(requests) == expected, [(request.path, request.body) for request in requests]

    def rows(self) -> Iterator[dict[str, str]]:
        """Read standard output: JSON documents, or csv or tsv with a header line."""
        text = self.out.strip()
        if not text.startswith(("{", "[")):
            separator = "\t" if "\t" in text.partition("\n")[0] else ","
            yield from csv.DictReader(text.splitlines(), delimiter=separator)
        while text.startswith(("{", "[")):
            document, end = json.JSONDecoder().raw_decode(text)
            text = text[end:].strip()
            for row in document if isinstance(document, list) else [document]:
                yield {name: text_of(value) for name, value in row.items()}


def text_of(value: Any) -> str:
    return value if isinstance(value, str) else json.dumps(value)


def fields_of(text: str) -> dict[str, str]:
    return dict(field.split("=", 1) for field in shlex.split(text))


def split(line: str) -> tuple[list[str], str | None, str | None]:
    """Return the arguments of a command line, and the files after ``<`` and ``>``."""
    words = shlex.split(line)
    files: dict[str, str] = {}
    if len(words) > 1 and words[-2] in ("<", ">"):
        *words, direction, name = words
        files[direction] = name
    return words, files.get("<"), files.get(">")
