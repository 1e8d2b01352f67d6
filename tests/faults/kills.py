"""Kill real processes of msgctl while they send: `python tests/faults/kills.py --kills 200 --store postgresql`.

Machines of equal names share a store and send to a service on loopback. A process is killed at a random moment, and
another machine continues its job. With PostgreSQL, some processes instead lose their session, the database is killed,
the network is cut during a commit, or a process is stopped until another machine has taken its job. Clocks are an hour
off.
"""

from __future__ import annotations

import argparse
import os
import select
import signal
import socket
import subprocess
import sys
import tempfile
import threading
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import ExitStack, closing, contextmanager, suppress
from pathlib import Path
from random import Random
from typing import Any

if __name__ == "__main__":
    sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from msgctl.config import profiles
from msgctl.store import jobs, results
from msgctl.store.store import open_store
from support.counting_server import CountingServer, counting
from support.postgres import USER, Cluster, running

NUMBER = 40
"""Recipients of a job."""
ENDED = 120.0
"""Seconds in which every process has ended."""
CLOCK = "import os, time\nnow = time.time\ntime.time = lambda: now() + float(os.environ['CLOCK_OFFSET'])\n"
"""Code that Python runs at its start, so that the clock of a machine is wrong."""


class WrongError(AssertionError):
    """Somebody was sent to twice, or is lost."""


class Room:
    """Three machines with a directory each, one store, and one service."""

    def __init__(self, directory: Path, store: str, server: CountingServer, dice: Random) -> None:
        self.directory, self.store, self.server, self.dice = directory, store, server, dice
        self.jobs = 0
        (directory / "hooks").mkdir()
        (directory / "hooks" / "sitecustomize.py").write_text(CLOCK)

    def start(self, machine: int, *arguments: str, store: str = "", offset: float = 0.0) -> subprocess.Popen[str]:
        """Start msgctl on a machine."""
        home = self.directory / f"machine-{machine}"
        home.mkdir(exist_ok=True)
        environ = {name: text for name, text in os.environ.items() if not name.startswith(("MSGCTL_", "XDG_"))}
        environ |= {
            "HOME": str(home),
            "MSGCTL_STORE": store or self.store,
            "MSGCTL_BASE_URL": self.server.base_url,
            "MSGCTL_CLIENT": "3",
            "MSGCTL_KEY": "the-key",
            "PYTHONPATH": str(self.directory / "hooks"),
            "CLOCK_OFFSET": str(offset),
        }
        return subprocess.Popen(
            [sys.executable, "-m", "msgctl", *arguments],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            env=environ,
        )

    def plant(self, code: str) -> None:
        """Have Python do something else at the start of each process, such as breaking msgctl."""
        with (self.directory / "hooks" / "sitecustomize.py").open("a") as file:
            file.write(code)

    @property
    def account(self) -> str:
        return profiles.account(self.server.base_url, "3")

    def new_job(self) -> Job:
        self.jobs += 1
        return Job(self, self.jobs)


class Job:
    """A job under a name: the same command continues it on any machine."""

    def __init__(self, room: Room, number: int) -> None:
        self.room = room
        self.name = f"job-{number}"
        self.phones = [f"57300{number:04}{line:03}" for line in range(NUMBER)]
        self._file = room.directory / f"{self.name}.csv"
        self._file.write_text("\n".join(["phone", *self.phones]))

    def begin(self, machine: int, store: str = "", *more: str) -> subprocess.Popen[str]:
        """Start or continue it, on a machine whose clock may be off."""
        options = ("--name", self.name, "--batch-size", "2", "--concurrency", "4", "--yes", *more)
        offset = self.room.dice.choice((0.0, 3600.0, -3600.0))
        line = ("sms", "bulk", str(self._file), "-m", f"Text of {self.name}", *options)
        return self.room.start(machine, *line, store=store, offset=offset)

    def arrived(self) -> Counter[str]:
        times = self.room.server.arrived()
        return Counter({phone: times[phone] for phone in self.phones if times[phone]})

    def wait(self, process: subprocess.Popen[str], number: int) -> bool:
        """Wait until this many recipients were sent to; return whether the process is still running."""
        while process.poll() is None and sum(self.arrived().values()) < number:
            time.sleep(0.005)
        return process.poll() is None

    def finish(self) -> None:
        """Continue it on other machines until it is done, and check it. Raises WrongError."""
        with closing(open_store(self.room.store)) as store:
            for machine in range(10):
                job = jobs.named(store, self.room.account, self.name)
                if job is not None and job.state == "done":
                    break
                end(self.begin(machine % 3))
            else:
                raise WrongError(f"{self.name} does not end")
            results.check_counts(store, job)
            query = "SELECT phone, outcome FROM result WHERE job = ? ORDER BY attempt"
            outcomes: dict[str, str] = dict(store.db.rows(query, (job.number,)))
        arrived = self.arrived()
        for phone in self.phones:
            outcome = outcomes.get(phone)
            if arrived[phone] > 1 or outcome not in ("accepted", "unknown"):
                raise WrongError(f"{phone} got {arrived[phone]} messages and is {outcome}")
            if outcome == "accepted" and not arrived[phone]:
                raise WrongError(f"{phone} is accepted, but got nothing")


def end(process: subprocess.Popen[str], *, kill: bool = False) -> str:
    """Wait for the end of a process, perhaps after a kill; return its standard error."""
    if kill:
        process.kill()
    _, err = process.communicate(timeout=ENDED)
    if "Traceback" in err:
        raise WrongError(err)
    return err


