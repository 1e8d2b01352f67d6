"""Measure how much longer each command takes with 2,000 jobs of 1,000 recipients in the store than with ten.

Run it as ``python tests/benchmarks/many.py [sqlite] [postgresql]``; without names, with SQLite. PostgreSQL needs its
programs and `pip install '.[postgresql]' trustme`. The store is in TMPDIR and takes about 800 MB. It measures
each command with ten jobs, adds the others, and measures again. It prints the fastest of some runs, in seconds. At the
end it removes 400 jobs while another job sends, and prints the longest pause between the requests of that job.
"""

from __future__ import annotations

import contextlib
import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from itertools import pairwise
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from benchmarks.jobs import Server, environment, responding
from msgctl.config import profiles, urls
from msgctl.jobs.settings import Settings
from msgctl.store import jobs, recipients
from msgctl.store.database import Database
from msgctl.store.queue import ExclusionRules
from msgctl.store.recipients import NewContent, NewRecipient
from msgctl.store.store import Store, open_store
from store.campaigns import sent

FEW, JOBS, ROWS = 10, 2000, 1000
REMOVED = 400
RUNS = 3
TOGETHER = 50
DAY = 86_400_000
DAYS = 200
"""The number of days over which the creation of the jobs is spread."""
MOST = 0.1
"""The goal: how many seconds longer a command may take."""


class Tool:
    """Runs msgctl with the store at ``location``."""

    def __init__(self, server: Server, directory: Path, location: str) -> None:
        self.server, self.directory, self.location = server, directory, location

    def start(self, *arguments: str) -> subprocess.Popen[str]:
        environ = environment(self.server, self.directory, self.location)
        command = [sys.executable, "-m", "msgctl", *arguments]
        return subprocess.Popen(command, env=environ, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)

    def run(self, *arguments: str) -> str:
        with self.start(*arguments) as process:
            output, _ = process.communicate()
            assert process.returncode == 0, arguments
            return output


def fill(store: Store, base_url: str, number: int) -> None:
    """Add ended jobs: copies of one job that is sent with the functions of the store."""
    settings = Settings("sms send", "people.csv", profiles.ENVIRONMENT, base_url, 1, {})
    account = urls.account(base_url, 1)
    first = jobs.create(store, account, profiles.ENVIRONMENT, "sms bulk", settings.dump())
    people = [NewRecipient(line, f"{573_000_000_000 + 7 * line}", 1) for line in range(2, ROWS + 2)]
    recipients.add(store, first, [NewContent(1, json.dumps({"sms": "Hola"}), b"text", 1)], people)
    jobs.publish(store, first, state="active", digest=b"")
    sent(store, first, rules=ExclusionRules("sms", again=True), size=ROWS)
    for start in range(1, number, TOGETHER):
        with store.db.transaction("copy"):
            for copy in range(start, min(start + TOGETHER, number)):
                _copy(store.db, first, copy, DAY * DAYS * copy // number)


def _copy(db: Database, first: int, copy: int, age: int) -> None:
    """Add an older copy of a job with other recipients."""
    columns = [
        name for name in jobs.JOB_COLUMNS.split(", ") if name not in ("number", "id", "created", "begun", "updated")
    ]
    listed = ", ".join(columns)
    number = db.value(
        f"""INSERT INTO job (id, created, begun, updated, is_contact, {listed})
        SELECT ?, created - {age}, begun - {age}, updated - {age}, is_contact, {listed}
        FROM job WHERE number = {first} RETURNING number""",
        (f"20260101-{first:02x}{copy:04x}",),
    )
    db.change(f"INSERT INTO content SELECT {number}, number, parameters, digest, cost FROM content WHERE job = {first}")
    phone = f"CAST(CAST(phone AS BIGINT) + {number * 7919} AS TEXT)"
    db.change(
        f"""INSERT INTO recipient SELECT {number}, line, {phone}, content, outcome, reason, columns
        FROM recipient WHERE job = {first}"""
    )
    db.change(
        f"""INSERT INTO result SELECT {number}, line, attempt, content, {phone}, time - {age}, request, outcome,
        id || '-{number}', status, credits, state, error FROM result WHERE job = {first}"""
    )
    db.change(
        f"""INSERT INTO usage SELECT {number}, (time - {age}) / 900000 * 900000, country, messages, credits
        FROM usage WHERE job = {first}"""
    )


def measure(tool: Tool, round_: str) -> dict[str, float]:
    """Return the time of the fastest of some runs of each command."""
    people = tool.directory / "three.csv"
    times: dict[str, float] = {}
    for number in range(RUNS):
        people.write_text("phone\n" + "".join(f"57{3_100_000_000 + each}\n" for each in range(3)))
        tool.run("sms", "bulk", str(people), "-m", "Hola", "--at", _soon(), "--yes", "--quiet")
        commands = {
            "sms bulk, 3 people": ("sms", "bulk", str(people), "-m", f"{round_} {number}", "--yes", "--quiet"),
            "job list": ("job", "list"),
            "history": ("history", "--limit", "20"),
            "history --phone": ("history", "--phone", "573000000014"),
            "usage": ("usage",),
            "usage --since 30d": ("usage", "--since", "30d"),
            "usage --by country": ("usage", "--by", "country"),
            "job run-due": ("job", "run-due"),
            "job show": ("job", "show", "--last"),
        }
        for name, command in commands.items():
            began = time.monotonic()
            tool.run(*command)
            times[name] = min(times.get(name, 1e9), time.monotonic() - began)
    return times


def _soon() -> str:
    return time.strftime("%Y-%m-%d %H:%M:%S", time.localtime(time.time() + 3600))


def removal(tool: Tool) -> None:
    """Remove jobs while another job sends."""
    lines = tool.run("job", "list", "--fields", "job,state", "--no-header").splitlines()
    names = [line.split("\t")[0] for line in lines if line.endswith("done")]
    people = tool.directory / "many.csv"
    people.write_text("phone\n" + "".join(f"57{3_200_000_000 + each}\n" for each in range(100_000)))
    options = ("--batch-size", "1", "--concurrency", "4", "--rate", "200", "--yes", "--quiet")
    sender = tool.start("sms", "bulk", str(people), "-m", "while others are removed", *options)
    time.sleep(8)
    tool.server.arrivals()
    began = time.monotonic()
    tool.run("job", "remove", *names[:REMOVED], "--yes", "--quiet")
    seconds = time.monotonic() - began
    times = [arrival for arrival, _ in tool.server.arrivals()]
    sender.kill()
    sender.communicate()
    gap = max(after - before for before, after in pairwise(times))
    print(f"  {REMOVED} jobs removed in {seconds:.1f} s; the longest pause of another job: {gap:.2f} s")


def compare(server: Server, directory: Path, location: str) -> None:
    tool = Tool(server, directory, location)
    with contextlib.closing(open_store(location)) as store:
        fill(store, tool.server.base_url, FEW)
    few = measure(tool, "few")
    began = time.monotonic()
    with contextlib.closing(open_store(location)) as store:
        fill(store, tool.server.base_url, JOBS)
        if location != str(directory / "store.sqlite3"):
            store.db.change("ANALYZE")  # PostgreSQL does so by itself, but a minute later
    print(f"  {JOBS:,} jobs of {ROWS:,} recipients added in {time.monotonic() - began:.0f} s")
    many = measure(tool, "many")
    for name, seconds in many.items():
        more = seconds - few[name]
        print(f"  {name:20} {few[name]:6.2f} {seconds:6.2f} {more:+6.2f}{'' if more <= MOST else '  over the goal'}")
    removal(tool)


def main(names: Sequence[str]) -> None:
    for name in names or ("sqlite",):
        print(f"{name} (seconds beside {FEW} jobs, beside {JOBS:,}, difference), load {os.getloadavg()[0]:.1f}:")
        with contextlib.ExitStack() as stack:
            server = stack.enter_context(responding())
            directory = Path(stack.enter_context(tempfile.TemporaryDirectory()))
            location = str(directory / "store.sqlite3")
            if name == "postgresql":
                from support.postgres import running

                location = stack.enter_context(running("fsync=on", "shared_buffers=128MB")).url()
            compare(server, directory, location)


if __name__ == "__main__":
    main(sys.argv[1:])