def killed(room: Room) -> int:
    """Kill the processes of a job at random moments; return how many kills there were."""
    job, kills = room.new_job(), 0
    for _ in range(room.dice.randint(4, 8)):
        process = job.begin(room.dice.randrange(3))
        before = sum(job.arrived().values())
        if room.dice.random() < 0.3:
            time.sleep(room.dice.uniform(0, 1.0))
        else:
            job.wait(process, before + room.dice.randint(1, 8))
            time.sleep(room.dice.uniform(0, 0.02))
        kills += process.poll() is None
        end(process, kill=True)
    job.finish()
    return kills


def due_on_three_machines(room: Room) -> None:
    """Schedule two jobs, and run the due ones on three machines at once."""
    scheduled = [room.new_job(), room.new_job()]
    for job in scheduled:
        at = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(time.time() + 7200))
        end(job.begin(0, "", "--at", at))
    for process in [room.start(machine, "job", "run-due", offset=4 * 3600) for machine in range(3)]:
        end(process)
    for job in scheduled:
        if len(job.arrived()) != NUMBER:
            raise WrongError(f"{job.name} was sent to {len(job.arrived())} of {NUMBER} people")
        job.finish()


# --- faults of PostgreSQL and of the network


def stopped(room: Room, cluster: Cluster) -> None:
    """Stop a process, end its session, let another machine finish its job, and continue the process."""
    job = room.new_job()
    process = job.begin(0)
    if job.wait(process, room.dice.randint(1, 20)):
        process.send_signal(signal.SIGSTOP)
        end_sessions(cluster)
        end(job.begin(1))
        process.send_signal(signal.SIGCONT)
    end(process)
    job.finish()


def session_lost(room: Room, cluster: Cluster) -> None:
    """End the session of a process that lives."""
    job = room.new_job()
    process = job.begin(0)
    if job.wait(process, room.dice.randint(1, 20)):
        end_sessions(cluster)
        other = job.begin(1)
        end(process)
        end(other)
    job.finish()


def database_killed(room: Room, cluster: Cluster) -> None:
    """Kill all processes of the database, and start it again."""
    job = room.new_job()
    process = job.begin(0)
    job.wait(process, room.dice.randint(1, 20))
    cluster.kill()
    time.sleep(room.dice.choice((0.0, 0.5)))
    cluster.start()
    end(process)
    job.finish()


def network_cut(room: Room, cluster: Cluster) -> None:
    """Cut the connection with the database during a commit, before or after it is stored."""
    job = room.new_job()
    with cutting(cluster.port, room.dice.randint(3, 12), after=room.dice.random() < 0.5) as port:
        end(job.begin(0, cluster.url(port=port)))
    job.finish()


POSTGRESQL = (stopped, session_lost, database_killed, network_cut)


def end_sessions(cluster: Cluster) -> None:
    cluster.admin(f"SELECT pg_terminate_backend(pid, 10000) FROM pg_stat_activity WHERE usename = '{USER}'")


@contextmanager
def cutting(port: int, number: int, *, after: bool) -> Iterator[int]:
    """A proxy of a server that cuts all connections at a commit: on its way there, or ``after`` it on its way back."""
    listener = socket.create_server(("127.0.0.1", 0))
    commits = [0]

    def serve(client: socket.socket) -> None:
        with suppress(OSError), client, socket.create_connection(("127.0.0.1", port)) as server:
            others = {client: server, server: client}
            while True:
                for source in select.select([client, server], [], [], ENDED)[0]:
                    chunk = source.recv(65536)
                    if source is (server if after else client):
                        commits[0] += chunk.count(b"COMMIT")
                    if not chunk or commits[0] >= number:
                        return
                    others[source].sendall(chunk)

    def accept() -> None:
        with suppress(OSError):
            while True:
                threading.Thread(target=serve, args=(listener.accept()[0],), daemon=True).start()

    threading.Thread(target=accept, daemon=True).start()
    try:
        yield listener.getsockname()[1]
    finally:
        with suppress(OSError):
            listener.shutdown(socket.SHUT_RDWR)
        listener.close()


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--kills", type=int, default=200)
    parser.add_argument("--store", choices=("sqlite", "postgresql"), default="sqlite")
    parser.add_argument("--others", type=int, default=5, help="how often each other fault happens")
    parser.add_argument("--seed", type=int, default=1)
    given = parser.parse_args()
    started, counts, wrong = time.monotonic(), Counter[str](), 0
    with ExitStack() as stack:
        directory = Path(stack.enter_context(tempfile.TemporaryDirectory()))
        server = stack.enter_context(counting(0.01))
        cluster = stack.enter_context(running("fsync=on")) if given.store == "postgresql" else None
        store = cluster.url() if cluster else str(directory / "store.sqlite3")
        room = Room(directory, store, server, Random(given.seed))
        tasks: list[Any] = [due_on_three_machines] * given.others
        if cluster:
            tasks += POSTGRESQL * given.others
        while tasks or counts["kills"] < given.kills:
            task = tasks.pop() if tasks else killed
            try:
                if task is killed:
                    counts["kills"] += killed(room)
                else:
                    task(room, *([cluster] if task in POSTGRESQL else []))
                    counts[task.__name__.replace("_", " ")] += 1
            except AssertionError as error:
                wrong += 1
                print(f"{task.__name__} of job {room.jobs}: {error}", flush=True)
            print(f"\r{dict(counts)}, {wrong} wrong ", end="", file=sys.stderr, flush=True)
    found = ", ".join(f"{name} {number}" for name, number in counts.items())
    print(f"{given.store}: {found} in {room.jobs} jobs, {wrong} wrong, {time.monotonic() - started:.0f} s")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
